"""Half the worth at a known moment, and power laws on both sides of it: the paper's own choice."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from captime.arrays import FloatArray
from captime.utilities.checks import Seconds, raise_to
from captime.utilities.formula import Formula


@dataclass(frozen=True, slots=True)
class LogLaplace(Formula):
    """1 - ½ (t / scale) ** shape before `scale`, ½ (scale / t) ** shape from it on.

    Attributes:
        scale: the moment at which half the worth is gone (the paper's κ0).
        shape: how sharp the change is there (the paper's a); large shapes come close to a step.
    """

    scale: Seconds
    shape: float

    name: ClassVar[str] = "log-laplace"
    example: ClassVar[str] = "log-laplace(60, 1)"

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """The scale, where the formula changes."""
        return (self.scale,)

    def _worth(self, t: FloatArray) -> FloatArray:
        late, early = np.empty_like(t), np.empty_like(t)
        # The worth of the late part plus what the early part has not lost yet: each is constant on the
        # other's side, exactly ½ and exactly 0, so that no masks are needed and the sum cannot rise where
        # they meet.
        np.maximum(t, self.scale, out=late)
        np.divide(self.scale, late, out=late)
        raise_to(late, self.shape)
        np.minimum(t, self.scale, out=early)
        early /= self.scale
        raise_to(early, self.shape)
        late *= 0.5
        early *= 0.5
        np.subtract(0.5, early, out=early)
        late += early
        return late

    def _moment(self, x: FloatArray) -> FloatArray:
        early = (2.0 * (1.0 - x)) ** (1.0 / self.shape)
        late = (2.0 * x) ** (-1.0 / self.shape)
        return np.asarray(self.scale * np.where(x >= 0.5, early, late))
