"""A time of grace, then a fall whose steepness is bent from the far end."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from captime.arrays import FloatArray
from captime.utilities.domain import Seconds, call_text, first_moments, number_text, raise_to, require, times


@dataclass(frozen=True, slots=True)
class Forward:
    """1 up to `start`, then ((end - t) / (end - start)) ** shape, 0 from `end` on.

    Attributes:
        start: until here nothing is lost (k0); may be 0.
        end: from here on an answer is worth nothing (k1).
        shape: above 1 most is lost soon after the start, below 1 most is lost close to the end (a).
    """

    start: Seconds
    end: Seconds
    shape: float

    name: ClassVar[str] = "forward"
    example: ClassVar[str] = "forward(10, 60, 2)"

    def __post_init__(self) -> None:
        require(self, "start", or_equal=True)
        require(self, "end", above=self.start, relation=f"start is {number_text(self.start)}")
        require(self, "shape")

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
        with np.errstate(all="ignore"):
            np.clip(t, self.start, self.end, out=worth)
            np.subtract(self.end, worth, out=worth)
            worth /= self.end - self.start
            raise_to(worth, self.shape)
        return worth

    def inverse(self, value: npt.ArrayLike, /) -> FloatArray:
        """inf{t : u(t) <= value}."""
        return first_moments(self.name, value, self._inside, self.zero_at)

    def _inside(self, x: FloatArray) -> FloatArray:
        return np.asarray(self.end - (self.end - self.start) * x ** (1.0 / self.shape))

    def __str__(self) -> str:
        return call_text(self.name, self.start, self.end, self.shape)
