"""A time of grace, then worth that drains away evenly."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from captime.arrays import FloatArray
from captime.utilities.deadline_window import DeadlineWindow


@dataclass(frozen=True, slots=True)
class Linear(DeadlineWindow):
    """1 before `start`, then (end - t) / (end - start), 0 from `end` on.

    Attributes:
        start: until here nothing is lost (k0); may be 0.
        end: from here on an answer is worth nothing (k1).
    """

    name: ClassVar[str] = "linear"
    example: ClassVar[str] = "linear(10, 60)"

    def _worth(self, t: FloatArray) -> FloatArray:
        worth = np.empty_like(t)
        # Outside the two ends the clipped formula gives exactly 1 and exactly 0.
        np.clip(t, self.start, self.end, out=worth)
        np.subtract(self.end, worth, out=worth)
        worth /= self.end - self.start
        return worth

    def _moment(self, x: FloatArray) -> FloatArray:
        return np.asarray(self.end - x * (self.end - self.start))
