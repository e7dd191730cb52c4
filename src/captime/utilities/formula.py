"""What utilities share: durations as text, the protocol, and what members with a formula have in common."""

import difflib
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from numbers import Real
from typing import Annotated, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from captime.arrays import FloatArray
from captime.errors import UtilityError

# Times as people write them: `90s`, `5min`, `2h` in, `1 min`, `2.5 h` out.

# Divisors, not fractions, below one second: 100 / 1000 is the double nearest to 0.1, 100 * 0.001 need not be.
_MULTIPLES = {"s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_DIVISORS = {"ms": 1e3, "us": 1e6, "µs": 1e6, "μs": 1e6}
_PRINTED = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))

NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
UNIT = re.compile(r"[A-Za-zµμ]+")


class Duration(float):
    """A number of seconds that was written with a unit, so it can only stand for a time."""

    __slots__ = ()


def in_seconds(number: float, unit: str) -> float:
    """Return a number with a unit, in seconds; an unknown unit is refused.

    >>> in_seconds(5, "min")
    300.0
    """
    word = unit.lower()
    if word in _MULTIPLES:
        return number * _MULTIPLES[word]
    if word in _DIVISORS:
        return number / _DIVISORS[word]
    known = ["us", "ms", "s", "min", "h", "d"]
    # A lone m could be a minute, a month or a thousandth: asking is cheaper than guessing.
    near = ["min"] if word.startswith("m") else difflib.get_close_matches(word, known, n=1, cutoff=0.0)
    raise UtilityError(f"{unit!r} is not a unit of time, expected one of {', '.join(known)}; did you mean {near[0]}?")


def parse_duration(text: str, what: str = "the time") -> float:
    """Return seconds from `90`, `90s`, `1.5 min`, `2h`; what is negative, infinite or something else is refused.

    `m` means minutes here: nothing shorter or longer could be meant by a time alone.

    Args:
        text: what the user wrote.
        what: what the time is, for the message.

    >>> parse_duration("1.5 min")
    90.0
    """
    stripped = text.strip()
    number = NUMBER.match(stripped)
    unit = stripped[number.end() :].strip() if number else ""
    if number is None or (unit and not UNIT.fullmatch(unit)):
        raise UtilityError(
            f"{what} is {text!r}, expected a number with or without a unit, like 90, 90s, 5min, 2h, 100ms or 1d"
        )
    try:
        seconds = in_seconds(float(number.group()), "min" if unit == "m" else unit or "s")
    except UtilityError as error:
        raise UtilityError(f"{what} is {text!r}: {error}") from None
    if not 0.0 <= seconds < math.inf:
        raise UtilityError(f"{what} is {text!r}, expected a finite time of 0 or more")
    return seconds


def duration_text(seconds: float) -> str:
    """Return a time for people, in the largest unit that makes it at least 1, with three digits or so.

    >>> duration_text(9000)
    '2.5 h'
    """
    if math.isinf(seconds):
        return "never"
    if seconds == 0.0:
        return "0 s"
    # A little slack, so that 59.9999 s is printed as 1 min and not as 60 s.
    size, unit = next((each for each in _PRINTED if seconds >= each[0] * 0.9995), _PRINTED[-1])
    amount = seconds / size
    digits = f"{amount:.3g}" if amount < 1000.0 else f"{amount:,.0f}"
    if "e" in digits or amount >= 1e9:
        digits = f"{amount:.2e}"
    return f"{digits} {unit}"


def rounded_time(seconds: float) -> float:
    """Return a time with no more digits than a guess deserves: halves, whole numbers or fives of its unit."""
    unit = next((size for size in (86400.0, 3600.0, 60.0, 1.0) if seconds >= size), 1.0)
    amount = seconds / unit
    step = 0.5 if amount < 3.0 else 1.0 if amount < 20.0 else 5.0
    return max(step, round(amount / step) * step) * unit


# What a utility looks like. Members of the family import nothing of it: fitting the shape is enough.


