"""A time of grace, then the same loss for every doubling of the time."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from captime.arrays import FloatArray
from captime.utilities.deadline_window import DeadlineWindow


@dataclass(frozen=True, slots=True)
class Geometric(DeadlineWindow):
    """1 before `start`, then ln(end / t) / ln(end / start), 0 from `end` on.

    Attributes:
        start: until here nothing is lost (k0); it cannot be 0, because no number of doublings leads away from
            0.
        end: from here on an answer is worth nothing (k1).
    """

    name: ClassVar[str] = "geometric"
    example: ClassVar[str] = "geometric(1, 100)"
    start_may_be_zero: ClassVar[bool] = False

    @property
    def _span(self) -> float:
        return math.log(self.end) - math.log(self.start)

    def _worth(self, t: FloatArray) -> FloatArray:
        worth = np.empty_like(t)
        np.clip(t, self.start, self.end, out=worth)
        # Differences of logarithms, not the logarithm of a ratio: the ratio may leave the range of numbers.
        np.log(worth, out=worth)
        np.subtract(np.log(self.end), worth, out=worth)
        worth /= np.log(self.end) - np.log(self.start)
        return worth

    def _moment(self, x: FloatArray) -> FloatArray:
        return np.asarray(self.end * np.exp(-x * self._span))
