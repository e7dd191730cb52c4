"""COUP: OUP on a pool that grows phase by phase, with a certificate about the space the pool is drawn from."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from captime import simulate
from captime.budget import SERIES_SQUARED, PhaseBudget
from captime.errors import ScenarioError
from captime.procedures import PROCEDURES, Problem
from captime.procedures.coup import Coup
from captime.sources.synthetic import synthetic_table
from captime.utilities import parse_utility
from turn_by_turn import Question, assert_same_story, questions, steady
from unit.test_budget_exact import check_logarithms

OPTIONS: st.SearchStrategy[dict[str, object]] = st.sampled_from(
    [
        # Slow rates, so that small tables hold several phases.
        {"rule": rule, "variant": variant, "gamma_rate": 0.01, "epsilon_rate": 0.2}
        for rule in ("new", "old")
        for variant in ("recommended", "as-published")
    ]
)


def built(n_configs: int = 5000, delta: float = 0.01, **options: object) -> Coup:
    """COUP under log-laplace(60, 1)."""
    made = PROCEDURES["coup"](Problem(n_configs, parse_utility("log-laplace(60, 1)"), delta), **options)
    assert isinstance(made, Coup)
    return made


def pools(made: Coup, phases: int) -> list[int]:
    """n_p of the first phases."""
    return [made._pool_size(made.problem.delta, phase) for phase in range(1, phases + 1)]


@steady
@given(questions("coup", OPTIONS).filter(lambda question: len(question.seconds) >= 5))
def test_many_turns_at_a_time_decide_like_one_by_one(question: Question) -> None:
    """Also where a turn ends a phase and the bounds start afresh."""
    assert_same_story(question)


def test_the_pools_of_the_published_code_are_those_of_the_paper() -> None:
    """n_p for gamma_p = exp(-p/3) at two deltas."""
    assert pools(built(variant="as-published"), 10) == [9, 14, 22, 33, 48, 70, 100, 144, 205, 292]
    assert pools(built(delta=0.05, variant="as-published"), 10) == [6, 11, 18, 27, 40, 58, 84, 121, 173, 247]


def test_the_recommended_pools_are_the_smallest_that_will_do() -> None:
    """One draw fewer would miss the luckiest gamma too often; the published pools are never smaller."""
    made, published = built(), built(variant="as-published")
    for phase, (size, larger) in enumerate(zip(pools(made, 12), pools(published, 12), strict=True), start=1):
        allowed, gamma = 3 * 0.01 / (math.pi * phase) ** 2, math.exp(-phase / 3)
        assert (1 - gamma) ** size <= allowed < (1 - gamma) ** (size - 1)
        assert size <= larger


def test_bounds_and_pools_together_spend_no_more_than_delta() -> None:
    """Half for the pools, exactly; for the bounds 4·(π²/6)³ / 36 = 0.495, over all phases, sizes and rungs."""
    # π²/6 from above, as a fraction whose square is still above (π²/6)²'s rational bound.
    series = Fraction("1.6449340669")
    assert series**2 >= SERIES_SQUARED - Fraction(1, 10**8)
    for phase, pool, n, level in ((1, 5, 1, 0), (4, 24, 17, 3), (9, 200, 1000, 11)):
        share = PhaseBudget(0.1, pool, phase).share(n, level)
        assert share * 36 * phase**2 * pool * n**2 * (level + 1) ** 2 == 1
    total = 4 * series**3 * PhaseBudget(0.1, 1, 1).share(1, 0)
    assert Fraction(49, 100) < total <= Fraction(1, 2)
    in_pools = sum(PhaseBudget(0.1, 1, phase).pool_share() for phase in range(1, 100_000))
    assert 0.4999 < in_pools <= 0.5


def test_the_logarithm_is_that_of_the_share_in_every_phase() -> None:
    """What bounds use is what was added up: the phase counts in both."""
    for phase in (1, 2, 3, 7):
        check_logarithms(PhaseBudget(0.1, 12, phase))


def test_the_radius_is_that_of_the_reference() -> None:
    """Test vector: n = 8, m = 100, level 6, delta = 0.01, phase 1."""
    price = PhaseBudget(0.01, 8, 1).log_inverse(np.array([100]), np.array([6]))
    assert math.sqrt(price[0] / 200) == pytest.approx(0.341835, abs=1e-6)


def test_phases_sharpen_epsilon_and_gamma_and_the_certificate_says_both() -> None:
    """Each finished phase is below its epsilon_p; the certificate is the last one that is as good in epsilon."""
    table = synthetic_table(4, 60, 3000, limit=900.0)
    question = Question(table.seconds, "coup", utility="log-laplace(60, 1)", limit=900.0, delta=0.1)
    outcome, made = question.run()
    assert isinstance(made, Coup)
    assert outcome.stopped == "instances"
    assert [phase.number for phase in made.phases] == list(range(1, len(made.phases) + 1))
    assert len(made.phases) >= 4
    for phase in made.phases:
        assert phase.epsilon < math.exp(-phase.number / 6)
        assert phase.gamma == pytest.approx(math.exp(-phase.number / 3))
    last = made.phases[-1]
    held = outcome.certificate
    assert (held.config, held.epsilon, held.gamma, held.n_configs) == (
        last.config,
        last.epsilon,
        last.gamma,
        last.n_configs,
    )
    assert outcome.samples[last.n_configs :].sum() == 0
    assert bool((np.diff(outcome.trace.decisions().epsilon) <= 0).all())


def test_the_users_epsilon_ends_it() -> None:
    """As soon as any phase has shown it."""
    table = synthetic_table(4, 60, 3000, limit=900.0)
    result = simulate(table, utility="log-laplace(60, 1)", procedure="coup", epsilon=0.6)
    assert (result.outcome.stopped, result.certificate.epsilon <= 0.6) == ("epsilon", True)
    assert result.certificate.gamma is not None


def test_too_few_configurations_and_wrong_rates_are_refused() -> None:
    """With what to do instead."""
    with pytest.raises(ScenarioError, match=r"first phase needs .* but there are 2; use oup"):
        built(2)
    with pytest.raises(ScenarioError, match="gamma_rate is -1"):
        built(gamma_rate=-1)
    with pytest.raises(ScenarioError, match="coup has no rule"):
        built(rule="none")
    with pytest.raises(ScenarioError, match="log2 of seconds"):
        PROCEDURES["coup"](Problem(60, parse_utility("uniform(60)"), 0.1, captime_first=0.5), variant="as-published")
