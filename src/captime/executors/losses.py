"""What is done about runs that were lost: tried again a few times if that is sound, given up otherwise.

A lost run is our fault, so dropping it would be wrong: long runs are lost more often than short ones. It is tried again
with the same seed. After so many losses, or at once if the program cannot repeat itself, it is given up instead: "was
seen unfinished after so many seconds" is all that will ever be known of it, and the bounds count it as that.
"""

from collections import Counter
from dataclasses import replace

from captime.executors.around import Around
from captime.executors.protocol import Executor
from captime.runs import RunOutcome, RunRequest, Status, Verdict

MOST_LOSSES = 3


class Losses(Around):
    """An executor that gives up runs which were lost too often.

    Args:
        inner: Does the runs.
        repeatable: Whether a run takes the same time when it is tried again.

    Attributes:
        blocked: How many runs were given up.
    """

    def __init__(self, inner: Executor, *, repeatable: bool) -> None:
        super().__init__(inner)
        self._repeatable = repeatable
        self._lost: Counter[tuple[int, int]] = Counter()
        self.blocked = 0

    def remember(self, request: RunRequest) -> None:
        """This run was lost once before, in an earlier life of the campaign."""
        self._lost[request.config, request.instance] += 1

    def collect(self, timeout: float | None = None) -> list[RunOutcome]:
        """See the protocol."""
        return [self._judged(outcome) for outcome in super().collect(timeout)]

    def _judged(self, outcome: RunOutcome) -> RunOutcome:
        if outcome.status is not Status.LOST:
            return outcome
        self.remember(outcome.request)
        times = self._lost[outcome.request.config, outcome.request.instance]
        if self._repeatable and times < MOST_LOSSES:
            return outcome
        self.blocked += 1
        why = f"lost {times} times" if self._repeatable else "lost, and the program cannot repeat itself"
        detail = f"{why}: {outcome.detail}" if outcome.detail else why
        return replace(outcome, status=Status.ABANDONED, verdict=Verdict.BLOCKED, detail=detail)
