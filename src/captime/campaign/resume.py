"""Resume where a ledger ends: only facts are stored, and the decisions are made again from them."""

from collections.abc import Callable, Iterable, Iterator
from typing import assert_never

from captime.campaign.abort_rules import AbortRules
from captime.campaign.fixed_order_replay import Key, counts_for_good, key_of
from captime.campaign.goals import Change, change_of
from captime.campaign.outcome_counts import OutcomeCounts
from captime.evidence import Evidence
from captime.executors.retry import LossLimit
from captime.ledger import Ledger
from captime.ledger.crash_points import reached
from captime.ledger.rows import Added, Asked, Event, Noted, Observed, Started
from captime.live import tell_all, walk_again
from captime.procedures.protocol import Procedure
from captime.runs import RunOutcome, RunRequest, Status, Verdict

_INTERRUPTED = "it was under way when the campaign was cut off"


class RecordedRuns:
    """What a ledger knows, collected while it is read once from beginning to end.

    Args:
        census: Counts what became of the runs.
        objections: Has to know every answer.
        losses: Has to know what was lost.

    Attributes:
        known: Outcomes that count for good, by run.
        attempts: How often each run was tried.
        open: Requests that were started and never heard of again.
        events: How many there were.
        changes: What was asked for otherwise on the way, in that order.
        frontier: The first position without any run.
        notes: Everything that was noted.
        orders: How many orders are on record.
    """

    def __init__(self, census: OutcomeCounts, objections: AbortRules, losses: LossLimit) -> None:
        self._census = census
        self._objections = objections
        self._losses = losses
        self.known: dict[Key, RunOutcome] = {}
        self.attempts: dict[tuple[int, int], int] = {}
        self.open: dict[RunRequest, None] = {}
        self.events = 0
        self.changes: list[Change] = []
        self.frontier = 0
        self.notes: list[Noted] = []
        self.orders = 0

    def reading(self, story: Iterable[Event]) -> Iterator[Event]:
        """Pass the story on, and take down what has to be remembered."""
        reached("recovery", "before")
        for event in story:
            self.events += 1
            match event:
                case Asked():
                    self.orders += 1
                case Started(_, requests, _):
                    for request in requests:
                        self.attempts[request.config, request.instance] = request.attempt + 1
                        self.open[request] = None
                        self.frontier = max(self.frontier, request.instance + 1)
                case Observed(_, outcomes, _):
                    self._take(outcomes)
                case Noted():
                    self.notes.append(event)
                    change = change_of(event)
                    self.changes += [] if change is None else [change]
                case Added():
                    pass
                case _:
                    assert_never(event)
            yield event
        reached("recovery")

    def _take(self, outcomes: Iterable[RunOutcome]) -> None:
        # What answers no attempt that was under way is an orphan, and is not counted.
        heard = [outcome for outcome in outcomes if outcome.request in self.open]
        for outcome in heard:
            del self.open[outcome.request]
            if counts_for_good(outcome):
                self.known[key_of(outcome.request)] = outcome
            elif not outcome.status.meaning.counts and outcome.verdict is not Verdict.INTERRUPTED:
                self._losses.remember(outcome)
        self._census.take(heard)
        self._objections.recall(heard)

    def cut_off(self, *, repeatable: bool) -> list[RunOutcome]:
        """Return what is to be said of runs that were under way at the end: they are lost, through our own fault.

        Args:
            repeatable: Whether they may be tried again.
        """
        status = Status.LOST if repeatable else Status.ABANDONED
        return [RunOutcome(request, status, 0.0, 0.0, _INTERRUPTED, Verdict.INTERRUPTED) for request in self.open]


def resume_campaign(
    procedure: Procedure,
    evidence: Evidence,
    ledger: Ledger,
    memory: RecordedRuns,
    *,
    repeatable: bool,
    apply: Callable[[Change], None],
) -> None:
    """Bring a new procedure and new books to where the ledger ends; what was under way then is written off as lost.

    Args:
        procedure: Made as the first one was.
        evidence: Made as the first one was.
        ledger: Where it is all written.
        memory: Takes down what has to be remembered.
        repeatable: Whether what was under way may be tried again.
        apply: Makes a change, at the place where it was made.
    """
    for event in walk_again(procedure, evidence, memory.reading(ledger.replay())):
        change = change_of(event) if isinstance(event, Noted) else None
        if change is not None:
            apply(change)
    write_off(ledger, memory, repeatable=repeatable, tell=(procedure, evidence))


def write_off(
    ledger: Ledger, memory: RecordedRuns, *, repeatable: bool, tell: tuple[Procedure, Evidence] | None = None
) -> None:
    """Say of what was under way that it is lost."""
    lost = memory.cut_off(repeatable=repeatable)
    if not lost:
        return
    reached("written-off", "before")
    ledger.observed(lost)
    reached("written-off")
    # What is given up for good is remembered as such: a later request for it must not get a second try.
    memory.known |= {key_of(outcome.request): outcome for outcome in lost if counts_for_good(outcome)}
    memory.open.clear()
    if tell is not None:
        tell_all(*tell, lost, ())
