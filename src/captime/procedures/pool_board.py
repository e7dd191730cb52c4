"""Scores of a growing pool by stream position, and what follows from them: bounds, and duels with the leader.

Unlike in the race, configurations may begin at different positions, and there is always room for one more.
"""

from functools import cache

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.bounds.mixture import BinnedMixture, PairedMixture, sine_nodes
from captime.procedures.race_terms import COARSEST_STEP, difference_grid

# Positive scores lie between 1/B and 1; this many bins there lose at most (1 - 1/B) / 32 of a score.
_BINS = 33
_NODES = 24
# Candidate values of a mean. A bound is the nearest of them on the safe side.
_MEANS = 499
_FRACTIONS = 16


@cache
def _bets(least: float) -> BinnedMixture:
    """The bets on scores that are 0 or at least so large; tables never change, so all pools share them."""
    grid = np.concatenate(([0.0], np.linspace(least, 1.0, _BINS))) if least < 1.0 else np.array([0.0, 1.0])
    return BinnedMixture(grid, np.linspace(0.0, 1.0, _MEANS + 2)[1:-1], sine_nodes(_NODES))


@cache
def _paired_bets(margins: tuple[float, ...], step: float, least: float) -> PairedMixture:
    return PairedMixture(difference_grid(step, least), np.array(margins), sine_nodes(_FRACTIONS))


class _Scores:
    """Low and high ends of one configuration from its first position on, the settled ones and those still open."""

    __slots__ = ("ends", "from_pilot", "high", "loss_counts", "low", "low_counts", "low_sum", "settled", "start")

    def __init__(self, from_pilot: int, bins: int) -> None:
        self.start = self.settled = self.ends = 0
        self.from_pilot = from_pilot
        self.low: FloatArray = np.empty(16)
        self.high: FloatArray = np.empty(16)
        self.low_counts: IntArray = np.zeros(bins, dtype=np.int64)
        self.loss_counts: IntArray = np.zeros(bins, dtype=np.int64)
        self.low_sum = 0.0

    def begin_at(self, start: int) -> None:
        """Its first position is another one than 0."""
        self.start = self.settled = self.ends = start
        self.from_pilot = max(self.from_pilot, start)

    def write(self, low: FloatArray, high: FloatArray) -> None:
        """Scores behind the settled ones."""
        first, last = self.settled - self.start, self.settled - self.start + len(low)
        if last > len(self.low):
            more = np.empty(max(last, 2 * len(self.low)) - first)
            self.low, self.high = np.append(self.low[:first], more), np.append(self.high[:first], more)
        self.low[first:last], self.high[first:last] = low, high
        self.ends = self.settled + len(low)

    def lows(self, first: int, last: int) -> FloatArray:
        """Low ends on these positions of the stream."""
        return self.low[first - self.start : last - self.start]

    def highs(self, first: int, last: int) -> FloatArray:
        """High ends on these positions of the stream."""
        return self.high[first - self.start : last - self.start]


