"""What runs show of each configuration: scores with bounds, and mean utilities as the measured times tell them.

One board of scores serves the race on a list and the pool that grows. Mean utilities are estimates, and no certificate
rests on them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.bounds.mixture import BinnedMixture, sine_nodes
from captime.tally import Tally
from captime.utilities.formula import Utility

# Mean utilities as the measured times tell them, although some runs are only known to be longer than a captime.
#
# The estimator is the product limit of Kaplan and Meier, with failure as a second way to end (Aalen and Johansen).
# Among the runs still watched just before time t, the share that answers at t is d(t) / Y(t). S(t) is the share that
# has neither answered nor failed before t. Then the share of instances answered by t is the sum of S * d / Y over the
# times up to t, and the mean utility is the sum of u(t) * S * d / Y. A run that was capped, cancelled or lost leaves Y
# at the time at which it was last seen unfinished; a failed run is worth 0. The curve ends where fewer than five runs
# are watched and more than those have left Y unfinished, or else after the last run. The share S that is left there is
# worth between 0 and u(that time); the middle is taken.
#
# The estimator assumes that a captime does not depend on the time that its run would take. No certificate rests on it:
# it says which of several certified configurations is named, and what tables and reports show.

# Where fewer runs are watched, and more than those have been lost from sight, nothing is estimated any more.
_ENOUGH_WATCHED = 5


@dataclass(frozen=True, slots=True)
class AnswerSteps:
    """The estimated share of instances answered by each time, as steps.

    Attributes:
        times: At which some runs answered, increasing.
        steps: By how much the share rises there.
        left: The share that has neither answered nor failed at the end of the curve.
        watched_until: The end of the curve; 0 without runs.
    """

    times: FloatArray
    steps: FloatArray
    left: float
    watched_until: float

    def mean_utility(self, utility: Utility) -> float:
        """Return the estimated mean utility; not a number if no run was watched for any time."""
        if self.watched_until <= 0.0 and len(self.times) == 0 and self.left >= 1.0:
            return math.nan
        known = float((utility(self.times) * self.steps).sum()) if len(self.times) else 0.0
        hidden = self.left * float(utility(np.array([self.watched_until]))[0])
        return min(1.0, known + hidden / 2.0)


def product_limit(seconds: FloatArray, answered: BoolArray, failed: BoolArray) -> AnswerSteps:
    """Estimate, from the runs of one configuration, which share of instances it answers by when.

    Args:
        seconds: When each run answered or failed, or was last seen unfinished.
        answered: Which answered.
        failed: Which failed.
    """
    times, place = np.unique(seconds, return_inverse=True)
    answers = np.bincount(place, answered, len(times))
    failures = np.bincount(place, failed, len(times))
    # Watched just before each time. Whatever leaves at a time leaves after the answers and failures there.
    watched = len(seconds) - np.searchsorted(np.sort(seconds), times, side="left")
    stay = 1.0 - (answers + failures) / np.maximum(watched, 1)
    survival = np.concatenate((np.ones(1), np.cumprod(stay)))
    steps = survival[:-1] * answers / np.maximum(watched, 1)
    unseen = np.cumsum(np.bincount(place, ~(answered | failed), len(times))) if len(times) else np.empty(0)
    before = np.concatenate((np.zeros(1), unseen[:-1])) if len(times) else unseen
    # A few that are still watched cannot stand for more that are not: there the curve ends.
    too_few = (watched < _ENOUGH_WATCHED) & (watched < before)
    end = int(np.argmax(too_few)) if too_few.any() else len(times)
    known = np.flatnonzero(answers[:end] > 0)
    return AnswerSteps(
        times=times[known],
        steps=steps[known],
        left=float(max(survival[end], 0.0)),
        watched_until=float(times[min(end, len(times) - 1)]) if len(times) else 0.0,
    )


def measured_utility(tally: Tally, config: int, utility: Utility, last: int | None = None) -> float:
    """Return the mean utility of a configuration as its measured times tell it; not a number if there are none.

    Args:
        tally: What is known of all runs.
        config: Which configuration.
        utility: What an answer is worth.
        last: Only positions before this one count; all of its positions if left out.
    """
    if tally.times is None:
        return math.nan
    n = int(tally.n[config])
    seconds, ended = tally.times(config, n if last is None else min(n, last))
    made = ~np.isnan(seconds)
    seconds, ended = seconds[made], ended[made]
    failed = ended & np.isinf(seconds)
    # A failure is seen at the time when it happened or not at all; here only that it is worth nothing counts.
    return product_limit(np.where(failed, 0.0, seconds), ended & ~failed, failed).mean_utility(utility)


# Scores of random captimes by configuration and stream position, and the bounds that follow from them.
#
# One board serves the race on a list and the pool that grows. Configurations may begin at different positions, some
# positions may count for upper bounds only, and there is always room for one more configuration.

# Positive scores lie between 1/B and 1; this many bins there lose at most (1 - 1/B) / 32 of a score.
_BINS = 33
NODES = 24
"""Number of shares of the wealth that are bet in bounds."""
# Candidate values of a mean. A bound is the nearest of them on the safe side.
_MEANS = 499
# A time-uniform bound may be read at any moments one likes: whenever there is this much more to read, in percent.
_NEWS = 1

FEW_OPEN, ALL_OPEN = (0.0, 0.02, 0.1), (1.0,)
"""Runs that are not over may make up these shares of a prefix whose length is worth trying."""


def grown(now: IntArray, before: IntArray) -> BoolArray:
    """Where there is enough more than before to look again."""
    more: BoolArray = now >= before + np.maximum(1, _NEWS * before // 100)
    return more


def with_rows(matrix: IntArray, rows: int) -> IntArray:
    """Return a matrix with at least this many rows, new ones 0; room doubles, so that adding one by one is cheap."""
    if rows <= len(matrix):
        return matrix
    longer: IntArray = np.zeros((max(rows, 2 * len(matrix)), matrix.shape[1]), dtype=np.int64)
    longer[: len(matrix)] = matrix
    return longer


@cache
def _bets(least: float) -> BinnedMixture:
    """Return the bets on scores that are 0 or at least this large; tables never change, so all boards share them."""
    grid = np.concatenate(([0.0], np.linspace(least, 1.0, _BINS))) if least < 1.0 else np.array([0.0, 1.0])
    return BinnedMixture(grid, np.linspace(0.0, 1.0, _MEANS + 2)[1:-1], sine_nodes(NODES))


class Board:
    """What every configuration scored, and lower and upper bounds on its expected utility.

    Args:
        n_configs: How many configurations.
        least: The smallest positive score, 1/B.
        pilot: Lower bounds and duels use positions from here on only.
        open_shares: At which lengths bounds are read, see `cuts`.

    Attributes:
        start: The first position of each configuration that is kept here.
        counted: The first position of each that counts for lower bounds and duels.
        settled: Up to which position the scores of each are settled.
        ends: The same with the runs behind them that are still open, as the intervals they are now.
        sure: The same as `settled`, and as much further as there are scores behind that are known exactly.
    """

    def __init__(
        self, n_configs: int, least: float, *, pilot: int = 0, open_shares: tuple[float, ...] = FEW_OPEN
    ) -> None:
        self._bets = _bets(least)
        self._pilot = pilot
        self._open_shares = open_shares
        # Where most configurations begin; lengths of prefixes are counted from here.
        self._origin = 0
        self._low_counts: IntArray = np.zeros((0, len(self._bets.grid)), dtype=np.int64)
        self._high_counts: IntArray = np.zeros((0, len(self._bets.grid)), dtype=np.int64)
        self._awaited: dict[int, IntArray] = {}
        nothing: IntArray = np.empty(0, dtype=np.int64)
        self.start, self.counted, self.settled, self.ends, self.sure = (nothing.copy() for _ in range(5))
        self._sums: FloatArray = np.empty(0)
        self._tail_sums: FloatArray = np.empty(0)
        self._low: list[FloatArray] = []
        self._high: list[FloatArray] = []
        self.enter(n_configs)

    # ------------------------------------------------------------------ which configurations, from where on

    def enter(self, count: int) -> None:
        """Make room for `count` more configurations, which begin at position 0."""
        nothing: IntArray = np.zeros(count, dtype=np.int64)
        self.start, self.settled = np.append(self.start, nothing), np.append(self.settled, nothing)
        self.ends, self.sure = np.append(self.ends, nothing), np.append(self.sure, nothing)
        self.counted = np.append(self.counted, nothing + self._pilot)
        self._low_counts = with_rows(self._low_counts, len(self.start))
        self._high_counts = with_rows(self._high_counts, len(self.start))
        self._sums = np.append(self._sums, np.zeros(count))
        self._tail_sums = np.append(self._tail_sums, np.zeros(count))
        self._low += [np.empty(0)] * count
        self._high += [np.empty(0)] * count

    def begin(self, position: int) -> None:
        """Keep the scores of all configurations from this position on; those before served upper bounds only."""
        self._origin = position
        for each in (self.start, self.counted, self.settled, self.ends, self.sure):
            each[:] = position

    def begin_at(self, config: int, position: int) -> None:
        """Let this configuration begin later; only before its first score."""
        self.start[config] = self.settled[config] = self.ends[config] = self.sure[config] = position
        self.counted[config] = max(int(self.counted[config]), position)

    def forget(self, config: int) -> None:
        """Take out all scores of a configuration: longer captimes have changed them, and they are read anew."""
        self._low_counts[config] = self._high_counts[config] = 0
        self._awaited.pop(config, None)
        self._sums[config] = self._tail_sums[config] = 0.0
        for passed in (self.settled, self.ends, self.sure):
            passed[config] = self.start[config]

    # ------------------------------------------------------------------ what became known

    def settle(self, config: int, low: FloatArray, high: FloatArray) -> None:
        """More settled scores of a configuration, in stream order."""
        before_counted = max(0, int(self.counted[config] - self.settled[config]))
        self._write(config, low, high)
        self._high_counts[config] += self._binned_high(high)
        self._low_counts[config] += self.binned_low(low[before_counted:])
        self.settled[config] = self.sure[config] = self.ends[config]
        self._sums[config] += float(low.sum())
        self._tail_sums[config] = 0.0

    def settle_pilot(self, config: int, high: FloatArray) -> None:
        """Settled scores of the warm start: they serve upper bounds only, and are not kept."""
        self._high_counts[config] += self._binned_high(high)

    def open(self, config: int, low: FloatArray, high: FloatArray) -> None:
        """What is known now of the runs behind the settled ones; said anew each time."""
        self._write(config, low, high)
        exact = low == high
        self.sure[config] = self.settled[config] + np.count_nonzero(exact)
        self._tail_sums[config] = low @ exact

    def await_pilot(self, config: int, high: FloatArray) -> None:
        """What is known now of runs of the warm start that are still open when the race has begun; said anew each time.

        Upper bounds use all positions of a configuration up to some cut, and these come before those of the race: so
        whatever is said about the race's positions counts these too.
        """
        self._awaited.pop(config, None)
        if len(high):
            self._awaited[config] = self._binned_high(high)

    def _write(self, config: int, low: FloatArray, high: FloatArray) -> None:
        """Scores behind the settled ones."""
        n = int(self.settled[config] - self.start[config])
        for kept, new in ((self._low, low), (self._high, high)):
            if len(kept[config]) < n + len(new):
                kept[config] = np.concatenate((kept[config][:n], np.empty(n + 2 * len(new))))
            kept[config][n : n + len(new)] = new
        self.ends[config] = self.settled[config] + len(low)

    # ------------------------------------------------------------------ scores

    def blank_counts(self) -> IntArray:
        """Bins with nothing in them."""
        return np.zeros(len(self._bets.grid), dtype=np.int64)

    def binned_low(self, low: FloatArray) -> IntArray:
        """Low ends in bins, rounded down."""
        return np.bincount(self._bets.bin_down(low), minlength=len(self._bets.grid))

    def _binned_high(self, high: FloatArray) -> IntArray:
        """High ends in bins, rounded up."""
        return np.bincount(self._bets.bin_up(high), minlength=len(self._bets.grid))

    def low(self, config: int, first: int, last: int) -> FloatArray:
        """Low ends on positions first, …, last - 1, none before the configuration's first one."""
        start = int(self.start[config])
        return self._low[config][first - start : last - start]

    def high(self, config: int, first: int, last: int) -> FloatArray:
        """High ends on positions first, …, last - 1, none before the configuration's first one."""
        start = int(self.start[config])
        return self._high[config][first - start : last - start]

    def through(self, config: int, first: int, last: int) -> BoolArray:
        """Which scores on positions first, …, last - 1 are settled or known exactly; true before the first one."""
        known: BoolArray = np.ones(last - first, dtype=np.bool_)
        behind = max(first, int(self.settled[config]))
        if last > behind:
            known[behind - first :] = self.low(config, behind, last) == self.high(config, behind, last)
        return known

    def ahead(self, config: int, leader: int, *, open_too: bool) -> FloatArray:
        """By how much a configuration scored more than the leader, on the positions that they have in common.

        Args:
            config: The configuration.
            leader: The configuration that leads.
            open_too: Also on positions behind the settled ones, where both scores are known exactly.
        """
        last_of = self.ends if open_too else self.settled
        first, last = int(max(self.start[config], self.start[leader])), int(min(last_of[config], last_of[leader]))
        if last <= first:
            return np.empty(0)
        ahead = self.low(config, first, last) - self.low(leader, first, last)
        if not open_too:
            return ahead
        return ahead[self.through(config, first, last) & self.through(leader, first, last)]

    def raced(self, config: int) -> int:
        """How many settled scores count for lower bounds."""
        return max(0, int(self.settled[config] - self.counted[config]))

    def mean(self, config: int) -> float:
        """Mean low end of all settled scores that are kept; 0 before the first."""
        return float(self._sums[config]) / max(1, int(self.settled[config] - self.start[config]))

    def variance(self, config: int) -> float:
        """Variance of the settled low ends that are kept; 1/4 before the first."""
        first, last = int(self.start[config]), int(self.settled[config])
        return float(self.low(config, first, last).var()) if last > first else 0.25

    @property
    def scored(self) -> IntArray:
        """How many scores of each are known exactly, or are settled."""
        scored: IntArray = self.sure - self.start
        return scored

    def means(self) -> FloatArray:
        """Return the mean low ends of each configuration's settled or exactly known scores; 0 before the first."""
        means: FloatArray = (self._sums + self._tail_sums) / np.maximum(self.scored, 1)
        return means

    # ------------------------------------------------------------------ bounds

    def lower_of(self, counts: IntArray, log_inverse: FloatArray) -> FloatArray:
        """Lower bounds from binned low ends, one row each."""
        return self._bets.lower(counts, log_inverse)

    def lower(self, config: IntArray, log_inverse: FloatArray) -> FloatArray:
        """Lower bounds from the scores that count for them, open runs counted or left out, whichever says more.

        Both are right: the bounds hold at every length of the prefix at once, and an open run counts with the low end
        of its interval.
        """
        places, more = self._behind(config, self.low, self.binned_low, self.counted)
        rows, level = joined(self._low_counts[config], log_inverse, places, more)
        bound = self._bets.lower(rows, level)
        best = bound[: len(config)]
        if places:
            np.maximum.at(best, places, bound[len(config) :])
        return best

    def upper(self, config: IntArray, log_inverse: FloatArray) -> FloatArray:
        """Upper bounds from all scores, open runs counted or left out, whichever says more."""
        counts = self._high_counts[config]
        if self._awaited:
            for place, which in enumerate(config.tolist()):
                if which in self._awaited:
                    counts[place] += self._awaited[which]
        places, more = self._behind(config, self.high, self._binned_high, self.start)
        rows, level = joined(counts, log_inverse, places, more)
        bound = self._bets.upper(rows, level)
        best = bound[: len(config)]
        if places:
            np.minimum.at(best, places, bound[len(config) :])
        return best

    def _behind(
        self,
        config: IntArray,
        ends: Callable[[int, int, int], FloatArray],
        binned: Callable[[FloatArray], IntArray],
        counted: IntArray,
    ) -> tuple[list[int], list[IntArray]]:
        """By place, what stands behind the settled runs, in bins; several lengths of it, each with its place."""
        places: list[int] = []
        counts: list[IntArray] = []
        for place in (self.ends[config] > self.settled[config]).nonzero()[0].tolist():
            which = int(config[place])
            settled, last = int(self.settled[which]), int(self.ends[which])
            first = max(settled, int(counted[which]))
            for length in self.cuts((which,), settled, last):
                places.append(place)
                counts.append(binned(ends(which, first, max(first, settled + length))))
        return places, counts

    def cuts(self, configs: tuple[int, ...], settled: int, last: int) -> list[int]:
        """Return by how many runs a settled prefix may be lengthened, at the shares of open runs that are tried here.

        Args:
            configs: Runs of all these have to be settled or known exactly where they are not to count as open.
            settled: The position of the first run behind the prefix.
            last: Behind the last run there is.
        """
        if self._open_shares == ALL_OPEN:
            return [last - settled]
        through = self.through(configs[0], settled, last)
        for config in configs[1:]:
            through &= self.through(config, settled, last)
        return cuts(through, settled - self._origin, self._open_shares)


