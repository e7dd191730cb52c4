"""LUCB: run the configuration that looks best and the one that could be better by most. The common part of two members.

Here is who is due, who leads and what that certifies; the bounds and the captimes are the members' own.
"""

from typing import Literal

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.certificate import Certificate
from captime.intervals import IntervalEnds
from captime.plans import Plan
from captime.procedures.optimistic import largest
from captime.procedures.problem import Problem, Retargetable


class LeaderAndChallenger(Retargetable):
    """The state of an LUCB procedure.

    Attributes:
        rounds: Decisions so far.
        candidates: Not yet eliminated.
        intervals: The tightest ends so far; the members compute them, each in its way.
        plan: Captimes by level.
        mode: What delta covers, see `Certificate`.
        shares: How delta is spent, see `Certificate`.
    """

    pays = True
    mode: Literal["selection", "simultaneous"] = "simultaneous"
    shares: tuple[tuple[str, float], ...] = (("intervals", 1.0),)

    def __init__(self, problem: Problem, plan: Plan, first_mean: float) -> None:
        n_configs = problem.n_configs
        self.problem = problem
        self.plan = plan
        self.intervals = IntervalEnds(n_configs)
        self.rounds = 0
        self.candidates: BoolArray = np.ones(n_configs, dtype=np.bool_)
        self._n: IntArray = np.zeros(n_configs, dtype=np.int64)
        self._level: IntArray = np.zeros(n_configs, dtype=np.int64)
        # Means by which the front runner is chosen, and upper ends; -1 for an eliminated configuration.
        self._mean: FloatArray = np.full(n_configs, first_mean)
        self._hope: FloatArray = np.ones(n_configs)
        self._left = n_configs
        self._certificate = self._statement(0, None, 1.0 if n_configs > 1 else 0.0)

    def _statement(self, config: int, challenger: int | None, epsilon: float) -> Certificate:
        lower, upper = float(self.intervals.lower[config]), float(self.intervals.upper[config])
        return Certificate(
            config=config,
            epsilon=epsilon,
            delta=self.problem.delta,
            n_configs=self.problem.n_configs,
            utility_low=lower,
            utility_high=max(lower, upper),
            challenger=challenger,
            mode=self.mode,
            shares=self.shares,
        )

    def _tighten(self, config: int, lower: float, upper: float) -> tuple[float, float]:
        """Take in new ends of one configuration; the tightest that hold now. All of them hold at once."""
        ends = self.intervals
        lower, upper = max(lower, float(ends.lower[config])), min(upper, float(ends.upper[config]))
        ends.lower[config], ends.upper[config] = lower, upper
        if lower > upper:
            ends.crossed[config] = True
        return lower, upper

    def _due(self) -> list[int]:
        """The front runner by mean and the most hopeful of the others; not who has used up the stream."""
        if self._left == 1:
            return []
        first = int(self._mean.argmax())
        hope, kept = self._hope, self._hope[first]
        hope[first] = -1.0
        second = int(hope.argmax())
        tied = (hope == hope[second]).nonzero()[0]
        if len(tied) > 1:
            second = int(tied[self._mean.take(tied).argmax()])
        hope[first] = kept
        end = self.problem.n_instances
        return [config for config in (first, second) if end is None or self._n[config] < end]

    def _due_and_next(self, slots: int) -> IntArray:
        """Those who are due, then the most hopeful of the others, as many as there are slots."""
        due = self._due()
        if slots <= len(due):
            return np.array(due, dtype=np.int64)
        hopeful = largest(self._hope, min(slots + len(due), len(self._hope)))
        fit = self.candidates.take(hopeful)
        if self.problem.n_instances is not None:
            fit &= self._n.take(hopeful) < self.problem.n_instances
        rest = [config for config in hopeful[fit].tolist() if config not in due]
        return np.array((due + rest)[:slots], dtype=np.int64)

    def _decide(self) -> bool:
        """Leader, certificate and eliminations after the ends of some have moved; whether something has changed hands.

        Returns:
            True if a configuration was eliminated or the goal is reached.
        """
        self.rounds += 1
        lower, hope = self.intervals.lower, self._hope
        leader = int(lower.argmax())
        bar = lower[leader]
        tied = (lower == bar).nonzero()[0]
        if len(tied) > 1:
            leader = int(tied[self._mean.take(tied).argmax()])
        kept = hope[leader]
        hope[leader] = -1.0
        challenger = int(hope.argmax())
        gap = max(0.0, float(hope[challenger]) - float(bar))
        gone = ((hope < bar) & (hope >= 0.0)).nonzero()[0]
        hope[leader] = kept
        if gap <= self._certificate.epsilon:
            self._certificate = self._statement(leader, challenger if gap > 0.0 else None, gap)
        if len(gone):
            self.candidates[gone] = False
            self._mean[gone] = self._hope[gone] = -1.0
            self._left -= len(gone)
        return bool(len(gone)) or gap <= self.problem.epsilon

    def certificate(self) -> Certificate:
        """The best statement so far; all of them hold at once."""
        return self._certificate

    def finished(self) -> str | None:
        """See the protocol."""
        if self._left == 1:
            return "single"
        if self._certificate.epsilon <= self.problem.epsilon:
            return "epsilon"
        return None if self._due() else "instances"
