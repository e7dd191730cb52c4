"""A parameter space: parameters, when they are active, and what is forbidden. Everything about it, nothing about files.

The vocabulary is ConfigSpace's (its formats are read and written, see formats/), the arithmetic is ours: a draw is
keyed by (seed, number) and does not change with a library's version, whole numbers get equal shares on every scale, and
floats keep all their digits.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from captime.arrays import BoolArray, FloatArray
from captime.errors import ScenarioError
from captime.spaces.clauses import Clause, Columns, parents
from captime.spaces.parameters import Choice, Float, Parameter, Style, arguments, listed
from captime.spaces.values import Settings, Value, text_of

# This many draws in a row may be forbidden before the space is called empty.
_ATTEMPTS = 2**20
# Draws are made in batches of 16; of 4096 once 2^15 in a row were forbidden.
_BATCH, _LARGE_BATCH, _LONG = 16, 2**12, 2**15
# Keeps these draws apart from those of instances, seeds and captimes, which may share the campaign's seed.
_STREAM = 0x5ACE
# Spaces of at most this many combinations are counted one by one.
_COUNTABLE = 200_000


@dataclass(frozen=True)
class Space:
    """A parameter space; settings are dictionaries of the active parameters.

    Attributes:
        parameters: in the order in which they were declared.
        conditions: by parameter, when it is active; always, if it is not here.
        forbidden: combinations that must not be run.
        favourites: configurations the user wants tried first, after the default.
        style: how settings become words of a command line.
        notes: what the reader of the file wants people to know.
    """

    parameters: tuple[Parameter, ...]
    conditions: Mapping[str, Clause] = field(default_factory=dict)
    forbidden: tuple[Clause, ...] = ()
    favourites: tuple[Settings, ...] = ()
    style: Style = field(default_factory=Style)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.parameters:
            raise ScenarioError("the space has no parameters, expected at least one; declare some")
        names = [parameter.name for parameter in self.parameters]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ScenarioError(f"parameter {twice} is declared twice; remove one of the declarations")
        self.children_in_order  # noqa: B018 (a circle of conditions is told now, not at the first draw)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters, in order."""
        return tuple(parameter.name for parameter in self.parameters)

    @cached_property
    def by_name(self) -> dict[str, Parameter]:
        """The parameters by name."""
        return {parameter.name: parameter for parameter in self.parameters}

    @cached_property
    def children_in_order(self) -> tuple[str, ...]:
        """The parameters that have conditions, parents before children."""
        done: dict[str, None] = {}
        waiting = {name: parents(clause) & self.conditions.keys() for name, clause in self.conditions.items()}
        while waiting:
            ready = [name for name, above in waiting.items() if above <= done.keys()]
            if not ready:
                raise ScenarioError(
                    f"the conditions of {', '.join(sorted(waiting))} go in a circle: each waits for another; remove one"
                )
            for name in ready:
                done[name] = None
                del waiting[name]
        return tuple(done)

    # ------------------------------------------------------------------ many configurations at once

    def columns(self, codes: FloatArray) -> dict[str, FloatArray]:
        """A matrix of configurations (a row each) by name of the parameter."""
        return dict(zip(self.names, codes.T, strict=True))

    def deactivated(self, codes: FloatArray) -> FloatArray:
        """The same configurations with "not a number" wherever a parameter is inactive."""
        result = np.array(codes, dtype=np.float64)
        columns = self.columns(result)
        for name in self.children_in_order:
            active, _ = self.conditions[name].truth(columns)
            columns[name][~np.broadcast_to(active, len(result))] = np.nan
        return result

    def allowed(self, codes: FloatArray) -> BoolArray:
        """Which configurations are not forbidden."""
        columns: Columns = self.columns(codes)
        free = np.ones(len(codes), dtype=np.bool_)
        for clause in self.forbidden:
            free &= ~clause.truth(columns)[0]
        return free

    def drawn(self, rng: np.random.Generator, count: int) -> FloatArray:
        """That many random configurations in their matrix form, forbidden ones drawn again."""
        found: list[FloatArray] = []
        missing, tries = count, 0
        while missing > 0:
            size = max(_BATCH if tries < _LONG else _LARGE_BATCH, missing) if self.forbidden else missing
            shares = rng.random((size, len(self.parameters)))
            drawn = [parameter.at(share) for parameter, share in zip(self.parameters, shares.T, strict=True)]
            codes = self.deactivated(np.stack(drawn, axis=1))
            codes = codes[self.allowed(codes)][:missing]
            found.append(codes)
            missing -= len(codes)
            tries = 0 if len(codes) else tries + size
            if tries >= _ATTEMPTS:
                raise ScenarioError(
                    f"{tries} random configurations in a row were forbidden; expected that some are not. Loosen the "
                    "forbidden combinations, or turn them into conditions"
                )
        return np.concatenate(found)

    # ------------------------------------------------------------------ one configuration

    def settings(self, codes: FloatArray) -> Settings:
        """One configuration from its row."""
        return {
            parameter.name: parameter.value(code)
            for parameter, code in zip(self.parameters, codes.tolist(), strict=True)
            if code == code  # noqa: PLR0124 (not a number: inactive)
        }

    def codes(self, settings: Mapping[str, Value]) -> FloatArray:
        """The row of one configuration; whatever it says about inactive parameters is kept out."""
        row = np.full(len(self.parameters), np.nan)
        for place, parameter in enumerate(self.parameters):
            if parameter.name in settings:
                code = parameter.code(settings[parameter.name])
                row[place] = np.nan if code is None else code
        return row

    def sample(self, rng: np.random.Generator) -> Settings:
        """A random configuration, by the laws of the parameters."""
        return self.settings(self.drawn(rng, 1)[0])

    def draw(self, seed: int, number: int) -> Settings:
        """Random configuration `number` of this seed: always the same one, whatever else is drawn or observed.

        These are the draws that carry gamma: they are independent of each other and of every run.
        """
        return self.sample(np.random.default_rng([_STREAM, seed, number]))

    @cached_property
    def default_row(self) -> FloatArray:
        """The default values of all parameters as a row, inactive ones too."""
        return np.array([parameter.code(parameter.default) for parameter in self.parameters], dtype=np.float64)

    @cached_property
    def default(self) -> Settings:
        """The default configuration.

        If defaults had to be assumed and these together are forbidden, the first random configuration stands in.
        """
        if not self.default_is_forbidden:
            return self.settings(self.deactivated(self.default_row[np.newaxis])[0])
        if not any(parameter.assumed for parameter in self.parameters):
            raise ScenarioError(
                "the default configuration is forbidden, expected one that may be run; change a default value or "
                "the forbidden combination"
            )
        return self.draw(0, 0)

    @cached_property
    def default_is_forbidden(self) -> bool:
        """Whether the default values are forbidden together."""
        return not self.allowed(self.deactivated(self.default_row[np.newaxis]))[0]

    def completed(self, partial: Mapping[str, Value], where: str = "configuration") -> Settings:
        """A configuration from some of its values: defaults for the rest, inactive ones left out, checked.

        Args:
            partial: Some parameters; one that turns out to be inactive is an error, it would not have an effect.
            where: What to call it in an error.
        """
        row = self.default_row.copy()
        for name, value in partial.items():
            code = self._legal_code(name, value, where)
            row[self.names.index(name)] = code
        settings = self.settings(self.deactivated(row[np.newaxis])[0])
        idle = [name for name in partial if name not in settings]
        if idle:
            raise ScenarioError(f"{where}: {idle[0]} is set but inactive with these settings; leave it out")
        self.check(settings, where)
        return settings

    def check(self, settings: Mapping[str, Value], where: str = "configuration") -> None:
        """Refuse a configuration that is not one of this space: incomplete, out of range, inactive set, forbidden."""
        for name, value in settings.items():
            self._legal_code(name, value, where)
        row = self.codes(settings)[np.newaxis]
        # A missing parameter gets its default for a moment: only then can one say whether it should be there.
        filled = np.where(np.isnan(row), self.default_row, row)
        active = ~np.isnan(self.deactivated(filled)[0])
        for place, name in enumerate(self.names):
            if active[place] and name not in settings:
                raise ScenarioError(f"{where}: {name} is not set, but it is active with these settings; set it")
            if not active[place] and name in settings:
                raise ScenarioError(f"{where}: {name} is set but inactive with these settings; leave it out")
        if not self.allowed(row)[0]:
            raise ScenarioError(f"{where}: the combination is forbidden in this space; change one of its values")

    def _legal_code(self, name: str, value: Value, where: str) -> float:
        parameter = self.by_name.get(name)
        if parameter is None:
            raise ScenarioError(f"{where}: there is no parameter {name}; the space has {listed(self.names)}")
        code = parameter.code(value)
        if code is None:
            raise ScenarioError(
                f"{where}: {name} is set to {text_of(value)!r}, expected "
                + (
                    f"one of {listed(parameter.choices)}"
                    if isinstance(parameter, Choice)
                    else f"a number from {text_of(parameter.low)} to {text_of(parameter.high)}"
                )
            )
        return code

    def arguments(self, settings: Mapping[str, Value]) -> list[str]:
        """The words that put these settings on a command line; inactive parameters are not among them."""
        return arguments(self.parameters, settings, self.style)

    # ------------------------------------------------------------------ how large it is

    @cached_property
    def combinations(self) -> int | None:
        """The product of the numbers of values, conditions and forbidden combinations aside; None: infinite."""
        product = 1
        for parameter in self.parameters:
            if parameter.size is None:
                return None
            product *= parameter.size
        return product

    def all(self) -> list[Settings] | None:
        """Every configuration once, in a fixed order; None if there are too many to list (more than 200,000)."""
        rows = self._every
        return None if rows is None else [self.settings(row) for row in rows]

    @property
    def size(self) -> int | None:
        """How many different configurations there are, exactly; None: infinite, or too many to count."""
        return None if self._every is None else len(self._every)

    @cached_property
    def _every(self) -> FloatArray | None:
        if self.combinations is None or self.combinations > _COUNTABLE:
            return None
        values = [_values(parameter) for parameter in self.parameters]
        rest = np.arange(math.prod(len(each) for each in values))
        columns = []
        # Counted like the digits of a number: NumPy's grids have 32 axes at most.
        for each in reversed(values):
            rest, places = np.divmod(rest, len(each))
            columns.append(each[places])
        codes = self.deactivated(np.stack(columns[::-1], axis=1))
        codes = codes[self.allowed(codes)]
        # Not-a-numbers are all different to NumPy: a number below every code stands for them.
        marked = np.unique(np.where(np.isnan(codes), -np.inf, codes), axis=0)
        return np.where(np.isinf(marked), np.nan, marked)


def _values(parameter: Parameter) -> FloatArray:
    """Every value of a parameter that has finitely many."""
    if isinstance(parameter, Choice):
        return np.arange(parameter.size, dtype=np.float64)
    if isinstance(parameter, Float) and parameter.digits is not None:
        first = np.rint(parameter.low * 10.0**parameter.digits)
        return np.unique(parameter.rounded((first + np.arange(parameter.size or 1)) / 10.0**parameter.digits))
    return np.unique(parameter.rounded(np.linspace(parameter.low, parameter.high, parameter.size or 1)))
