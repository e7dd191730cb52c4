"""COUP: [COUP]. OUP over a pool that grows phase by phase, for spaces too large to look at every configuration."""

import math
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.bounds.from_sums import Hoeffding
from captime.budget import PhaseBudget
from captime.certificate import Certificate
from captime.errors import ScenarioError
from captime.intervals import Intervals
from captime.plans import Ladder
from captime.procedures.lockstep import _best_so_far as best_so_far
from captime.procedures.optimistic import Optimist
from captime.procedures.oup import check_choice, check_first_captime
from captime.procedures.problem import OptimistRules, Problem, Rule, Variant


@dataclass(frozen=True, slots=True)
class Phase:
    """What a finished phase has shown.

    Attributes:
        number: 1, 2, 3, …
        n_configs: Size of its pool.
        config: Its leader.
        epsilon: How far the best of the pool may be above the leader.
        gamma: The best fraction of the whole space that the pool may have missed.
        decisions: Decisions until its end, from the first phase on.
    """

    number: int
    n_configs: int
    config: int
    epsilon: float
    gamma: float
    decisions: int


class Coup(Optimist):
    """OUP on a growing pool: nearly as good as the best outside the top gamma of the space.

    The configurations of the table are taken as independent draws from the space, in the order of the table. A phase p
    works on the first n_p of them until epsilon is below epsilon_p = exp(-p · epsilon_rate); gamma_p is
    exp(-p · gamma_rate). Data are kept from phase to phase, bounds start afresh because the budget is another one. The
    certificate carries the gamma of the phase that reached it; a later one replaces it once it is as good in epsilon,
    being better in gamma.

    Args:
        problem: The question.
        rule: When captimes double, as in `oup`.
        variant: `recommended` takes the smallest pool that is likely enough to hold one of the best gamma fraction,
            compares the leader with the *others* only, and ends the captimes where they stop being of use.
            `as-published` decides exactly like the authors' code: pools from e^(-gamma·n), the leader compared with
            itself too, last instance unused, first captime 1 s, captimes unbounded.
        epsilon_rate: How fast the phases' epsilon falls.
        gamma_rate: How fast the phases' gamma falls.

    Attributes:
        phases: Finished phases, in their order.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        rule: Rule = "new",
        variant: Variant = "recommended",
        epsilon_rate: float = 1 / 6,
        gamma_rate: float = 1 / 3,
    ) -> None:
        check_choice("coup", "rule", rule, get_args(Rule))
        check_choice("coup", "variant", variant, get_args(Variant))
        for name, rate in (("epsilon_rate", epsilon_rate), ("gamma_rate", gamma_rate)):
            if not (rate > 0 and math.isfinite(rate)):
                raise ScenarioError(f"coup's {name} is {rate!r}, but it has to be a positive number; try 0.3")
        published = variant == "as-published"
        if published:
            check_first_captime(problem)
        self.phases: list[Phase] = []
        self._rates = (epsilon_rate, gamma_rate)
        self._exact_pool = not published
        self._phase = 1
        self._pool_too_large = False
        top = np.inf if published else problem.captime_top
        ladder = Ladder.doubling(problem.utility, problem.captime_first, top)
        pool = self._pool_size(problem.delta, self._phase)
        if pool > problem.n_configs:
            raise ScenarioError(
                f"coup's first phase needs {pool} configurations, but there are {problem.n_configs}; use oup, which "
                "compares all of them, or a smaller gamma_rate"
            )
        # The published code tests with the radius that the next sample will have, and lets it exceed 1.
        rules = OptimistRules(
            rule=rule,
            leader_counts=published,
            ties_by_mean=not published,
            spare_last=published,
            stop_alone=False,
            test_ahead=1,
            widest_radius=np.inf,
        )
        super().__init__(problem, self._fresh_intervals(problem, ladder, pool), rules)
        self._certificate = self._with_gamma(self._certificate)
        self.candidates[pool:] = False

    @property
    def _goal(self) -> float:
        """epsilon_p."""
        return math.exp(-self._phase * self._rates[0])

    @property
    def _gamma(self) -> float:
        """gamma_p."""
        return self._gamma_of(self._phase)

    def _gamma_of(self, phase: int) -> float:
        return math.exp(-phase * self._rates[1])

    def _pool_size(self, delta: float, phase: int) -> int:
        """Return n_p: n_p draws miss the best gamma_p with probability at most 3·delta / (π²p²)."""
        miss, gamma = delta * PhaseBudget(delta, 1, phase).pool_share(), self._gamma_of(phase)
        # (1 - γ)^n <= miss exactly; the authors use (1 - γ)^n <= e^(-γn) first.
        needed = math.log(miss) / math.log1p(-gamma) if self._exact_pool else -math.log(miss) / gamma
        return max(2, math.ceil(needed))

    def _fresh_intervals(self, problem: Problem, plan: Ladder, pool: int) -> Intervals:
        return Intervals(pool, Hoeffding(), PhaseBudget(problem.delta, pool, self._phase), plan)

    def _ends_things(self, width: FloatArray, gap: FloatArray) -> BoolArray:
        """The goal of the user, or that of the phase."""
        measure = width if self._rules.leader_counts else gap
        return (gap <= self.problem.epsilon) | (measure < self._goal)

    def _after_decision(self, width: float, gap: float) -> None:
        """Finish the phase, and the next ones too if what is known is enough for them."""
        while (width if self._rules.leader_counts else gap) < self._goal and not self._pool_too_large:
            self.phases.append(Phase(self._phase, self._pool, self._leader, gap, self._gamma, self.rounds))
            if self._certificate.epsilon <= self.problem.epsilon:
                return
            pool = self._pool_size(self.problem.delta, self._phase + 1)
            if pool > self.problem.n_configs:
                # The next phase does not begin: runs under way still speak about the pool and the gamma of this one.
                self._pool_too_large = True
                return
            self._phase += 1
            width, gap = self._start_phase(pool)

    def _start_phase(self, pool: int) -> tuple[float, float]:
        """Bounds anew from all data, at the budget of this phase; width and gap as they are then."""
        ladder = self.plan
        if not isinstance(ladder, Ladder):
            raise TypeError("coup's captimes stand on a ladder")
        self.intervals = self._fresh_intervals(self.problem, ladder, pool)
        self.candidates[:pool] = True
        known = np.flatnonzero(self._n[:pool])
        start = (np.zeros(len(known)), np.ones(len(known)))
        sums = (self._low[known, None], self._high[known, None])
        lower, upper = self.intervals.tightened(self._n[known, None], self._level.take(known), *sums, start)
        self.intervals.keep(known, lower[:, 0], upper[:, 0])
        self._rising = self._wants_rise(self._n, self._level, self._capping())
        bar = float(self.intervals.lower.max())
        self._leader = self._best_of(bar)
        self._certify(np.array([self._leader]), np.array([self._gap(bar)]))
        return float(self.intervals.upper.max()) - bar, self._gap(bar)

    def _certify(self, leader: IntArray, epsilon: FloatArray) -> tuple[IntArray, FloatArray]:
        """The newest statement that is as good in epsilon as the one held, and so better in gamma."""
        held = self._certificate
        config, best = best_so_far(held, leader, epsilon)
        if bool((epsilon <= held.epsilon).any()):
            fresh = self.intervals.certificate(int(config[-1]), float(best[-1]))
            self._certificate = self._with_gamma(fresh)
        return config, best

    def _with_gamma(self, certificate: Certificate) -> Certificate:
        return replace(certificate, gamma=self._gamma, shares=(("intervals", 0.5), ("pools", 0.5)))

    def _eliminate(self, bar: float) -> None:
        """Eliminate no configuration: the next phase judges by another budget."""

    def _until_eliminated(self, config: IntArray, upper: FloatArray, merged: object, bar: FloatArray) -> int:  # noqa: ARG002 (as above)
        """Never."""
        return len(bar)

    def finished(self) -> str | None:
        """See the protocol."""
        if self._certificate.epsilon <= self.problem.epsilon:
            return "epsilon"
        return "instances" if self._pool_too_large or self._nothing_left() else None
