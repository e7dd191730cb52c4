"""One run, question and answer: what an executor is asked to do, and what it has to say about it afterwards.

Live path only: a replay answers orders from array slices and never makes one of these. Whether a run was *completed in
time* is not decided here: `RunOutcome` says what was measured, and the captime plan says what that is worth.
"""

import math
from dataclasses import dataclass
from enum import Enum

from captime.errors import InvariantViolated


class Status(Enum):
    """How an attempt ended."""

    COMPLETED = "completed"
    """The program answered by itself."""
    CAPPED = "capped"
    """We stopped it: at its captime, or earlier because nobody needs the answer any more."""
    FAILED = "failed"
    """It will never answer: a crash, a wrong answer, out of memory. The program's fault; not tried again."""
    LOST = "lost"
    """Our fault: a machine or a file vanished. Tried again on the same instance with the same seed; open until then."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Please run this.

    Attributes:
        config: Which configuration, by index.
        instance: Position in the stream of instances; seeds are tied to it.
        captime: CPU seconds the run may take in all, counted from its very first start.
        attempt: 0 for the first time this run is asked for, then 1, 2, … It makes every request different, so that the
            answer to an attempt that was given up is told from the answer that counts.
    """

    config: int
    instance: int
    captime: float
    attempt: int = 0

    def __post_init__(self) -> None:
        if self.config < 0 or self.instance < 0 or self.attempt < 0:
            raise InvariantViolated(f"{self}: indices and attempts count from 0")
        if not self.captime >= 0.0:
            raise InvariantViolated(f"{self}: a captime is a number of CPU seconds, 0 or more, possibly infinite")


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What became of a request.

    Attributes:
        request: What was asked.
        status: How it ended.
        runtime: CPU seconds. COMPLETED: until the answer. CAPPED or LOST: how long the run was seen unfinished for sure
            (0 if nobody looked); stopped at its captime, not less than that. FAILED: until it failed. Counted from its
            very first start if it was resumed.
        cost: CPU seconds this attempt took, less than `runtime` if it was resumed.
        detail: Exit code, last words; for people only.
    """

    request: RunRequest
    status: Status
    runtime: float
    cost: float
    detail: str = ""

    def __post_init__(self) -> None:
        for what, seconds in (("runtime", self.runtime), ("cost", self.cost)):
            if not (math.isfinite(seconds) and seconds >= 0.0):
                raise InvariantViolated(
                    f"outcome of {self.request}: its {what} is {seconds!r}; expected a finite number of CPU seconds, 0 "
                    "or more. A run that never answers is FAILED or CAPPED after the seconds it took."
                )
