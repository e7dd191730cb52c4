"""What members with a formula have in common: everything but the formula."""

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from captime.arrays import FloatArray
from captime.utilities.checks import call_text, first_moments, require, times


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