class Utility(Protocol):
    """What an answer is worth when it arrives after t seconds: u(0) = 1, never rising, falling to 0.

    Every member is right-continuous (the value *at* a jump is the lower one), because a utility is the
    survival function of a random deadline, P(deadline > t), and because "completed" means strictly before the
    captime.
    """

    @property
    def zero_at(self) -> float:
        """The first moment from which an answer is worth nothing; infinite if it always keeps some worth."""
        ...

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """Where the formula changes or jumps; checks and plots look closely there."""
        ...

    def __call__(self, seconds: FloatArray, /) -> FloatArray:
        """u(t), element by element; infinity is worth 0, a negative or missing time is an error."""
        ...

    def inverse(self, value: FloatArray, /) -> FloatArray:
        """Return the first moment at which the worth has fallen to `value` or below: inf{t : u(t) <= value}."""
        ...

    def __str__(self) -> str:
        """Return the textual form: `parse_utility(str(u))` gives an equal utility."""
        ...


# What members with a formula have in common: everything but the formula.

# What every member of the family checks and prints in the same way: its parameters, times, values and text.
#
# Nothing here knows a formula or a member.

Seconds = Annotated[float, "seconds"]
"""A parameter that is a time: in text it may carry a unit, as in `uniform(5min)`."""


class Named(Protocol):
    """What an error message needs to know about a member."""

    name: ClassVar[str]
    example: ClassVar[str]


def require(
    member: Named,
    parameter: str,
    *,
    above: float = 0.0,
    below: float = math.inf,
    or_equal: bool = False,
    relation: str = "",
) -> None:
    """Refuse a parameter outside (above, below), and store it as a plain float.

    Args:
        member: a dataclass under construction (frozen or not).
        parameter: the name of its field.
        above: the number it has to exceed.
        below: the number it has to stay under.
        or_equal: whether `above` itself is allowed too.
        relation: the name of the other parameter that `above` or `below` came from, for the message.
    """
    found = getattr(member, parameter)
    if isinstance(found, Real) and not isinstance(found, bool):
        number = float(found)
        if math.isfinite(number) and number < below and (number > above or (or_equal and number == above)):
            object.__setattr__(member, parameter, number)  # the dataclasses of this family are frozen
            return
    expected = f"a finite number {'of at least' if or_equal else 'greater than'} {number_text(above)}"
    if below < math.inf:
        expected += f" and less than {number_text(below)}"
    if relation:
        expected += f" ({relation})"
    raise UtilityError(
        f"{member.name}: {parameter} is {shown(found)}, expected {expected}; a valid example is {member.example}"
    )


def times(family: str, seconds: npt.ArrayLike) -> FloatArray:
    """Return the moments to be valued, as an array; refuses what is not a number of seconds from 0 to infinity."""
    return _numbers(family, seconds, "a time", "a number of seconds, 0 or more (infinity: it never ends)")


def values(family: str, value: npt.ArrayLike) -> FloatArray:
    """Return the worths to be found again, as an array; refuses what is negative or missing."""
    return _numbers(family, value, "a value to invert", "a number, 0 or more")


def first_moments(
    family: str, value: npt.ArrayLike, formula: Callable[[FloatArray], FloatArray], zero_at: float
) -> FloatArray:
    """inf{t : u(t) <= x} for a member whose inverse is a formula on 0 < x < 1.

    The ends are the same for all members: worth 1 or more is had at once, worth 0 at `zero_at`.
    """
    x = values(family, value)
    # The formulas divide by x and take its logarithm; what they say at x = 0 is thrown away below.
    with np.errstate(all="ignore"):
        inside = formula(np.minimum(x, 1.0))
    return np.asarray(np.where(x >= 1.0, 0.0, np.where(x <= 0.0, zero_at, inside)))


