"""Successive elimination in lockstep: all candidates see the next instance, then the clearly worse ones go.

This is the common body of UP and of the runtime oracle; they differ in their captimes and in their budget.

Rounds are judged in batches: a replay shows the sums after each of the next rounds, and all of them are settled in one
stroke of array arithmetic. The decisions are those of judging one round at a time.
"""

from dataclasses import dataclass, replace

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.bounds.from_sums import hoeffding_radius
from captime.certificate import Certificate, Orders, no_orders
from captime.intervals import Intervals
from captime.plans import Plan
from captime.procedures.problem import Problem, Retargetable, Rule
from captime.procedures.protocol import Progress
from captime.tally import Outlook, Tally, standing


@dataclass(frozen=True, slots=True)
class LockstepRules:
    """Where the published code and the recommended form differ.

    Attributes:
        keep_best: Report the smallest epsilon so far, with the configuration that reached it. Sound, because the
            statement holds at all rounds at once.
        leader_counts: Compare the leader with itself too when computing epsilon. The published code does; it costs
            the width of the leader's own interval and gains nothing.
        ties_by_mean: Among equal lower bounds prefer the larger mean utility; otherwise the lower index alone decides.
        spare_last: Leave the last instance of the stream unused, as the published code does.
        rule: When captimes double; see `Manners.rule`.
    """

    keep_best: bool = True
    leader_counts: bool = False
    ties_by_mean: bool = True
    spare_last: bool = False
    rule: Rule = "old"


@dataclass(slots=True)
class _Rounds:
    """Bounds of the candidates (rows) over the rounds shown (columns), as far as they are known to be final.

    Attributes:
        lower: Lower ends.
        upper: Upper ends.
        rises: The round after which each candidate's captime is to rise next; the number of rounds if not among them.
        level: Captime level of each candidate after these rounds.
    """

    lower: FloatArray
    upper: FloatArray
    rises: IntArray
    level: IntArray


