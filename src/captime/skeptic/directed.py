"""Betting with every rounding on the safe side: what is shown here to be large enough is so in exact arithmetic.

Sums, products and quotients of doubles are rounded to the nearest double; taking the neighbour below, or above, gives a
number that is certainly on the side wanted. Long products are made in blocks and reduced by more than all their
roundings together. Wealth that vanishes is taken to be 0 from then on.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from captime.arrays import FloatArray

# The unit of rounding of a double is half of this.
_STEP = 2.0**-52
# Products below this might be rounded upwards by more than their share.
_VANISHED = 1e-280
_BLOCK = 512
# Halving [0, 1] this often leaves nothing worth looking for.
_HALVINGS = 48


def below(value: FloatArray) -> FloatArray:
    """The next double below each."""
    return np.nextafter(value, -np.inf)


def above(value: FloatArray) -> FloatArray:
    """The next double above each."""
    return np.nextafter(value, np.inf)


def rounded_up(value: Fraction) -> float:
    """A double that is not below an exact number."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def rounded_down(value: Fraction) -> float:
    """A double that is not above an exact number."""
    near = float(value)
    return near if Fraction(near) <= value else math.nextafter(near, -math.inf)


@dataclass(frozen=True, slots=True)
class Bets:
    """Shares of the wealth that are bet, mixed with equal weights; fixed before any data.

    Attributes:
        shares: b_k = sin²((k - ½)π / 2K), as the documents say. Any shares in [0, 1] would be valid.
    """

    shares: FloatArray

    @classmethod
    def documented(cls, count: int) -> "Bets":
        """The nodes of docs/engine.md."""
        return cls(np.array([math.sin((k + 0.5) * math.pi / (2 * count)) ** 2 for k in range(count)]))

    def against_mean(self, scores: FloatArray, mean: float) -> FloatArray:
        """Lower ends of the factors 1 - b + b·x/q, by score and share.

        Args:
            scores: x, lower ends, at least 0.
            mean: q, an upper end, greater than 0.
        """
        won = np.maximum(below(scores / mean), 0.0)
        kept = below(1.0 - self.shares)
        return np.maximum(below(kept + np.maximum(below(won[:, None] * self.shares), 0.0)), 0.0)

    def against_lead(self, differences: FloatArray, margin: float) -> FloatArray:
        """Lower ends of the factors 1 + f(ε - D) / (1 - ε), by difference and share.

        Args:
            differences: D, upper ends, at most 1.
            margin: ε, at least 0 and less than 1.
        """
        gain = below(margin - differences)
        rest = 1.0 - margin
        # A gain is divided by too much, a loss by too little.
        odds = below(np.where(gain >= 0.0, gain / math.nextafter(rest, 2.0), gain / math.nextafter(rest, 0.0)))
        return np.maximum(below(1.0 + below(odds[:, None] * self.shares)), 0.0)

    def ever_worth(self, factors: FloatArray, wanted: Fraction) -> bool:
        """Whether the mixture reaches `wanted` at some length of the prefix, for certain.

        Args:
            factors: By position and share, lower ends.
            wanted: 1 / failure probability.
        """
        need, count = rounded_up(wanted * len(self.shares)), len(self.shares)
        wealth = np.ones(count)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            for first in range(0, len(factors), _BLOCK):
                block = factors[first : first + _BLOCK]
                path = np.multiply.accumulate(np.concatenate((wealth[None], block)), axis=0)[1:]
                path[np.logical_or.accumulate(path < _VANISHED, axis=0)] = 0.0
                path *= 1.0 - _STEP * np.arange(1, len(block) + 1)[:, None]
                if (path.sum(axis=1) * (1.0 - _STEP * count) >= need).any():
                    return True
                wealth = path[-1]
        return False

    def refutes_mean(self, scores: FloatArray, mean: float, wanted: Fraction) -> bool:
        """Whether scores with these lower ends show, at some length, that their mean is more than `mean`."""
        return mean > 0.0 and self.ever_worth(self.against_mean(scores, mean), wanted)

    def lower_bound(self, scores: FloatArray, wanted: Fraction) -> float:
        """A mean that is refuted for certain, nearly the largest; 0 if none is."""
        low, high = 0.0, 1.0
        if not len(scores) or not scores.any():
            return low
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            low, high = (middle, high) if self.refutes_mean(scores, middle, wanted) else (low, middle)
        return low

    def shows_at_most(self, highs: FloatArray, bound: float, wanted: Fraction) -> bool:
        """Whether scores with these upper ends show, at some length, that their mean is at most `bound`."""
        if bound >= 1.0:
            return True
        losses = np.maximum(below(1.0 - highs), 0.0)
        return self.refutes_mean(losses, math.nextafter(1.0 - bound, 2.0), wanted)

    def shows_no_lead(self, differences: FloatArray, margin: float, wanted: Fraction) -> bool:
        """Whether these differences (upper ends) show, at some length, a lead of less than `margin`."""
        return 0.0 <= margin < 1.0 and self.ever_worth(self.against_lead(differences, margin), wanted)
