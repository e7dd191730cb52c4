"""What members with a formula have in common: everything but the formula."""

import difflib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from numbers import Real
from typing import Annotated, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from captime.arrays import FloatArray
from captime.errors import UtilityError

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


def raise_to(base: FloatArray, exponent: float) -> None:
    """Base to the power of exponent, in place; exponent 1, the common case, costs nothing."""
    if exponent == 1.0:
        return
    if exponent == 2.0:
        np.square(base, out=base)
    elif exponent == 0.5:
        np.sqrt(base, out=base)
    else:
        np.power(base, exponent, out=base)


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


# What members with a formula have in common: everything but the formula.


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
