"""Runs that were made before are remembered, not repeated; those that are made now are written down first.

For campaigns in fixed order. Their decisions depend on outcomes alone, so resuming after an interruption is simply
beginning again with a good memory: what the ledger knows is answered at once, and only what it does not know is run.
Runs that were lost are tried again here, below the procedure, which never hears of it.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from captime.campaign.journal import LedgerJournal
from captime.executors.protocol import Executor
from captime.executors.wrapper import ExecutorWrapper
from captime.runs import RunOutcome, RunRequest, Status

Key = tuple[int, int, float]


def key_of(request: RunRequest) -> Key:
    """Return which run it is, whatever the attempt."""
    return (request.config, request.instance, request.captime)


def counts_for_good(outcome: RunOutcome) -> bool:
    """Return whether it says all that there is to say; a run that was lost or stopped early does not."""
    match outcome.status:
        case Status.COMPLETED | Status.FAILED | Status.ABANDONED:
            return True
        case Status.CAPPED:
            return outcome.runtime >= outcome.request.captime
        case Status.LOST:
            return False
        case _:
            assert_never(outcome.status)


class ReplayingExecutor(ExecutorWrapper):
    """An executor that asks its memory first.

    Args:
        inner: Does the runs that are not on record.
        journal: Writes down what is started and what came back.
        known: Outcomes on record that count for good, by run.
        attempts: How often each run was tried before, by configuration and position.

    Attributes:
        lost_seconds: CPU seconds of attempts that were lost or interrupted, this time.
    """

    def __init__(
        self,
        inner: Executor,
        journal: LedgerJournal,
        known: dict[Key, RunOutcome],
        attempts: dict[tuple[int, int], int],
    ) -> None:
        super().__init__(inner)
        self._journal = journal
        self._known = known
        self._attempts = attempts
        self._recalled: deque[RunOutcome] = deque()
        self._held: list[RunRequest] = []
        self._asked: dict[Key, RunRequest] = {}
        self._stopping = False
        self.lost_seconds = 0.0

    def submit(self, requests: Sequence[RunRequest]) -> None:
        """See the protocol. What is not on record is run only when its outcome is waited for.

        So a campaign that had ended is recalled to its end without beginning anything anew.
        """
        for request in requests:
            remembered = self._known.pop(key_of(request), None)
            if remembered is not None:
                self._recalled.append(replace(remembered, request=request))
            else:
                self._held.append(request)

    def _next_attempt(self, request: RunRequest) -> RunRequest:
        """No two tries of a run have the same number, across all interruptions."""
        number = self._attempts.get((request.config, request.instance), 0)
        self._attempts[request.config, request.instance] = number + 1
        return replace(request, attempt=number)

    def _launch(self, fresh: list[RunRequest]) -> None:
        if fresh:
            self._asked |= {key_of(request): request for request in fresh}
            attempts = [self._next_attempt(request) for request in fresh]
            self._journal.started(attempts)
            super().submit(attempts)

    def collect(self, timeout: float | None = None) -> list[RunOutcome]:
        """See the protocol."""
        if self._recalled:
            recalled, self._recalled = list(self._recalled), deque()
            return recalled
        held, self._held = self._held, []
        if self._stopping and held:
            return [RunOutcome(request, Status.CAPPED, 0.0, 0.0, "never begun") for request in held]
        self._launch(held)
        outcomes = super().collect(timeout)
        if outcomes:
            self._journal.observed(outcomes, ())
        unsettled = [outcome for outcome in outcomes if not counts_for_good(outcome)]
        self.lost_seconds += sum(outcome.cost for outcome in unsettled)
        if not self._stopping:
            self._launch([self._asked[key_of(outcome.request)] for outcome in unsettled])
        return [
            replace(outcome, request=self._asked.pop(key_of(outcome.request)))
            for outcome in outcomes
            if self._stopping or counts_for_good(outcome)
        ]

    def watch(self) -> list[tuple[RunRequest, float]]:
        """See the protocol."""
        return [(self._asked.get(key_of(request), request), seconds) for request, seconds in super().watch()]

    def stop(self) -> None:
        """See the protocol. From now on nothing is tried again; what was stopped comes back as it is."""
        self._stopping = True
        super().stop()
