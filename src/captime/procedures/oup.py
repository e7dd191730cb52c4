"""OUP, Optimistic Utilitarian Procrastination: [COUP]. One configuration at a time, the most promising one."""

from fractions import Fraction
from typing import get_args

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.bounds.from_sums import Hoeffding, hoeffding_radius
from captime.budget import PUBLISHED_SERIES, CellBudget
from captime.errors import ScenarioError
from captime.intervals import Intervals
from captime.plans import Ladder
from captime.procedures.optimistic import Optimist
from captime.procedures.problem import OptimistRules, Problem, Rule, Variant


class RadiusAtMostOne(Hoeffding):
    """The bound as OUP's authors compute it, with a radius of at most 1.

    In exact arithmetic a larger radius says as little as 1 does. In floating point mean + (1 - u(κ)) can come out a
    hair below 1 where mean + (1 - u(κ))·α does not, and that hair decides whose turn it is.
    """

    def __call__(
        self, n: IntArray, low: FloatArray, high: FloatArray, log_inverse: FloatArray, floor: FloatArray, /
    ) -> tuple[FloatArray, FloatArray]:
        """See the protocol."""
        radius = np.minimum(hoeffding_radius(n, log_inverse), 1.0)
        return low / n - radius, high / n + (1.0 - floor) * radius


def oup(problem: Problem, *, rule: Rule = "new", variant: Variant = "recommended") -> Optimist:
    """The configuration with the largest upper bound gets the next run; captimes double while cutting costs most.

    Args:
        problem: The question.
        rule: When captimes double: `new` weighs what is lost to the cap against what is lost to chance, and skips
            captimes with u(κ) >= 2/3; `old` is UP's.
        variant: `recommended` compares the leader with the *others* only, ends the captimes where they stop being of
            use, prefers the larger mean among equal lower bounds, and reports the best certificate so far.
            `as-published` decides exactly like the authors' code: constant 4·2.705808, leader compared with itself too,
            last instance unused, first captime 1 s, captimes unbounded.
    """
    check_choice("oup", "rule", rule, get_args(Rule))
    check_choice("oup", "variant", variant, get_args(Variant))
    if variant == "as-published":
        check_first_captime(problem)
        # The union bound of UP: the bounds of every (configuration, n, rung) hold at once, in any order of runs.
        budget = CellBudget(problem.delta, problem.n_configs, 4, 4 * PUBLISHED_SERIES)
        plan = Ladder.doubling(problem.utility, 1.0)
        return Optimist(problem, Intervals(problem.n_configs, RadiusAtMostOne(), budget, plan), published(rule))
    budget = CellBudget(problem.delta, problem.n_configs, 4, Fraction(11))
    plan = Ladder.doubling(problem.utility, problem.captime_first, problem.captime_top)
    return Optimist(problem, Intervals(problem.n_configs, Hoeffding(), budget, plan), OptimistRules(rule=rule))


def published(rule: Rule) -> OptimistRules:
    """How the authors' code of OUP behaves."""
    return OptimistRules(
        rule=rule, keep_best=False, leader_counts=True, ties_by_mean=False, spare_last=True, stop_alone=False
    )


def check_choice(procedure: str, option: str, found: str, known: tuple[str, ...]) -> None:
    """Refuse a word that is none of the known ones."""
    if found not in known:
        raise ScenarioError(f"{procedure} has no {option} {found!r}; there are {', '.join(known)}")


def check_first_captime(problem: Problem) -> None:
    """The published code takes log2 of seconds; only from 1 s on does that count rungs."""
    if problem.captime_first != 1.0:
        raise ScenarioError(
            f"the first captime is {problem.captime_first:g} s, but the published code charges its budget by log2 of "
            "seconds, which is right only from 1 s on; use the recommended variant for another first captime"
        )
