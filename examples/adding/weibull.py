"""A deadline that becomes more (or less) pressing as time goes by."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from captime.arrays import FloatArray
from captime.utilities.formula import Formula, Seconds


@dataclass(frozen=True, slots=True)
class Weibull(Formula):
    """exp(-(t / scale) ** shape): shape 1 is the exponential, a larger shape hesitates first and then falls.

    Attributes:
        scale: by then the worth has fallen to 1/e, whatever the shape.
        shape: above 1 the deadline presses more with every second that passes, below 1 less.
    """

    scale: Seconds
    shape: float

    name: ClassVar[str] = "weibull"
    example: ClassVar[str] = "weibull(60, 2)"

    def _worth(self, t: FloatArray) -> FloatArray:
        # A power that overflows is infinite, and exp(-infinity) is the right answer: 0.
        return np.asarray(np.exp(-((t / self.scale) ** self.shape)))

    def _moment(self, x: FloatArray) -> FloatArray:
        return np.asarray(self.scale * (-np.log(x)) ** (1.0 / self.shape))
