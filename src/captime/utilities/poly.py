"""Worth that falls along a power of the time."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from captime.arrays import FloatArray
from captime.utilities.domain import Seconds, call_text, first_moments, raise_to, require, times


@dataclass(frozen=True, slots=True)
class Poly:
    """max(0, 1 - (t / end) ** shape).

    Attributes:
        end: from here on an answer is worth nothing (the paper's κ0).
        shape: below 1 most is lost early, above 1 most is lost late (the paper's a).
    """

    end: Seconds
    shape: float

    name: ClassVar[str] = "poly"
    example: ClassVar[str] = "poly(60, 2)"

    def __post_init__(self) -> None:
        require(self, "end")
        require(self, "shape")

    @property
    def zero_at(self) -> float:
        """The end."""
        return self.end

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """The end, where the slope changes."""
        return (self.end,)

    def __call__(self, seconds: npt.ArrayLike, /) -> FloatArray:
        """u(t), element by element."""
        t = times(self.name, seconds)
        worth = np.empty_like(t)
        with np.errstate(all="ignore"):
            np.minimum(t, self.end, out=worth)
            worth /= self.end
            raise_to(worth, self.shape)
        return np.subtract(1.0, worth, out=worth)

    def inverse(self, value: npt.ArrayLike, /) -> FloatArray:
        """inf{t : u(t) <= value}."""
        return first_moments(self.name, value, lambda x: self.end * (1.0 - x) ** (1.0 / self.shape), self.zero_at)

    def __str__(self) -> str:
        return call_text(self.name, self.end, self.shape)
