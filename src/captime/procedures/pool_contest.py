"""The contest for the lead of a growing pool: who looks better than the leader, and whom to run to find out.

The certificate asks for those who keep epsilon up, and they are many: with weak bounds nearly everyone is, so that all
are run in turn, most of them to no avail. Whoever wants a better leader soon runs those who look better than it. Here
is that other order. It chooses what to learn next and decides nothing, so it touches the cost only.
"""

import math

import numpy as np

from captime.arrays import FloatArray, IntArray

# A newcomer that is ahead of the leader is run at once, until they have so many positions in common.
_SOON = 16
# Every so many rounds the contest has the word, the certificate in the others.
_EVERY = 2


class Contest:
    """How everybody did against the leader, on the positions they have in common."""

    def __init__(self) -> None:
        self._common: IntArray = np.empty(0, dtype=np.int64)
        self._mean: FloatArray = np.empty(0)
        self._hope: FloatArray = np.empty(0)

    def enter(self) -> None:
        """One more, who has not met the leader yet."""
        self._common = np.append(self._common, 0)
        self._mean, self._hope = np.append(self._mean, 0.0), np.append(self._hope, -1.0)

    def compare(self, config: int, ahead: FloatArray) -> None:
        """How somebody stands against the leader now; without a position in common it takes no part.

        Args:
            config: Who.
            ahead: By how much it scored more than the leader, for each position in common.
        """
        count = len(ahead)
        self._common[config] = count
        self._mean[config] = float(ahead.mean()) if count else 0.0
        # A standard error more; one difference of 1 is added, since a few that are equal do not make it certain.
        error = math.sqrt(float(ahead @ ahead) + 1.0) / count if count else -1.0
        self._hope[config] = self._mean[config] + error

    def order(self, rivals: IntArray, rounds: int) -> IntArray:
        """Whom to run next, the most promising first; nobody if it is not the contest's turn.

        Args:
            rivals: Who takes part.
            rounds: How often news has come so far.
        """
        soon = rivals[(self._mean[rivals] > 0.0) & (self._common[rivals] < _SOON)]
        if len(soon):
            return soon[np.argsort(-self._mean[soon], kind="stable")]
        hopeful = rivals[self._hope[rivals] > 0.0] if rounds % _EVERY else rivals[:0]
        return hopeful[np.argsort(-self._hope[hopeful], kind="stable")]
