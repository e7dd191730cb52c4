"""The first two moments of scores, as sums."""

from typing import NamedTuple

import numpy as np

from captime.arrays import FloatArray, IntArray


class Moments(NamedTuple):
    """How many scores there are, their sum and the sum of their squares. Arrays of any shapes that broadcast."""

    n: IntArray
    total: FloatArray
    squares: FloatArray

    @classmethod
    def of(cls, scores: FloatArray) -> "Moments":
        """The moments of scores along the last axis."""
        return cls(np.full(scores.shape[:-1], scores.shape[-1]), scores.sum(axis=-1), np.square(scores).sum(axis=-1))

    def mirrored(self) -> "Moments":
        """The moments of 1 - x: an upper bound is a lower bound seen from the other side."""
        return Moments(self.n, self.n - self.total, self.n - 2.0 * self.total + self.squares)
