"""The contest for the lead of a growing pool: which challengers look better than the leader, and which to run next.

The certificate orders runs of the challengers that keep epsilon up. With weak bounds these are nearly all of them, run
in turn, and most of those runs change nothing. A better leader is found sooner by running what looks better than the
present one. Here is that other order. It chooses what to learn next and decides nothing, so it touches the cost only.
"""

import math

import numpy as np

from captime.arrays import FloatArray, IntArray

# A newcomer that is ahead of the leader is run at once, until they have this many positions in common.
_SOON = 16


class Contest:
    """How each configuration did against the leader, on the positions they have in common."""

    def __init__(self) -> None:
        self._common: IntArray = np.empty(0, dtype=np.int64)
        self._mean: FloatArray = np.empty(0)
        self._hope: FloatArray = np.empty(0)

    def enter(self) -> None:
        """One more, who has not met the leader yet."""
        self._common = np.append(self._common, 0)
        self._mean, self._hope = np.append(self._mean, 0.0), np.append(self._hope, -1.0)

    def compare(self, config: int, ahead: FloatArray) -> None:
        """Record how a configuration stands against the leader; without a position in common it takes no part.

        Args:
            config: The configuration.
            ahead: By how much it scored more than the leader, for each position in common.
        """
        count = len(ahead)
        self._common[config] = count
        self._mean[config] = float(ahead.mean()) if count else 0.0
        # A standard error more; one difference of 1 is added, since a few that are equal do not make it certain.
        error = math.sqrt(float(ahead @ ahead) + 1.0) / count if count else -1.0
        self._hope[config] = self._mean[config] + error

    def order(self, rivals: IntArray, *, turn: bool) -> IntArray:
        """Return the rivals to run next, the most promising first; newcomers only if it is not the contest's turn.

        Args:
            rivals: The configurations that take part.
            turn: Whether this round belongs to the contest.
        """
        soon = rivals[(self._mean[rivals] > 0.0) & (self._common[rivals] < _SOON)]
        if len(soon):
            return soon[np.argsort(-self._mean[soon], kind="stable")]
        hopeful = rivals[self._hope[rivals] > 0.0] if turn else rivals[:0]
        return hopeful[np.argsort(-self._hope[hopeful], kind="stable")]
