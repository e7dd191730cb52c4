"""The four kinds of parameters: reals and whole numbers between two bounds, choices without an order and with one."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from captime.arrays import FloatArray
from captime.errors import ScenarioError
from captime.spaces.laws import EVENLY, Law, Scale
from captime.spaces.values import LARGEST_INTEGER, Passing, Value, number_in, same, text_of, whole

# Parameters that are numbers: reals and whole numbers between two bounds.


@dataclass(frozen=True, slots=True)
class Float:
    """A real number from low to high, both included.

    Attributes:
        name: what the program calls it.
        low: the smallest value.
        high: the largest value.
        default: the value of the default configuration.
        log: draw and measure distances by the logarithm.
        law: how random values are spread over the range.
        digits: random values are rounded to this many places after the point; None: not rounded.
        passing: how the value is put on the command line, if not as the others.
        assumed: the default was not given, the middle of the range stands for it.
    """

    name: str
    low: float
    high: float
    default: float
    log: bool = False
    law: Law = EVENLY
    digits: int | None = None
    passing: Passing | None = None
    assumed: bool = False

    kind: ClassVar[str] = "float"

    def __post_init__(self) -> None:
        _check_range(self.name, self.low, self.high, log=self.log, lowest=0.0)
        _check_default(self.name, self.default, self.low, self.high)
        self.at(np.array([0.5]))  # a law that has no place on this range says so here

    @property
    def scale(self) -> Scale:
        """Its range as 0 to 1."""
        return Scale(self.low, self.high, self.log)

    @property
    def size(self) -> int | None:
        """How many values there are; None if they cannot be counted."""
        if self.low == self.high:
            return 1
        if self.digits is None:
            return None
        first, last = (np.rint(end * 10.0**self.digits) for end in (self.low, self.high))
        return int(last - first) + 1 if abs(last - first) <= LARGEST_INTEGER else None

    def at(self, shares: FloatArray) -> FloatArray:
        """The values below which these shares of random values lie."""
        return self.rounded(self.scale.at(self.law.quantile(shares, self.scale)))

    def rounded(self, values: FloatArray) -> FloatArray:
        """The nearest values it can take."""
        rounded = values if self.digits is None else np.round(values, self.digits)
        return np.clip(rounded, self.low, self.high)

    def unit(self, codes: FloatArray) -> FloatArray:
        """Where values lie between low (0) and high (1)."""
        return self.scale.unit(codes)

    def code(self, value: Value) -> float | None:
        """The number that stands for a value in a column; None if it cannot be set to it."""
        if isinstance(value, bool | str) or not self.low <= value <= self.high:
            return None
        return float(value)

    def value(self, code: float) -> Value:
        """The value behind a number of a column."""
        return float(code)


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number from low to high, both included; the attributes are those of Float."""

    name: str
    low: int
    high: int
    default: int
    log: bool = False
    law: Law = EVENLY
    passing: Passing | None = None
    assumed: bool = False

    kind: ClassVar[str] = "int"

    def __post_init__(self) -> None:
        _check_range(self.name, self.low, self.high, log=self.log, lowest=1)
        _check_default(self.name, self.default, self.low, self.high)
        if max(abs(self.low), abs(self.high)) > LARGEST_INTEGER:
            raise ScenarioError(
                f"parameter {self.name}: the range from {self.low} to {self.high} leaves ±2^53, within which whole "
                "numbers are exact; narrow it"
            )
        self.at(np.array([0.5]))

    @property
    def scale(self) -> Scale:
        """Its range as 0 to 1, half a step wider at both ends."""
        return Scale(self.low, self.high, self.log, margin=0.5)

    @property
    def size(self) -> int:
        """How many values there are."""
        return self.high - self.low + 1

    def at(self, shares: FloatArray) -> FloatArray:
        """The values below which these shares of random values lie."""
        return self.rounded(self.scale.at(self.law.quantile(shares, self.scale)))

    def rounded(self, values: FloatArray) -> FloatArray:
        """The nearest values it can take."""
        return np.clip(np.rint(values), self.low, self.high)

    def unit(self, codes: FloatArray) -> FloatArray:
        """Where values lie between low (0) and high (1)."""
        return Scale(self.low, self.high, self.log).unit(codes)

    def code(self, value: Value) -> float | None:
        """The number that stands for a value in a column; None if it cannot be set to it."""
        if isinstance(value, bool | str) or not self.low <= value <= self.high or not float(value).is_integer():
            return None
        return float(value)

    def value(self, code: float) -> Value:
        """The value behind a number of a column."""
        return int(code)


