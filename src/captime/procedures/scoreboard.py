"""Scores of random captimes, one by one and in bins, and the bounds that follow from them."""

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.bounds.mixture import BinnedMixture, PairedMixture, sine_nodes

# Positive scores lie between 1/B and 1; so many bins there lose at most (1 - 1/B) / 32 of a score.
_BINS = 33
_NODES = 24
# Candidate values of a mean. A bound is the nearest of them on the safe side.
_MEANS = 499
# Differences of two scores are rounded up to this step.
_DIFFERENCE_STEP = 1.0 / 256.0
_FRACTIONS = 16


class Scoreboard:
    """What every configuration scored, and lower and upper bounds on its expected utility.

    Args:
        n_configs: How many configurations.
        least: The smallest positive score, 1/B.

    Attributes:
        count: Settled scores of the race per configuration, the warm start not included.
        total: The same with the scores of runs behind them that are still open, as the intervals they are now.
    """

    def __init__(self, n_configs: int, least: float) -> None:
        self._grid = np.concatenate(([0.0], np.linspace(least, 1.0, _BINS))) if least < 1.0 else np.array([0.0, 1.0])
        means = np.linspace(0.0, 1.0, _MEANS + 2)[1:-1]
        nodes = sine_nodes(_NODES)
        self._below = BinnedMixture(self._grid, means, nodes)
        self._above = BinnedMixture((1.0 - self._grid)[::-1], means, nodes)
        self._low_counts: IntArray = np.zeros((n_configs, len(self._grid)), dtype=np.int64)
        self._loss_counts: IntArray = np.zeros((n_configs, len(self._grid)), dtype=np.int64)
        self.count: IntArray = np.zeros(n_configs, dtype=np.int64)
        self.total: IntArray = np.zeros(n_configs, dtype=np.int64)
        self._sums: FloatArray = np.zeros(n_configs)
        self._low: list[FloatArray] = [np.empty(0)] * n_configs
        self._high: list[FloatArray] = [np.empty(0)] * n_configs

    def add(self, config: int, low: FloatArray, high: FloatArray, *, race: bool) -> None:
        """More scores of a configuration, in stream order; those of the warm start serve upper bounds only."""
        bins = len(self._grid)
        # 1 - x is rounded down where x is rounded up.
        self._loss_counts[config] += np.bincount(bins - 1 - self._below.bin_up(high), minlength=bins)
        if not race:
            return
        self._low_counts[config] += self.binned_low(low)
        self._write(config, low, high)
        self.count[config] = self.total[config]
        self._sums[config] += float(low.sum())

    def open(self, config: int, low: FloatArray, high: FloatArray) -> None:
        """What is known now of the runs behind the settled ones; said anew each time."""
        self._write(config, low, high)

    def _write(self, config: int, low: FloatArray, high: FloatArray) -> None:
        """Scores behind the settled ones."""
        n = int(self.count[config])
        for kept, new in ((self._low, low), (self._high, high)):
            if len(kept[config]) < n + len(new):
                kept[config] = np.concatenate((kept[config][:n], np.empty(n + 2 * len(new))))
            kept[config][n : n + len(new)] = new
        self.total[config] = n + len(low)

    def blank_counts(self) -> IntArray:
        """Bins with nothing in them."""
        return np.zeros(len(self._grid), dtype=np.int64)

    def binned_low(self, low: FloatArray) -> IntArray:
        """Low ends in bins, rounded down."""
        return np.bincount(self._below.bin_down(low), minlength=len(self._grid))

    def lower_of(self, counts: IntArray, log_inverse: FloatArray) -> FloatArray:
        """Lower bounds from binned low ends, one row each."""
        return self._below.lower(counts, log_inverse)

    def low(self, config: int, first: int, last: int) -> FloatArray:
        """Low ends of the race's scores number first, …, last - 1."""
        return self._low[config][first:last]

    def high(self, config: int, first: int, last: int) -> FloatArray:
        """High ends of the race's scores number first, …, last - 1."""
        return self._high[config][first:last]

    def mean(self, config: int) -> float:
        """Mean low end of the race's scores; 0 before the first."""
        return float(self._sums[config]) / max(1, int(self.count[config]))

    def lower(self, config: IntArray, log_inverse: FloatArray) -> FloatArray:
        """Lower bounds from the race's scores, open runs counted or left out, whichever says more.

        Both are right: the bounds hold at every length of the prefix at once, and an open run counts with the low end
        of its interval.
        """
        bound = self._below.lower(self._low_counts[config], log_inverse)
        for place in np.flatnonzero(self.total[config] > self.count[config]).tolist():
            low = self.low(int(config[place]), int(self.count[config[place]]), int(self.total[config[place]]))
            counts = self._low_counts[config[place]] + self.binned_low(low)
            bound[place] = max(bound[place], self._below.lower(counts[None], log_inverse[place : place + 1])[0])
        return bound

    def upper(self, config: IntArray, log_inverse: FloatArray) -> FloatArray:
        """Upper bounds from all scores, open runs counted or left out, whichever says more."""
        bound = 1.0 - self._above.lower(self._loss_counts[config], log_inverse)
        last = len(self._grid) - 1
        for place in np.flatnonzero(self.total[config] > self.count[config]).tolist():
            high = self.high(int(config[place]), int(self.count[config[place]]), int(self.total[config[place]]))
            counts = self._loss_counts[config[place]] + np.bincount(last - self._below.bin_up(high), minlength=last + 1)
            bound[place] = min(bound[place], 1.0 - self._above.lower(counts[None], log_inverse[place : place + 1])[0])
        return bound


