"""The specification of a campaign: what is asked, how it is carried out, and where; independent of TOML."""

import inspect
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Literal, overload

import numpy as np

from captime.certificate import Population
from captime.errors import ScenarioError
from captime.executors.local_slots import cores
from captime.executors.retry import PATIENCE
from captime.ledger.rows import ConfigRow
from captime.procedures import PROCEDURES, REGISTERS, Problem
from captime.procedures.problem import SCHEDULE, build_procedure
from captime.procedures.protocol import (
    Procedure,
)
from captime.programs import Configuration
from captime.programs.judge import TOLERANCE
from captime.programs.protocol import GrowingProgram, SeedTaker
from captime.scenario.configurations import pool_terms_of
from captime.scenario.errors import SourceLocation
from captime.scenario.identity import plain
from captime.scenario.models import ExecutorSection
from captime.spaces import Proposer
from captime.streams.finite import InstanceStream
from captime.utilities import Utility

# When it is good enough: goals may change between two calls, all else is part of the question.

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


def goal_of(procedure: str, options: Mapping[str, object], epsilon: float) -> Goal:
    """Return the goals that a procedure has with these options."""
    if procedure not in GOAL_OPTIONS:
        return Goal(epsilon)
    usual = inspect.signature(PROCEDURES[procedure]).parameters
    gamma, stop = (options.get(name, usual[name].default) for name in GOAL_OPTIONS[procedure])
    return Goal(epsilon, float(str(gamma)), str(stop))


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
class CampaignQuestion:
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

    def with_goal(self, epsilon: float | None, gamma: float | None = None) -> "CampaignQuestion":
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

    def about_draws(self) -> "CampaignQuestion":
        """Return the same question with a claim about the distribution, not about exactly these instances."""
        instances = self.identity.get("instances")
        kept = dict(instances) if isinstance(instances, Mapping) else {}
        kept.pop("population", None)
        return replace(self, population=Population.DRAWN, identity={**self.identity, "instances": kept})

    def with_runs_made_once(self) -> "CampaignQuestion":
        """Return the same question about a program that does not repeat itself."""
        target = self.identity.get("target")
        told = {**target, "repeatable": False} if isinstance(target, Mapping) else target
        program = self.program.once() if isinstance(self.program, SeedTaker) else self.program
        return replace(self, program=program, identity={**self.identity, "target": told})

    @property
    def goal(self) -> Goal:
        """When it is good enough."""
        return goal_of(self.procedure, self.options, self.epsilon)

    def begun_towards(self, goal: Goal) -> "CampaignQuestion":
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
        return build_procedure(self.procedure, REGISTERS, self.problem(length), self.options)


# How the question is answered, and where.


