"""Look early for a configuration with a lower bound of 1 - epsilon: utilities are at most 1, so it settles the race.

Before all configurations are run even once, a few are tried on the first positions, and the best of them is run on
later ones for as long as it looks as if it could be shown to be that good. It was chosen before those positions were
seen, so its lower bound needs no union; it has a small share of delta of its own. Configurations without a run are
covered too.
"""

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.procedures.board import Board
from captime.tally import Tally

_MEMBERS = 8
_TRIALS = (4, 8, 16)
# Among many, a configuration that reaches the goal alone may be rare. Unless two of the first few have means above the
# goal, or all are far below it (in units of what the goal leaves open), one configuration in 32 is tried. That is
# decided on the first positions, which all configurations run if the race continues: no configuration is sent to a
# position, or kept from it, by what happened there.
_PROMISING, _FAR_BELOW = 2, 1.0
_ONE_IN, _MOST_MEMBERS = 32, 64
# While there are many, most go at once.
_MANY_KEEP_ONE_IN = 4
# Give up once this share of what the warm start will cost anyway is spent.
_SHARE = 0.15
# After 12 runs a mean that is not above the goal is taken at its word. Where the goal is out of sight anyway, the
# champion keeps running: what it shows is the first certificate worth reading, long before all others have run.
_ENOUGH, _ENOUGH_FOR_ANYTIME = 12, 48
_OUT_OF_SIGHT = 0.99


def _spread(n_configs: int, members: int) -> IntArray:
    """Return `members` configurations, spread from one end of the list to the other."""
    return np.unique(np.linspace(0, n_configs - 1, max(1, members)).astype(np.int64))


class Scout:
    """A short halving over a few configurations, then one of them alone.

    Args:
        n_configs: How many configurations there are.
        goal: The lower bound wanted, 1 - epsilon.
        log_inverse: ln(1 / failure probability) of that bound.
        first_runs: How many positions every configuration runs in the first round of the warm start.
        board: Where bounds are computed.

    Attributes:
        champion: The configuration that is tried alone; None while it is being chosen.
        start: From this position on its scores count for the bound.
        lower: The bound.
        over: Whether there is nothing more to try.
        level: ln(1 / failure probability) of the bound.
    """

    def __init__(self, n_configs: int, goal: float, log_inverse: float, first_runs: int, board: Board) -> None:
        self._members: IntArray = _spread(n_configs, _MEMBERS)
        # More members are called to the first trial's positions for what happened there. That is blind only if the warm
        # start sends every configuration to all of these positions, whatever happens.
        more = min(n_configs // _ONE_IN, _MOST_MEMBERS) if first_runs >= _TRIALS[0] else 0
        self._more = np.setdiff1d(_spread(n_configs, more), self._members) if more > _MEMBERS else self._members[:0]
        self._goal = goal
        self._enough = _ENOUGH if goal < _OUT_OF_SIGHT else _ENOUGH_FOR_ANYTIME
        self.level = log_inverse
        self._most_runs = _SHARE * n_configs * first_runs
        self._board = board
        self._round = 0
        self._counts: IntArray = board.blank_counts()
        self._scores: list[float] = []
        self.champion: int | None = None
        self.start = 0
        self.lower = 0.0
        self.over = False

    @property
    def wanted(self) -> tuple[IntArray, int]:
        """Who has to have run how many positions."""
        if self.champion is None:
            return self._members, _TRIALS[self._round]
        return np.array([self.champion]), self.start + len(self._scores) + max(2, len(self._scores) // 5)

    def judge(self, tally: Tally, known: IntArray, available: float) -> None:
        """Take in what its runs came to, once all that were wanted are known.

        Args:
            tally: What is known.
            known: How many positions of each configuration are settled.
            available: Length of the stream; the scout takes at most a quarter of it.
        """
        members, positions = self.wanted
        if (known[members] < min(positions, available)).any():
            return
        if self.champion is None:
            self.choose(tally.utility_low)
            return
        reached = int(known[self.champion])
        self.add(tally.samples(self.champion, self.start + self.count, reached)[0])
        self.over |= reached >= available / 4

    def choose(self, sums: FloatArray) -> None:
        """All members have run the positions wanted: halve, or name the champion."""
        order = self._members[np.argsort(-sums[self._members], kind="stable")]
        if self._round == 0 and self._wants_more(sums[order] / _TRIALS[0]):
            self._members, self._more = np.concatenate((self._members, self._more)), self._more[:0]
            return
        self._members = order[: -(-len(order) // (_MANY_KEEP_ONE_IN if len(order) > _MEMBERS else 2))]
        self._round += 1
        if self._round == len(_TRIALS) or len(self._members) == 1:
            self.champion = int(order[0])
            self.start = _TRIALS[self._round - 1]

    def _wants_more(self, means: FloatArray) -> bool:
        """Return whether the first few, best first, leave it open that a configuration reaches the goal alone."""
        if not len(self._more):
            return False
        far = self._goal - _FAR_BELOW * (1.0 - self._goal)
        return bool(means[min(_PROMISING, len(means)) - 1] < self._goal and means[0] > far)

    @property
    def count(self) -> int:
        """How many scores of the champion count so far."""
        return len(self._scores)

    def add(self, low: FloatArray) -> None:
        """More scores of the champion, in stream order."""
        self._scores += low.tolist()
        self._counts += self._board.binned_low(low)
        self.lower = max(self.lower, float(self._board.lower_of(self._counts[None], np.array([self.level]))[0]))
        n = len(self._scores)
        hopeless = n >= self._enough and sum(self._scores) <= n * self._goal
        self.over = self.lower >= self._goal or hopeless or n >= self._most_runs
