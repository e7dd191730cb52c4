"""The question of a campaign, complete: what is compared, by which procedure, until when."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, overload

import numpy as np

from captime.certificate import Population
from captime.errors import ScenarioDiffers, ScenarioError
from captime.ledger.rows import ConfigRow, Noted
from captime.procedures import PROCEDURES, Problem
from captime.procedures.options import build_procedure
from captime.procedures.problem import SCHEDULE
from captime.procedures.protocol import (
    HasTwoGoals,
    Procedure,
    ProcedureWrapper,
    TakesMoreInstances,
    TakesNewcomers,
    TakesNewGoals,
)
from captime.programs.judge import TOLERANCE
from captime.programs.protocol import GrowingProgram
from captime.scenario.configurations import pool_terms_of
from captime.scenario.identity import plain
from captime.spaces import Proposer
from captime.streams.finite import InstanceStream
from captime.utilities import Utility

# What may change between two calls of a campaign: goals, the length of the stream, added configurations.
#
# Each change is a note in the ledger, and takes effect at a moment that resuming finds again. In order of arrival
# that is the place of the note. Where decisions depend on outcomes alone it must not be a matter of timing, or the
# same outcomes would no longer give the same answer: there a change is heard of when everything before it has been
# reached, a moment that is in the outcomes. A larger epsilon needs no telling: one simply stops sooner.

GOAL_OPTIONS: dict[str, tuple[str, ...]] = {"pool": ("gamma", "stop")}
"""Options that are goals, by procedure: they may change on the way, all others are part of the question."""


@dataclass(frozen=True, slots=True)
class Goal:
    """When it is good enough.

    Attributes:
        epsilon: Within this of the best.
        gamma: On a space, the best fraction of it that may be missed; None where there is no such thing.
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


# What a campaign is asked: a program, instances, configurations, and what an answer is worth.


class Names(Sequence[str]):
    """The names of configurations, read off a list that may grow.

    Args:
        configs: The list.
    """

    def __init__(self, configs: Sequence[ConfigRow]) -> None:
        self._configs = configs

    def __len__(self) -> int:
        return len(self._configs)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [config.name for config in self._configs[index]]
        return self._configs[index].name

    def __iter__(self) -> Iterator[str]:
        return (config.name for config in self._configs)


@dataclass(frozen=True, slots=True)
class Question:
    """Which configuration of this program is worth most on these instances?

    Attributes:
        program: How a run is made and judged.
        stream: The instances, in an order that was fixed beforehand.
        configs: The configurations, by index, as they were when the campaign began; the list grows.
        newcomers: Those that were added to the list since, in its order.
        utility: What an answer is worth.
        delta: Allowed probability of a wrong certificate.
        epsilon: Goal; 0 for as long as one likes.
        procedure: Name of the procedure.
        options: Its options.
        seed: Key of what is drawn at random.
        captime_first: The first captime of all configurations, where captimes rise.
        ceiling: No run gets more seconds than this.
        clock: The clock of captimes and costs: `cpu` or `wall`.
        time: Whose time counts: `measured` by that clock, or `reported` by the program itself.
        tolerance: By which share two numbers may differ and be the same answer.
        proposer: Makes the configurations of a space, by index; None if they are all listed.
        maker: Makes the procedure, where it is not a registered one; `procedure` is then only its name.
        source: The scenario file, if there is one; for users who resume from the ledger.
        identity: Everything the answer depends on, in words that JSON knows; a ledger belongs to one identity.
        duel_step: See `Problem`; of a ledger that was begun when there was one step for all goals.
        short_captimes: See `Problem`; as it was when the ledger was begun. None: whatever the program allows.
        schedule: See `Problem`; as it was when the ledger was begun.
        population: The instances that the claim is about.
        population_said: Whether the user has said so. If not, a program that was seen not to repeat itself gets a claim
            about draws.
    """

    program: GrowingProgram
    stream: InstanceStream
    configs: list[ConfigRow]
    utility: Utility
    delta: float = 0.1
    epsilon: float = 0.1
    procedure: str = "race"
    options: Mapping[str, object] = field(default_factory=dict)
    seed: int = 0
    captime_first: float = 1.0
    ceiling: float = np.inf
    clock: str = "cpu"
    time: str = "measured"
    tolerance: float = TOLERANCE
    proposer: Proposer | None = None
    maker: Callable[[Problem], Procedure] | None = None
    source: str = ""
    identity: Mapping[str, object] = field(default_factory=dict)
    newcomers: tuple[ConfigRow, ...] = ()
    duel_step: float | None = None
    short_captimes: bool | None = None
    schedule: int = SCHEDULE
    population: Population = Population.DRAWN
    population_said: bool = True

    @property
    def names(self) -> Sequence[str]:
        """Names of the configurations, by index; those added later are in it too."""
        return Names(self.configs)

    def with_goal(self, epsilon: float | None, gamma: float | None = None) -> "Question":
        """Return the same question, asked more or less precisely.

        Args:
            epsilon: Within this of the best; None for what was said before.
            gamma: On a space, the best fraction of it that may be missed; likewise.
        """
        asked = self if epsilon is None else replace(self, epsilon=epsilon)
        if gamma is None:
            return asked
        if self.procedure not in GOAL_OPTIONS:
            raise ScenarioError(
                f"gamma is {gamma!r}, but {self.procedure} knows no gamma: it speaks about a list. Leave it out, or "
                "describe a [space]"
            )
        options = {**asked.options, "gamma": gamma}
        # A new ledger begins with this goal, and bets on it; for one that is resumed, goals do not count.
        identity = {**self.identity, "options": plain(options)} if "options" in self.identity else self.identity
        return replace(asked, options=options, identity=identity)

    def about_draws(self) -> "Question":
        """Return the same question with a claim about the distribution, not about exactly these instances."""
        instances = self.identity.get("instances")
        kept = dict(instances) if isinstance(instances, Mapping) else {}
        kept.pop("population", None)
        return replace(self, population=Population.DRAWN, identity={**self.identity, "instances": kept})

    @property
    def goal(self) -> Goal:
        """When it is good enough."""
        return goal_of(self.procedure, self.options, self.epsilon)

    def begun_towards(self, goal: Goal) -> "Question":
        """Return the same question with the goal that a campaign was begun with."""
        names = GOAL_OPTIONS.get(self.procedure, ())
        begun = {name: getattr(goal, name) for name in names}
        return replace(self, epsilon=goal.epsilon, options={**self.options, **begun})

    def problem(self, length: int | None = None) -> Problem:
        """Return the question as procedures see it: indices and options.

        Args:
            length: Of the stream, if it was shorter when the campaign began.
        """
        return Problem(
            n_configs=len(self.configs),
            utility=self.utility,
            delta=self.delta,
            epsilon=self.epsilon,
            captime_first=self.captime_first,
            captime_limit=self.ceiling,
            n_instances=self.stream.length if length is None else length,
            seed=self.seed,
            pool=None if self.proposer is None else pool_terms_of(self.proposer),
            duel_step=self.duel_step,
            short_captimes=self.program.repeatable if self.short_captimes is None else self.short_captimes,
            schedule=self.schedule,
            population=self.population,
        )

    def build(self, length: int | None = None) -> Procedure:
        """Make the procedure, with nothing known yet; `length` as for `problem`."""
        if self.maker is not None:
            return self.maker(self.problem(length))
        return build_procedure(self.procedure, PROCEDURES, self.problem(length), self.options)
