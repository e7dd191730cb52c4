"""Parameters that are numbers: reals and whole numbers between two bounds."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from captime.arrays import FloatArray
from captime.errors import ScenarioError
from captime.spaces.laws import EVENLY, Law, Scale
from captime.spaces.passing import Passing
from captime.spaces.values import LARGEST_INTEGER, Value, whole


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
