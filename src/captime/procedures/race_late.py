"""Configurations that join a race after its first run: what delta has left for them, and how they share it.

The weights of leaders, 1 / ((r + 1)(r + 2)) by rank, sum to n / (n + 1) over n ranks. The rest, 1 / (n + 1) of what
lower bounds and duels may cost, was kept from the start and is untouched. All statements about latecomers are paid from
it, and only positions without a run when they came count for them; docs/random-captimes.md, step 9, has the proof.
"""

import math

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.procedures.race_terms import LOWER, PAIRED

# Parts of the reserve: upper bounds of latecomers; duels of a leader from the beginning with them; duels of a leader
# who came late, with the best from the beginning and with other latecomers; lower bounds; the upper end shown.
LATE_UPPER, LATE_PAIRED, LATE_LEADS, LATE_AMONG, LATE_LOWER, LATE_SHOWN = 0.25, 0.3, 0.15, 0.15, 0.1, 0.05


def reserve(n_first: int) -> float:
    """Return the share of delta that a race of `n_first` configurations keeps for latecomers."""
    return (PAIRED + LOWER) / (n_first + 1)


class Latecomers:
    """Levels of statements about those who joined later, as ln(1 / failure probability).

    Args:
        n_first: How many configurations the race began with; indices from there on are latecomers.
        delta: Allowed probability of a wrong certificate.

    Attributes:
        n_first: As given.
    """

    def __init__(self, n_first: int, delta: float) -> None:
        self.n_first = n_first
        self._log_reserve = -math.log(reserve(n_first) * delta)

    def price(self, config: IntArray) -> FloatArray:
        """ln(k(k + 1)) of the k-th latecomer, 0 for those who were there from the start.

        >>> np.exp(Latecomers(2, 0.1).price(np.array([0, 1, 2, 3]))).round(6).tolist()
        [1.0, 1.0, 2.0, 6.0]
        """
        number = np.maximum(config - self.n_first + 1, 1).astype(np.float64)
        return np.where(config < self.n_first, 0.0, np.log(number * (number + 1.0)))

    def level(self, part: float, config: IntArray, own: FloatArray) -> FloatArray:
        """Of a statement that takes this part of the reserve; `own` for those who were there from the start."""
        return np.where(config < self.n_first, own, self._log_reserve - math.log(part) + self.price(config))

    def duels(self, leader: int, challengers: IntArray, own: float) -> FloatArray:
        """Of the duels of a leader; `own` where both were there from the start.

        Args:
            leader: The configuration that leads.
            challengers: Its opponents.
            own: ln(1 / failure probability) of the leader's duels with those who were there from the start.
        """
        if leader < self.n_first:
            # By the weight of the leader, as all its duels.
            late = own + math.log(PAIRED) - math.log(LATE_PAIRED * reserve(self.n_first))
            return np.where(challengers < self.n_first, own, late + self.price(challengers))
        lead = self._log_reserve + float(self.price(np.array([leader]))[0])
        first = np.full(len(challengers), lead - math.log(LATE_LEADS))
        return np.where(challengers < self.n_first, first, lead - math.log(LATE_AMONG) + self.price(challengers))
