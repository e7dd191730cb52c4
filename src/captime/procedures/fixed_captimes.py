"""Fixed captimes with betting bounds: the engine that the race with random captimes is measured against."""

from dataclasses import replace
from functools import cache

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.bounds.mixture import BinnedMixture, sine_nodes
from captime.budget import SelectionBudget
from captime.certificate import Certificate, Orders, no_orders
from captime.errors import ScenarioError
from captime.plans import Ladder
from captime.procedures.leader_and_challenger import LeaderAndChallenger
from captime.procedures.problem import Problem
from captime.tally import Tally

# Scores are rounded to multiples of 1/256 and bounds to multiples of 1/512, both to the safe side: half a percent of
# utility is the price for bounds whose cost does not grow with the number of runs.
_GRID: FloatArray = np.linspace(0.0, 1.0, 257)
_MEANS: FloatArray = np.arange(1, 512) / np.float64(512.0)
_BETS = 24
# Captimes at which an answer is worth more than this teach nothing: everything beyond them is nearly worth as much.
_TEACHES = 2 / 3


@cache
def _betting() -> BinnedMixture:
    """One table of logarithms for all: it depends on nothing but the constants above, and takes a moment to fill."""
    return BinnedMixture(_GRID, _MEANS, sine_nodes(_BETS))


class FixedCaptimes(LeaderAndChallenger):
    """The front runner and its challenger, each with its own captime, judged by mixture betting.

    The bound is monotone and holds at all sample sizes at once, so no captime and no n has a share of delta of its own:
    the low ends of the scores lie below the scores and the high ends above them, whatever the captimes. Lower bounds
    hold with probability 1 - delta / (2 · n_configs) each, upper bounds with 1 - delta / 2 each: only the upper bound
    of the one best configuration, or the lower bound of any, could make the recommendation wrong. A captime doubles, as
    often as it takes, while what it hides is at least the sampling width; the first one is the first rung of the ladder
    with u(κ) < 2/3.

    Args:
        problem: The question.
        pace: Bounds are read whenever a prefix has grown by one part in `pace`. They hold at all times at once, so
            coarser looks (a smaller number) cost a little overshoot and save computing.
    """

    bound = "mixture"
    mode = "selection"
    shares = (("lower bounds", 0.5), ("upper bound of the best", 0.5))

    def __init__(self, problem: Problem, *, pace: int = 50) -> None:
        if pace < 1:
            raise ScenarioError(f"pace is {pace}, but a prefix grows by one part in pace; use 1 or more, such as 50")
        rungs = Ladder.doubling(problem.utility, problem.captime_first, problem.captime_top)
        teaching = np.flatnonzero(rungs.worth_at_rung < _TEACHES)
        first = int(teaching[0]) if len(teaching) else len(rungs.rungs) - 1
        super().__init__(problem, Ladder(problem.utility, rungs.rungs[first:]), 0.0)
        self.budget = SelectionBudget(problem.delta, problem.n_configs)
        self._mixture = _betting()
        self._pace = pace
        self._rising: BoolArray = np.zeros(problem.n_configs, dtype=np.bool_)
        # Scores in bins, low and high ends, of the prefix that was judged last.
        self._bins: IntArray = np.zeros((2, problem.n_configs, len(_GRID)), dtype=np.int64)

    def ask(self, slots: int) -> Orders:
        """The two who are due: a longer captime for what they have run, or more runs; others if there are slots."""
        if self.finished() is not None:
            return no_orders()
        chosen = self._due_and_next(slots)
        n, rising = self._n.take(chosen), self._rising.take(chosen)
        # As many for the front runner as for its challenger: 2 % of a long prefix would leave the other no turn.
        more = n + max(1, int(n.min()) // self._pace)
        if self.problem.n_instances is not None:
            more = np.minimum(more, self.problem.n_instances)
        return Orders(chosen, np.where(rising, n, more), self._level.take(chosen) + rising)

    def tell(self, tally: Tally, changed: IntArray) -> None:
        """One decision, on whatever has been settled since the last one."""
        moved = (tally.n.take(changed) > self._n.take(changed)) | (
            tally.level.take(changed) > self._level.take(changed)
        )
        news = changed[moved & (tally.open.take(changed) == 0)]
        for config in news.tolist():
            self._judge(tally, config)
        if len(news):
            self._decide()

    def _judge(self, tally: Tally, config: int) -> None:
        """Bounds of one configuration from all its scores; and whether its captime has to rise."""
        n, level = int(tally.n[config]), int(tally.level[config])
        down, up = self._binned(tally, config, n, level)
        mixture = self._mixture
        lower, upper = self._tighten(
            config,
            float(mixture.lower(down[None], np.array([self.budget.log_inverse_lower]))[0]),
            float(mixture.upper(up[None], np.array([self.budget.log_inverse_upper]))[0]),
        )
        self._n[config], self._level[config] = n, level
        mean_low, mean_high = tally.utility_low[config] / n, tally.utility_high[config] / n
        sampling = (mean_low - lower) + (upper - mean_high)
        costs_more = mean_high - mean_low >= sampling
        self._rising[config] = costs_more and bool(self.plan.can_rise(np.array([level]))[0])
        if self.candidates[config]:
            self._hope[config] = upper
            self._mean[config] = mean_low

    def _statement(self, config: int, challenger: int | None, epsilon: float) -> Certificate:
        """Return the statement, with an upper end that holds for any leader: none is worth more than the best.

        delta pays for the upper bound of the best configuration, which need not be the leader. But the leader is worth
        at most what the best is, and that is at most the largest of all upper bounds.
        """
        said = super()._statement(config, challenger, epsilon)
        return replace(said, utility_high=max(said.utility_high, float(self.intervals.upper.max())))

    def _binned(self, tally: Tally, config: int, n: int, level: int) -> IntArray:
        """Low and high ends in bins; only what is new is read, unless a longer captime has changed them all."""
        bins, first = self._bins[:, config], int(self._n[config])
        if level > self._level[config]:
            bins[:], first = 0, 0
        low, high = tally.samples(config, first, n)
        for end, index in enumerate((self._mixture.bin_down(low), self._mixture.bin_up(high))):
            bins[end] += np.bincount(index, minlength=len(_GRID))
        return bins
