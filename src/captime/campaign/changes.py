"""What may change between two calls of a campaign: goals, the length of the stream, added configurations.

Each change is a note in the ledger, and takes effect at a moment that resuming finds again. In order of arrival that is
the place of the note. Where decisions depend on outcomes alone it must not be a matter of timing, or the same outcomes
would no longer give the same answer: there a change is heard of when everything before it has been reached, a moment
that is in the outcomes. A larger epsilon needs no telling: one simply stops sooner.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from captime.campaign.transfer import EarlierCampaigns
from captime.certificate import Orders, Population
from captime.errors import ReplayDiverged, ScenarioDiffers
from captime.evidence import Evidence
from captime.ledger.rows import ConfigRow, Noted
from captime.procedures.protocol import (
    BetsLater,
    HasTwoGoals,
    Procedure,
    ProcedureWrapper,
    TakesMoreInstances,
    TakesNewcomers,
    TakesNewGoals,
)
from captime.programs.protocol import Configuration, GrowingProgram
from captime.scenario.spec import Goal, goal_of
from captime.spaces import Lessons, Proposer, Settings, lessons_for


@dataclass(frozen=True, slots=True)
class MoreInstances:
    """The stream has become longer.

    Attributes:
        length: The new number of positions.
    """

    length: int


@dataclass(frozen=True, slots=True)
class AddedConfigurations:
    """Configurations were added.

    Attributes:
        count: How many.
        earliest: The first position that the user cannot have seen when adding them.
    """

    count: int
    earliest: int


Change: TypeAlias = Goal | MoreInstances | AddedConfigurations


def goal_on_record(scenario: Mapping[str, object], notes: Iterable[Noted]) -> Goal:
    """Return what a ledger says was asked for last."""
    asked = [change for note in notes if isinstance(change := change_of(note), Goal)]
    if asked:
        return asked[-1]
    options, epsilon = scenario.get("options"), scenario.get("goal")
    epsilon = float(epsilon) if isinstance(epsilon, int | float) else 0.0
    return goal_of(str(scenario.get("procedure")), options if isinstance(options, dict) else {}, epsilon)


def change_of(note: Noted) -> Change | None:
    """Return what a note says has changed; None if it is about something else."""
    facts: Mapping[str, Any] = note.facts
    match note.kind:
        case "goal":
            gamma, stop = facts.get("gamma"), facts.get("stop")
            return Goal(float(facts["epsilon"]), None if gamma is None else float(gamma), stop)
        case "instances":
            return MoreInstances(int(facts["length"]))
        case "configurations":
            return AddedConfigurations(len(facts["list"]), int(facts["earliest"]))
        case _:
            return None


def set_goal(procedure: Procedure, goal: Goal) -> None:
    """From here on other goals are asked for."""
    if isinstance(procedure, HasTwoGoals):
        procedure.retarget(goal.epsilon, goal.gamma, goal.stop)
    elif isinstance(procedure, TakesNewGoals):
        procedure.retarget(goal.epsilon)
    else:
        raise ScenarioDiffers(
            "this ledger was begun with another goal, and its procedure cannot change goals on its way; use the old "
            "epsilon, or begin a new ledger"
        )


def set_length(procedure: Procedure, length: int) -> None:
    """From here on the stream has more instances."""
    if not isinstance(procedure, TakesMoreInstances):
        raise ScenarioDiffers(
            "instances were added to a ledger whose procedure cannot use more; take them out again, or begin a "
            "new ledger"
        )
    procedure.more_instances(length)


def add_configurations(procedure: Procedure, joined: AddedConfigurations) -> int:
    """From here on there are more configurations; return the index of the first."""
    if not isinstance(procedure, TakesNewcomers):
        raise ScenarioDiffers(
            "configurations were added to a ledger whose procedure cannot take them on its way; `race` and `pool` can. "
            "Take them out again, or begin a new ledger"
        )
    return procedure.newcomers(joined.count, joined.earliest)


def reached(procedure: Procedure, goal: Goal) -> bool:
    """Return whether what is certified is good enough for a goal."""
    if isinstance(procedure, HasTwoGoals) and goal.gamma is not None and goal.stop is not None:
        return procedure.reached(goal.epsilon, goal.gamma, goal.stop)
    return procedure.certificate().epsilon <= goal.epsilon


class GoalsInOrder(ProcedureWrapper):
    """A procedure that hears of each change once it has come to where nothing before it is left to do.

    Args:
        procedure: Made for the first goal, the first stream and the first configurations.
        changes: What changed later, in that order; the last goal counts.
        apply: Makes a change.
    """

    def __init__(self, procedure: Procedure, changes: Sequence[Change], apply: Callable[[Change], None]) -> None:
        super().__init__(procedure)
        self._waiting = list(changes)
        self._apply = apply
        goals = [change for change in changes if isinstance(change, Goal)]
        self._last = goals[-1] if goals else None

    def finished(self) -> str | None:
        """See the protocol."""
        while True:
            # A claim about exactly these instances has to be about all of them, as it has to cover every configuration.
            on_set = self._procedure.certificate().population is Population.THESE
            needed = (AddedConfigurations, MoreInstances) if on_set else (AddedConfigurations,)
            complete = not any(isinstance(change, needed) for change in self._waiting)
            if complete and self._last is not None and reached(self._procedure, self._last):
                return "epsilon"
            content = super().finished()
            if content is None:
                return None
            waiting = (each for each in self._waiting if isinstance(each, needed) or _due(each, content))
            due = next(waiting, None)
            if due is None:
                return content
            self._waiting.remove(due)
            self._apply(due)


def _due(change: Change, content: str) -> bool:
    """Return whether a change is for a procedure that is content for this reason."""
    match change:
        case Goal():
            return content == "epsilon"
        case MoreInstances():
            return content == "instances"
        case AddedConfigurations():
            return True


# The configurations of a campaign on a space, made when the procedure first asks for them.
#
# A procedure knows indices only. When it orders a configuration that does not exist yet, it is proposed, written
# down, and given to the program, in this order. What is on record stays as it is: resuming never proposes it anew.

Write = Callable[[Sequence[ConfigRow]], None]


class SpaceMembers:
    """The configurations that exist.

    Args:
        proposer: Makes configurations by index.
        program: Has to be told of each.
        rows: Those that exist; the list grows.
        recorded: Those on record, which may be more: they are taken as they are, and not written again.
        write: Writes new ones down.
        earlier: What earlier campaigns can teach the model; None for nothing.
    """

    def __init__(
        self,
        proposer: Proposer,
        program: GrowingProgram,
        rows: list[ConfigRow],
        recorded: Sequence[ConfigRow],
        write: Write,
        *,
        earlier: EarlierCampaigns | None = None,
    ) -> None:
        self._late: dict[int, ConfigRow] = {}
        self._earlier = earlier
        self._lessons: Lessons | None = None
        self._proposer = proposer
        self._program = program
        self._recorded = list(recorded)
        self._write = write
        self.rows = rows

    def expect(self, first: int, rows: Sequence[ConfigRow]) -> None:
        """These were added by the user, and have the indices from `first` on."""
        for index, row in enumerate(rows, first):
            self._late[index] = replace(row, index=index, name=f"{row.origin}-{index}")

    def grow(self, size: int, evidence: Evidence, starts: Mapping[int, int]) -> None:
        """Make sure that there are `size` configurations now.

        Args:
            size: How many.
            evidence: What is known of those there are.
            starts: The first position of the stream that counts for each, by index; 0 for those not named.
        """
        while len(self.rows) < size:
            index = len(self.rows)
            row = self._late[index] if index in self._late else self._proposed(index, evidence, starts.get(index, 0))
            if index >= len(self._recorded):
                self._write([row])
            elif row.origin != self._recorded[index].origin:
                there = self._recorded[index].name
                raise ReplayDiverged(f"configuration {index} is {there} on record, and now it would be {row.name}")
            else:
                row = self._recorded[index]
            self.rows.append(row)
            self._program.extend([configuration_of(row)])

    def _proposed(self, index: int, evidence: Evidence, start: int) -> ConfigRow:
        """Propose the configuration for `index`, skipping indices taken by configurations that the user added."""
        place = index - sum(late < index for late in self._late)
        origin, known, taught = self._proposer.origin(place), [], []
        if origin == "model":
            self._lessons = self._lessons or lessons_for(self._proposer.proposals, evidence.utility)
            known = self._lessons.of(evidence.tally, [settings_of(row) for row in self.rows])
            taught = [] if self._earlier is None else self._earlier.until(start)
        # Asked even if the answer is on record: what a model proposes next depends on having been asked before.
        settings = self._proposer.propose(place, known, float(evidence.tally.seconds.sum()), taught)
        return ConfigRow(index, f"{origin}-{index}" if index else origin, {"settings": settings}, origin)


def settings_of(row: ConfigRow) -> Settings:
    """As the space knows it."""
    settings: Settings = row.settings["settings"]  # type: ignore[assignment] # written by `grow`, or by the scenario
    return settings


def configuration_of(row: ConfigRow) -> Configuration:
    """As programs know it."""
    own = {name: row.settings.get(name) for name in ("command", "answer", "exit_codes")}
    words: dict[str, Any] = {name: tuple(each) if isinstance(each, list) else each for name, each in own.items()}
    return Configuration(row.name, dict(settings_of(row)), origin=row.origin, **words)


class GrowingProcedure(ProcedureWrapper):
    """A procedure whose new configurations come into being when it asks for them.

    Args:
        procedure: Decides.
        roster: The configurations so far.
        evidence: What a model may learn from.
    """

    def __init__(self, procedure: Procedure, roster: SpaceMembers, evidence: Evidence) -> None:
        super().__init__(procedure)
        self._roster = roster
        self._evidence = evidence

    def retarget(self, epsilon: float, gamma: float | None = None, stop: str | None = None) -> None:
        """From now on these are the goals."""
        set_goal(self._procedure, Goal(epsilon, gamma, stop))

    def reached(self, epsilon: float, gamma: float, stop: str) -> bool:
        """Return whether it would be content with these."""
        return reached(self._procedure, Goal(epsilon, gamma, stop))

    def more_instances(self, length: int) -> None:
        """Extend the stream to this many positions."""
        set_length(self._procedure, length)

    def newcomers(self, count: int, earliest: int = 0) -> int:
        """From now on there are more configurations."""
        return add_configurations(self._procedure, AddedConfigurations(count, earliest))

    def ask(self, slots: int) -> Orders:
        """See the protocol."""
        orders = super().ask(slots)
        if len(orders):
            first = [0] * len(orders) if orders.first is None else orders.first.tolist()
            starts = dict(zip(orders.config.tolist(), first, strict=True))
            if isinstance(self._procedure, BetsLater):
                starts = {config: self._procedure.first_counted(config) for config in starts}
            self._roster.grow(int(orders.config.max()) + 1, self._evidence, starts)
        return orders
