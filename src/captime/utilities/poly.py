"""Worth that falls along a power of the time."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from captime.arrays import FloatArray
from captime.utilities.checks import Seconds, raise_to
from captime.utilities.formula import Formula


@dataclass(frozen=True, slots=True)
class Poly(Formula):
    """max(0, 1 - (t / end) ** shape).

    Attributes:
        end: from here on an answer is worth nothing (the paper's κ0).
        shape: below 1 most is lost early, above 1 most is lost late (the paper's a).
    """

    end: Seconds
    shape: float

    name: ClassVar[str] = "poly"
    example: ClassVar[str] = "poly(60, 2)"

    @property
    def zero_at(self) -> float:
        """The end."""
        return self.end

    def _worth(self, t: FloatArray) -> FloatArray:
        worth = np.empty_like(t)
        np.minimum(t, self.end, out=worth)
        worth /= self.end
        raise_to(worth, self.shape)
        return np.subtract(1.0, worth, out=worth)

    def _moment(self, x: FloatArray) -> FloatArray:
        return np.asarray(self.end * (1.0 - x) ** (1.0 / self.shape))