class Lockstep(Retargetable):
    """One round: every candidate on the next position; then tighten, eliminate, certify, raise captimes.

    Attributes:
        rounds: m of the paper: positions seen so far by every candidate.
        candidates: Not yet eliminated.
        intervals: Bounds with their budget and plan.
        pays: False if runtimes are told and not run for.
    """

    bound = "hoeffding"

    def __init__(
        self, problem: Problem, intervals: Intervals, rules: LockstepRules | None = None, *, pays: bool = True
    ) -> None:
        self.problem = problem
        self.intervals = intervals
        self.pays = pays
        self.rounds = 0
        self.candidates: BoolArray = np.ones(problem.n_configs, dtype=np.bool_)
        self._rules = rules or LockstepRules()
        self._alive: IntArray = np.arange(problem.n_configs)
        self._level: IntArray = np.zeros(problem.n_configs, dtype=np.int64)
        self._certificate = intervals.certificate(0, 1.0 if problem.n_configs > 1 else 0.0)
        self._wants_the_unknowable = False
        self._available = problem.n_instances
        if self._available is not None and self._rules.spare_last:
            self._available -= 1

    @property
    def plan(self) -> Plan:
        """Captimes by level."""
        return self.intervals.plan

    def ask(self, slots: int) -> Orders:  # noqa: ARG002 (a round is a round, however many workers there are)
        """The next round, for all candidates at once; nothing once there is no next round."""
        if self.finished() is not None:
            return no_orders()
        alive = self._alive
        return Orders(alive, np.full(len(alive), self.rounds + 1), self._level.take(alive))

    def tell(self, tally: Tally, changed: IntArray) -> None:  # noqa: ARG002 (a round is judged whole)
        """Judge the round once all of its runs are settled."""
        alive = self._alive
        if not tally.open.take(alive).any() and tally.n[alive[0]] > self.rounds:
            self.tell_ahead(standing(tally, alive))

    def tell_ahead(self, outlook: Outlook) -> Progress | None:
        """Judge the rounds of the outlook; None if a configuration would have stopped before its last round."""
        rounds = self._bounds(outlook)
        if not self._raise_between_rounds(outlook, rounds):
            return None
        leader, gone, epsilon = self._judge(outlook, rounds)
        left = (~gone).sum(axis=0)
        if self._ends_early(rounds, gone, epsilon, left):
            return None
        used = np.minimum((~gone[:, :-1]).sum(axis=1) + 1, len(outlook.n))
        if not outlook.within_budget(used):
            return None
        self.rounds += len(outlook.n)
        config, epsilon = self._certify(outlook, rounds, used, leader, epsilon)
        self._order_next(rounds, gone[:, -1])
        return Progress(used, config, epsilon, left)

    def _bounds(self, outlook: Outlook) -> _Rounds:
        """All rounds, as if no captime rose between them."""
        start = (self.intervals.lower.take(outlook.config), self.intervals.upper.take(outlook.config))
        lower, upper = self.intervals.tightened(outlook.n, outlook.level, outlook.low, outlook.high, start)
        since = np.zeros(len(outlook.config), dtype=np.int64)
        rises = self._next_rise(outlook.n, outlook.level, outlook.low, outlook.high, since)
        return _Rounds(lower, upper, rises, outlook.level.copy())

    def _next_rise(self, n: IntArray, level: IntArray, low: FloatArray, high: FloatArray, since: IntArray) -> IntArray:
        """The first round, from `since` on, in which a candidate loses at least as much to its cap as to chance."""
        can_rise = self.plan.can_rise(level)
        if not can_rise.any():
            return np.full(len(level), len(n))
        levels = level[:1] if (level == level[0]).all() else level[:, None]
        twice_radius = 2.0 * hoeffding_radius(n, self.intervals.budget.log_inverse(n, levels))
        if self._rules.rule == "new":
            # [COUP] 2(1 - u)α <= u(1 - F̂ + α), with what stands by α brought to the left.
            twice_radius = twice_radius * (1.0 - 1.5 * self.plan.floor(levels))
        # [UAC] UP: 2α <= u(κ)(1 - F̂), the distance between the mean high and the mean low end.
        capping = high - low
        capping /= n
        rising = capping >= twice_radius
        rising &= can_rise[:, None]
        if since.any():
            rising &= np.arange(len(n)) >= since[:, None]
        return np.where(rising.any(axis=1), rising.argmax(axis=1), len(n))

    def _raise_between_rounds(self, outlook: Outlook, rounds: _Rounds) -> bool:
        """Captimes that rise before the last round; what follows is seen anew.

        Candidates that are eliminated before their captime rises are treated like the others: the outlook forgets
        rounds in which a candidate took no part, and bounds that only tighten keep the eliminated out of all decisions.

        Returns:
            False if a captime would rise beyond what the source knows, which ends things before the last round.
        """
        last = len(outlook.n) - 1
        while len(rows := np.flatnonzero(rounds.rises < last)):
            after = rounds.rises[rows]
            rounds.level[rows] += 1
            level = rounds.level[rows]
            if self._unknowable(level):
                return False
            outlook.raise_captimes(rows, after)
            low, high = outlook.low[rows], outlook.high[rows]
            start = (rounds.lower[rows, after], rounds.upper[rows, after])
            lower, upper = self.intervals.tightened(outlook.n, level, low, high, start, since=after + 1)
            later = np.arange(last + 1) > after[:, None]
            rounds.lower[rows] = np.where(later, lower, rounds.lower[rows])
            rounds.upper[rows] = np.where(later, upper, rounds.upper[rows])
            rounds.rises[rows] = self._next_rise(outlook.n, level, low, high, after + 1)
        return True

    def _unknowable(self, level: IntArray) -> bool:
        captimes = self.plan.captime(level, np.full(1, self.rounds))
        return bool((captimes > self.problem.captime_limit).any())

    def _judge(self, outlook: Outlook, rounds: _Rounds) -> tuple[IntArray, BoolArray, FloatArray]:
        """Leader, eliminated candidates and epsilon of every round."""
        lower, upper = rounds.lower, rounds.upper
        leader = lower.argmax(axis=0)
        columns = np.arange(len(leader))
        bar = lower[leader, columns]
        # One equal to the bar in every round is the leader itself; counting all at once is quick, and mostly enough.
        if self._rules.ties_by_mean and np.count_nonzero(best := lower == bar) > len(bar):
            tied = np.flatnonzero(best.sum(axis=0) > 1)
            # n is the same for all candidates of a round, so sums compare like means.
            leader[tied] = np.where(best[:, tied], outlook.high[:, tied], -1.0).argmax(axis=0)
        # [UAC] UP: strictly below the leader's lower bound. The leader itself never goes: with running bounds its own
        # interval can cross (with probability at most delta), which `Intervals.crossed` reports.
        gone = upper < bar
        gone[leader, columns] = False
        rivals = upper
        if not self._rules.leader_counts:
            rivals = upper.copy()
            rivals[leader, columns] = 0.0
        # An eliminated configuration lies below the bar and cannot lift the difference above 0.
        return leader, gone, np.maximum(rivals.max(axis=0) - bar, 0.0)

    def _ends_early(self, rounds: _Rounds, gone: BoolArray, epsilon: FloatArray, left: IntArray) -> bool:
        """Whether a round before the last would have ended things, or changed them unseen by this arithmetic."""
        if len(left) == 1:
            return False
        if self._available is not None and self.rounds + len(left) > self._available:
            return True
        if bool((epsilon[:-1] <= self.problem.epsilon).any()) or bool((left[:-1] == 1).any()):
            return True
        # Bounds that only tighten keep the eliminated below the bar for ever. Recomputed or crossed ones could bring
        # a configuration back that had been eliminated rounds before.
        returns = not self.intervals.running or bool((rounds.lower > rounds.upper).any())
        return returns and bool(gone[:, :-1].any())

    def _certify(
        self, outlook: Outlook, rounds: _Rounds, used: IntArray, leader: IntArray, epsilon: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        """Keep the bounds where each candidate stopped; recommended configuration and epsilon of every round."""
        rows = np.arange(len(used))
        self.intervals.keep(outlook.config, rounds.lower[rows, used - 1], rounds.upper[rows, used - 1])
        config = outlook.config.take(leader)
        if self._rules.keep_best:
            config, epsilon = _best_so_far(self._certificate, config, epsilon)
        self._certificate = self.intervals.certificate(int(config[-1]), float(epsilon[-1]))
        return config, epsilon

    def _order_next(self, rounds: _Rounds, gone: BoolArray) -> None:
        """Order the next round: which configurations take part, and at which level."""
        last = rounds.lower.shape[1] - 1
        rising = (rounds.rises == last) & ~gone
        self._level[self._alive] = rounds.level + rising
        if rising.any():
            self._wants_the_unknowable = self._unknowable(self._level.take(self._alive))
        if gone.any():
            self.candidates[self._alive[gone]] = False
            self._alive = self._alive[~gone]

    def certificate(self) -> Certificate:
        """The best statement that holds now."""
        return self._certificate

    def more_instances(self, length: int) -> None:
        """The stream has become longer at its end; positions that were there stay what they were."""
        self.problem = replace(self.problem, n_instances=length)
        self._available = length - int(self._rules.spare_last)

    def finished(self) -> str | None:
        """See the protocol."""
        if len(self._alive) == 1:
            return "single"
        if self._certificate.epsilon <= self.problem.epsilon:
            return "epsilon"
        used_up = self._available is not None and self.rounds >= self._available
        if used_up or self._wants_the_unknowable:
            return "instances"
        return None


def _best_so_far(held: Certificate, config: IntArray, epsilon: FloatArray) -> tuple[IntArray, FloatArray]:
    """Round by round, the smallest epsilon up to then and whose it is; the newest of equals."""
    best = np.minimum.accumulate(np.concatenate(([held.epsilon], epsilon)))
    renewed = np.where(epsilon <= best[:-1], np.arange(1, len(epsilon) + 1), 0)
    whose = np.concatenate(([held.config], config))
    return whose[np.maximum.accumulate(renewed)], best[1:]
