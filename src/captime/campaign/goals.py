"""What may change between two calls of a campaign: goals, the length of the stream, added configurations.

Each change is a note in the ledger, and takes effect at a moment that resuming finds again. In order of arrival
that is the place of the note. Where decisions depend on outcomes alone it must not be a matter of timing, or the same
outcomes would no longer give the same answer: there a change is heard of when everything before it has been reached, a
moment that is in the outcomes. A larger epsilon needs no telling: one simply stops sooner.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from captime.errors import ScenarioDiffers
from captime.ledger.rows import Noted
from captime.procedures import PROCEDURES
from captime.procedures.around import AroundProcedure
from captime.procedures.protocol import HasTwoGoals, Procedure, TakesMoreInstances, TakesNewcomers, TakesNewGoals

GOAL_OPTIONS: dict[str, tuple[str, ...]] = {"pool": ("gamma", "stop")}
"""Options that are goals, by procedure: they may change on the way, all others are part of the question."""


@dataclass(frozen=True, slots=True)
class Goal:
    """When it is good enough.

    Attributes:
        epsilon: Within this of the best.
        gamma: On a space, the share of luckiest configurations that may be missed; None where there is no such thing.
        stop: On a space, which of the two have to be reached; likewise.
    """

    epsilon: float
    gamma: float | None = None
    stop: str | None = None

    def facts(self) -> dict[str, object]:
        """As a ledger notes it."""
        beside = {"gamma": self.gamma, "stop": self.stop}
        return {"epsilon": self.epsilon, **{name: value for name, value in beside.items() if value is not None}}


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


def goal_of(procedure: str, options: Mapping[str, object], epsilon: float) -> Goal:
    """Return the goals that a procedure has with these options."""
    if procedure not in GOAL_OPTIONS:
        return Goal(epsilon)
    usual = inspect.signature(PROCEDURES[procedure]).parameters
    gamma, stop = (options.get(name, usual[name].default) for name in GOAL_OPTIONS[procedure])
    return Goal(epsilon, float(str(gamma)), str(stop))


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
            "this ledger was begun with another goal, and its procedure cannot change goals on its way; say the old "
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


class GoalsInOrder(AroundProcedure):
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
            complete = not any(isinstance(change, AddedConfigurations) for change in self._waiting)
            if complete and self._last is not None and reached(self._procedure, self._last):
                return "epsilon"
            content = super().finished()
            due = None if content is None else next((each for each in self._waiting if _due(each, content)), None)
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