class PoolBoard:
    """The scores of all configurations, and the bounds that follow.

    Args:
        least: The smallest positive score, 1/B.
        margins: The epsilons at which duels are weighed, increasing.
        pilot: Lower bounds and duels use positions from here on only.
        step: Differences of two scores are rounded up to multiples of this.

    Attributes:
        pilot: As given.
    """

    def __init__(self, least: float, margins: FloatArray, pilot: int, step: float = COARSEST_STEP) -> None:
        self._least = least
        self._bets = _bets(least)
        self._paired = _paired_bets(tuple(margins.tolist()), step, least)
        self.pilot = pilot
        self._scores: list[_Scores] = []
        # Of each of them, the end of its scores and the first that counts in duels; kept for a look at all at once.
        self._ends: IntArray = np.empty(0, dtype=np.int64)
        self._first: IntArray = np.empty(0, dtype=np.int64)
        self._leader = 0
        # Binned differences with the leader in force, and up to which position they are in.
        self._duels: dict[int, tuple[IntArray, int]] = {}
        self._fought: IntArray = np.empty(0, dtype=np.int64)

    def enter(self) -> None:
        """One more configuration, which begins at position 0."""
        self._scores.append(_Scores(self.pilot, len(self._bets.grid)))
        self._ends, self._first = np.append(self._ends, 0), np.append(self._first, self.pilot)
        self._fought = np.append(self._fought, 0)

    def begin_at(self, config: int, start: int) -> None:
        """This one begins later; only before its first run."""
        scores = self._scores[config]
        scores.begin_at(start)
        self._ends[config], self._first[config] = scores.ends, scores.from_pilot

    def start(self, config: int) -> int:
        """Its first position."""
        return self._scores[config].start

    def settle(self, config: int, low: FloatArray, high: FloatArray) -> None:
        """More settled scores of a configuration, in stream order."""
        scores = self._scores[config]
        scores.write(low, high)
        first, last = scores.settled, scores.ends
        scores.loss_counts += self._losses(high)
        counted = scores.lows(max(first, min(scores.from_pilot, last)), last)
        scores.low_counts += self._lows(counted)
        scores.low_sum += float(low.sum())
        scores.settled = self._ends[config] = last

    def open(self, config: int, low: FloatArray, high: FloatArray) -> None:
        """What is known now of the runs behind the settled ones; said anew each time."""
        scores = self._scores[config]
        scores.write(low, high)
        self._ends[config] = scores.ends

    def _losses(self, high: FloatArray) -> IntArray:
        return np.bincount(self._bets.bin_up(high), minlength=len(self._bets.grid))

    def _lows(self, low: FloatArray) -> IntArray:
        return np.bincount(self._bets.bin_down(low), minlength=len(self._bets.grid))

    def known(self, config: int) -> int:
        """Up to which position everything is settled."""
        return self._scores[config].settled

    def raced(self, config: int) -> int:
        """How many settled scores count for lower bounds."""
        scores = self._scores[config]
        return max(0, scores.settled - scores.from_pilot)

    def mean(self, config: int) -> float:
        """Mean low end of all settled scores; 0 before the first."""
        scores = self._scores[config]
        return scores.low_sum / max(1, scores.settled - scores.start)

    def variance(self, config: int) -> float:
        """Variance of the settled low ends."""
        scores = self._scores[config]
        return float(scores.lows(scores.start, scores.settled).var()) if scores.settled > scores.start else 0.25

    def pilot_sum(self, config: int) -> float:
        """Sum of the low ends on the pilot's positions."""
        return float(self._scores[config].lows(0, self.pilot).sum())

    def ahead(self, config: int, leader: int) -> FloatArray:
        """By how much it scored more than the leader on the settled positions they have in common."""
        one, other = self._scores[config], self._scores[leader]
        first, last = max(one.start, other.start), min(one.settled, other.settled)
        return one.lows(first, last) - other.lows(first, last) if last > first else np.empty(0)

    def lower(self, config: int, log_inverse: float) -> float:
        """Lower bound from the positions behind the pilot, open runs counted or left out, whichever says more.

        Both are right: the bound holds at every length of the prefix at once, and an open run counts with the low end
        of its interval.
        """
        scores = self._scores[config]
        counts = scores.low_counts[None]
        if scores.ends > scores.settled:
            first = max(scores.settled, min(scores.from_pilot, scores.ends))
            counts = np.concatenate((counts, counts + self._lows(scores.lows(first, scores.ends))))
        return float(self._bets.lower(counts, np.array([log_inverse])).max())

    def upper(self, config: int, log_inverse: float) -> float:
        """Upper bound from all positions, open runs counted or left out, whichever says more."""
        scores = self._scores[config]
        counts = scores.loss_counts[None]
        if scores.ends > scores.settled:
            counts = np.concatenate((counts, counts + self._losses(scores.highs(scores.settled, scores.ends))))
        return float(self._bets.upper(counts, np.array([log_inverse])).min())

    def lead(self, leader: int) -> None:
        """Another leader: what was shown against the old one does not count for the new one."""
        self._leader = leader
        self._forget_duels()

    def weigh(self, margins: FloatArray, step: float = COARSEST_STEP) -> None:
        """Weigh duels at other epsilons and steps from now on; all that was scored counts for them too."""
        self._paired = _paired_bets(tuple(margins.tolist()), step, self._least)
        self._forget_duels()

    def _forget_duels(self) -> None:
        self._duels.clear()
        self._fought[:] = 0

    def with_news(self) -> IntArray:
        """Who has positions in common with the leader that no duel has seen, the leader itself left out."""
        leader = self._leader
        done = np.maximum(self._fought, np.maximum(self._first, self._first[leader]))
        news = np.minimum(self._ends, self._ends[leader]) > done
        news[leader] = False
        return np.flatnonzero(news)

    def margin(self, config: int, log_inverse: float) -> float:
        """By how much this challenger may be ahead of the leader at most; 1 where nothing is shown yet."""
        one, leader = self._scores[config], self._scores[self._leader]
        first = max(one.from_pilot, leader.from_pilot)
        counts, done = self._duels.get(config, (np.zeros(len(self._paired.differences), dtype=np.int64), first))
        last = min(one.settled, leader.settled)
        if last > done:
            counts = counts + self._differences(one, leader, done, last)
            self._duels[config] = (counts, last)
            self._fought[config] = last
            done = last
        rows = counts[None]
        ends = min(one.ends, leader.ends)
        if ends > done:
            # Open runs too, as the intervals they are now; right at every length, so the better of the two counts.
            rows = np.concatenate((rows, rows + self._differences(one, leader, done, ends)))
        return float(self._paired.smallest_margin(rows, np.array([log_inverse])).min())

    def _differences(self, challenger: _Scores, leader: _Scores, first: int, last: int) -> IntArray:
        worst = challenger.highs(first, last) - leader.lows(first, last)
        return np.bincount(self._paired.bin_up(worst), minlength=len(self._paired.differences))
