"""A time of grace, then the same loss for every doubling of the time."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from captime.arrays import FloatArray
from captime.utilities.domain import Seconds, call_text, first_moments, number_text, require, times


@dataclass(frozen=True, slots=True)
class Geometric:
    """1 before `start`, then ln(end / t) / ln(end / start), 0 from `end` on.

    Attributes:
        start: until here nothing is lost (k0); it cannot be 0, because no number of doublings leads away from
            0.
        end: from here on an answer is worth nothing (k1).
    """

    start: Seconds
    end: Seconds

    name: ClassVar[str] = "geometric"
    example: ClassVar[str] = "geometric(1, 100)"

    def __post_init__(self) -> None:
        require(self, "start")
        require(self, "end", above=self.start, relation=f"start is {number_text(self.start)}")

    @property
    def zero_at(self) -> float:
        """The end."""
        return self.end

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """The start and the end."""
        return (self.start, self.end)

    @property
    def _span(self) -> float:
        return math.log(self.end) - math.log(self.start)

    def __call__(self, seconds: npt.ArrayLike, /) -> FloatArray:
        """u(t), element by element."""
        t = times(self.name, seconds)
        worth = np.empty_like(t)
        np.clip(t, self.start, self.end, out=worth)
        # Differences of logarithms, not the logarithm of a ratio: the ratio may leave the range of numbers.
        np.log(worth, out=worth)
        np.subtract(np.log(self.end), worth, out=worth)
        worth /= np.log(self.end) - np.log(self.start)
        return worth

    def inverse(self, value: npt.ArrayLike, /) -> FloatArray:
        """inf{t : u(t) <= value}."""
        return first_moments(self.name, value, lambda x: self.end * np.exp(-x * self._span), self.zero_at)

    def __str__(self) -> str:
        return call_text(self.name, self.start, self.end)
