"""Worth that drains away evenly until nothing is left."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from captime.arrays import FloatArray
from captime.utilities.checks import Seconds, times
from captime.utilities.formula import Formula


@dataclass(frozen=True, slots=True)
class Uniform(Formula):
    """max(0, 1 - t / end): the deadline is anywhere up to `end`, each moment as likely as the next.

    Attributes:
        end: from here on an answer is worth nothing (the paper's κ0).
    """

    end: Seconds

    name: ClassVar[str] = "uniform"
    example: ClassVar[str] = "uniform(60)"

    @property
    def zero_at(self) -> float:
        """The end."""
        return self.end

    def _worth(self, t: FloatArray) -> FloatArray:
        worth = np.empty_like(t)
        np.divide(t, self.end, out=worth)
        np.subtract(1.0, worth, out=worth)
        return np.maximum(worth, 0.0, out=worth)

    def _moment(self, x: FloatArray) -> FloatArray:
        return np.asarray(self.end * (1.0 - x))

    def remaining(self, seconds: npt.ArrayLike, /) -> FloatArray:
        """Return the integral of u from t to infinity: a triangle."""
        ahead = np.maximum(self.end - times(self.name, seconds), 0.0)
        return np.asarray(ahead * (ahead / self.end) / 2.0)
