"""A time of grace, then a fall whose steepness is bent from the far end."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from captime.arrays import FloatArray
from captime.utilities.checks import raise_to
from captime.utilities.deadline_window import DeadlineWindow


@dataclass(frozen=True, slots=True)
class Forward(DeadlineWindow):
    """1 up to `start`, then ((end - t) / (end - start)) ** shape, 0 from `end` on.

    Attributes:
        start: until here nothing is lost (k0); may be 0.
        end: from here on an answer is worth nothing (k1).
        shape: above 1 most is lost soon after the start, below 1 most is lost close to the end (a).
    """

    shape: float

    name: ClassVar[str] = "forward"
    example: ClassVar[str] = "forward(10, 60, 2)"

    def _worth(self, t: FloatArray) -> FloatArray:
        worth = np.empty_like(t)
        np.clip(t, self.start, self.end, out=worth)
        np.subtract(self.end, worth, out=worth)
        worth /= self.end - self.start
        raise_to(worth, self.shape)
        return worth

    def _moment(self, x: FloatArray) -> FloatArray:
        return np.asarray(self.end - (self.end - self.start) * x ** (1.0 / self.shape))
