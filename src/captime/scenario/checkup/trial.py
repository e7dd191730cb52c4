"""A few runs of the real program, one after the other, through the same supervisors that a campaign uses."""

import os
from types import TracebackType
from typing import Self

from captime.executors.local import LocalExecutor
from captime.programs.protocol import Program
from captime.runs import RunOutcome, RunRequest
from captime.supervision.orphans import own_tag, sweep, sweep_abandoned
from captime.supervision.processes import tagged


class Trial:
    """One slot for trying things out.

    Args:
        program: What is run.
        isolation: The level that was asked for; None for the best.

    Attributes:
        executor: The slot.
        tag: What the tags of all its processes begin with.
    """

    def __init__(self, program: Program, isolation: str | None = None) -> None:
        sweep_abandoned()
        self.tag = own_tag("doctor")
        self.executor = LocalExecutor(program, 1, tag=self.tag, isolation=isolation)
        self._attempts = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.executor.close()
        sweep(self.tag)

    def run(self, config: int, position: int, captime: float) -> RunOutcome:
        """One run; waits for its end."""
        request = RunRequest(config, position, captime, self._attempts)
        self._attempts += 1
        self.executor.submit([request])
        while True:
            for outcome in self.executor.collect():
                return outcome

    def survivors(self) -> int:
        """Count the processes of earlier runs that are still there.

        A fork server, which waits for the next call of a Python function, carries the tag as well and is no run: it
        stays in the session of its supervisor, which a run leaves before its first line and cannot enter again.
        """
        supervisors = set(self.executor.pids())
        sessions = map(_session, tagged(f"{self.tag}/"))
        return sum(session is not None and session not in supervisors for session in sessions)


def _session(pid: int) -> int | None:
    """Return the session of a process; None if it has ended since it was listed."""
    try:
        return os.getsid(pid)
    except OSError:
        return None
