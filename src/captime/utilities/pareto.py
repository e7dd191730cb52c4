"""Full worth up to a moment, then a power law."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from captime.arrays import FloatArray
from captime.utilities.checks import Seconds, raise_to
from captime.utilities.formula import Formula


@dataclass(frozen=True, slots=True)
class Pareto(Formula):
    """1 before `scale`, then (scale / t) ** shape.

    Attributes:
        scale: until here nothing is lost (the paper's κ0).
        shape: how fast the worth falls afterwards (the paper's a).
    """

    scale: Seconds
    shape: float

    name: ClassVar[str] = "pareto"
    example: ClassVar[str] = "pareto(60, 1)"

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """The scale, where the fall begins."""
        return (self.scale,)

    def _worth(self, t: FloatArray) -> FloatArray:
        worth = np.empty_like(t)
        # At or below the scale this is scale / scale, exactly 1: no second branch is needed.
        np.maximum(t, self.scale, out=worth)
        np.divide(self.scale, worth, out=worth)
        raise_to(worth, self.shape)
        return worth

    def _moment(self, x: FloatArray) -> FloatArray:
        return np.asarray(self.scale * x ** (-1.0 / self.shape))
