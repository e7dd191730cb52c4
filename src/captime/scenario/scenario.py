"""A scenario that has been read and checked: from it follow the parts of a campaign, and what its answer depends on."""

import hashlib
import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from errno import EFBIG, EINVAL
from functools import cached_property
from math import inf
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import ValidationError

from captime.certificate import RULES, Population
from captime.errors import ScenarioError, UtilityError
from captime.files import read_limited
from captime.procedures import PROCEDURES, REGISTERS
from captime.procedures.problem import build_procedure, option_types
from captime.programs import CommandProgram, Configuration, FunctionProgram
from captime.programs.protocol import did_you_mean
from captime.programs.template import SettingsToArguments
from captime.scenario.configurations import (
    canonical,
    check_command,
    configurations_of,
    listed_of,
    proposer_for,
    row_of,
    space_as_begun,
    words_of,
)
from captime.scenario.errors import SourceLocation, refused
from captime.scenario.models import ScenarioModel
from captime.scenario.sections import conditions_of, population_of, program_of, stream_of
from captime.scenario.spec import (
    CampaignQuestion,
    CampaignSpec,
    RunSettings,
    StopRules,
    allowed_cores,
    checked_executor,
    seconds_that_count,
)
from captime.spaces import ArrivalOrder, Proposer, order_for
from captime.streams import FiniteStream, GeneratedStream, finite
from captime.utilities import Utility, parse_utility

LEDGER_SUFFIX = ".ledger"
"""How the names of ledgers end that stand beside their scenario."""
# Where an answer is worth so little, the race has long stopped every run.
_NEXT_TO_NOTHING = 4e-5


