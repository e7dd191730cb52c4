"""Layer 1 of the proof: delta is shared out exactly, and never overspent, whatever the first captime and the unit.

No simulation of affordable size sees a budget that is overspent by a quarter, so the shares of *all* cells are added up
with rational arithmetic: finitely many one by one, the tails of the series by rational bounds.
"""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from captime.budget import CellBudget, FailureBudget, SampleBudget, SingleLookBudget
from captime.errors import ScenarioError
from captime.plans import Ladder
from captime.procedures import PROCEDURES, Problem
from captime.procedures.lockstep import Lockstep
from captime.procedures.naive import Naive
from captime.utilities import parse_utility

MANY = 400  # cells added one by one in each direction; the rest of a series is bounded
DELTA = 0.1
N_CONFIGS = (1, 2, 10, 10**4)
FIRST_CAPTIMES = (0.001, 0.1, 0.3, 0.5, 1.0, 60.0)
ENDLESS = parse_utility("log-laplace(60, 1)")

each_pool = pytest.mark.parametrize("n_configs", N_CONFIGS)


def built_up(n_configs: int, captime_first: float = 1.0, **options: object) -> Lockstep:
    """The real procedure, from the register."""
    made = PROCEDURES["up"](Problem(n_configs, ENDLESS, DELTA, captime_first=captime_first), **options)
    assert isinstance(made, Lockstep)
    return made


def _series(terms: list[Fraction]) -> tuple[Fraction, Fraction]:
    """Rational bounds on the sum of a series whose first terms are given: from below always, from above if it can be.

    Where k² times the k-th term is one number c, the rest after K terms is c·Σ 1/k² over k > K. Euler and Maclaurin's
    expansion of that, 1/K - 1/2K² + 1/6K³ - 1/30K⁵ + …, alternates around its value from term to term.
    """
    head, last = sum(terms, Fraction(0)), len(terms)
    scaled = {term * k**2 for k, term in enumerate(terms, start=1)}
    if len(scaled) > 1:
        return head, Fraction(10**9)
    rest = Fraction(1, last) - Fraction(1, 2 * last**2) + Fraction(1, 6 * last**3)
    c = scaled.pop()
    return head + c * (rest - Fraction(1, 30 * last**5)), head + c * rest


def spent(budget: FailureBudget, n_configs: int, *, sizes: int = MANY, levels: int = MANY) -> tuple[Fraction, Fraction]:
    """Bounds on the share of delta that all inequalities of all cells take together.

    Args:
        budget: Gives the shares.
        n_configs: How many configurations are really compared.
        sizes: Add up this many sample sizes and bound the rest; 1 if there is only one look.
        levels: Add up this many captime levels and bound the rest; 1 if there is only one level.
    """
    corner = budget.share(1, 0)
    for n, level in ((2, 1), (7, 3), (100, 30)):
        assert budget.share(n, level) * corner == budget.share(n, 0) * budget.share(1, level)
    over_sizes = [budget.share(n, 0) for n in range(1, sizes + 1)]
    over_levels = [budget.share(1, level) for level in range(levels)]
    low, high = _series(over_sizes) if sizes > 1 else (corner, corner)
    low_levels, high_levels = _series(over_levels) if levels > 1 else (corner, corner)
    inequalities = budget.events * n_configs / corner
    return inequalities * low * low_levels, inequalities * high * high_levels


def check_spending(budget: FailureBudget, n_configs: int) -> None:
    """At most all of delta, at least nine tenths of it."""
    low, high = spent(budget, n_configs)
    assert high <= 1, f"{float(low):.3f} of delta or more is spent"
    assert low >= Fraction(9, 10), f"only {float(high):.3f} of delta is spent"


def check_logarithms(budget: FailureBudget) -> None:
    """What the bounds use is the logarithm of the exact share."""
    for n in (1, 2, 3, 10, 64, 65, 1000, 10**6):
        for level in (0, 1, 2, 9, 59):
            share = budget.share(n, level)
            exact = math.log(share.denominator) - math.log(share.numerator) - math.log(budget.delta)
            used = float(budget.log_inverse(np.array([n]), np.array([level]))[0])
            assert abs(used - exact) <= 1e-12 * max(1.0, exact)


def check_rungs(procedure: Lockstep, captime_first: float) -> None:
    """Captimes double, and the k-th of them is charged as rung k."""
    ladder, budget = procedure.plan, procedure.intervals.budget
    assert isinstance(ladder, Ladder)
    assert ladder.rungs[0] == captime_first
    assert all(after == 2 * before for before, after in pairwise(ladder.rungs.tolist()))
    for level in range(len(ladder.rungs)):
        assert budget.share(1, level) * (level + 1) ** 2 == budget.share(1, 0)


@each_pool
@pytest.mark.parametrize("captime_first", FIRST_CAPTIMES)
@pytest.mark.parametrize("options", [{}, {"variant": "paper"}, {"events": 2}], ids=["recommended", "paper", "two"])
def test_up_spends_nearly_all_of_delta_whatever_the_first_captime(
    n_configs: int, captime_first: float, options: dict[str, object]
) -> None:
    """Between 0.9 and 1 of delta over all cells, rungs counted 1, 2, 3, … from a millisecond to a minute."""
    procedure = built_up(n_configs, captime_first, **options)
    check_rungs(procedure, captime_first)
    check_spending(procedure.intervals.budget, n_configs)
    check_logarithms(procedure.intervals.budget)


