"""The warm start of a race: successive halving, to find a likely winner and a prior before anything counts."""

import numpy as np

from captime.arrays import FloatArray, IntArray

# While there are many, most go at once: with half of them the rounds together would cost several times the first.
_MANY, _MANY_KEEP_ONE_IN = 16, 4


class WarmStart:
    """Everyone runs a few positions; the better part runs twice as many; and so on until few are left.

    Nothing is claimed here. The outcome is a ranking, from which the prior over leaders is made; it is final before the
    first run on a later position starts, and is never made again.

    Args:
        n_configs: How many configurations.
        first: Positions of the first round.
        finalists: Stop halving once no more than so many are left.
        available: Length of the stream; None if it is endless. The warm start takes at most an eighth of it.
    """

    def __init__(self, n_configs: int, first: int, finalists: int, available: int | None) -> None:
        most = np.inf if available is None else max(1, available // 8)
        self._alive: IntArray = np.arange(n_configs)
        self._dropped: list[IntArray] = []
        self._finalists = finalists
        self._most = most
        self.positions = int(min(first, most)) if n_configs > 1 else 0

    @property
    def alive(self) -> IntArray:
        """Who has to run the first `positions` positions now."""
        return self._alive

    def judge(self, means: FloatArray) -> IntArray | None:
        """All of `alive` have run: halve and go on (None), or give the final ranking, best first.

        Args:
            means: Mean scores of all configurations.
        """
        order = self._alive[np.argsort(-means[self._alive], kind="stable")]
        if len(order) <= self._finalists or 2 * self.positions > self._most:
            return np.concatenate((order, *self._dropped[::-1]))
        kept = -(-len(order) // (_MANY_KEEP_ONE_IN if len(order) > _MANY else 2))
        self._dropped.append(order[kept:])
        self._alive = order[:kept]
        self.positions *= 2
        return None