def middle(low: float, high: float, *, log: bool, integer: bool) -> float:
    """What ConfigSpace takes for a default that is not given: the middle of the range, by its logarithm if log."""
    if log and low <= 0:
        return low  # refused a moment later, in words about the range
    value = float(Scale(low, high, log).at(np.array([0.5]))[0])
    return float(np.rint(value)) if integer else value


def integer_from(
    name: str,
    low: float,
    high: float,
    default: float | None,
    *,
    log: bool,
    law: Law = EVENLY,
    passing: Passing | None = None,
) -> Integer:
    """A whole-number parameter from numbers as a reader finds them."""
    assumed = default is None
    start = middle(low, high, log=log, integer=True) if default is None else default
    try:
        ends = whole(low), whole(high), whole(start)
    except ScenarioError as flaw:
        raise ScenarioError(f"parameter {name}: {flaw}") from None
    return Integer(name, *ends, log=log, law=law, passing=passing, assumed=assumed)


def _check_range(name: str, low: float, high: float, *, log: bool, lowest: float) -> None:
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ScenarioError(
            f"parameter {name}: the range goes from {low!r} to {high!r}, expected two finite numbers, the smaller first"
        )
    if log and (low < lowest or low <= 0):
        raise ScenarioError(
            f"parameter {name}: a logarithmic range begins at {low!r}, expected "
            f"{'more than 0' if lowest == 0 else 'at least 1'}; raise the low end or leave the logarithm out"
        )


def _check_default(name: str, default: float, low: float, high: float) -> None:
    if not low <= default <= high:
        raise ScenarioError(
            f"parameter {name}: the default {default!r} lies outside the range from {low!r} to {high!r}; correct one"
        )


