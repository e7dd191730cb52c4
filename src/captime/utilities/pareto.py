"""Full worth up to a moment, then a power law."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from captime.arrays import FloatArray
from captime.utilities.domain import Seconds, call_text, first_moments, raise_to, require, times


@dataclass(frozen=True, slots=True)
class Pareto:
    """1 before `scale`, then (scale / t) ** shape.

    Attributes:
        scale: until here nothing is lost (the paper's κ0).
        shape: how fast the worth falls afterwards (the paper's a).
    """

    scale: Seconds
    shape: float

    name: ClassVar[str] = "pareto"
    example: ClassVar[str] = "pareto(60, 1)"

    def __post_init__(self) -> None:
        require(self, "scale")
        require(self, "shape")

    @property
    def zero_at(self) -> float:
        """Never."""
        return math.inf

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """The scale, where the fall begins."""
        return (self.scale,)

    def __call__(self, seconds: npt.ArrayLike, /) -> FloatArray:
        """u(t), element by element."""
        worth = np.empty_like(t := times(self.name, seconds))
        with np.errstate(all="ignore"):
            # At or below the scale this is scale / scale, exactly 1: no second branch is needed.
            np.maximum(t, self.scale, out=worth)
            np.divide(self.scale, worth, out=worth)
            raise_to(worth, self.shape)
        return worth

    def inverse(self, value: npt.ArrayLike, /) -> FloatArray:
        """inf{t : u(t) <= value}."""
        return first_moments(self.name, value, lambda x: self.scale * x ** (-1.0 / self.shape), self.zero_at)

    def __str__(self) -> str:
        return call_text(self.name, self.scale, self.shape)
