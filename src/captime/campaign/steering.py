"""Changes between two calls of a campaign: found, recorded, and applied."""

from collections import deque
from collections.abc import Callable
from typing import Protocol, assert_never

from captime.campaign.goals import (
    AddedConfigurations,
    Change,
    Goal,
    MoreInstances,
    add_configurations,
    change_of,
    goal_of,
    set_goal,
    set_length,
)
from captime.campaign.identity import Growth, order_listed
from captime.campaign.question import Question
from captime.campaign.resume import RecordedRuns
from captime.campaign.space_members import SpaceMembers, configuration_of
from captime.campaign.transfer import NOTE, EarlierCampaigns
from captime.evidence import Evidence
from captime.ledger import Ledger
from captime.ledger.rows import ConfigRow, Noted
from captime.procedures.protocol import Procedure


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
        self, question: Question, ledger: Ledger, procedure: Procedure, evidence: Evidence, roster: SpaceMembers | None
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


def first_goal(question: Question, ledger: Ledger) -> Goal:
    """Return what the campaign was begun with."""
    epsilon = float(str(ledger.scenario.get("goal", question.epsilon)))
    options = ledger.scenario.get("options")
    return goal_of(question.procedure, options if isinstance(options, dict) else question.options, epsilon)


class AskedBefore(Protocol):
    """What a ledger has been asked, as far as new changes depend on it.

    Attributes:
        changes: What was asked for otherwise on the way, in that order.
        frontier: The first position that no run was started on.
    """

    changes: list[Change]
    frontier: int


def new_changes(
    question: Question, ledger: Ledger, memory: AskedBefore, growth: Growth, fresh: Callable[[], Procedure]
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
