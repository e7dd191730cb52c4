"""Worth that halves again and again in equal times."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from captime.arrays import FloatArray
from captime.utilities.checks import Seconds
from captime.utilities.formula import Formula


@dataclass(frozen=True, slots=True)
class Exponential(Formula):
    """exp(-t / mean): only the mean of the deadline is known.

    Attributes:
        mean: the mean of the deadline (the paper's κ0); worth halves every mean · ln 2 seconds.
    """

    mean: Seconds

    name: ClassVar[str] = "exponential"
    example: ClassVar[str] = "exponential(60)"

    def _worth(self, t: FloatArray) -> FloatArray:
        worth = np.empty_like(t)
        np.divide(t, -self.mean, out=worth)
        return np.exp(worth, out=worth)

    def _moment(self, x: FloatArray) -> FloatArray:
        return np.asarray(-self.mean * np.log(x))

    def remaining(self, seconds: npt.ArrayLike, /) -> FloatArray:
        """Return the integral of u from t to infinity."""
        return np.asarray(self.mean * self(seconds))