@dataclass(frozen=True)
class Scenario:
    """What the user wrote, and where.

    Attributes:
        wishes: The fields.
        folder: Relative names are seen from here.
        place: The file, for messages.
        stem: The file's name without its ending; names made from it stand beside it.
        function: A Python function in place of `[target]`, for library calls.
        values: Python objects in place of `[instances]`, likewise.
        candidates: Configurations in place of those of the file, to run some of them again.
        originals: Settings as they were given, by the name of the configuration, for functions: `wishes` has them in
            words that JSON knows.
        known: Names of the instances of a stream begun earlier, in its order. They keep their positions and new ones
            follow, so that a campaign can be resumed with more instances; see `identity.grown`.
        begun_with: How many of the listed configurations were there when a campaign was begun; those behind them were
            added later. None if it has not begun.
        drawn_seed: Takes the place of a seed that the file does not name; a campaign that has begun keeps the one in
            its ledger, see `campaign.identity.as_begun`.
        recorded_order: In which order draws and proposals come in the ledger that is resumed; takes the place of the
            order that goes with the effort.
        recorded_population: What the claim of the ledger is about that is resumed; takes the place of the default.
        recorded_repeatable: Whether the ledger that is resumed took the program to repeat itself.
    """

    wishes: ScenarioModel
    folder: Path
    place: SourceLocation
    stem: str = "scenario"
    function: Callable[..., Any] | None = None
    values: Sequence[Any] | None = None
    candidates: tuple[Configuration, ...] | None = None
    originals: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    known: Sequence[str] = ()
    begun_with: int | None = None
    drawn_seed: int = field(default_factory=lambda: finite.fresh_seed())  # noqa: PLW0108 (looked up when it is needed)
    recorded_population: Population | None = None
    recorded_repeatable: bool | None = None
    recorded_order: ArrivalOrder | None = None

    @property
    def seed(self) -> int:
        """Key of everything that is drawn at random: the user's, or one that was drawn afresh."""
        return self.drawn_seed if self.wishes.seed is None else self.wishes.seed

    @cached_property
    def utility(self) -> Utility:
        """What an answer is worth."""
        try:
            return parse_utility(self.wishes.utility)
        except UtilityError as error:
            raise ScenarioError(f"{self.place('utility')}: {error}") from None

    @property
    def configurations(self) -> tuple[Configuration, ...]:
        """The candidates from the start, in the order of the file; on a space the default and the favourites."""
        return self._listed[: self.begun_with]

    @property
    def newcomers(self) -> tuple[Configuration, ...]:
        """Candidates that stand behind those the campaign was begun with."""
        return () if self.begun_with is None else self._listed[self.begun_with :]

    @cached_property
    def _listed(self) -> tuple[Configuration, ...]:
        if self.candidates is not None:
            return tuple(map(self._as_given, self.candidates))
        listed = self.wishes.configurations
        if self._space is not None:
            if listed is not None:
                raise ScenarioError(
                    f"{self.place('configurations')} stands beside [space]; candidates are listed or drawn from a "
                    "space, not both. Settings to be tried first are favourites of the space"
                )
            return listed_of(self._space)
        if listed is None:
            raise ScenarioError(
                f"{self.place('configurations')} is missing; name the candidates there, such as default = {{ restarts "
                "= 100 }}, or describe a parameter space in [space]"
            )
        calls = self.function is not None or self.wishes.target.function is not None
        found = configurations_of(listed, self.folder, self.place, nested=calls)
        return tuple(map(self._as_given, found))

    def _as_given(self, configuration: Configuration) -> Configuration:
        return replace(configuration, given=self.originals.get(configuration.name))

    @cached_property
    def proposer(self) -> Proposer | None:
        """The proposer of the space's configurations; None if the candidates are listed."""
        return None if self._space is None else space_as_begun(self._space, self.begun_with)

    @cached_property
    def _space(self) -> Proposer | None:
        """The same, with all favourites there are now."""
        section = self.wishes.space
        if section is None:
            return None
        order = self.recorded_order or order_for(self.wishes.options.get("effort", self.wishes.effort))
        return proposer_for(section, self.seed, self.place, self.folder, order)

    @property
    def procedure(self) -> str:
        """Name of the procedure: the race, and on a space the race over a pool that grows."""
        return self.wishes.procedure or ("race" if self.proposer is None else "pool")

    def with_effort(self, effort: str | None) -> "Scenario":
        """Return the same scenario with CPU time mainly spent on this; unchanged if nothing is said."""
        return self if effort is None else replace(self, wishes=self.wishes.model_copy(update={"effort": effort}))

    @property
    def options(self) -> dict[str, Any]:
        """Options of the procedure; the goal for gamma and the effort are two of them."""
        named = {"gamma": self.wishes.stop.gamma, "effort": self.wishes.effort}
        wanted = {name: value for name, value in named.items() if value is not None}
        if wanted and self.proposer is None:
            where = self.place("stop", "gamma") if "gamma" in wanted else self.place("effort")
            raise ScenarioError(f"{where} means nothing without a [space]; leave it out")
        return {**wanted, **self.wishes.options}

    @cached_property
    def stream(self) -> FiniteStream | GeneratedStream:
        """The instances, in an order that is fixed from now on."""
        conditions = conditions_of(self.wishes.target, self.folder, self.place)
        return stream_of(
            self.wishes.instances,
            self.place,
            self.folder,
            seed=self.seed,
            environment=conditions.environment,
            generated=self.folder / f"{self.stem}.instances",
            given=self.values,
            known=self.known,
        )

    def about_draws(self) -> "Scenario":
        """Return the scenario with a claim about the distribution, for bounds that take every instance as one draw."""
        wishes = self.wishes.instances
        if wishes.seeds > 1:
            raise ScenarioError(
                f"{self.place('instances', 'seeds')} is {wishes.seeds}, but here every instance counts as one draw; "
                "leave seeds out, or name other instances"
            )
        instances = wishes.model_copy(update={"population": None})
        said = self.wishes.model_copy(update={"instances": instances})
        return replace(self, wishes=said, recorded_population=Population.DRAWN)

    @cached_property
    def population(self) -> Population:
        """What the claim is about: exactly these instances, or the distribution they were drawn from."""
        return self._population(repeatable=self.program.repeatable, seeded=self.program.seeded)

    def _population(self, *, repeatable: bool, seeded: bool) -> Population:
        return population_of(
            self.wishes.instances,
            self.place,
            repeatable=repeatable,
            seeded=seeded,
            procedure=self.procedure,
            options=self.options,
            recorded=self.recorded_population,
        )

    @cached_property
    def _repeatable(self) -> Literal["auto"] | bool:
        """Whether the program repeats itself; "auto" if that follows from whether it is given the seed.

        A program without a seed is taken to repeat itself where a claim about exactly these instances is possible.
        Trial runs before the first run that counts decide whether it does.
        """
        said = self.wishes.target.repeatable
        if said != "auto":
            return said
        if self.recorded_repeatable is not None:
            return self.recorded_repeatable
        possible = self._population(repeatable=True, seeded=True) is Population.THESE
        return True if possible and self.wishes.instances.seeds == 1 else "auto"

    @cached_property
    def program(self) -> CommandProgram | FunctionProgram:
        """The program, its files found and hashed."""
        return self._program_with(self.configurations)

    def _program_with(self, configurations: tuple[Configuration, ...]) -> CommandProgram | FunctionProgram:
        stream = self.stream
        worded: SettingsToArguments | None = None
        if self.proposer is not None:
            check_command(self.wishes.target.command, self.proposer.space, self.place)
            if self.wishes.target.wrapper is None and self.wishes.target.settings_style is None:
                worded = words_of(self.proposer.space)
        target = self.wishes.target.model_copy(update={"repeatable": self._repeatable})
        with self.place.naming():
            return program_of(
                target,
                stream,
                configurations,
                self.folder,
                self.place,
                function=self.function,
                settings=worded,
                longest=self._longest_told,
            )

    @property
    def _longest_told(self) -> float:
        """The captime that programs are told, if they are told one: no run gets more, whatever was drawn for it.

        It follows from the scenario alone. Where captimes have no end, it is the moment from which on an answer is
        worth next to nothing.
        """
        ceiling = inf if self.wishes.target.ceiling is None else self.wishes.target.ceiling
        worthless = float(self.utility.inverse(np.array(_NEXT_TO_NOTHING)))
        return min(ceiling, self.utility.zero_at, worthless)

    @property
    def ledger(self) -> Path:
        """Return the file that records the runs, unless another is named."""
        named = self.wishes.ledger
        return self.folder / (f"{self.stem}{LEDGER_SUFFIX}" if named is None else named)

    @cached_property
    def question(self) -> CampaignQuestion:
        """What is asked, complete."""
        wishes, target = self.wishes, self.wishes.target
        rows = [row_of(index, each) for index, each in enumerate(self._listed)]
        return CampaignQuestion(
            program=self.program,
            stream=self.stream,
            configs=rows[: self.begun_with],
            newcomers=() if self.begun_with is None else tuple(rows[self.begun_with :]),
            utility=self.utility,
            delta=wishes.delta,
            epsilon=wishes.stop.epsilon,
            procedure=self.procedure,
            options=self.options,
            proposer=self.proposer,
            seed=self.seed,
            captime_first=wishes.captime_first,
            ceiling=inf if target.ceiling is None else target.ceiling,
            clock=target.clock,
            time=target.time,
            tolerance=target.tolerance,
            population=self.population,
            population_said=wishes.instances.population is not None or wishes.instances.seeds > 1,
            identity=self.canonical(),
        )

    @property
    def jobs(self) -> int:
        """Return how many runs are under way at once."""
        jobs, available = self.wishes.jobs, allowed_cores()
        if jobs == "auto":
            return available
        if jobs > available and not self.wishes.oversubscribe and self.wishes.executor.kind == "local":
            raise ScenarioError(
                f"{self.place('jobs')} is {jobs}, but there are {available} cores; more runs than cores disturb each "
                "other's times. Ask for fewer, or set oversubscribe = true and the certificate will mention it"
            )
        return jobs

    def canonical(self) -> dict[str, Any]:
        """Everything that the answer depends on, in words that JSON knows; the names are the file's."""
        wishes, target = self.wishes, self.wishes.target
        asked = target.model_dump(exclude={"environment", "clock", "compare_answers", "kind"})
        return {
            "rules": RULES,
            "utility": str(self.utility),
            "delta": wishes.delta,
            "seed": self.seed,
            "clock": target.clock,
            "captime_first": wishes.captime_first,
            "procedure": self.procedure,
            "options": self.options,
            "order": wishes.order,
            "window": wishes.window if wishes.order == "fixed" else None,
            "target": {
                **asked,
                "function": target.function if self.function is None else self.program.describe()["function"],
                "environment": {
                    "inherit": target.environment.inherit,
                    # Values may be secrets: a change is to be noticed, not to be read.
                    "set": {name: _hidden(value) for name, value in sorted(target.environment.set.items())},
                },
                "repeatable": self.program.repeatable,
                "programs": self.program.programs(),
            },
            "configurations": {
                "list": [*(each.describe() for each in self.configurations), *map(self._described, self.newcomers)]
            },
            "space": None if self._space is None else canonical(self._space),
            # JSON objects have no order, and random draws depend on that of the parameters.
            **({} if self._space is None else {"space_order": list(self._space.space.names)}),
            # Ledgers that name no population were begun when there was one.
            "instances": {
                **self.stream.describe(),
                **({} if self.population is Population.DRAWN else {"population": self.population.value}),
            },
            **seconds_that_count(wishes.executor),
        }

    def check(self) -> None:
        """Refuse what cannot work, before anything is run; `build` does it too."""
        self.build()

    def build(self) -> CampaignSpec:
        """Return the specification of the campaign; wrong wishes are refused here at the latest."""
        wishes, target = self.wishes, self.wishes.target
        self._check_procedure()
        self._check_newcomers()
        return CampaignSpec(
            question=self.question,
            configurations=self.configurations,
            settings=RunSettings(
                jobs=self.jobs,
                order=wishes.order,
                window=wishes.window,
                stop=StopRules(
                    cpu=math.inf if wishes.stop.cpu is None else wishes.stop.cpu,
                    wall=math.inf if wishes.stop.wall is None else wishes.stop.wall,
                    until=wishes.stop.until,
                ),
                isolation=wishes.isolation,
                # Two values that reach the target may differ, and both are right.
                conflicts=target.compare_answers and target.until is None,
                check_repeatability=target.repeatable == "auto",
            ),
            executor=checked_executor(wishes.executor, self.place, self.folder),
            most=None if wishes.jobs == "auto" else wishes.jobs,
            oversubscribe=wishes.oversubscribe,
            ledger=self.ledger,
        )

    def _described(self, newcomer: Configuration) -> dict[str, Any]:
        """A configuration that was added; a program of its own is not among those the campaign was begun with."""
        own = {} if newcomer.command is None else {"programs": self._program_with((newcomer,)).programs()}
        return newcomer.describe() | own

    def _check_newcomers(self) -> None:
        """Refuse added configurations that the campaign cannot run."""
        if not self.newcomers:
            return
        by_seed = self.wishes.target.repeatable == "auto" and self.program.seeded
        if by_seed and not self._program_with(self.newcomers).seeded:
            raise ScenarioError(
                f"{self.place('configurations')}: {self.newcomers[0].name!r} was added to a campaign whose runs can be "
                "made again with their seeds, but there is no {seed} in its command; pass {seed} to it, or begin a new "
                "ledger"
            )

    def _check_procedure(self) -> None:
        name, options = self.procedure, self.options
        if name not in PROCEDURES:
            raise ScenarioError(f"{self.place('procedure')} is {name!r}{_instead(name, PROCEDURES)}")
        for option in options:
            known = option_types(PROCEDURES[name])
            if option not in known:
                raise ScenarioError(f"{self.place('options', option)} is no option of {name}{_instead(option, known)}")
            if not isinstance(options[option], str | int | float):
                raise ScenarioError(
                    f"{self.place('options', option)} is {options[option]!r}; expected a number, a text, true or false"
                )
        with self.place.naming():
            build_procedure(name, REGISTERS, self.question.problem(), options)


