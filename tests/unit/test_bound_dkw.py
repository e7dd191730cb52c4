import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from captime import parse_utility
from captime.arrays import FloatArray
from captime.bounds.dkw import Dkw, band_lower, dkw_radius, uniform_dkw_constant, uniform_dkw_radius, utility_bounds
from captime.errors import ScenarioError

# The same examples on every machine, however slow it is.
steady = settings(derandomize=True, deadline=None)

LOG_20 = math.log(20.0)


def test_the_band_has_the_reference_values() -> None:
    """One in twenty, a thousand samples: time-uniform from 100 on, and at one sample size."""
    n = np.array([1000])
    assert uniform_dkw_constant(LOG_20) == pytest.approx(8.1227, abs=5e-5)
    assert uniform_dkw_radius(n, LOG_20, first=100)[0] == pytest.approx(0.082048, abs=1e-6)
    assert dkw_radius(n, np.array([LOG_20]))[0] == pytest.approx(0.042947, abs=1e-6)


@pytest.mark.parametrize("log_inverse", [0.7, 3.0, 12.0, 40.0])
def test_the_constant_is_large_enough_for_a_stitching_that_can_be_checked(log_inverse: float) -> None:
    """For the constant found there is an η at which the failure probability is what was asked for."""
    constant = uniform_dkw_constant(log_inverse)
    smallest = math.inf
    for step in range(1, 4000):
        eta = 1.0 + 0.445 * step / 4000
        rest = 0.85 - math.sqrt(2.0 * (eta - 1.0) / constant)
        gain = 2.0 / eta * rest**2 if rest > 0 else 0.0
        if gain > 1.0:
            failure = 4.0 * math.exp(-gain * constant) * (1.0 + 1.0 / ((gain - 1.0) * math.log(eta)))
            smallest = min(smallest, failure)
    assert smallest == pytest.approx(math.exp(-log_inverse), rel=1e-3)


def test_before_its_first_sample_size_the_band_says_nothing() -> None:
    """Infinite radius, interval [0, 1]; afterwards it narrows."""
    radius = uniform_dkw_radius(np.array([1, 31, 32, 100, 1000, 10**6]), LOG_20)
    assert np.isinf(radius[:2]).all()
    assert (np.diff(radius[2:]) < 0).all()
    assert Dkw()(np.ones(31), np.ones(31), LOG_20) == (0.0, 1.0)
    assert Dkw(first=10)(np.ones(31), np.ones(31), LOG_20)[0] > 0.0
    with pytest.raises(ScenarioError, match=r"at least 1; try 32"):
        uniform_dkw_radius(np.array([5]), LOG_20, first=0)


def test_a_step_utility_gives_the_share_that_finished_in_time() -> None:
    """P̂(t < d) less or plus the radius: a run at the deadline is too late."""
    seconds = np.array([1.0, 2.0, 3.0, 10.0, 20.0, 50.0, 60.0, 70.0, 100.0, np.inf])
    lower, upper = utility_bounds(seconds, 90.0, parse_utility("step(60)"), 0.05)
    assert (lower, upper) == pytest.approx((0.6 - 0.05, 0.6 + 0.05), abs=1e-12)


@pytest.mark.parametrize("text", ["log-laplace(60, 1)", "uniform(100)", "exponential(30)"])
def test_the_bounds_are_integrals_over_the_band(text: str) -> None:
    """∫ max(F̂(s⁻) - r, 0) d(-u) below and ∫ min(F̂(s⁻) + r, 1) d(-u) + u(κ) above, up to the captime.

    Beyond the captime at least those who were done before it are done, which the lower end counts too.
    """
    rng = np.random.default_rng(12)
    seconds = rng.lognormal(3.5, 1.0, 200)
    captime, radius = 80.0, 0.1
    utility = parse_utility(text)
    moments = np.linspace(0.0, captime, 400_001)
    weight = -np.diff(utility(moments))
    finished = np.searchsorted(np.sort(seconds), moments[1:], side="left") / 200.0
    left = float(utility(np.array([captime]))[0])
    below = float(np.maximum(finished - radius, 0.0) @ weight) + left * max(float(finished[-1]) - radius, 0.0)
    above = float(np.minimum(finished + radius, 1.0) @ weight) + left
    assert utility_bounds(seconds, captime, utility, radius) == pytest.approx((below, above), abs=1e-4)


@steady
@given(st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)), min_size=1, max_size=50), st.floats(0.0, 1.0))
def test_raising_scores_never_lowers_the_band_bound(pairs: list[tuple[float, float]], radius: float) -> None:
    """Monotone; and with no radius it is the mean."""
    low, high = np.array([min(pair) for pair in pairs]), np.array([max(pair) for pair in pairs])
    assert band_lower(low, radius) <= band_lower(high, radius) + 1e-12
    assert band_lower(low, 0.0) == pytest.approx(float(low.mean()), abs=1e-12)
    assert float(low.mean()) - radius - 1e-12 <= band_lower(low, radius) <= float(low.mean()) + 1e-12


def test_one_band_serves_all_utilities_at_once() -> None:
    """Where the band holds the distribution, every utility's expectation lies within its bounds."""
    rng = np.random.default_rng(13)
    law = rng.lognormal(3.0, 1.5, 20_000)
    seconds = law[rng.integers(len(law), size=500)]
    moments = np.sort(law)
    distance = np.abs(np.searchsorted(np.sort(seconds), moments) / 500.0 - np.arange(20_000) / 20_000.0).max()
    radius = float(distance) + 1e-3
    utilities = [f"step({d})" for d in (1, 5, 20, 100)] + [f"log-laplace({m}, 1)" for m in (2, 20, 200)]
    for text in [*utilities, "uniform(40)", "pareto(3, 0.5)"]:
        utility = parse_utility(text)
        truth: FloatArray = utility(law)
        for captime in (10.0, 300.0, np.inf):
            lower, upper = utility_bounds(seconds, captime, utility, radius)
            assert lower <= truth.mean() <= upper
