"""Resume a campaign: replay its ledger, check that the decisions are the same, and apply what the new call changes."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol, assert_never

from captime.campaign.abort_rules import AbortRules
from captime.campaign.changes import (
    AddedConfigurations,
    Change,
    MoreInstances,
    SpaceMembers,
    add_configurations,
    change_of,
    configuration_of,
    set_goal,
    set_length,
)
from captime.campaign.identity import (
    Growth,
    order_listed,
    schedule_on_record,
    short_captimes_on_record,
    step_on_record,
)
from captime.campaign.journal import LedgerJournal
from captime.campaign.result import OutcomeCounts
from captime.campaign.transfer import NOTE, EarlierCampaigns
from captime.evidence import Evidence
from captime.executors.protocol import Executor
from captime.executors.retry import ExecutorWrapper, LossLimit
from captime.ledger import Ledger
from captime.ledger.connection import crash_point
from captime.ledger.rows import Added, Asked, ConfigRow, Event, Noted, Observed, Started
from captime.live import tell_all, walk_again
from captime.procedures.protocol import Procedure
from captime.runs import RunOutcome, RunRequest, Status, Verdict
from captime.scenario.spec import CampaignQuestion, Goal, goal_of

# Runs that were made before are remembered, not repeated; those that are made now are written down first.
#
# For campaigns in fixed order. Their decisions depend on outcomes alone, so resuming after an interruption is simply
# beginning again with a good memory: what the ledger knows is answered at once, and only what it does not know is
# run. Runs that were lost are tried again here, below the procedure, which never hears of it.

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


# Resume where a ledger ends: only facts are stored, and the decisions are made again from them.

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
        crash_point("recovery", "before")
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
        crash_point("recovery")

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
    crash_point("written-off", "before")
    ledger.observed(lost)
    crash_point("written-off")
    # What is given up for good is remembered as such: a later request for it must not get a second try.
    memory.known |= {key_of(outcome.request): outcome for outcome in lost if counts_for_good(outcome)}
    memory.open.clear()
    if tell is not None:
        tell_all(*tell, lost, ())


# Changes between two calls of a campaign: found, recorded, and applied.


class Steering:
    """Makes changes, at the moment at which the procedure is to hear of them.

    Args:
        question: What is asked now; it knows the added configurations.
        ledger: Where added configurations are recorded.
        procedure: Decides.
        evidence: Keeps the books.
        roster: On a space, its configurations so far; None if configurations are listed.
    """

    def __init__(
        self,
        question: CampaignQuestion,
        ledger: Ledger,
        procedure: Procedure,
        evidence: Evidence,
        roster: SpaceMembers | None,
    ) -> None:
        self._question = question
        self._ledger = ledger
        self._procedure = procedure
        self._evidence = evidence
        self._roster = roster
        self._newcomers = deque(question.newcomers)

    def apply(self, change: Change) -> None:
        """From now on it is so."""
        first = make(self._procedure, change)
        if isinstance(change, AddedConfigurations):
            self._join(first, change.count)
        # A configuration that was cleared may be a candidate again.
        self._evidence.retire(self._procedure.candidates)

    def _join(self, first: int, count: int) -> None:
        rows = [self._newcomers.popleft() for _ in range(count)]
        if self._roster is not None:
            self._roster.expect(first, rows)
            self._roster.grow(first + count, self._evidence, {})
        else:
            self._list(rows, first)
        self._evidence.grow(first + count)

    def _list(self, rows: list[ConfigRow], first: int) -> None:
        """They stand behind the others; what is on record is not written again."""
        self._question.configs.extend(rows)
        self._question.program.extend([configuration_of(row) for row in rows])
        self._ledger.added(rows[max(0, len(self._ledger.configs) - first) :])


def make(procedure: Procedure, change: Change) -> int:
    """Tell a procedure of a change; return the index of the first added configuration, if there is one."""
    match change:
        case Goal():
            set_goal(procedure, change)
        case MoreInstances(length):
            set_length(procedure, length)
        case AddedConfigurations():
            return add_configurations(procedure, change)
        case _:
            assert_never(change)
    return 0


def first_goal(question: CampaignQuestion, ledger: Ledger) -> Goal:
    """Return what the campaign was begun with."""
    epsilon = float(str(ledger.scenario.get("goal", question.epsilon)))
    options = ledger.scenario.get("options")
    return goal_of(question.procedure, options if isinstance(options, dict) else question.options, epsilon)


def first_asked(question: CampaignQuestion, ledger: Ledger) -> tuple[CampaignQuestion, int | None]:
    """Return the question as it was when the campaign began, and how long its stream was then."""
    scenario = ledger.scenario
    begun = replace(
        question.begun_towards(first_goal(question, ledger)),
        duel_step=step_on_record(scenario),
        short_captimes=short_captimes_on_record(scenario),
        schedule=schedule_on_record(scenario),
    )
    length = scenario.get("length", question.stream.length)
    return begun, None if length is None else int(str(length))


class AskedBefore(Protocol):
    """What a ledger has been asked, as far as new changes depend on it.

    Attributes:
        changes: What was asked for otherwise on the way, in that order.
        frontier: The first position that no run was started on.
    """

    changes: list[Change]
    frontier: int


def new_changes(
    question: CampaignQuestion, ledger: Ledger, memory: AskedBefore, growth: Growth, fresh: Callable[[], Procedure]
) -> list[Change]:
    """Record what is asked otherwise than before; a procedure that cannot resume with it refuses first.

    Args:
        question: What is asked now.
        ledger: Where it is written down.
        memory: What was asked before.
        growth: What was added to the lists.
        fresh: Makes a procedure like the one that is resumed, with nothing known yet.
    """
    notes: list[Noted] = []
    length = question.stream.length
    if growth.instances and length is not None:
        listed = order_listed(question.stream, growth.instances)
        beside: dict[str, object] = {} if listed is None else {"listed": listed}
        groups = question.stream.describe().get("groups")
        if isinstance(groups, list):
            # The new ones stand last in the list.
            beside["groups"] = groups[-len(growth.instances) :]
        notes.append(Noted(0, "instances", {"list": list(growth.instances), "length": length, **beside}))
    if growth.configurations:
        facts = {"list": list(growth.configurations), "earliest": memory.frontier}
        notes.append(Noted(0, "configurations", facts))
    goals = [change for change in memory.changes if isinstance(change, Goal)]
    if question.goal != (goals[-1] if goals else first_goal(question, ledger)):
        notes.append(Noted(0, "goal", question.goal.facts()))
    changes = [change for note in notes if (change := change_of(note)) is not None]
    if changes:
        trial = fresh()
        for change in changes:
            make(trial, change)
    for note in notes:
        ledger.noted(note.kind, **note.facts)
    return changes


def note_lessons(earlier: EarlierCampaigns | None, ledger: Ledger, memory: RecordedRuns) -> list[Noted]:
    """Record from which ledgers the model learns, unless that is on record; return all that is."""
    noted = [note for note in memory.notes if note.kind == NOTE]
    known = {(note.facts["campaign"], note.facts["head"]) for note in noted}
    for course in () if earlier is None else earlier.courses:
        if (course.campaign, course.head) not in known:
            ledger.noted(NOTE, **course.facts())
            noted.append(Noted(0, NOTE, course.facts()))
    return noted