def _instead(name: str, known: Mapping[str, Any]) -> str:
    return did_you_mean(name, known) or f"; there are {', '.join(known) or 'none'}"


def _hidden(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()


# Reading a scenario: a TOML file, or a dictionary like the one TOML makes of it.

# A scenario is written by a person; what is longer than this is something else.
_LARGEST = 4 << 20
# TOML itself promises 64; seeds may be longer.
_MOST_BITS = 128


def load_scenario(path: str | PathLike[str]) -> Scenario:
    """Read a scenario file; whatever is wrong is named with file, line and field.

    Args:
        path: The file.
    """
    file = Path(path)
    try:
        raw = read_limited(file, _LARGEST)
    except OSError as error:
        hint = "name the file itself" if error.errno in (EINVAL, EFBIG) else "`captime init` writes one to begin with"
        raise ScenarioError(
            f"{path}: the scenario cannot be read ({error.strerror}); expected a TOML file of a few lines, {hint}"
        ) from None
    except ValueError as error:
        raise ScenarioError(f"{path!r} is no name of a file ({error}); name the scenario") from None
    try:
        text = raw.decode("utf-8-sig")
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # Bytes that are no text, text that is no TOML, numbers with more digits than Python reads.
        raise ScenarioError(f"{path} is no TOML file: {error}; `captime init` writes one to look at") from None
    return _checked(document, file.absolute().parent, SourceLocation(str(path), text), file.stem)


def scenario_of(
    document: Mapping[str, Any],
    folder: str | PathLike[str] = ".",
    *,
    function: Callable[..., Any] | None = None,
    values: Sequence[Any] | None = None,
    originals: Mapping[str, Mapping[str, Any]] | None = None,
    stem: str = "scenario",
    name: str = "scenario",
) -> Scenario:
    """Return a scenario without a file, for library calls.

    Args:
        document: As TOML would read it.
        folder: Relative names are seen from here.
        function: A Python function as target.
        values: Python objects as instances.
        originals: Settings as a function is to be called with them, by the name of the configuration.
        stem: Files that belong to it are named after this.
        name: How messages call it.
    """
    filled = dict(document)
    if function is not None:
        filled.setdefault("target", {})
    if values is not None:
        filled.setdefault("instances", {})
    place = SourceLocation(name)
    given = {"function": function, "values": values, "originals": originals or {}}
    return _checked(filled, Path(folder).absolute(), place, stem, **given)


def _checked(document: Mapping[str, Any], folder: Path, place: SourceLocation, stem: str, **given: Any) -> Scenario:
    _check_numbers(document, (), place)
    try:
        wishes = ScenarioModel.model_validate(document)
    except ValidationError as error:
        raise refused(error, ScenarioModel, place) from None
    return Scenario(wishes, folder, place, stem, **given)


def _check_numbers(value: object, field: tuple[str | int, ...], place: SourceLocation) -> None:
    """Refuse whole numbers that no field can mean, wherever they stand: many have no double, some cannot be printed."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            _check_numbers(each, (*field, str(name)), place)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            _check_numbers(each, (*field, number), place)
    elif isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise ScenarioError(
            f"{place(*field)} is a whole number of {value.bit_length():,} bits; expected at most {_MOST_BITS}. Write a "
            "smaller one, or a text in quotes"
        )
