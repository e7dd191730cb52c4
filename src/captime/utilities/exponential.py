"""Worth that halves again and again in equal times."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from captime.arrays import FloatArray
from captime.utilities.domain import Seconds, call_text, first_moments, require, times


@dataclass(frozen=True, slots=True)
class Exponential:
    """exp(-t / mean): only the mean of the deadline is known.

    Attributes:
        mean: the mean of the deadline (the paper's κ0); worth halves every mean · ln 2 seconds.
    """

    mean: Seconds

    name: ClassVar[str] = "exponential"
    example: ClassVar[str] = "exponential(60)"

    def __post_init__(self) -> None:
        require(self, "mean")

    @property
    def zero_at(self) -> float:
        """Never."""
        return math.inf

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """None: one formula for all times."""
        return ()

    def __call__(self, seconds: npt.ArrayLike, /) -> FloatArray:
        """u(t), element by element."""
        t = times(self.name, seconds)
        worth = np.empty_like(t)
        with np.errstate(all="ignore"):
            np.divide(t, -self.mean, out=worth)
            return np.exp(worth, out=worth)

    def inverse(self, value: npt.ArrayLike, /) -> FloatArray:
        """inf{t : u(t) <= value}."""
        return first_moments(self.name, value, lambda x: -self.mean * np.log(x), self.zero_at)

    def remaining(self, seconds: npt.ArrayLike, /) -> FloatArray:
        """The integral of u from t to infinity."""
        return np.asarray(self.mean * self(seconds))

    def __str__(self) -> str:
        return call_text(self.name, self.mean)
