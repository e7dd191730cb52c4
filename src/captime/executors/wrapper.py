"""An executor around another one: everything is passed on, and a member of this family changes one thing."""

from collections.abc import Sequence

from captime.arrays import IntArray
from captime.executors.protocol import Executor
from captime.runs import RunOutcome, RunRequest


class ExecutorWrapper:
    """Passes everything on.

    Args:
        inner: Does the runs.
    """

    def __init__(self, inner: Executor) -> None:
        self._inner = inner

    @property
    def slots(self) -> int:
        """See the protocol."""
        return self._inner.slots

    @property
    def ahead(self) -> int:
        """See the protocol."""
        return self._inner.ahead

    @property
    def now(self) -> float:
        """See the protocol."""
        return self._inner.now

    def submit(self, requests: Sequence[RunRequest]) -> None:
        """See the protocol."""
        self._inner.submit(requests)

    def collect(self, timeout: float | None = None) -> list[RunOutcome]:
        """See the protocol."""
        return self._inner.collect(timeout)

    def watch(self) -> list[tuple[RunRequest, float]]:
        """See the protocol."""
        return self._inner.watch()

    def cancel(self, configs: IntArray) -> None:
        """See the protocol."""
        self._inner.cancel(configs)

    def stop(self) -> None:
        """See the protocol."""
        self._inner.stop()

    def close(self) -> None:
        """See the protocol."""
        self._inner.close()
