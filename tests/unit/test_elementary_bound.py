"""Layer 2 of the proof: the elementary bound, where it is nearly tight, and the numbers of the paper."""

import math
from fractions import Fraction

import numpy as np
import pytest

from captime.arrays import FloatArray
from captime.bounds import Hoeffding, hoeffding_radius
from captime.budget import FailureBudget
from captime.errors import ScenarioError
from captime.procedures import PROCEDURES, Problem
from captime.procedures.lockstep import Lockstep
from captime.procedures.naive import Naive
from captime.utilities import parse_utility

LOG_LAPLACE, UNIFORM = parse_utility("log-laplace(60, 1)"), parse_utility("uniform(60)")
MINISAT = 972  # configurations of the paper's first data set


def ends(n: int, sums: FloatArray, delta: float, floor: float) -> tuple[FloatArray, FloatArray]:
    """Hoeffding's interval for each of these sums."""
    return Hoeffding()(np.array([n]), sums, sums, np.array([-math.log(delta)]), np.array([floor]))


@pytest.mark.parametrize("delta", [0.2, 0.05])
@pytest.mark.parametrize("n", [10, 100, 1000])
@pytest.mark.parametrize("floor", [0.0, 0.9])
def test_each_end_misses_with_at_most_the_probability_asked_for(n: int, delta: float, floor: float) -> None:
    """Exactly, from the binomial distribution: half of the runs are worth 1, half are worth the floor."""
    successes = np.arange(n + 1)
    sums: FloatArray = successes * np.float64(1.0 - floor) + n * floor
    lower, upper = ends(n, sums, delta, floor)
    ways = [math.comb(n, int(k)) for k in successes]
    truth = (1.0 + floor) / 2
    for wrong in (lower > truth, upper < truth):
        chance = Fraction(sum(w for w, missed in zip(ways, wrong, strict=True) if missed), 2**n)
        assert chance <= Fraction(delta)


@pytest.mark.parametrize("delta", [0.2, 0.05])
@pytest.mark.parametrize("n", [10, 100, 1000])
def test_the_interval_is_the_one_a_second_implementation_gives(n: int, delta: float) -> None:
    """One number at a time in plain Python, equal to 1e-12."""
    sums = np.linspace(0.0, n, 7)
    lower, upper = ends(n, sums, delta, 0.25)
    radius = math.sqrt(math.log(1.0 / delta) / (2 * n))
    for total, low, high in zip(sums.tolist(), lower.tolist(), upper.tolist(), strict=True):
        assert low == pytest.approx(total / n - radius, abs=1e-12)
        assert high == pytest.approx(total / n + 0.75 * radius, abs=1e-12)


def test_a_radius_that_is_too_small_fails_the_same_exact_test() -> None:
    """Half of Hoeffding's radius misses a fair coin too often, so the exact test can tell."""
    n, delta = 100, 0.05
    lower, _ = ends(n, np.arange(n + 1.0), delta**0.25, 0.0)
    ways = sum(math.comb(n, k) for k in range(n + 1) if lower[k] > 0.5)
    assert Fraction(ways, 2**n) > Fraction(delta)


def budget_of(name: str, **options: object) -> FailureBudget:
    """The budget of a procedure from the register, for the paper's first data set."""
    made = PROCEDURES[name](Problem(MINISAT, LOG_LAPLACE, 0.1), **options)
    assert isinstance(made, Lockstep)
    return made.intervals.budget


def radius_at(budget: FailureBudget, n: int, level: int) -> float:
    """The paper's α."""
    n_samples, rung = np.array([n]), np.array([level])
    return float(hoeffding_radius(n_samples, budget.log_inverse(n_samples, rung))[0])


@pytest.mark.parametrize(
    ("n", "level", "paper", "published"),
    [
        (1, 0, 2.406225, 2.404541),
        (100, 6, 0.351298, 0.351182),
        (1000, 9, 0.122476, 0.122442),
        (10000, 9, 0.041597, 0.041587),
    ],
)
def test_the_radius_of_up_is_the_papers(n: int, level: int, paper: float, published: float) -> None:
    """Constant 11 in the paper, 4·2.705808 in the published code."""
    for variant in ("recommended", "paper"):
        assert radius_at(budget_of("up", variant=variant), n, level) == pytest.approx(paper, abs=5e-7)
    assert radius_at(budget_of("up", variant="as-published"), n, level) == pytest.approx(published, abs=5e-7)


@pytest.mark.parametrize(("n", "alpha"), [(100, 0.314472), (1000, 0.110417)])
def test_the_radius_of_the_oracle_is_the_papers(n: int, alpha: float) -> None:
    """sqrt(ln(4nm²/δ) / 2m)."""
    assert radius_at(budget_of("oracle"), n, 0) == pytest.approx(alpha, abs=5e-7)


@pytest.mark.parametrize(
    ("captime", "epsilon", "samples"),
    [
        (300, 0.13, 21945),
        (300, 0.16, 5487),
        (300, 0.19, 2439),
        (300, 0.22, 1372),
        (300, 0.25, 878),
        (600, 0.10, 7901),
        (600, 0.15, 1976),
        (600, 0.20, 878),
    ],
)
def test_naive_makes_as_many_runs_as_the_paper_says_for_log_laplace(
    captime: float, epsilon: float, samples: int
) -> None:
    """The published sample sizes on the first data set; the authors' rounding agrees where none is an integer."""
    problem = Problem(MINISAT, LOG_LAPLACE, 0.1, epsilon=epsilon)
    assert Naive(problem, captime=captime).samples == samples
    assert Naive(problem, captime=captime, variant="as-published").samples == samples


@pytest.mark.parametrize(
    ("epsilon", "samples"), [(0.10, 1976), (0.13, 1169), (0.16, 772), (0.19, 548), (0.22, 409), (0.25, 317)]
)
@pytest.mark.parametrize("captime", [60, 600])
def test_naive_makes_as_many_runs_as_the_paper_says_for_uniform(captime: float, epsilon: float, samples: int) -> None:
    """Nothing is worth anything after a minute, so a longer captime changes the cost and not the number."""
    assert Naive(Problem(MINISAT, UNIFORM, 0.1, epsilon=epsilon), captime=captime).samples == samples


def test_naive_refuses_more_runs_than_there_are_instances() -> None:
    """The paper's failing point: 21945 runs from 20118 instances."""
    problem = Problem(MINISAT, LOG_LAPLACE, 0.1, epsilon=0.13, n_instances=20118)
    with pytest.raises(ScenarioError, match=r"naive needs 21945 instances .* there are 20118"):
        Naive(problem, captime=300)


def test_naive_refuses_a_captime_that_hides_as_much_as_epsilon() -> None:
    """At 60 s half of the worth is still ahead; strictly less than epsilon must be."""
    with pytest.raises(ScenarioError, match=r"still 0\.5; it must be below epsilon"):
        Naive(Problem(MINISAT, LOG_LAPLACE, 0.1, epsilon=0.5), captime=60)
