"""A deadline of known order of magnitude, with a bell-shaped uncertainty in its logarithm."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import erfc, erfcinv

from captime.arrays import FloatArray
from captime.utilities.checks import Seconds
from captime.utilities.formula import Formula


@dataclass(frozen=True, slots=True)
class LogNormal(Formula):
    """½ erfc( ln(t / median) / (spread · √2) ), and 1 at t = 0.

    Attributes:
        median: the moment at which half the worth is gone (the paper's κ0).
        spread: the standard deviation of the deadline's natural logarithm (σ).
    """

    median: Seconds
    spread: float

    name: ClassVar[str] = "log-normal"
    example: ClassVar[str] = "log-normal(60, 1)"

    def _worth(self, t: FloatArray) -> FloatArray:
        worth = np.empty_like(t)
        # ½ - ½ erf would lose every digit of a small worth; ½ erfc is the same number and keeps them. The
        # logarithm of 0 is minus infinity, whose erfc is 2: u(0) = 1 needs no shift of t (the authors add
        # 1e-4).
        np.divide(t, self.median, out=worth)
        np.log(worth, out=worth)
        np.divide(worth, self.spread * math.sqrt(2.0), out=worth)
        erfc(worth, out=worth)
        worth *= 0.5
        return worth

    def _moment(self, x: FloatArray) -> FloatArray:
        return np.asarray(self.median * np.exp(self.spread * math.sqrt(2.0) * erfcinv(2.0 * x)))
