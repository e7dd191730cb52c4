"""Scores of random captimes, one by one and in bins, and the bounds that follow from them."""

from collections.abc import Callable

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.bounds.mixture import BinnedMixture, sine_nodes

# Positive scores lie between 1/B and 1; this many bins there lose at most (1 - 1/B) / 32 of a score.
_BINS = 33
_NODES = 24
# Candidate values of a mean. A bound is the nearest of them on the safe side.
_MEANS = 499
# A time-uniform bound may be read at any moments one likes: whenever there is this much more to read, in percent.
_NEWS = 1
# Runs that are not over may make up these shares of a prefix whose length is worth trying.
_OPEN_SHARES = (0.0, 0.02, 0.1)


def grown(now: IntArray, before: IntArray) -> BoolArray:
    """Where there is enough more than before to look again."""
    more: BoolArray = now >= before + np.maximum(1, _NEWS * before // 100)
    return more


class Scoreboard:
    """What every configuration scored, and lower and upper bounds on its expected utility.

    Args:
        n_configs: How many configurations.
        least: The smallest positive score, 1/B.

    Attributes:
        count: Settled scores of the race per configuration, the warm start not included.
        total: The same with the scores of runs behind them that are still open, as the intervals they are now.
        sure: How many scores of the race are known exactly, or are settled.
        offset: By how many positions of the race each began later; they count as passed in the three above, and for
            nothing else.
        nodes: Shares that are bet, in all bounds.
    """

    def __init__(self, n_configs: int, least: float) -> None:
        self._grid = np.concatenate(([0.0], np.linspace(least, 1.0, _BINS))) if least < 1.0 else np.array([0.0, 1.0])
        means = np.linspace(0.0, 1.0, _MEANS + 2)[1:-1]
        self.nodes: FloatArray = sine_nodes(_NODES)
        self._below = BinnedMixture(self._grid, means, self.nodes)
        self._above = BinnedMixture((1.0 - self._grid)[::-1], means, self.nodes)
        self._low_counts: IntArray = np.zeros((n_configs, len(self._grid)), dtype=np.int64)
        self._loss_counts: IntArray = np.zeros((n_configs, len(self._grid)), dtype=np.int64)
        self._awaited: dict[int, IntArray] = {}
        self.count: IntArray = np.zeros(n_configs, dtype=np.int64)
        self.total: IntArray = np.zeros(n_configs, dtype=np.int64)
        self.sure: IntArray = np.zeros(n_configs, dtype=np.int64)
        self.offset: IntArray = np.zeros(n_configs, dtype=np.int64)
        self._sums: FloatArray = np.zeros(n_configs)
        self._tail_sums: FloatArray = np.zeros(n_configs)
        self._low: list[FloatArray] = [np.empty(0)] * n_configs
        self._high: list[FloatArray] = [np.empty(0)] * n_configs

    # ------------------------------------------------------------------ who joins later

    def enter(self, count: int) -> None:
        """Make room for `count` more configurations."""
        for name in ("count", "total", "sure", "offset"):
            setattr(self, name, np.append(getattr(self, name), np.zeros(count, dtype=np.int64)))
        more = np.zeros((count, len(self._grid)), dtype=np.int64)
        self._low_counts = np.concatenate((self._low_counts, more))
        self._loss_counts = np.concatenate((self._loss_counts, more))
        self._sums, self._tail_sums = (
            np.append(self._sums, np.zeros(count)),
            np.append(self._tail_sums, np.zeros(count)),
        )
        self._low += [np.empty(0)] * count
        self._high += [np.empty(0)] * count

    def begin_at(self, config: int, offset: int) -> None:
        """Let this configuration begin `offset` positions after the others; only before its first score."""
        self._low[config], self._high[config] = np.zeros(offset), np.ones(offset)
        for passed in (self.count, self.total, self.sure, self.offset):
            passed[config] = offset

    def forget(self, config: int) -> None:
        """Take out all scores of a configuration: longer captimes have changed them, and they are read anew."""
        self._low_counts[config] = self._loss_counts[config] = 0
        self._awaited.pop(config, None)
        self._sums[config] = self._tail_sums[config] = 0.0
        for passed in (self.count, self.total, self.sure):
            passed[config] = self.offset[config]

    # ------------------------------------------------------------------ what became known

    def add(self, config: int, low: FloatArray, high: FloatArray, *, race: bool) -> None:
        """More scores of a configuration, in stream order; those of the warm start serve upper bounds only."""
        self._loss_counts[config] += self._binned_loss(high)
        if not race:
            return
        self._low_counts[config] += self.binned_low(low)
        self._write(config, low, high)
        self.count[config] = self.sure[config] = self.total[config]
        self._sums[config] += float(low.sum())
        self._tail_sums[config] = 0.0

    def open(self, config: int, low: FloatArray, high: FloatArray) -> None:
        """What is known now of the runs behind the settled ones; said anew each time."""
        self._write(config, low, high)
        exact = low == high
        self.sure[config] = self.count[config] + np.count_nonzero(exact)
        self._tail_sums[config] = low @ exact

    def await_pilot(self, config: int, high: FloatArray) -> None:
        """What is known now of runs of the warm start that are still open when the race has begun; said anew each time.

        Upper bounds use all positions of a configuration up to some cut, and these come before those of the race: so
        whatever is said about the race's positions counts these too.
        """
        self._awaited.pop(config, None)
        if len(high):
            self._awaited[config] = self._binned_loss(high)

    def _write(self, config: int, low: FloatArray, high: FloatArray) -> None:
        """Scores behind the settled ones."""
        n = int(self.count[config])
        for kept, new in ((self._low, low), (self._high, high)):
            if len(kept[config]) < n + len(new):
                kept[config] = np.concatenate((kept[config][:n], np.empty(n + 2 * len(new))))
            kept[config][n : n + len(new)] = new
        self.total[config] = n + len(low)

    # ------------------------------------------------------------------ scores

    def blank_counts(self) -> IntArray:
        """Bins with nothing in them."""
        return np.zeros(len(self._grid), dtype=np.int64)

    def binned_low(self, low: FloatArray) -> IntArray:
        """Low ends in bins, rounded down."""
        return np.bincount(self._below.bin_down(low), minlength=len(self._grid))

    def _binned_loss(self, high: FloatArray) -> IntArray:
        """Losses 1 - high in bins, rounded down where high ends are rounded up."""
        bins = len(self._grid)
        return np.bincount(bins - 1 - self._below.bin_up(high), minlength=bins)

    def low(self, config: int, first: int, last: int) -> FloatArray:
        """Low ends of the race's scores number first, …, last - 1."""
        return self._low[config][first:last]

    def high(self, config: int, first: int, last: int) -> FloatArray:
        """High ends of the race's scores number first, …, last - 1."""
        return self._high[config][first:last]

    def through(self, config: int, n: int) -> BoolArray:
        """Which of the race's first n scores are settled or known exactly."""
        known: BoolArray = self._low[config][:n] == self._high[config][:n]
        known[: int(self.count[config])] = True
        return known

    def mean(self, config: int) -> float:
        """Mean low end of the race's settled scores; 0 before the first."""
        return float(self._sums[config]) / max(1, int(self.count[config] - self.offset[config]))

    @property
    def scored(self) -> IntArray:
        """How many scores of each are known exactly, or are settled, those it has passed over left out."""
        scored: IntArray = self.sure - self.offset
        return scored

    def means(self) -> FloatArray:
        """Return the mean low ends of each configuration's settled or exactly known scores; 0 before the first."""
        means: FloatArray = (self._sums + self._tail_sums) / np.maximum(self.scored, 1)
        return means

    # ------------------------------------------------------------------ bounds

    def lower_of(self, counts: IntArray, log_inverse: FloatArray) -> FloatArray:
        """Lower bounds from binned low ends, one row each."""
        return self._below.lower(counts, log_inverse)

    def lower(self, config: IntArray, log_inverse: FloatArray) -> FloatArray:
        """Lower bounds from the race's scores, open runs counted or left out, whichever says more.

        Both are right: the bounds hold at every length of the prefix at once, and an open run counts with the low end
        of its interval.
        """
        return _best_of(
            self._below, self._low_counts[config], self._behind(config, self._low, self.binned_low), log_inverse
        )

    def upper(self, config: IntArray, log_inverse: FloatArray) -> FloatArray:
        """Upper bounds from all scores, the race's open runs counted or left out, whichever says more."""
        counts = self._loss_counts[config]
        for place, which in enumerate(config.tolist()):
            if which in self._awaited:
                counts[place] += self._awaited[which]
        behind = self._behind(config, self._high, self._binned_loss)
        return 1.0 - _best_of(self._above, counts, behind, log_inverse)

    def _behind(
        self, config: IntArray, ends: list[FloatArray], binned: Callable[[FloatArray], IntArray]
    ) -> tuple[list[int], list[IntArray]]:
        """By place, what stands behind the settled runs, in bins; several lengths of it, each with its place."""
        places: list[int] = []
        counts: list[IntArray] = []
        for place in np.flatnonzero(self.total[config] > self.count[config]).tolist():
            which, first = int(config[place]), int(self.count[config[place]])
            for last in cuts(self.through(which, int(self.total[which])), first):
                places.append(place)
                counts.append(binned(ends[which][first:last]))
        return places, counts


def cuts(through: BoolArray, settled: int) -> list[int]:
    """Lengths of a prefix, beyond the settled part, at which a bound may say most: few runs in it are open, or some.

    A bound holds at every length at once, so it may be read where it suits: before a stretch of runs that have only
    just been ordered, but behind a straggler, which counts as the interval it is.

    Args:
        through: Which runs are settled or known exactly.
        settled: How many of the first runs are settled.
    """
    met = (~through[settled:]).cumsum()
    length = np.arange(settled + 1, len(through) + 1)
    found = {int((met <= share * length).nonzero()[0].max(initial=-1)) for share in _OPEN_SHARES}
    return sorted(settled + 1 + last for last in found if last >= 0)


def _best_of(
    mixture: BinnedMixture, counts: IntArray, behind: tuple[list[int], list[IntArray]], log_inverse: FloatArray
) -> FloatArray:
    """Lower bounds of these rows as they are, or with more added to some of them if that is better."""
    places, more = behind
    if not places:
        return mixture.lower(counts, log_inverse)
    rows = np.concatenate((counts, counts[places] + np.array(more)))
    bound = mixture.lower(rows, np.concatenate((log_inverse, log_inverse[places])))
    best = bound[: len(counts)]
    np.maximum.at(best, places, bound[len(counts) :])
    return best
