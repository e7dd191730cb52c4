"""A time of grace, then worth that drains away evenly."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from captime.arrays import FloatArray
from captime.utilities.domain import Seconds, call_text, first_moments, number_text, require, times


@dataclass(frozen=True, slots=True)
class Linear:
    """1 before `start`, then (end - t) / (end - start), 0 from `end` on.

    Attributes:
        start: until here nothing is lost (k0); may be 0.
        end: from here on an answer is worth nothing (k1).
    """

    start: Seconds
    end: Seconds

    name: ClassVar[str] = "linear"
    example: ClassVar[str] = "linear(10, 60)"

    def __post_init__(self) -> None:
        require(self, "start", or_equal=True)
        require(self, "end", above=self.start, relation=f"start is {number_text(self.start)}")

    @property
    def zero_at(self) -> float:
        """The end."""
        return self.end

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """The start (if it is not 0) and the end."""
        return tuple(each for each in (self.start, self.end) if each > 0.0)

    def __call__(self, seconds: npt.ArrayLike, /) -> FloatArray:
        """u(t), element by element."""
        t = times(self.name, seconds)
        worth = np.empty_like(t)
        # Outside the two ends the clipped formula gives exactly 1 and exactly 0.
        np.clip(t, self.start, self.end, out=worth)
        np.subtract(self.end, worth, out=worth)
        worth /= self.end - self.start
        return worth

    def inverse(self, value: npt.ArrayLike, /) -> FloatArray:
        """inf{t : u(t) <= value}."""
        return first_moments(self.name, value, lambda x: self.end - x * (self.end - self.start), self.zero_at)

    def __str__(self) -> str:
        return call_text(self.name, self.start, self.end)
