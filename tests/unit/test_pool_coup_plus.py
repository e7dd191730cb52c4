"""COUP+ on a growing pool: its budget, its gamma, and that telling it many turns at once changes nothing."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from captime import simulate
from captime.errors import ScenarioError
from captime.procedures import PROCEDURES, Problem
from captime.procedures.coup_plus_growing import GrowingBudget, GrowingCoupPlus
from captime.sources.synthetic import synthetic_table
from captime.utilities import parse_utility
from turn_by_turn import Question, assert_same_story, questions, steady

UTILITY = parse_utility("uniform(60)")
# Just above π²/6.
SERIES = Fraction("1.644934066849")


def test_arrivals_sample_sizes_and_rungs_together_spend_half_of_delta() -> None:
    """The share of a cell when the pool is as small as it can be, summed over everything."""
    first = GrowingBudget(0.1, 1).share(1, 0)
    for pool, n, level in ((3, 1, 0), (2, 5, 3), (40, 7, 1)):
        assert GrowingBudget(0.1, pool).share(n, level) == first / (pool * n * (level + 1)) ** 2
    total = 3 * first * SERIES**3
    assert Fraction("0.4999999") < total <= Fraction(1, 2)


@pytest.mark.parametrize("pool", [1, 7, 50])
def test_logarithm_and_share_agree(pool: int) -> None:
    """What the bounds use is what was summed."""
    budget = GrowingBudget(0.1, pool)
    n, level = np.array([1, 10, 300]), np.array([0, 3, 9])
    shares = [float(budget.share(int(a), int(b))) for a, b in zip(n, level, strict=True)]
    np.testing.assert_allclose(budget.log_inverse(n, level), -np.log(0.1 * np.array(shares)), rtol=1e-12)


@steady
@given(questions("coup-plus-pool", st.sampled_from([{}, {"first_draws": 2}, {"first_draws": 3, "gamma": 0.5}])))
def test_many_turns_at_once_decide_like_one_by_one(question: Question) -> None:
    """Whatever the runtimes, the budget and the pool it began with."""
    assert_same_story(question)


def test_it_grows_and_its_gamma_falls_as_the_formula_says() -> None:
    """Until both goals are reached; every gamma is that of the pool of its certificate."""
    table = synthetic_table(3, 60, 3000, limit=900.0)
    made = simulate(
        table, utility=UTILITY, procedure="coup-plus-pool", epsilon=0.5, options={"gamma": 0.35, "first_draws": 10}
    )
    said = made.certificate
    assert made.outcome.stopped == "epsilon"
    assert said.n_configs > 10
    assert said.epsilon <= 0.5
    assert said.gamma == pytest.approx(1.0 - (0.3 / (math.pi * said.n_configs) ** 2) ** (1.0 / said.n_configs))
    assert said.gamma is not None
    assert said.gamma <= 0.35


@pytest.mark.parametrize(("options", "message"), [({"gamma": 0.0}, "gamma is 0.0"), ({"first_draws": 1}, "takes two")])
def test_options_without_sense_are_refused_by_coup_plus_pool(options: dict[str, float], message: str) -> None:
    """Each with what would make sense."""
    with pytest.raises(ScenarioError, match=message):
        PROCEDURES["coup-plus-pool"](Problem(5, UTILITY, 0.1), **options)


def test_the_rule_adds_nobody_while_anything_could_still_be_perfect() -> None:
    """With the largest upper bound at 1 nothing can be gained outside."""
    made = GrowingCoupPlus(Problem(60, UTILITY, 0.1, n_instances=100), first_draws=20)
    assert made.certificate().n_configs == 20
    assert made.candidates.sum() == 20
