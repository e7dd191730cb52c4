"""How random values of a number are spread over its range: a scale puts the range on 0 to 1, a law does the rest."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import betaincinv, ndtr, ndtri

from captime.arrays import FloatArray
from captime.errors import ScenarioError

# What is left of a bell that lies outside its range, when it takes care to compute with it.
_THIN = 1e-6


@dataclass(frozen=True, slots=True)
class Scale:
    """A range of numbers as the interval from 0 to 1, by itself or by its logarithm.

    Attributes:
        low: the smallest number.
        high: the largest number.
        log: whether equal steps are equal factors.
        margin: how far values reach beyond both ends before they are rounded; a half for whole numbers, so that the
            first and the last have as much room as the others.
    """

    low: float
    high: float
    log: bool
    margin: float = 0.0

    def unit(self, values: FloatArray) -> FloatArray:
        """Where these numbers lie, 0 for the low end and 1 for the high one."""
        first, last = self._ends()
        if last <= first:
            return np.where(np.isnan(values), np.nan, 0.5)
        with np.errstate(invalid="ignore", divide="ignore"):
            stretched = np.log(values) if self.log else values
        return np.asarray((stretched - first) / (last - first))

    def at(self, units: FloatArray) -> FloatArray:
        """The numbers at these places, never outside the range (margin included)."""
        first, last = self._ends()
        # Written so that the sum of two large numbers cannot overflow.
        stretched = first * (1.0 - units) + last * units
        values = np.exp(stretched) if self.log else stretched
        return np.clip(values, self.low - self.margin, self.high + self.margin)

    def spread(self, size: float) -> float:
        """A standard deviation on this scale; with a logarithm counted as ConfigSpace counts it."""
        if self.log:
            return float(abs(np.log(self.low + size)) / (np.log(self.high) - np.log(self.low)))
        return size / (self.high - self.low + 2 * self.margin)

    def _ends(self) -> tuple[float, float]:
        first, last = self.low - self.margin, self.high + self.margin
        return (float(np.log(first)), float(np.log(last))) if self.log else (first, last)


class Law(Protocol):
    """A distribution over a range, by its quantiles."""

    def quantile(self, share: FloatArray, scale: Scale, /) -> FloatArray:
        """The places on the scale, from 0 to 1, below which these shares of the draws lie."""
        ...


@dataclass(frozen=True, slots=True)
class Evenly:
    """Every part of the range is as likely as any other of its width."""

    def quantile(self, share: FloatArray, scale: Scale, /) -> FloatArray:  # noqa: ARG002 (even on every scale)
        """See the protocol."""
        return share


@dataclass(frozen=True, slots=True)
class Normal:
    """A bell, cut at the ends of the range.

    Attributes:
        mean: where its top is, in the parameter's own numbers.
        deviation: its standard deviation before it is cut.
    """

    mean: float
    deviation: float

    def __post_init__(self) -> None:
        if not (0 < self.deviation < np.inf and np.isfinite(self.mean)):
            raise ScenarioError(
                f"a normal prior with mean {self.mean:g} and standard deviation {self.deviation:g} is none; expected a "
                "finite mean and a deviation greater than 0"
            )

    def quantile(self, share: FloatArray, scale: Scale, /) -> FloatArray:
        """See the protocol."""
        if scale.low == scale.high:
            return share  # the only value is everywhere
        centre, spread = float(scale.unit(np.array([self.mean]))[0]), scale.spread(self.deviation)
        if not (np.isfinite(centre) and 0 < spread < np.inf):
            raise ScenarioError(
                f"a normal prior with mean {self.mean:g} and standard deviation {self.deviation:g} has no place on a "
                f"range from {scale.low:g} to {scale.high:g}; expected a mean that has a logarithm if log is set"
            )
        first, last = ndtr((0.0 - centre) / spread), ndtr((1.0 - centre) / spread)
        # A bell far below the range is mirrored: shares near 1 have no digits left, shares near 0 have.
        mirrored = centre < 0.0 and last - first < _THIN
        if mirrored:
            centre, share = 1.0 - centre, 1.0 - share
            first, last = ndtr((0.0 - centre) / spread), ndtr((1.0 - centre) / spread)
        if last <= 0.0:
            # The centre is so far outside that no probability is left between the two ends: all is at the nearer one.
            place = np.ones_like(share)
        else:
            place = np.clip(centre + spread * ndtri(first + share * (last - first)), 0.0, 1.0)
        return 1.0 - place if mirrored else place


@dataclass(frozen=True, slots=True)
class Beta:
    """Beta's distribution over the range.

    Attributes:
        alpha: the larger, the more of the draws are high.
        beta: the larger, the more of the draws are low.
    """

    alpha: float
    beta: float

    def __post_init__(self) -> None:
        if not (0 < self.alpha < np.inf and 0 < self.beta < np.inf):
            raise ScenarioError(
                f"a beta prior with alpha {self.alpha:g} and beta {self.beta:g} is none; both must be greater than 0"
            )

    def quantile(self, share: FloatArray, scale: Scale, /) -> FloatArray:  # noqa: ARG002 (defined on 0 to 1)
        """See the protocol."""
        return np.asarray(betaincinv(self.alpha, self.beta, share))


EVENLY = Evenly()
