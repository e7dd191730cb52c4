"""The warm start of a race: successive halving in rungs, to find a likely winner and a prior before anything counts.

A rung is a block of stream positions and the configurations that run all of it. What keeps it honest
(docs/random-captimes.md, step 7): which configurations take part in a rung, and whether it is lengthened, is decided
before any run on the positions in question has started. *When* it is decided, and on how much of what is under way, is
free. So the race does not wait for stragglers: they are counted as what is known of them, and are not left out later on
either.
"""

import math

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.procedures.estimates import measured_utility
from captime.tally import Tally
from captime.utilities.formula import Utility

# While there are many, most go at once: with half of them the rounds together would cost several times the first.
_MANY, _MANY_KEEP_ONE_IN = 16, 4
# A rung may be judged when this share of the runs it needs have ended.
_HEARD = 0.75
# A rung that offers fewer runs per slot than this is not worth having: the race has work for all slots.
_RUNS_PER_SLOT = 1.0
# How many configurations look for the captime at which runs of the first rung begin to finish, before all are run.
_PROBES = 8
# Means that agree in this many decimals are equal.
_EQUAL = 10
# Captimes rise until one configuration in this many, and at least two, has finished a run: otherwise the ranking of a
# rung would be chance.
_FINISHERS_ONE_IN = 24


class WarmStart:
    """All configurations run a few positions; the better part runs twice as many; and so on until few are left.

    Nothing is claimed here. The outcome is a ranking, from which the prior over leaders is made; it is final before the
    first run on a later position starts, and is never made again.

    Args:
        n_configs: How many configurations.
        first: Positions of the first rung.
        finalists: Stop halving once no more than this many are left.
        available: Length of the stream; None if it is endless. The warm start takes at most an eighth of it.
        stops: Up to which level runs of the first configurations are stopped early; 0 if none is.
        top: The last level.

    Attributes:
        alive: Who takes part in this rung.
        positions: How far they run, counted from the start of the stream.
        level: At which level of captimes.
        estimates: By configuration, what decides between equal means; the order of the list if it is None.
    """

    def __init__(
        self, n_configs: int, first: int, finalists: int, available: int | None, *, stops: int = 0, top: int = 0
    ) -> None:
        self._stops, self._top = stops, top
        self.level = 0 if stops else top
        self._probing = stops > 0 and n_configs > _PROBES
        self._most = math.inf if available is None else max(1, available // 8)
        self._dropped: list[IntArray] = []
        self._finalists = finalists
        self._needed = int(min(first, self._most)) if n_configs > 1 else 0
        self.alive: IntArray = np.arange(n_configs)
        self.estimates: FloatArray | None = None
        self.positions = self._needed

    @property
    def members(self) -> IntArray:
        """Who has to run the positions of this rung now, at its level."""
        return self.alive[:: max(1, len(self.alive) // _PROBES)][:_PROBES] if self._probing else self.alive

    def without_probes(self) -> None:
        """Begin with all configurations at a middle level: a few probes would keep many workers waiting."""
        if self._probing:
            self._probing, self.level = False, self._stops // 2 + 1

    def longer(self, tally: Tally) -> bool:
        """Raise the level if too few have finished anything at this one; False if the rung can be judged.

        Any captime is valid, and may follow from any result (docs/random-captimes.md, step 10).
        """
        finished = int(np.count_nonzero(tally.completed[self.members]))
        if self._probing:
            self._probing = finished == 0 and self.level < self._stops
            self.level = min(self.level + 1, self._stops)
            return True
        enough = max(2, len(self.alive) // _FINISHERS_ONE_IN) if self.level < self._stops else 1
        if self.level >= self._top or finished >= enough:
            return False
        # Four times as long, since the runs begin anew.
        self.level += 2 if self.level + 2 <= self._stops else 1
        return True

    def heard(self, tally: Tally) -> bool:
        """Whether enough runs of those in this rung have ended to judge it without the others."""
        ended = int((tally.n - tally.open)[self.alive].sum())
        return ended >= _HEARD * len(self.alive) * self._needed

    def means(self, tally: Tally) -> FloatArray:
        """Mean scores on the positions of this rung; a run under way counts as the middle of what it may be worth.

        Some may have run further, as scouts, and are not judged by that.
        """
        means = 0.5 * (tally.utility_low + tally.utility_high) / max(1, self.positions)
        for config in self.alive[tally.n[self.alive] > self.positions].tolist():
            low, high = tally.samples(config, 0, self.positions)
            means[config] = 0.5 * float((low + high).mean())
        return means

    def break_ties(self, tally: Tally, utility: Utility) -> None:
        """Let measured times decide between equal means: scores are lotteries, and the order of a list says nothing.

        Only positions of this rung count, as for the means: so membership stays a function of earlier positions.
        """
        estimates: FloatArray = np.zeros(len(tally.n))
        for config in self.alive.tolist():
            estimates[config] = measured_utility(tally, config, utility, self.positions)
        self.estimates = estimates

    def lengthen(self, runs: int) -> bool:
        """Let this rung's configurations run further, about `runs` runs together; False if the stream is too short."""
        before = self.positions
        self.positions = int(min(before + max(1, runs // len(self.alive)), self._most))
        return self.positions > before

    def judge(self, means: FloatArray, slots: int = 1) -> IntArray | None:
        """Drop the worse part and advance to the next rung (None), or give the final ranking, best first.

        Args:
            means: Mean scores of all configurations, as far as they are known.
            slots: How many runs are under way at a time: a rung that cannot keep them at work is left out.
        """
        order = self._ordered(means)
        kept = -(-len(order) // (_MANY_KEEP_ONE_IN if len(order) > _MANY else 2))
        further = max(self.positions, 2 * self._needed)
        too_little = kept * (further - self.positions) < _RUNS_PER_SLOT * slots
        if len(order) <= self._finalists or 2 * self._needed > self._most or too_little:
            return self.ranking(means)
        self._dropped.append(order[kept:])
        self.alive = order[:kept]
        # Fewer configurations, more positions, longer captimes.
        self.level = min(self.level + 1, self._top)
        self._needed *= 2
        self.positions = further
        return None

    def ranking(self, means: FloatArray) -> IntArray:
        """Return all configurations, best first: this rung's by their means, then the dropped ones, the last first."""
        return np.concatenate((self._ordered(means), *self._dropped[::-1]))

    def _ordered(self, means: FloatArray) -> IntArray:
        if self.estimates is None:
            return self.alive[np.argsort(-means[self.alive], kind="stable")]
        by_times = -np.nan_to_num(self.estimates[self.alive], nan=0.0)
        return self.alive[np.lexsort((by_times, -np.round(means[self.alive], _EQUAL)))]
