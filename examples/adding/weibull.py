"""A deadline that becomes more (or less) pressing as time goes by."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from captime.arrays import FloatArray
from captime.utilities.domain import Seconds, call_text, first_moments, require, times


@dataclass(frozen=True, slots=True)
class Weibull:
    """exp(-(t / scale) ** shape): shape 1 is the exponential, a larger shape hesitates first and then falls.

    Attributes:
        scale: by then the worth has fallen to 1/e, whatever the shape.
        shape: above 1 the deadline presses more with every second that passes, below 1 less.
    """

    scale: Seconds
    shape: float

    name: ClassVar[str] = "weibull"
    example: ClassVar[str] = "weibull(60, 2)"

    def __post_init__(self) -> None:
        require(self, "scale")
        require(self, "shape")

    @property
    def zero_at(self) -> float:
        """Never: some worth always remains."""
        return np.inf

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """None: one formula everywhere."""
        return ()

    def __call__(self, seconds: npt.ArrayLike, /) -> FloatArray:
        """u(t), element by element."""
        t = times(self.name, seconds)
        # A power that overflows is infinite, and exp(-infinity) is the right answer: 0.
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.exp(-((t / self.scale) ** self.shape)))

    def inverse(self, value: npt.ArrayLike, /) -> FloatArray:
        """inf{t : u(t) <= value}."""
        return first_moments(self.name, value, lambda x: self.scale * (-np.log(x)) ** (1.0 / self.shape), self.zero_at)

    def __str__(self) -> str:
        return call_text(self.name, self.scale, self.shape)
