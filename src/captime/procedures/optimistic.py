"""Optimism: always work on the configuration whose upper bound is largest. The common body of OUP and COUP.

Upper bounds that only tighten make a lovely thing of this rule: whose turn it is next depends on one number per
configuration, the number never rises, and it changes only by that configuration's own runs. So the order of turns is a
merge of falling sequences, and many turns are settled by one sort: see `tell_turns`. The decisions are those of taking
the turns one at a time.
"""

from dataclasses import dataclass

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.bounds.from_sums import hoeffding_radius
from captime.certificate import Certificate, Orders, no_orders
from captime.intervals import Intervals
from captime.plans import Plan
from captime.procedures.lockstep import _best_so_far as best_so_far
from captime.procedures.problem import OptimistRules, Problem, Retargetable
from captime.procedures.turns import Lanes, SingleSteps, Turns, no_turns
from captime.tally import Tally


def two_largest(values: FloatArray) -> tuple[int, int]:
    """Where the two largest stand; there are at least two.

    >>> two_largest(np.array([0.5, 0.9, 0.9]))
    (1, 2)
    """
    first = int(values.argmax())
    rest = values.copy()
    rest[first] = -np.inf
    return first, int(rest.argmax())


def largest(values: FloatArray, count: int) -> IntArray:
    """Where the largest stand, in falling order; none for a count of 0, all of them for more than there are.

    >>> largest(np.array([0.5, 1.0, 0.7, 1.0]), 3).tolist()
    [1, 3, 2]
    """
    if count <= 0:
        return np.empty(0, dtype=np.int64)
    if count == 1:
        return np.array([values.argmax()])
    if 2 * count >= len(values):
        return np.argsort(-values, kind="stable")[:count]
    last = np.partition(values, len(values) - count)[len(values) - count]
    above = np.flatnonzero(values > last)
    chosen = np.concatenate((above, np.flatnonzero(values == last)[: count - len(above)]))
    return chosen[np.argsort(-values.take(chosen), kind="stable")]


# The order of turns of an optimist, as a merge of falling sequences.


@dataclass(frozen=True, slots=True)
class Merged:
    """Turns in their order.

    Attributes:
        row: Whose lane moves.
        step: To which of its positions.
        value: The upper end that made it its turn, the largest of all at that moment.
    """

    row: IntArray
    step: IntArray
    value: FloatArray

    def first(self, count: int) -> "Merged":
        """Only the first turns."""
        return Merged(self.row[:count], self.step[:count], self.value[:count])

    def holds(self, lanes: int) -> tuple[IntArray, IntArray]:
        """The first turn of each lane, and for each turn the next one of its lane; the number of turns if none."""
        count = len(self.row)
        first = np.full(lanes, count)
        first[self.row[::-1]] = np.arange(count)[::-1]
        order = np.argsort(self.row, kind="stable")
        following = np.append(order[1:], count)
        same = np.append(self.row[order[1:]] == self.row[order[:-1]], False)
        after = np.empty(count, dtype=np.int64)
        after[order] = np.where(same, following, count)
        return first, after


def merge(standing: FloatArray, config: IntArray, upper: FloatArray, length: IntArray) -> Merged:
    """Return the turns that are certain: those before the first turn of a configuration without a lane left to walk.

    The largest upper end goes first, the lower index first among equals. Upper ends never rise along a lane, so sorting
    by the upper end *before* each turn puts the turns of all lanes in order.

    Args:
        standing: Upper ends of all configurations before the first turn.
        config: Whose lanes, shape (A,).
        upper: Upper ends after each position, shape (A, K).
        length: How many positions of each lane can be walked, shape (A,).
    """
    lanes = np.arange(len(config))
    along = np.concatenate((standing[config, None], upper), axis=1)
    end = along[lanes, length]
    rest = standing.copy()
    rest[config] = end
    # The first turn that cannot be shown: its configuration has no lane, or is at the end of it.
    wall = int(rest.argmax())
    before = along[:, :-1]
    due = (before > rest[wall]) | ((before == rest[wall]) & (config <= wall)[:, None])
    due &= np.arange(before.shape[1]) < length[:, None]
    row, step = np.nonzero(due)
    value = before[due]
    order = np.lexsort((config.take(row), -value))
    return Merged(row[order], step[order], value[order])


def next_rival(who: IntArray, value: FloatArray, leader: IntArray) -> FloatArray:
    """Return the largest upper end of all configurations but the leader, after each turn.

    Args:
        who: After each turn, the configuration with the largest upper end, then one more: the runner-up at the end.
        value: Those upper ends.
        leader: The leader after each turn.
    """
    changes = np.flatnonzero(who[1:] != who[:-1]) + 1
    turns = np.arange(len(leader))
    # The configuration due after the leader's own turns has had the largest upper end of the others all the while.
    beyond = changes[np.searchsorted(changes, turns, side="right")]
    return np.where(who[:-1] == leader, value[beyond], value[:-1])


