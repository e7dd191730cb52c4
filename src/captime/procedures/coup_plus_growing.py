"""COUP+ on a pool that grows: [COUP+] with its rule for adding configurations, to compare captime's own pool with."""

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction

from captime.arrays import FloatArray, IntArray
from captime.budget import SERIES_SQUARED, ThreeBoundsBudget
from captime.certificate import Certificate, check_delta
from captime.errors import ScenarioError
from captime.procedures.coup_plus import CoupPlus, Snapshot
from captime.procedures.problem import Problem

# A rational number just above (π²/6)³; rounding up keeps the total at or below delta.
_SERIES_CUBED = SERIES_SQUARED * Fraction("1.6449340669")


@dataclass(slots=True)
class GrowingBudget:
    """Half of delta, over a pool whose size so far is `pool`: delta / (6·(π²/6)³ · pool² · n² · rung²) an inequality.

    For one configuration, n and rung the bounds only widen as the pool grows, so what counts is the smallest pool at
    which they are used, and that holds at least i configurations for the i-th: Σ 1/i² over arrivals.
    """

    delta: float
    pool: int
    events: int = 3
    _fixed: ThreeBoundsBudget = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_delta(self.delta)
        self._fixed = ThreeBoundsBudget(self.delta, 1)

    @property
    def _constant(self) -> Fraction:
        return 2 * self.events * _SERIES_CUBED * self.pool**2

    def share(self, n: int, level: int) -> Fraction:
        """See the class."""
        return 1 / (self._constant * n**2 * (level + 1) ** 2)

    def log_inverse(self, n: IntArray, level: IntArray) -> FloatArray:
        """See the class."""
        more = math.log(float(self._constant / (self.events * SERIES_SQUARED)))
        return self._fixed.log_inverse(n, level) + more


class GrowingCoupPlus(CoupPlus):
    """COUP+ with its growing pool: one more configuration when little is left to gain among those there are.

    Configurations are taken as independent draws from the space, in the order of their indices. It begins with some of
    them and adds one whenever epsilon² < gamma · (1 - the largest upper bound): inside the pool at most epsilon can be
    gained, outside of it at most 1 - the largest upper bound, by a share gamma of the space. gamma after n draws is
    1 - (3·delta / (π²n²))^(1/n), which takes the other half of delta. Bounds are those of `coup-plus`, with natural
    logarithms and means recomputed when captimes rise; the authors' code errs in both. There is no model here: a table
    knows no parameters.

    Args:
        problem: The question.
        gamma: Goal besides epsilon: the best fraction of the space that may be missed; 1 for none.
        first_draws: How many configurations it begins with.
    """

    def __init__(self, problem: Problem, *, gamma: float = 1.0, first_draws: int = 50) -> None:
        if not 0.0 < gamma <= 1.0:
            raise ScenarioError(f"gamma is {gamma!r}, but it is a share of the space: between 0 and 1, such as 0.1")
        if first_draws < 2:
            raise ScenarioError(f"first_draws is {first_draws}, but a comparison takes two; 50 is what the authors use")
        self._pool = min(first_draws, problem.n_configs)
        self._wanted = gamma
        super().__init__(problem)
        self.growing = GrowingBudget(problem.delta, self._pool)
        self.budget = self.growing
        self._first_mean = float(self._mean[0])
        self._pool_before = self._pool
        self.candidates[self._pool :] = False
        self._mean[self._pool :] = self._hope[self._pool :] = -1.0
        self._left = self._pool
        self.shares = (("intervals", 0.5), ("draws", 0.5))
        self._certificate = self._statement(0, None, 1.0 if self._pool > 1 else 0.0)

    def gamma(self) -> float:
        """The best fraction of the space that the draws so far may have missed."""
        return -math.expm1(math.log(3.0 * self.problem.delta / (math.pi * self._pool) ** 2) / self._pool)

    def _statement(self, config: int, challenger: int | None, epsilon: float) -> Certificate:
        return replace(super()._statement(config, challenger, epsilon), n_configs=self._pool, gamma=self.gamma())

    def _decide(self) -> bool:
        """As ever; and one more configuration if that is where something can be gained."""
        held = self._certificate
        self._certificate = replace(held, epsilon=1.0)
        stop = super()._decide()
        now = self._certificate
        if self._distance(now) > self._distance(held):
            self._certificate = held
        top = float(self._hope.max())
        if self._room() and (self._left == 1 or now.epsilon**2 < self.gamma() * (1.0 - top)):
            self._add()
            return True
        return stop

    def _distance(self, said: Certificate) -> tuple[float, float, float]:
        """How far a statement is from the goals: epsilon first, then gamma."""
        gamma = self._wanted if said.gamma is None else said.gamma
        return max(said.epsilon, self.problem.epsilon), max(gamma, self._wanted), said.epsilon

    def _room(self) -> bool:
        return self._pool < self.problem.n_configs

    def _add(self) -> None:
        new = self._pool
        self._pool += 1
        self._left += 1
        self.growing.pool = self._pool
        self.candidates[new] = True
        self._mean[new], self._hope[new] = self._first_mean, 1.0

    def _snapshot(self) -> Snapshot:
        self._pool_before = self._pool
        return super()._snapshot()

    def _restore(self, held: Snapshot) -> None:
        super()._restore(held)
        self._pool = self.growing.pool = self._pool_before

    def finished(self) -> str | None:
        """See the protocol; `configurations` if no configuration is left to draw."""
        held = self._certificate
        if self.problem.n_configs == 1:
            return "single"
        if held.epsilon <= self.problem.epsilon and held.gamma is not None and held.gamma <= self._wanted:
            return "epsilon"
        if self._left == 1:
            return None if self._room() else "configurations"
        return None if self._due() else "instances"
