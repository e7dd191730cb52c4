"""UP, Utilitarian Procrastination: [UAC] Algorithm 4. Start every captime small, double it only when it pays."""

from fractions import Fraction
from typing import Literal, get_args

from captime.bounds import BOUNDS
from captime.bounds.from_sums import Hoeffding
from captime.bounds.protocol import Use, check_fit
from captime.budget import PUBLISHED_SERIES, SERIES_SQUARED, CellBudget
from captime.errors import ScenarioError
from captime.intervals import Intervals
from captime.plans import Ladder
from captime.procedures.lockstep import Lockstep, LockstepRules
from captime.procedures.problem import Problem, Rule

Variant = Literal["recommended", "paper", "as-published"]


# Sums only, looked at after every instance, every look paid for; and cut runs stand in by the ends of their intervals.
_USE = Use("up", frozenset({"sums"}), looks_often=True, pays_for_looks=True, intervals=True)


def up(
    problem: Problem,
    *,
    variant: Variant = "recommended",
    events: int = 4,
    bound: str = "hoeffding",
    rule: Rule = "old",
) -> Lockstep:
    """All candidates in lockstep, each with its own captime, doubled while cutting costs more than chance.

    Args:
        problem: The question.
        variant: `recommended` keeps the tightest bounds seen, compares the leader with the *others* only, ends the
            captimes where they stop being of use, and reports the best certificate so far. `paper` recomputes the
            bounds each round as the pseudocode does. `as-published` decides exactly like the authors' code: constant
            4·2.705808, leader compared with itself too, last instance unused, first captime 1 s, captimes unbounded.
        events: Inequalities charged per cell: the paper's 4, or the 2 that the interval needs.
        bound: Name of another bound, if it fits: computed from sums and monotone, such as `kl`.
        rule: When captimes double: `old` is the paper's, `new` the one that came with OUP.
    """
    if variant not in get_args(Variant):
        raise ScenarioError(f"up has no variant {variant!r}; there are {', '.join(get_args(Variant))}")
    if bound not in BOUNDS:
        raise ScenarioError(f"there is no bound {bound!r}; there are {', '.join(BOUNDS)}")
    check_fit(bound, BOUNDS[bound], _USE)
    if rule not in get_args(Rule):
        raise ScenarioError(f"up has no rule {rule!r}; there are {', '.join(get_args(Rule))}")
    if variant == "as-published":
        if bound != "hoeffding":
            raise ScenarioError(f"the bound is {bound!r}, but the published code uses hoeffding; leave the option out")
        if rule != "old":
            raise ScenarioError(f"the rule is {rule!r}, but the published code doubles by the old one; leave it out")
        return _as_published(problem, events)
    # Four events: the paper's 11, a little above 4·(π²/6)² = 10.83. Two events: the exact sum, rounded up.
    constant = Fraction(11) if events == 4 else events * SERIES_SQUARED
    budget = CellBudget(problem.delta, problem.n_configs, events, constant)
    plan = Ladder.doubling(problem.utility, problem.captime_first, problem.captime_top)
    tight = variant == "recommended"
    intervals = Intervals(problem.n_configs, BOUNDS[bound](), budget, plan, running=tight)
    made = Lockstep(problem, intervals, LockstepRules(keep_best=tight, ties_by_mean=tight, rule=rule))
    made.bound = bound
    return made


def _as_published(problem: Problem, events: int) -> Lockstep:
    if problem.captime_first != 1.0:
        raise ScenarioError(
            f"the first captime is {problem.captime_first:g} s, but the published code charges its budget by log2 of "
            "seconds, which is right only from 1 s on; use the recommended variant for another first captime"
        )
    if events != 4:
        raise ScenarioError(f"events is {events}, but the published code charges 4; leave the option out")
    budget = CellBudget(problem.delta, problem.n_configs, 4, 4 * PUBLISHED_SERIES)
    plan = Ladder.doubling(problem.utility, 1.0)
    rules = LockstepRules(keep_best=False, leader_counts=True, ties_by_mean=False, spare_last=True)
    return Lockstep(problem, Intervals(problem.n_configs, Hoeffding(), budget, plan), rules)
