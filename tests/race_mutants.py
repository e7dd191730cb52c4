"""Parts of the race with an error planted in each; the product has no switch for any of them.

Each error is one that has been made or could be made. `coverage/test_race_planted_errors.py` puts every one of them
into a world where it shows.
"""

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.bounds.betting import BinnedMixture, PairedMixture, bins_above, bins_below, check_scores
from captime.certificate import Certificate
from captime.plans import RandomCaptimes
from captime.procedures.board import Board
from captime.procedures.claims import Duels
from captime.procedures.race import Race
from captime.tally import Tally
from captime.utilities import parse_utility
from race_harness import WatchedRace

Settled = tuple[BoolArray, FloatArray, FloatArray]

# ---------------------------------------------------------------------------- captimes and scores


class DecidedByTheCaptime(RandomCaptimes):
    """A run that meets the captime wins: `finished` is read off the captime instead of the draw."""

    def in_time(self, seconds: FloatArray, captime: FloatArray) -> BoolArray:
        """Strictly before it."""
        return seconds < captime

    def settled(self, seconds: FloatArray, worth: FloatArray, level: IntArray, position: IntArray) -> Settled:
        """See the plan."""
        finished = self.in_time(seconds, self.captime(level, position))
        score = np.maximum(worth, 1.0 / self.boost.at(position)) * finished
        return finished, score, score


class AtTheCaptimeIsDone(DecidedByTheCaptime):
    """`<=` where `<` belongs."""

    def in_time(self, seconds: FloatArray, captime: FloatArray) -> BoolArray:
        """At it or before."""
        return seconds <= captime


class LateIsAccepted(DecidedByTheCaptime):
    """A run that ends while it is being killed counts as done: the grace is a tenth of the captime."""

    def in_time(self, seconds: FloatArray, captime: FloatArray) -> BoolArray:
        """Within the grace."""
        return seconds < 1.1 * captime


class LateIsClipped(RandomCaptimes):
    """The same, with the runtime clipped to just below the captime."""

    def settled(self, seconds: FloatArray, worth: FloatArray, level: IntArray, position: IntArray) -> Settled:
        """See the plan."""
        captime = self.captime(level, position)
        clipped = np.where((seconds >= captime) & (seconds < 1.1 * captime), np.nextafter(captime, 0.0), seconds)
        return super().settled(clipped, self.utility(clipped), level, position)


class TargetKnowsItsCaptime(RandomCaptimes):
    """The program is told its captime, and answers just before it in three of ten cases in which it would be cut."""

    def settled(self, seconds: FloatArray, worth: FloatArray, level: IntArray, position: IntArray) -> Settled:
        """See the plan."""
        captime = self.captime(level, position)
        hurried = (seconds >= captime) & (np.random.default_rng(self.seed).random(seconds.shape) < 0.3)
        adapted = np.where(hurried, np.nextafter(captime, 0.0), seconds)
        return super().settled(adapted, self.utility(adapted), level, position)


class StoppedCountsNothing(RandomCaptimes):
    """A run stopped before its captime scores 0 at both ends."""

    def settled(self, seconds: FloatArray, worth: FloatArray, level: IntArray, position: IntArray) -> Settled:
        """See the plan."""
        finished, low, _ = super().settled(seconds, worth, level, position)
        return finished, low, low


class AliveCountsTheFloor(RandomCaptimes):
    """The high end of a run in flight is 1/B, although an answer now would be worth more."""

    def alive(self, seconds: FloatArray, level: IntArray, position: IntArray) -> FloatArray:
        """1/B while there is hope."""
        return np.minimum(super().alive(seconds, level, position), 1.0 / self.boost.at(position))


class AliveCountsItsWorth(RandomCaptimes):
    """The high end of a run in flight is u(elapsed), although a finished run never counts less than 1/B."""

    def alive(self, seconds: FloatArray, level: IntArray, position: IntArray) -> FloatArray:
        """u(elapsed) while there is hope."""
        return np.minimum(super().alive(seconds, level, position), self.utility(seconds))


class Inclusive:
    """1 at the deadline and before it: left-continuous, which no utility here may be."""

    def __init__(self, deadline: float) -> None:
        self.deadline = self.zero_at = deadline
        self.breakpoints = (deadline,)
        self._right_continuous = parse_utility(f"step({deadline})")

    def __call__(self, seconds: FloatArray, /) -> FloatArray:
        """Right at the jump, where a utility has to be 0 already, still 1."""
        return np.asarray(np.asarray(seconds) <= self.deadline, dtype=np.float64)

    def inverse(self, value: FloatArray, /) -> FloatArray:
        """The deadline."""
        return self._right_continuous.inverse(value)

    def __str__(self) -> str:
        return f"1 if t <= {self.deadline}"


