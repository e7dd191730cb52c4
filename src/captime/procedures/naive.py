"""Naive: [UAC] Algorithm 3. One captime, one number of instances, both fixed before the first run."""

import math
from typing import Literal, get_args

import numpy as np

from captime.arrays import BoolArray, IntArray
from captime.bounds.from_sums import Hoeffding
from captime.budget import SampleBudget, SingleLookBudget
from captime.certificate import Certificate, Orders, no_orders
from captime.errors import ScenarioError
from captime.intervals import Intervals
from captime.plans import Ladder
from captime.procedures.lockstep import Lockstep, LockstepRules
from captime.procedures.problem import Problem
from captime.tally import Tally, standing

Variant = Literal["paper", "recommended", "as-published"]


class Naive:
    """Every configuration on the first m instances at captime κ, and the largest mean wins.

    Args:
        problem: The question; its epsilon decides m.
        captime: κ in CPU seconds; u(κ) must be below epsilon. Left out: where u has fallen to epsilon / 2.
        variant: `paper` certifies the epsilon asked for. `recommended` certifies what the bounds show at the end, which
            is never more and usually much less (same runs, same answer, same 2n inequalities). `as-published` is
            `paper` with m one larger where it is an integer, and one instance of the stream left unused.

    Attributes:
        captime: κ.
        samples: m, the number of instances every configuration is run on.
    """

    bound = "hoeffding"
    pays = True

    def __init__(self, problem: Problem, *, captime: float | None = None, variant: Variant = "paper") -> None:
        if variant not in get_args(Variant):
            raise ScenarioError(f"naive has no variant {variant!r}; there are {', '.join(get_args(Variant))}")
        published = variant == "as-published"
        self.problem = problem
        self.captime = _checked_captime(problem, captime)
        self.samples = _sample_size(problem, self.captime, published=published)
        available = problem.n_instances
        if available is not None and self.samples > available - int(published):
            raise ScenarioError(
                f"naive needs {self.samples} instances for epsilon {problem.epsilon:g} at captime {self.captime:g} s, "
                f"but there are {available}; raise epsilon or the captime, or sample with replacement"
            )
        self.candidates: BoolArray = np.ones(problem.n_configs, dtype=np.bool_)
        self.rounds = 0
        self._realised = variant == "recommended"
        self.plan = Ladder(problem.utility, np.array([self.captime]))
        budget = SingleLookBudget(problem.delta, problem.n_configs)
        self.intervals = Intervals(problem.n_configs, Hoeffding(), budget, self.plan, running=False)
        self._certificate = self.intervals.certificate(0, 1.0 if problem.n_configs > 1 else 0.0)

    def ask(self, slots: int) -> Orders:  # noqa: ARG002 (there is one order, whatever the number of workers)
        """Everything at once, once."""
        if self.rounds:
            return no_orders()
        n_configs = self.problem.n_configs
        return Orders(np.arange(n_configs), np.full(n_configs, self.samples), np.zeros(n_configs, dtype=np.int64))

    def tell(self, tally: Tally, changed: IntArray) -> None:  # noqa: ARG002 (the bounds are valid at the end only)
        """Judge once, when all is known; looking earlier would need a larger budget."""
        if self.rounds or bool((tally.n < self.samples).any()) or bool(tally.open.any()):
            return
        self.rounds = 1
        all_configs = np.arange(self.problem.n_configs)
        now = standing(tally, all_configs)
        start = (self.intervals.lower, self.intervals.upper)
        lower, upper = self.intervals.tightened(now.n, now.level, now.low, now.high, start)
        self.intervals.keep(all_configs, lower[:, 0], upper[:, 0])
        best = int(tally.utility_high.argmax())
        if bool(tally.given_up.any()):
            # The largest mean is no longer known, nor is epsilon what the choice of m made it: a run that was given up
            # is worth anything from 0 up to its high end. The bounds count it so, and the leader is chosen by them.
            best = int(self.intervals.lower.argmax())
            epsilon = self.intervals.gap(best, all_configs)
        elif self._realised:
            epsilon = self.intervals.gap(best, all_configs)
        else:
            # 2α + u(κ) = epsilon by the choice of m, and the bounds at hand are tighter.
            epsilon = self.problem.epsilon
        self._certificate = self.intervals.certificate(best, epsilon)

    def certificate(self) -> Certificate:
        """Nothing before the end, then the statement."""
        return self._certificate

    def finished(self) -> str | None:
        """See the protocol."""
        if self.problem.n_configs == 1:
            return "single"
        if not self.rounds:
            return None
        return "epsilon" if self._certificate.epsilon <= self.problem.epsilon else "instances"


def _checked_captime(problem: Problem, captime: float | None) -> float:
    """The captime asked for or a sensible one; it must be able to reach epsilon and lie within what is known."""
    if problem.epsilon <= 0:
        raise ScenarioError("naive needs an epsilon above 0, because it fixes the number of runs beforehand; try 0.1")
    longest = problem.captime_limit
    if captime is None:
        captime = min(float(problem.utility.inverse(np.array(problem.epsilon / 2))), problem.captime_top)
    if not (captime > 0 and math.isfinite(captime)):
        raise ScenarioError(f"naive's captime is {captime!r} s, but it has to be a positive number of seconds")
    if captime > longest:
        raise ScenarioError(
            f"naive's captime is {captime:g} s, but nothing is known of runs beyond {longest:g} s; choose a shorter one"
        )
    worth = float(problem.utility(np.array(captime)))
    if not worth < problem.epsilon:
        enough = float(problem.utility.inverse(np.array(problem.epsilon)))
        raise ScenarioError(
            f"naive's captime is {captime:g} s, where the utility is still {worth:.4g}; it must be below epsilon = "
            f"{problem.epsilon:g}, which happens after {enough:g} s"
        )
    return captime


def _sample_size(problem: Problem, captime: float, *, published: bool) -> int:
    """M of the paper: 2α = epsilon - u(κ) with 2n events."""
    slack = problem.epsilon - float(problem.utility(np.array(captime)))
    # [UAC] Theorem 3. ln(2n/δ) is right although the lemma it cites has 4n events: F̂ is not needed, since
    # u(κ)(1 - F) is at most u(κ).
    exact = 2.0 * math.log(2.0 * problem.n_configs / problem.delta) / slack**2
    return int(exact) + 1 if published else math.ceil(exact)


# The runtime oracle: [UAC] Algorithm 1. What could be certified if runtimes were told and not run for.


def oracle(problem: Problem) -> Lockstep:
    """Successive elimination on uncapped runtimes: the reference for the number of samples; it pays no CPU time.

    On a table with a timeout the oracle knows no more than the table does: a run at the timeout counts as
    [0, u(timeout)], and the certificate is wider by that much.
    """
    plan = Ladder(problem.utility, np.array([problem.captime_top]))
    budget = SampleBudget(problem.delta, problem.n_configs)
    # The pseudocode compares means: Û_i < Û_i* - 2α. Recomputed Hoeffding ends differ by 2α, so the test is the same.
    intervals = Intervals(problem.n_configs, Hoeffding(), budget, plan, running=False)
    return Lockstep(problem, intervals, LockstepRules(ties_by_mean=False), pays=False)
