"""A time of grace, then a fall whose steepness is bent from the near end."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from captime.arrays import FloatArray
from captime.utilities.checks import raise_to
from captime.utilities.deadline_window import DeadlineWindow


@dataclass(frozen=True, slots=True)
class Backward(DeadlineWindow):
    """1 up to `start`, then 1 - ((t - start) / (end - start)) ** (1 / shape), 0 from `end` on.

    Attributes:
        start: until here nothing is lost (k0); may be 0.
        end: from here on an answer is worth nothing (k1).
        shape: above 1 most is lost soon after the start, below 1 most is lost close to the end (a).
    """

    shape: float

    name: ClassVar[str] = "backward"
    example: ClassVar[str] = "backward(10, 60, 2)"

    def _worth(self, t: FloatArray) -> FloatArray:
        worth = np.empty_like(t)
        np.clip(t, self.start, self.end, out=worth)
        worth -= self.start
        worth /= self.end - self.start
        raise_to(worth, 1.0 / self.shape)
        return np.subtract(1.0, worth, out=worth)

    def _moment(self, x: FloatArray) -> FloatArray:
        return np.asarray(self.start + (self.end - self.start) * (1.0 - x) ** self.shape)