def raised(base: FloatArray, exponent: float) -> FloatArray:
    """Return base to the power of exponent; exponents 1, 2 and ½, the common ones, cost little."""
    if exponent == 2.0:
        return np.asarray(np.square(base))
    if exponent == 0.5:
        return np.asarray(np.sqrt(base))
    return base if exponent == 1.0 else np.asarray(np.power(base, exponent))


def number_text(number: float) -> str:
    """Return a number that reads back exactly, without a needless `.0`."""
    if number.is_integer() and abs(number) < 1e16:
        return str(int(number))
    return repr(float(number))


def call_text(name: str, *arguments: object) -> str:
    """Return the textual form `name(argument, argument)`, numbers in their shortest exact form."""
    inner = ", ".join(number_text(each) if isinstance(each, float) else str(each) for each in arguments)
    return f"{name}({inner})"


def nearest(word: str, known: list[str]) -> str:
    """Return a remedy for a mistyped word: the nearest known one, then all of them."""
    near = difflib.get_close_matches(word.lower(), known, n=1, cutoff=0.5)
    guess = f"did you mean {near[0]}? " if near else ""
    return f"{guess}Known are: {', '.join(known)}"


def shown(found: object) -> str:
    """Return what was found, short enough for a message."""
    if isinstance(found, Real) and not isinstance(found, bool):
        return f"{float(found):.12g}"
    text = repr(found)
    return text if len(text) <= 60 else text[:57] + "..."


def _numbers(family: str, given: npt.ArrayLike, what: str, expected: str) -> FloatArray:
    try:
        numbers = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise UtilityError(f"{family}: {what} is {shown(given)}, expected {expected}") from None
    # One reduction sees both faults: the minimum of an array with a NaN is NaN, and NaN >= 0 is false.
    if numbers.size and not numbers.min() >= 0.0:
        place = int(np.flatnonzero(~(numbers.ravel() >= 0.0))[0])
        at = f" (element {place} of {numbers.size})" if numbers.size > 1 else ""
        raise UtilityError(
            f"{family}: {what} is {shown(float(numbers.ravel()[place]))}{at}, expected {expected}; "
            "correct or remove it before asking what it is worth"
        )
    return numbers


class Formula(ABC):
    """A member that states its worth and the inverse of it; checks, ends and text are here.

    Inheriting from this is optional, but a frozen dataclass of numbers that does needs little more than its two
    formulas. Unless it says otherwise, its parameters are numbers greater than 0, it always keeps some worth, and one
    formula holds up to `zero_at`.
    """

    __slots__ = ()

    name: ClassVar[str]
    example: ClassVar[str]
    __match_args__: ClassVar[tuple[str, ...]]  # every dataclass has it

    @abstractmethod
    def _worth(self, t: FloatArray) -> FloatArray:
        """u(t) for checked times, in a new array; overflow and division by 0 pass silently."""

    @abstractmethod
    def _moment(self, x: FloatArray) -> FloatArray:
        """inf{t : u(t) <= x} for 0 < x < 1; what it says at the two ends does not matter."""

    @property
    def _parameters(self) -> tuple[str, ...]:
        """Their names, in the order of the constructor."""
        return self.__match_args__

    def __post_init__(self) -> None:
        for parameter in self._parameters:
            require(self, parameter)

    @property
    def zero_at(self) -> float:
        """Never."""
        return math.inf

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """The moment of zero worth, if there is one; else one formula serves all times."""
        return (self.zero_at,) if math.isfinite(self.zero_at) else ()

    def __call__(self, seconds: npt.ArrayLike, /) -> FloatArray:
        """u(t), element by element."""
        t = times(self.name, seconds)
        with np.errstate(all="ignore"):
            return np.asarray(self._worth(t))

    def inverse(self, value: npt.ArrayLike, /) -> FloatArray:
        """inf{t : u(t) <= value}."""
        return first_moments(self.name, value, self._moment, self.zero_at)

    def __str__(self) -> str:
        return call_text(self.name, *(getattr(self, parameter) for parameter in self._parameters))