def cuts(through: BoolArray, settled: int, open_shares: tuple[float, ...] = FEW_OPEN) -> list[int]:
    """Return by how many runs a settled prefix may be lengthened so that a bound says most: few of them open, or some.

    A bound holds at every length at once, so it may be read where it suits: before a stretch of runs that have only
    just been ordered, but behind a straggler, which counts as the interval it is.

    Args:
        through: Which runs behind the settled ones are settled or known exactly.
        settled: How many runs are settled before them.
        open_shares: Open runs may make up these shares of the prefix.
    """
    met = (~through).cumsum()
    length = np.arange(settled + 1, settled + len(through) + 1)
    found = {int((met <= share * length).nonzero()[0].max(initial=-1)) for share in open_shares}
    return sorted(1 + last for last in found if last >= 0)


def joined(
    counts: IntArray, log_inverse: FloatArray, places: list[int], more: list[IntArray]
) -> tuple[IntArray, FloatArray]:
    """Return rows and their levels, followed by the rows of some places with more added to each.

    Args:
        counts: The rows.
        log_inverse: ln(1 / failure probability) of each.
        places: Rows that are wanted a second time.
        more: What is added to them there.
    """
    if not places:
        return counts, log_inverse
    return np.concatenate((counts, counts[places] + np.array(more))), np.concatenate((log_inverse, log_inverse[places]))
