"""Optimism with one captime: always learn more about the configuration that could be the best of all."""

import numpy as np

from captime.arrays import BoolArray, IntArray
from captime.bounds import Hoeffding
from captime.budget import SERIES_SQUARED, CellBudget
from captime.certificate import Certificate, Orders, no_orders
from captime.errors import ScenarioError
from captime.intervals import Intervals
from captime.plans import Ladder
from captime.procedures.problem import Problem
from captime.tally import Tally, standing


class Optimist:
    """One run at a time for the configuration with the highest upper bound; all runs share one captime.

    Args:
        problem: The question.
        captime: In CPU seconds; left out, the longest one that is of use.
    """

    bound = "hoeffding"
    pays = True

    def __init__(self, problem: Problem, *, captime: float | None = None) -> None:
        longest = problem.captime_limit
        captime = problem.captime_top if captime is None else captime
        if not 0 < captime <= longest:
            raise ScenarioError(
                f"the optimist's captime is {captime:g} s, expected more than 0 and at most {longest:g} s, beyond "
                "which nothing is known; choose another or leave it out"
            )
        self.problem = problem
        self.plan = Ladder(problem.utility, np.array([captime]))
        # The intervals need two inequalities per cell (configuration, n, level); the budget pays for every cell that
        # could ever be looked at, so it does not matter that the data choose which ones are.
        budget = CellBudget(problem.delta, problem.n_configs, events=2, constant=2 * SERIES_SQUARED)
        self.intervals = Intervals(problem.n_configs, Hoeffding(), budget, self.plan)
        self.candidates: BoolArray = np.ones(problem.n_configs, dtype=np.bool_)
        self.rounds = 0
        self._n: IntArray = np.zeros(problem.n_configs, dtype=np.int64)

    def ask(self, slots: int) -> Orders:  # noqa: ARG002 (the most promising one, however many workers there are)
        """One more position for the favourite."""
        if self.finished() is not None:
            return no_orders()
        favourite = np.array([self._favourite()])
        return Orders(favourite, self._n[favourite] + 1, np.zeros(1, dtype=np.int64))

    def tell(self, tally: Tally, changed: IntArray) -> None:
        """Tighten the intervals of the configurations that changed, once their runs are settled."""
        for config in changed[(tally.open[changed] == 0) & (tally.n[changed] > self._n[changed])]:
            which = np.array([config])
            now, start = standing(tally, which), (self.intervals.lower[which], self.intervals.upper[which])
            lower, upper = self.intervals.tightened(now.n, now.level, now.low, now.high, start)
            self.intervals.keep(which, lower[:, 0], upper[:, 0])
            self._n[config] = tally.n[config]
            self.rounds += 1
        self.candidates = self.intervals.upper >= self.intervals.lower.max()

    def certificate(self) -> Certificate:
        """The highest lower bound leads; epsilon is how far the best of the others may be above it."""
        leader = int(self.intervals.lower.argmax())
        return self.intervals.certificate(leader, self.intervals.gap(leader, np.arange(self.problem.n_configs)))

    def finished(self) -> str | None:
        """Content once epsilon is certified; at its end when the favourite has seen every instance there is."""
        if self.problem.n_configs == 1:
            return "single"
        if self.certificate().epsilon <= self.problem.epsilon:
            return "epsilon"
        available = self.problem.n_instances
        return "instances" if available is not None and self._n[self._favourite()] >= available else None

    def _favourite(self) -> int:
        """The highest upper bound; among equals the one with the fewest samples."""
        upper = self.intervals.upper
        return int(np.where(upper == upper.max(), self._n, np.iinfo(np.int64).max).argmin())