@dataclass(frozen=True, slots=True)
class StopRules:
    """When to stop, apart from the goal.

    Attributes:
        cpu: CPU seconds of the whole campaign, all calls together.
        wall: Wall-clock seconds of this call.
        until: A time of day, or a moment.
    """

    cpu: float = math.inf
    wall: float = math.inf
    until: time | datetime | None = None

    def wall_seconds(self, now: datetime) -> float:
        """Wall-clock seconds from now on, whichever rule comes first."""
        if self.until is None:
            return self.wall
        if isinstance(self.until, datetime):
            end = self.until if self.until.tzinfo is not None else self.until.replace(tzinfo=now.tzinfo)
        else:
            end = datetime.combine(now.date(), self.until, tzinfo=now.tzinfo)
            if end <= now:
                end += timedelta(days=1)
        return max(0.0, min(self.wall, (end - now).total_seconds()))


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How a campaign is carried out; nothing that its answer's validity depends on.

    Attributes:
        jobs: How many runs are under way at once.
        order: `arrival`: outcomes are told as runs finish. `fixed`: outcomes are told in the order in which runs were
            asked for, so that the same outcomes give the same answer whatever the timing.
        window: With fixed order, how many runs are open at once.
        stop: When to stop, apart from the goal.
        isolation: How runs are kept together; None for the best that works here.
        pin: Give every slot a core of its own.
        take_over: Resume a ledger that another machine had begun to write to.
        conflicts: Stop when two configurations contradict each other.
        check_repeatability: Try whether the program repeats itself, before a procedure relies on it.
        patience: Seconds to wait for a machine that is out of disk, memory, processes or descriptors.
    """

    jobs: int = 1
    order: Literal["arrival", "fixed"] = "arrival"
    window: int = 8
    stop: StopRules = field(default_factory=StopRules)
    isolation: str | None = None
    pin: bool = True
    take_over: bool = False
    conflicts: bool = True
    check_repeatability: bool = False
    patience: float = PATIENCE


@dataclass(frozen=True, slots=True)
class CampaignSpec:
    """The specification of a campaign: everything that a scenario says about it, checked.

    Attributes:
        question: What is asked: program, stream, configurations, utility, procedure.
        configurations: The candidates, by index, as the program runs them.
        settings: How it is carried out.
        executor: Where runs happen; the file that a scheduler has written is named in full.
        most: The largest number of runs at once on a cluster; None for as many as there are slots.
        oversubscribe: Whether there may be more jobs than cores.
        ledger: The file that records the runs.
    """

    question: CampaignQuestion
    configurations: tuple[Configuration, ...]
    settings: RunSettings
    executor: ExecutorSection
    most: int | None
    oversubscribe: bool
    ledger: Path


# The section `[executor]`: where runs happen. Checked here; `campaign.assembly` makes slots of it.

_WHICH = ("address", "scheduler_file", "cluster")
WHICH_CLUSTER = (
    "expected exactly one of address (of a scheduler), scheduler_file (that it has written) and cluster (to be started)"
)


def checked_executor(section: ExecutorSection, place: SourceLocation, folder: Path) -> ExecutorSection:
    """Return what is wanted, if it makes sense.

    Args:
        section: As it was written.
        place: For messages.
        folder: Relative names are seen from here.
    """
    if section.kind == "local":
        for name in sorted(section.model_fields_set - {"kind"}):
            raise ScenarioError(
                f'{place("executor", name)} means nothing on one machine; leave it out, or set kind = "dask"'
            )
    else:
        _check_cluster(section, place)
    if section.scheduler_file is None:
        return section
    return section.model_copy(update={"scheduler_file": os.fspath(folder / section.scheduler_file)})


def _check_cluster(section: ExecutorSection, place: SourceLocation) -> None:
    named = [name for name in _WHICH if getattr(section, name) is not None]
    # None of them is right where a client is handed over, from Python.
    if len(named) > 1:
        raise ScenarioError(f"{place('executor')} says {' and '.join(named)}; {WHICH_CLUSTER}")
    for name in ("workers", "options"):
        if name in section.model_fields_set and section.cluster is None:
            raise ScenarioError(
                f"{place('executor', name)} means nothing for a cluster that is there already; leave it out"
            )
    if section.machines == "normalised" and section.reference is None:
        raise ScenarioError(
            f'{place("executor", "reference")} is missing; with machines = "normalised", give the CPU seconds that '
            "the reference takes on the machine whose seconds count; docs/cluster.md says how to find out"
        )
    if section.machines == "any" and section.reference is not None:
        raise ScenarioError(f'{place("executor", "reference")} means nothing with machines = "any"; leave it out')


def seconds_that_count(section: ExecutorSection) -> dict[str, object]:
    """What of it the answer depends on, for the scenario's identity: whether seconds are converted, and to which."""
    if section.machines != "normalised":
        return {}
    return {"machines": {"rule": section.machines, "reference": section.reference}}


# How many runs can be under way at once without disturbing each other.


def allowed_cores() -> int:
    """Physical cores that this process may run on; where the system does not tell, as many as it calls processors."""
    return len(cores()) or os.cpu_count() or 1