# Parameters that are one of some values: without an order (categorical, booleans, constants) or with one (ordinal).


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several values; what both kinds share.

    Attributes:
        name: what the program calls it.
        choices: the values, all different, also as texts.
        default: the value of the default configuration.
        weights: how often each is drawn, in any unit; None: all the same.
        passing: how the value is put on the command line, if not as the others.
        assumed: the default was not given, the first choice stands for it.
    """

    name: str
    choices: tuple[Value, ...]
    default: Value
    weights: tuple[float, ...] | None = None
    passing: Passing | None = None
    assumed: bool = False

    def __post_init__(self) -> None:
        texts = [text_of(choice) for choice in self.choices]
        if not texts:
            raise ScenarioError(f"parameter {self.name}: there is no value to choose from, expected at least one")
        if len(set(texts)) < len(texts):
            twice = next(text for text in texts if texts.count(text) > 1)
            raise ScenarioError(f"parameter {self.name}: the value {twice} stands there twice; remove one")
        if self.code(self.default) is None:
            raise ScenarioError(
                f"parameter {self.name}: the default {text_of(self.default)!r} is none of its values "
                f"({listed(self.choices)}); correct one"
            )
        if self.weights is not None:
            self._check_weights(self.weights)

    def _check_weights(self, weights: tuple[float, ...]) -> None:
        if (
            len(weights) != len(self.choices)
            or not all(0 <= weight < np.inf for weight in weights)
            or sum(weights) <= 0
        ):
            raise ScenarioError(
                f"parameter {self.name}: weights {list(weights)}, expected {len(self.choices)} numbers of at least 0, "
                "one for each value, not all 0"
            )

    @property
    def size(self) -> int:
        """How many values there are."""
        return len(self.choices)

    def at(self, shares: FloatArray) -> FloatArray:
        """The places in the list below which these shares of random values lie."""
        if self.weights is None:
            places = np.floor(shares * len(self.choices))
        else:
            until = np.cumsum(self.weights) / np.sum(self.weights)
            places = np.searchsorted(until, shares, side="right").astype(np.float64)
            # Shares near 1 may pass the last sum by a rounding error: they belong to the last value that is ever drawn.
            places = np.minimum(places, np.flatnonzero(self.weights)[-1])
        return np.clip(places, 0.0, len(self.choices) - 1.0)

    def rounded(self, values: FloatArray) -> FloatArray:
        """The nearest places in the list."""
        return np.clip(np.rint(values), 0.0, len(self.choices) - 1.0)

    def unit(self, codes: FloatArray) -> FloatArray:
        """Where places lie between the first (0) and the last (1)."""
        return codes / max(len(self.choices) - 1, 1)

    def code(self, value: Value) -> float | None:
        """The place of a value in the list; a text finds what it is the text of. None if it is not there."""
        for place, choice in enumerate(self.choices):
            if same(choice, value):
                return float(place)
        text = text_of(value)
        return next((float(place) for place, choice in enumerate(self.choices) if text_of(choice) == text), None)

    def value(self, code: float) -> Value:
        """The value at a place in the list."""
        return self.choices[int(code)]


@dataclass(frozen=True, slots=True)
class Categorical(Choice):
    """One of several values that have no order; also booleans (true and false) and constants (a single value)."""

    @classmethod
    def of(
        cls,
        name: str,
        choices: tuple[Value, ...],
        default: Value,
        weights: tuple[float, ...] | None = None,
        passing: Passing | None = None,
        *,
        assumed: bool = False,
    ) -> Self:
        """As the constructor, but true and false always in the same order, so that their draws are the same too."""
        if len(choices) == 2 and all(isinstance(choice, bool) for choice in choices) and choices[0] is True:
            choices, weights = choices[::-1], None if weights is None else weights[::-1]
        return cls(name, choices, default, weights, passing, assumed)

    @property
    def kind(self) -> str:
        """categorical, bool or constant."""
        if len(self.choices) == 1:
            return "constant"
        return "bool" if self.boolean else "categorical"

    @property
    def boolean(self) -> bool:
        """Whether its values are true and false."""
        return all(isinstance(choice, bool) for choice in self.choices)


@dataclass(frozen=True, slots=True)
class Ordinal(Choice):
    """One of several values in the order in which they are listed."""

    kind: ClassVar[str] = "ordinal"
    boolean: ClassVar[bool] = False


def listed(values: tuple[Value, ...]) -> str:
    """Some values for a message, the rest counted."""
    shown = ", ".join(text_of(value) for value in values[:8])
    return shown if len(values) <= 8 else f"{shown}, and {len(values) - 8} more"


# What a parameter can be: a register of the four kinds, and questions that all of them answer.

Parameter = Float | Integer | Categorical | Ordinal


def numeric_choices(parameter: Choice) -> list[float] | None:
    """The values of a choice as numbers, if all of them are numbers, also if they were written as texts."""
    numbers = [number_in(text_of(choice)) for choice in parameter.choices]
    return [number for number in numbers if number is not None] if None not in numbers else None


# From settings to words of a command line: `--p=v`, `-p v`, `--flag` or nothing, or a template per parameter.
#
# The words are in the order of the parameters. An inactive parameter has no setting, and so no word.

# Names for the usual ways; anything with {name} and {value} in it is as good.
STYLES = {
    "gnu": "--{name}={value}",
    "gnu-words": "--{name} {value}",
    "dash": "-{name}={value}",
    "dash-words": "-{name} {value}",
    "assignment": "{name}={value}",
}


@dataclass(frozen=True, slots=True)
class Style:
    """How parameters are passed that do not say so themselves.

    Attributes:
        arguments: a template with {name} and {value}, such as `--{name}={value}`; blanks separate words.
        true: a template with {name} for a boolean that is true, such as `--{name}`; None: as any other value.
        false: the same for false; None: nothing if `true` is given, else as any other value.
        words: what true and false are called where they are values.
    """

    arguments: str = STYLES["gnu"]
    true: str | None = None
    false: str | None = None
    words: tuple[str, str] = ("true", "false")

    def __post_init__(self) -> None:
        for mark in ("{name}", "{value}"):
            if mark not in self.arguments:
                raise ScenarioError(
                    f'arguments = "{self.arguments}" has no {mark}, expected both {{name}} and {{value}} as in '
                    f'"{STYLES["gnu"]}", or one of the names {", ".join(STYLES)}'
                )

    def arguments_of(self, parameter: Parameter, value: Value) -> list[str]:
        """The words for one parameter."""
        text = text_of(self.worded(value))
        if parameter.passing is not None:
            return parameter.passing.arguments(value, text)
        if isinstance(value, bool) and self.true is not None:
            return (self.true if value else self.false or "").replace("{name}", parameter.name).split()
        # Cut first, filled afterwards: blanks in a name or a value stay inside their word.
        return [word.replace("{name}", parameter.name).replace("{value}", text) for word in self.arguments.split()]

    def worded(self, value: Value) -> Value:
        """A boolean in the program's words; anything else as it is."""
        return value if not isinstance(value, bool) or self.words == ("true", "false") else self.words[not value]


def arguments(parameters: Sequence[Parameter], settings: Mapping[str, Value], style: Style | None = None) -> list[str]:
    """The words for these settings, in the order of the parameters.

    Args:
        parameters: All parameters of the space.
        settings: The active ones and their values.
        style: How to pass those that do not say so themselves; left out, `--name=value`.
    """
    style = style or Style()
    chosen = [each for each in parameters if each.name in settings]
    return [word for each in chosen for word in style.arguments_of(each, settings[each.name])]
