"""What an executor looks like."""

from collections.abc import Sequence
from typing import Protocol

from captime.arrays import IntArray
from captime.runs import RunOutcome, RunRequest


class Executor(Protocol):
    """Does requests, several at a time. Every request that was submitted comes back exactly once, as some outcome."""

    @property
    def slots(self) -> int:
        """How many runs can be under way at once."""
        ...

    @property
    def ahead(self) -> int:
        """How many more requests it holds gladly, so that a free slot need not wait for the next decision."""
        ...

    @property
    def now(self) -> float:
        """Wall-clock seconds since the executor was made."""
        ...

    def submit(self, requests: Sequence[RunRequest]) -> None:
        """Start these runs; those that find no free slot wait for one."""
        ...

    def collect(self, timeout: float | None = None) -> list[RunOutcome]:
        """What has come back, in the order in which it did; waits until there is something, or for so many seconds.

        Empty if nothing is under way, or if nothing came back in time.
        """
        ...

    def watch(self) -> list[tuple[RunRequest, float]]:
        """Runs under way, each with the CPU seconds since its very first start at which it was last seen unfinished."""
        ...

    def cancel(self, configs: IntArray) -> None:
        """Stop all runs of these configurations; they come back as CAPPED, after the seconds they took."""
        ...

    def stop(self) -> None:
        """Stop all runs, whosever they are, as `cancel` does; for good, where `cancel` may be declined."""
        ...

    def close(self) -> None:
        """Stop everything; nothing comes back any more."""
        ...