# ---------------------------------------------------------------------------- bins


class RoundsUp(BinnedMixture):
    """Low ends are rounded up to the grid."""

    def bin_down(self, scores: FloatArray) -> IntArray:
        """The bin above."""
        return bins_above(scores, self.grid)


class RoundsDown(BinnedMixture):
    """High ends are rounded down to the grid."""

    def bin_up(self, scores: FloatArray) -> IntArray:
        """The bin below."""
        return bins_below(scores, self.grid)


class DuelsRoundDown(PairedMixture):
    """Differences are rounded down to the grid."""

    def bin_up(self, differences: FloatArray) -> IntArray:
        """The bin below."""
        return bins_below(differences, self.differences)


def board(least: float, kind: type[BinnedMixture] = BinnedMixture) -> Board:
    """A board of two configurations that rounds in that way."""
    made = Board(2, least)
    made._bets = kind(made._bets.grid, made._bets.candidates, made._bets.nodes)
    return made


def duels(margins: FloatArray, kind: type[PairedMixture] = PairedMixture) -> Duels:
    """Duels of two configurations that round in that way."""
    made = Duels(2, margins)
    made._mixture = kind(made._mixture.differences, margins, made._mixture.fractions)
    return made


# ---------------------------------------------------------------------------- a bound that is not monotone


def restless_evidence(samples: FloatArray, mean: float) -> FloatArray:
    """Looks at one score, bets half of its wealth on the next if that was 0: the log of the wealth after each position.

    A fair game on the scores themselves, at all times at once, and not monotone: a raised score can stop a good bet.
    """
    rows = np.stack([check_scores(row) for row in samples])
    stake = np.zeros(rows.shape)
    stake[:, 1::2] = 0.5 * (rows[:, 0:-1:2] == 0.0)
    return np.asarray(np.log1p(stake * (rows / mean - 1.0)).cumsum(axis=1))


def captimes_for_the_restless(samples: FloatArray) -> FloatArray:
    """Low ends if a run is cut whenever the next one is worth betting on: captimes that follow what is seen."""
    low = samples.copy()
    low[:, 0:-1:2] *= samples[:, 1::2] == 0.0
    return low


# ---------------------------------------------------------------------------- races


class RelayRace(WatchedRace):
    """Leads are handed over on request: whichever configuration leads, certificates have to be right.

    Attributes:
        relay: Who leads, one after the other; the next one as soon as the best is cleared for the goal.
    """

    relay: tuple[int, ...] = (1, 0)

    def _begin(self, ranking: IntArray) -> None:
        super()._begin(ranking)
        self.leader = self.relay[0]

    def _consider_leaders(self, fresh: list[int]) -> None:
        best = int(self.truth.argmax())
        if self.leader != self.relay[-1] and self._epsilons()[best] <= self.problem.epsilon:
            self._crown(self.relay[-1])

    def finished(self) -> str | None:
        """Only when the last of the relay is content, or nothing is left."""
        if self.leader != self.relay[-1] and not self._used_up():
            return None
        return super().finished()


class ClearingIsInherited(RelayRace):
    """What the old leader has cleared stays cleared under the new one."""

    def _crown(self, config: int) -> None:
        cleared = self._margin.copy()
        super()._crown(config)
        self._margin = np.minimum(self._margin, cleared)


class BestFirst(RelayRace):
    """The best leads first, then another one."""

    relay = (2, 0)

    def _consider_leaders(self, fresh: list[int]) -> None:
        if self._best is not None and self._best.epsilon <= self.problem.epsilon and self.leader == self.relay[0]:
            self._crown(self.relay[-1])


class SmallestEpsilonWithWhoeverLeads(BestFirst):
    """The smallest epsilon so far is shown, with the configuration that leads now."""

    def certificate(self) -> Certificate:
        """Two halves of two statements."""
        said = super().certificate()
        return self._statement(said.epsilon)


class FinishedRunsOnly(WatchedRace):
    """Positions on which a configuration scored nothing are stepped over."""

    def _take_in(self, tally: Tally, config: int) -> bool:
        honest = tally.samples

        def without_zeros(which: int, first: int, last: int) -> tuple[FloatArray, FloatArray]:
            low, high = honest(which, first, last)
            return low[high > 0.0], high[high > 0.0]

        tally.samples = without_zeros
        try:
            return super()._take_in(tally, config)
        finally:
            tally.samples = honest


class StragglersAreLeftOut(Race):
    """What of the warm start is still under way when the race begins is not counted, then or later."""

    def _begin(self, ranking: IntArray) -> None:
        super()._begin(ranking)
        self._board._awaited.clear()
        self._pilot_end[:] = 0
        self._known[:] = self._start or 0