class Optimist(Retargetable):
    """One decision: one run (or one rise with its repeated runs) of the configuration with the largest upper bound.

    Attributes:
        rounds: Decisions so far.
        candidates: Whose upper bound is not below the best lower bound.
        intervals: Bounds with their budget and plan.
    """

    bound = "hoeffding"
    pays = True

    def __init__(self, problem: Problem, intervals: Intervals, rules: OptimistRules) -> None:
        n_configs = problem.n_configs
        self.problem = problem
        self.intervals = intervals
        self.rounds = 0
        self.candidates: BoolArray = np.ones(n_configs, dtype=np.bool_)
        self._rules = rules
        self._n: IntArray = np.zeros(n_configs, dtype=np.int64)
        self._level: IntArray = np.zeros(n_configs, dtype=np.int64)
        self._low: FloatArray = np.zeros(n_configs)
        self._high: FloatArray = np.zeros(n_configs)
        self._mean: FloatArray = np.zeros(n_configs)
        self._leader = 0
        self._certificate = intervals.certificate(0, 1.0 if n_configs > 1 else 0.0)
        self._rising: BoolArray = self._wants_rise(self._n, self._level, self._capping())

    @property
    def plan(self) -> Plan:
        """Captimes by level."""
        return self.intervals.plan

    @property
    def _pool(self) -> int:
        """How many configurations, from the first on, take part."""
        return self.intervals.n_configs

    def ask(self, slots: int) -> Orders:
        """The configurations with the largest upper bounds, one run each; nothing once it is content."""
        if self.finished() is not None:
            return no_orders()
        chosen = largest(self.intervals.upper, slots)
        if self.problem.n_instances is not None:
            # With several slots, those further down the list may have come to the end of the stream before the first.
            chosen = chosen[self._n.take(chosen) < self.problem.n_instances - int(self._rules.spare_last)]
        return Orders(chosen, self._n.take(chosen) + 1, self._next_level(chosen))

    def _next_level(self, config: IntArray) -> IntArray:
        return self._level.take(config) + self._rising.take(config)

    def tell(self, tally: Tally, changed: IntArray) -> None:
        """One decision, on whatever has been settled since the last one."""
        news = changed[(tally.open.take(changed) == 0) & (tally.n.take(changed) > self._n.take(changed))]
        if len(news) == 0:
            return
        now = SingleSteps(tally, news)
        lower, upper = self._ends(now)
        self._keep(now, np.ones(len(news), dtype=np.int64), lower, upper)
        self.rounds += 1
        bar = float(self.intervals.lower.max())
        self._leader = self._best_of(bar)
        epsilon = np.array([self._gap(bar)])
        self._certify(np.array([self._leader]), epsilon)
        self._eliminate(bar)
        self._after_decision(float(self.intervals.upper.max()) - bar, float(epsilon[0]))

    def tell_turns(self, lanes: Lanes, /) -> Turns:
        """Walk lanes until one of them ends, a configuration without a lane is due, or the run of turns is interrupted.

        It is interrupted if a captime has to rise, the goal is reached, a configuration is eliminated, or the CPU
        budget is spent.
        """
        lower, upper = self._ends(lanes)
        inside = np.arange(lower.shape[1]) < lanes.length[:, None]
        if bool(((lower > upper) & inside).any()):
            return no_turns()  # bounds that contradict each other are for the plain way
        rising = self._wants_rise(lanes.n, lanes.level[:, None], (lanes.high - lanes.low) / lanes.n)
        rise_after = np.where(rising.any(axis=1), rising.argmax(axis=1) + 1, lower.shape[1])
        merged = merge(self.intervals.upper, lanes.config, upper, np.minimum(self._walkable(lanes), rise_after))
        if len(merged.row) == 0:
            return no_turns()
        merged = merged.first(lanes.payable(merged.row[:, None]))
        here = (merged.row, merged.step)
        leader, bar = self._leaders(lanes.config.take(merged.row), lower[here], (lanes.high / lanes.n)[here])
        gap, width = self._gaps(lanes, upper, merged, leader, bar)
        turns = min(self._until(width, gap), self._until_eliminated(lanes.config, upper, merged, bar))
        merged = merged.first(turns)
        before = int(np.count_nonzero(self.candidates))
        self._keep(lanes, np.bincount(merged.row, minlength=len(lanes.config)), lower, upper)
        self.rounds += turns
        self._leader = int(leader[turns - 1])
        config, epsilon = self._certify(leader[:turns], gap[:turns])
        self._eliminate(float(bar[turns - 1]))
        self._after_decision(float(width[turns - 1]), float(gap[turns - 1]))
        left = np.full(turns, before)
        left[-1] = np.count_nonzero(self.candidates)
        return Turns(merged.row[:, None], config, epsilon, left)

    def _walkable(self, lanes: Lanes) -> IntArray:
        """How far each lane may be walked: not onto an instance that is to be left unused."""
        if self.problem.n_instances is None or not self._rules.spare_last:
            return lanes.length
        return np.minimum(lanes.length, np.maximum(self.problem.n_instances - lanes.n[:, 0], 0))

    def _ends(self, lanes: Lanes) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends after each position of the lanes."""
        start = (self.intervals.lower.take(lanes.config), self.intervals.upper.take(lanes.config))
        return self.intervals.tightened(lanes.n, lanes.level, lanes.low, lanes.high, start)

    def _capping(self) -> FloatArray:
        """u(κ)(1 - F̂), the mean utility hidden behind the captime; before the first run F̂ counts as 0."""
        hidden = (self._high - self._low) / np.maximum(self._n, 1)
        return np.where(self._n > 0, hidden, self.plan.floor(self._level))

    def _wants_rise(self, n: IntArray, level: IntArray, capping: FloatArray) -> BoolArray:
        """Return whether the cap widens an interval more than chance does, so that the next run gets a longer one."""
        samples = np.maximum(n + self._rules.test_ahead, 1)
        radius = hoeffding_radius(samples, self.intervals.budget.log_inverse(samples, level))
        np.minimum(radius, self._rules.widest_radius, out=radius)
        if self._rules.rule == "old":
            wanted = 2.0 * radius <= capping
        else:
            floor = self.plan.floor(level)
            # UCB - LCB = 2(1 - u)α, lost to chance, + u(1 - F̂ + α), lost to the cap.
            wanted = 2.0 * (1.0 - floor) * radius <= capping + floor * radius
        return wanted & self.plan.can_rise(level)

    def _keep(self, lanes: Lanes, used: IntArray, lower: FloatArray, upper: FloatArray) -> None:
        """Move every configuration of the lanes to where its turns have brought it."""
        # Also those without a turn: `_leaders` has tried out means that are now void.
        idle = lanes.config[used == 0]
        self._mean[idle] = self._high.take(idle) / np.maximum(self._n.take(idle), 1)
        walked = np.flatnonzero(used)
        at, config = (walked, used[walked] - 1), lanes.config[walked]
        self.intervals.keep(config, lower[at], upper[at])
        self._n[config] = lanes.n[at]
        self._level[config] = lanes.level[walked]
        self._low[config] = lanes.low[at]
        self._high[config] = lanes.high[at]
        self._mean[config] = self._high.take(config) / self._n.take(config)
        hidden = (self._high.take(config) - self._low.take(config)) / self._n.take(config)
        self._rising[config] = self._wants_rise(self._n.take(config), self._level.take(config), hidden)

    def _leaders(self, config: IntArray, lower: FloatArray, mean: FloatArray) -> tuple[IntArray, FloatArray]:
        """Leader and best lower end after each turn."""
        held = self.intervals.lower.copy()
        bars = np.maximum.accumulate(np.concatenate(([held.max()], lower)))
        leader = np.full(len(config), -1)
        current, alone = self._leader, int(np.count_nonzero(held == bars[0])) == 1
        events = np.flatnonzero(lower >= bars[1:])
        news = (events, config[events], lower[events], mean[events], bars[events])
        for turn, mine, end, worth, bar in zip(*(column.tolist() for column in news), strict=True):
            held[mine], self._mean[mine] = end, worth
            if end > bar:
                current, alone = mine, True
            elif mine != current or not alone:
                alone = False
                current = self._among_equals(held, bar, current, mine)
            leader[turn] = current
        told = np.maximum.accumulate(np.where(leader >= 0, np.arange(len(leader)), -1))
        return np.where(told >= 0, leader[told], self._leader), bars[1:]

    def _among_equals(self, held: FloatArray, bar: float, current: int, mine: int) -> int:
        """Who leads now that `mine` has come to, or stayed at, the best lower end together with others."""
        if not self._rules.ties_by_mean:
            return min(current, mine)
        ahead, behind = self._mean[mine], self._mean[current]
        if mine != current and (ahead < behind or (ahead == behind and mine > current)):
            return current
        if mine != current:
            return mine
        tied = np.flatnonzero(held == bar)
        return int(tied[self._mean.take(tied).argmax()])

    def _gaps(
        self, lanes: Lanes, upper: FloatArray, merged: Merged, leader: IntArray, bar: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Epsilon after each turn, and the distance between the largest upper and the largest lower end."""
        used = np.bincount(merged.row, minlength=len(lanes.config))
        walked = np.flatnonzero(used)
        after = self.intervals.upper.copy()
        after[lanes.config[walked]] = upper[walked, used[walked] - 1]
        first, second = two_largest(after)
        who = np.concatenate((lanes.config.take(merged.row[1:]), (first, second)))
        value = np.concatenate((merged.value[1:], after[[first, second]]))
        width = value[:-1] - bar
        if self._rules.leader_counts:
            return np.maximum(width, 0.0), width
        return np.maximum(next_rival(who, value, leader) - bar, 0.0), width

    def _until(self, width: FloatArray, gap: FloatArray) -> int:
        """How many turns until one ends things."""
        ends = self._ends_things(width, gap)
        return int(ends.argmax()) + 1 if ends.any() else len(ends)

    def _ends_things(self, width: FloatArray, gap: FloatArray) -> BoolArray:  # noqa: ARG002 (for COUP's phases)
        """Turns after which this procedure stops or changes its ways."""
        return gap <= self.problem.epsilon

    def _until_eliminated(self, config: IntArray, upper: FloatArray, merged: Merged, bar: FloatArray) -> int:
        """Return how many turns pass until a configuration is eliminated for the first time."""
        count = len(merged.row)
        used = np.bincount(merged.row, minlength=len(config))
        walked = np.flatnonzero(used)
        after = np.where(self.candidates[: self._pool], self.intervals.upper, 1.0)
        after[config[walked]] = upper[walked, used[walked] - 1]
        if float(after.min()) >= bar[-1]:
            return count
        # Upper ends in force, from which turn to which: those without a turn, then each turn's until the lane's next.
        start = np.where(self.candidates[: self._pool], self.intervals.upper, 1.0)
        first_turn, next_turn = merged.holds(len(config))
        until = np.full(self._pool, count)
        until[config] = first_turn
        ends = np.concatenate((start, upper[merged.row, merged.step]))
        begins = np.concatenate((np.zeros(self._pool, dtype=np.int64), np.arange(count)))
        until = np.concatenate((until, next_turn))
        passed = np.maximum(begins, np.searchsorted(bar, ends, side="right"))
        return int(np.where(passed < until, passed, count - 1).min()) + 1

    def _best_of(self, bar: float) -> int:
        """Who leads: of those with the best lower end, the largest mean or the lowest index."""
        tied = np.flatnonzero(self.intervals.lower == bar)
        return int(tied[self._mean.take(tied).argmax()] if self._rules.ties_by_mean else tied[0])

    def _gap(self, bar: float) -> float:
        """How far the best of the others (or of all, if the leader counts) may be above the leader."""
        first, second = two_largest(self.intervals.upper)
        rival = first if self._rules.leader_counts or first != self._leader else second
        return max(0.0, float(self.intervals.upper[rival]) - bar)

    def _certify(self, leader: IntArray, epsilon: FloatArray) -> tuple[IntArray, FloatArray]:
        """Recommended configuration and certified epsilon after each decision; the last one is held."""
        if self._rules.keep_best:
            leader, epsilon = best_so_far(self._certificate, leader, epsilon)
        self._certificate = self.intervals.certificate(int(leader[-1]), float(epsilon[-1]))
        return leader, epsilon

    def _eliminate(self, bar: float) -> None:
        gone = self.intervals.upper < bar
        # With running bounds the leader's own interval can cross; it stays, and `Intervals.crossed` reports it.
        gone[self._leader] = False
        self.candidates[: self._pool] &= ~gone

    def _after_decision(self, width: float, gap: float) -> None:
        """What COUP needs; OUP has no phases."""

    def certificate(self) -> Certificate:
        """The best statement that holds now."""
        return self._certificate

    def finished(self) -> str | None:
        """See the protocol."""
        alone = self._rules.stop_alone and int(np.count_nonzero(self.candidates)) == 1
        if self.problem.n_configs == 1 or alone:
            return "single"
        if self._certificate.epsilon <= self.problem.epsilon:
            return "epsilon"
        return "instances" if self._nothing_left() else None

    def _nothing_left(self) -> bool:
        """Return whether the configuration whose turn it is has no further instance, or needs an unknown captime."""
        due = np.array([self.intervals.upper.argmax()])
        available, taken = self.problem.n_instances, int(self._n[due[0]])
        if available is not None and taken >= available - int(self._rules.spare_last):
            return True
        captime = float(self.plan.captime(self._next_level(due), np.array([taken]))[0])
        return captime > self.problem.captime_limit
