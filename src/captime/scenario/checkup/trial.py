"""A few runs of the real program, one after the other, through the same supervisors that a campaign uses."""

import uuid
from types import TracebackType
from typing import Self

from captime.executors.local import LocalExecutor
from captime.programs.protocol import Program
from captime.runs import RunOutcome, RunRequest
from captime.supervision.processes import tagged
from captime.supervision.sweep import sweep


class Trial:
    """One slot for trying things out.

    Args:
        program: What is run.
        isolation: The level that was asked for; None for the best.

    Attributes:
        executor: The slot.
    """

    def __init__(self, program: Program, isolation: str | None = None) -> None:
        self._tag = f"doctor-{uuid.uuid4().hex[:12]}"
        self.executor = LocalExecutor(program, 1, tag=self._tag, isolation=isolation)
        self._attempts = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.executor.close()
        sweep(self._tag)

    def run(self, config: int, position: int, captime: float) -> RunOutcome:
        """One run; waits for its end."""
        request = RunRequest(config, position, captime, self._attempts)
        self._attempts += 1
        self.executor.submit([request])
        while True:
            for outcome in self.executor.collect():
                return outcome

    def survivors(self) -> int:
        """Processes of earlier runs that are still there."""
        return len(tagged(f"{self._tag}/"))
