"""COUP+, its finite part: [COUP+]. KL bounds, and two configurations at a time: the front runner and its challenger."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.bounds.from_sums import kl_lower
from captime.budget import FailureBudget, ThreeBoundsBudget
from captime.certificate import Certificate, Orders, no_orders
from captime.plans import Ladder
from captime.procedures.leader_and_challenger import LeaderAndChallenger
from captime.procedures.problem import Problem
from captime.procedures.turns import Lanes, SingleSteps, Turns, no_turns
from captime.tally import Tally

_Ends = tuple[float, float, bool]
"""Lower and upper end of a cell, and whether the captime has to rise after it."""

# KL bounds are the dear part, so lanes of challengers are judged only as far as they are usually walked; at least:
_SHORTEST = 4


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that a walk changes, to walk again if the CPU budget ends on the way."""

    arrays: tuple[FloatArray | IntArray | BoolArray, ...]
    rounds: int
    left: int
    certificate: Certificate


class CoupPlus(LeaderAndChallenger):
    """The largest mean and the largest upper bound among the others get a run each; bounds by KL divergence.

    Every configuration of the problem is in the pool from the start, and all of delta serves the bounds: three
    inequalities per (configuration, n, rung), each of probability delta / (8.117… · n_configs · n² · rung²). The sum
    over all cells is delta exactly; see `ThreeBoundsBudget`. Logarithms are natural throughout, means are recomputed
    from all runs after a captime has risen, and bounds are approached from outside: the code of the authors that could
    be read errs in all three, on the unsafe side. A captime doubles when the sampling width of the mean is at most
    what the cap may hide.
    """

    bound = "kl"

    def __init__(self, problem: Problem) -> None:
        plan = Ladder.doubling(problem.utility, problem.captime_first, problem.captime_top)
        super().__init__(problem, plan, float(plan.worth_at_rung[0]))
        self.budget: FailureBudget = ThreeBoundsBudget(problem.delta, problem.n_configs)
        self._rising: BoolArray = np.zeros(problem.n_configs, dtype=np.bool_)
        self._reach = _SHORTEST

    def ask(self, slots: int) -> Orders:
        """The two who are due, one run each; then, if there are slots, others who may be due soon."""
        if self.finished() is not None:
            return no_orders()
        chosen = self._due_and_next(slots)
        return Orders(chosen, self._n.take(chosen) + 1, self._level.take(chosen) + self._rising.take(chosen))

    def tell(self, tally: Tally, changed: IntArray) -> None:
        """One decision, on whatever has been settled since the last one."""
        news = changed[(tally.open.take(changed) == 0) & (tally.n.take(changed) > self._n.take(changed))]
        if len(news):
            now = SingleSteps(tally, news)
            low = np.where(now.given_up > 0, now.low[:, 0], np.nan)
            cells = self._cells(now.n[:, 0], now.level, now.high[:, 0], now.completed[:, 0], low)
            for row, ends in enumerate(zip(*(values.tolist() for values in cells), strict=True)):
                self._move(now, row, 0, ends)
            self._decide()

    def tell_turns(self, lanes: Lanes, /) -> Turns:
        """Walk lanes until a configuration is due whose lane has ended, one is eliminated or the goal is reached."""
        ends = self._ends_by_lane(lanes)
        held = self._snapshot()
        row, told = self._walk(lanes, ends, None)
        if (payable := lanes.payable(row)) < len(row):
            self._restore(held)
            row, told = self._walk(lanes, ends, payable)
        if len(row) == 0:
            return no_turns()
        config, epsilon, left = zip(*told, strict=True)
        return Turns(row, np.array(config), np.array(epsilon), np.array(left))

    def _ends_by_lane(self, lanes: Lanes) -> list[list[_Ends]]:
        """Ends along each lane: all of the front runner's, who moves at every decision, and some of the others'."""
        shown = np.zeros(lanes.n.shape, dtype=np.bool_)
        shown[:, : self._reach] = True
        shown[0] = True
        level = np.broadcast_to(lanes.level[:, None], shown.shape)
        cells = self._cells(lanes.n[shown], level[shown], lanes.high[shown], lanes.completed[shown])
        columns = [values.tolist() for values in cells]
        cuts = np.concatenate(([0], np.cumsum(shown.sum(axis=1)))).tolist()
        return [list(zip(*(column[a:b] for column in columns), strict=True)) for a, b in pairwise(cuts)]

    def _walk(
        self, lanes: Lanes, ends: list[list[_Ends]], most: int | None
    ) -> tuple[IntArray, list[tuple[int, float, int]]]:
        """Decide at most `most` times; return which lanes moved, and configuration, epsilon and candidates left."""
        row_of = dict(zip(lanes.config.tolist(), range(len(lanes.config)), strict=True))
        length = [min(shown, len(lane)) for shown, lane in zip(lanes.length.tolist(), ends, strict=True)]
        step = [0] * len(length)
        moved: list[list[int]] = []
        told: list[tuple[int, float, int]] = []
        while most is None or len(moved) < most:
            due = [row_of.get(config, -1) for config in self._due()]
            if not due or any(row < 0 or step[row] >= length[row] for row in due):
                break
            for row in due:
                at = step[row]
                self._move(lanes, row, at, ends[row][at])
                step[row] = length[row] if ends[row][at][2] else at + 1
            stop = self._decide()
            moved.append(due if len(due) == 2 else [*due, -1])
            told.append((self._certificate.config, self._certificate.epsilon, self._left))
            if stop:
                break
        farthest = max(step[1:], default=1)
        if farthest >= self._reach:
            self._reach *= 2
        elif 4 * farthest < self._reach:
            self._reach = max(_SHORTEST, self._reach // 2)
        return np.array(moved, dtype=np.int64).reshape(-1, 2), told

    def _cells(
        self, n: IntArray, level: IntArray, high: FloatArray, completed: IntArray, low: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Lower and upper end of each cell by itself, and whether the captime has to rise after it.

        Args:
            n: Prefix lengths.
            level: Captime levels.
            high: Sums of the high ends.
            completed: Completed runs.
            low: Sums of the low ends where runs were given up, not a number elsewhere. u(min(t, κ)) of such a run lies
                between u(κ) and its high end, so the lower end of the cell may count u(κ) for it and no more.
        """
        floor = self.plan.floor(level)
        span = 1.0 - floor
        # The high ends lie in [u(κ), 1]: stretched to [0, 1], bounded on both sides, shrunk back.
        total = _stretched(high, n, floor, span)
        proven = total
        if low is not None and not np.isnan(low).all():
            least = _stretched(low + floor * (n - completed), n, floor, span)
            proven = np.where(np.isnan(low), total, np.minimum(least, total))
        sums: FloatArray = np.stack((proven, n - total, completed)).astype(np.float64, copy=False)
        bounded = kl_lower(n, sums, self.budget.log_inverse(n, level))
        mean_low, mean_high = floor + span * bounded[0], 1.0 - span * bounded[1]
        hidden = floor * (1.0 - bounded[2])
        rising = (mean_high - mean_low <= hidden) & self.plan.can_rise(level)
        return mean_low - hidden, mean_high, rising

    def _move(self, lanes: Lanes, row: int, at: int, ends: _Ends) -> None:
        """This configuration now stands at that position of its lane."""
        config = int(lanes.config[row])
        _, upper = self._tighten(config, ends[0], ends[1])
        self._rising[config] = ends[2]
        self._n[config] = lanes.n[row, at]
        self._level[config] = lanes.level[row]
        if self.candidates[config]:
            self._hope[config] = upper
            self._mean[config] = lanes.high[row, at] / lanes.n[row, at]

    def _arrays(self) -> tuple[FloatArray | IntArray | BoolArray, ...]:
        mine = (self.candidates, self._n, self._level, self._mean, self._hope, self._rising)
        return (*mine, self.intervals.lower, self.intervals.upper, self.intervals.crossed)

    def _snapshot(self) -> Snapshot:
        return Snapshot(tuple(a.copy() for a in self._arrays()), self.rounds, self._left, self._certificate)

    def _restore(self, held: Snapshot) -> None:
        for array, before in zip(self._arrays(), held.arrays, strict=True):
            array[:] = before
        self.rounds, self._left, self._certificate = held.rounds, held.left, held.certificate


def _stretched(total: FloatArray, n: IntArray, floor: FloatArray, span: FloatArray) -> FloatArray:
    """Sums of numbers in [floor, 1], as sums of the same numbers stretched to [0, 1]."""
    stretched: FloatArray = np.clip(np.divide(total - n * floor, span, out=np.zeros(len(n)), where=span > 0), 0.0, n)
    return stretched