def test_the_published_constant_overspends_by_less_than_a_part_in_ten_million() -> None:
    """2.705808 is (π²/6)² rounded down; `as-published` keeps it, and nothing else does."""
    budget = built_up(10, variant="as-published").intervals.budget
    low, high = spent(budget, 10)
    assert 1 < low <= high < 1 + Fraction(1, 10**7)
    check_logarithms(budget)


@each_pool
def test_naive_spends_no_more_than_delta_in_its_one_look(n_configs: int) -> None:
    """2n inequalities at one n and one captime take exactly delta."""
    naive = PROCEDURES["naive"](Problem(n_configs, ENDLESS, DELTA, epsilon=0.2))
    assert isinstance(naive, Naive)
    assert spent(naive.intervals.budget, n_configs, sizes=1, levels=1) == (Fraction(1), Fraction(1))
    check_logarithms(naive.intervals.budget)


@each_pool
def test_the_oracle_spends_four_fifths_of_delta(n_configs: int) -> None:
    """(π²/6)/2 = 0.822 over all sample sizes, on its single level."""
    oracle = PROCEDURES["oracle"](Problem(n_configs, ENDLESS, DELTA))
    assert isinstance(oracle, Lockstep)
    low, high = spent(oracle.intervals.budget, n_configs, levels=1)
    assert Fraction("0.8224") < low <= high < Fraction("0.8226")
    check_logarithms(oracle.intervals.budget)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 1.5, math.nan])
@pytest.mark.parametrize("kind", [CellBudget, SampleBudget, SingleLookBudget])
def test_a_budget_refuses_what_is_no_failure_probability(kind: type[CellBudget], delta: float) -> None:
    """Delta lies strictly between 0 and 1."""
    with pytest.raises(ScenarioError, match="strictly between 0 and 1"):
        kind(delta, 3)


def test_up_refuses_a_number_of_inequalities_that_proves_nothing() -> None:
    """Four as in the paper or the two that the interval needs, not one."""
    with pytest.raises(ScenarioError, match="events is 1"):
        built_up(2, events=1)


# ---------------------------------------------------------------- planted errors


class NaturalLogarithm(CellBudget):
    """ln κ + 1 where log2 κ + 1 belongs."""

    def share(self, n: int, level: int) -> Fraction:
        """See the class."""
        charged = Fraction(level * math.log(2.0)) + 1
        return 1 / (self.constant * self.n_configs * n**2 * charged**2)


class LogarithmOfSeconds(CellBudget):
    """log2 of the captime in seconds, although the first captime is not 1 s."""

    def share(self, n: int, level: int) -> Fraction:
        """See the class."""
        charged = Fraction(math.log2(self.first)) + level + 1
        return 1 / (self.constant * self.n_configs * n**2 * charged**2)

    @property
    def first(self) -> float:
        """First captime in seconds."""
        raise NotImplementedError


def from_first_captime(captime_first: float) -> LogarithmOfSeconds:
    """The error with that first captime."""

    class Here(LogarithmOfSeconds):
        first = captime_first

    return Here(DELTA, 10)


def test_the_natural_logarithm_is_found_out() -> None:
    """It overspends by 23 %, which only this layer can see."""
    budget = NaturalLogarithm(DELTA, 10)
    assert float(spent(budget, 10)[0]) == pytest.approx(1.22, abs=0.01)
    with pytest.raises(AssertionError, match=r"1\.2.. of delta or more"):
        check_spending(budget, 10)


@pytest.mark.parametrize(("captime_first", "overspent"), [(0.1, 8.1), (0.3, 10.5)])
def test_logarithms_of_seconds_below_one_are_found_out(captime_first: float, overspent: float) -> None:
    """Rungs below 1, or negative, cost many times delta."""
    budget = from_first_captime(captime_first)
    assert float(spent(budget, 10)[0]) == pytest.approx(overspent, abs=0.1)
    with pytest.raises(AssertionError, match="of delta or more"):
        check_spending(budget, 10)


def test_at_half_a_second_the_logarithm_of_seconds_is_not_even_a_number() -> None:
    """log2(1/2) + 1 = 0, and nothing can be divided by it."""
    with pytest.raises(ZeroDivisionError):
        check_spending(from_first_captime(0.5), 10)


def test_a_wasted_budget_is_found_out() -> None:
    """Twice the constant that is needed hides half of delta, which is an error too."""
    with pytest.raises(AssertionError, match=r"only 0\.4.. of delta"):
        check_spending(CellBudget(DELTA, 10, 4, Fraction(22)), 10)


def test_a_missing_union_over_configurations_is_found_out() -> None:
    """Ten configurations, each charged as if it were alone."""
    with pytest.raises(AssertionError, match=r"9\.8.. of delta or more"):
        check_spending(CellBudget(DELTA, 1), 10)


def test_the_radius_of_a_fixed_n_is_found_out_when_every_n_is_looked_at() -> None:
    """A budget for one look, asked at all sample sizes and levels, has no end."""
    with pytest.raises(AssertionError, match="of delta or more"):
        check_spending(SingleLookBudget(DELTA, 10), 10)


def test_a_logarithm_that_is_not_that_of_the_share_is_found_out() -> None:
    """The exact share can be right while the number that the bounds use is not."""

    class Drifted(CellBudget):
        def share(self, n: int, level: int) -> Fraction:
            return super().share(n, level) * (1 + Fraction(1, 10**9))

    with pytest.raises(AssertionError):
        check_logarithms(Drifted(DELTA, 10))