class Duels:
    """The leader against everyone else, on the positions both have run: paired evidence.

    Args:
        n_configs: How many configurations.
        margins: The epsilons at which evidence is weighed, increasing.
    """

    def __init__(self, n_configs: int, margins: FloatArray) -> None:
        steps = round(1.0 / _DIFFERENCE_STEP)
        grid: FloatArray = np.linspace(-1.0, 1.0, 2 * steps + 1)
        self._mixture = PairedMixture(grid, margins, sine_nodes(_FRACTIONS))
        self._counts: IntArray = np.zeros((n_configs, len(grid)), dtype=np.int64)
        self._common: IntArray = np.zeros(n_configs, dtype=np.int64)

    def restart(self) -> None:
        """Another leader: what was shown against the old one does not count for the new one."""
        self._counts[:] = 0
        self._common[:] = 0

    def catch_up(self, board: Scoreboard, leader: int) -> IntArray:
        """Take in what is new on positions that the leader and somebody else have run; return who it was."""
        settled = np.minimum(board.count, board.count[leader])
        behind = np.flatnonzero(settled > self._common)
        behind = behind[behind != leader]
        for challenger in behind.tolist():
            last = int(settled[challenger])
            self._counts[challenger] += self._counted(board, leader, challenger, last)
            self._common[challenger] = last
        shown = np.flatnonzero(np.minimum(board.total, board.total[leader]) > settled)
        return np.union1d(behind, shown[shown != leader])

    def _counted(self, board: Scoreboard, leader: int, challenger: int, last: int) -> IntArray:
        """Binned differences on common positions from those already taken in up to `last`."""
        first = int(self._common[challenger])
        worst = board.high(challenger, first, last) - board.low(leader, first, last)
        return np.bincount(self._mixture.bin_up(worst), minlength=self._counts.shape[1])

    def margins(self, board: Scoreboard, leader: int, challengers: IntArray, log_inverse: float) -> FloatArray:
        """By how much each challenger may be ahead of the leader at most; 1 where nothing is shown yet."""
        level = np.full(len(challengers), log_inverse)
        margin = self._mixture.smallest_margin(self._counts[challengers], level)
        total = np.minimum(board.total[challengers], board.total[leader])
        for place in np.flatnonzero(total > self._common[challengers]).tolist():
            # Open runs too, as the intervals they are now; right at every length, so the better of the two counts.
            challenger = int(challengers[place])
            counts = self._counts[challenger] + self._counted(board, leader, challenger, int(total[place]))
            margin[place] = min(margin[place], self._mixture.smallest_margin(counts[None], level[:1])[0])
        return margin
