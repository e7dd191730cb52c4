"""What must hold for any runtimes and any utility, without a word about chance."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from captime.arrays import FloatArray
from captime.bounds import Hoeffding, hoeffding_radius
from captime.errors import ScenarioError
from captime.plans import Ladder
from captime.utilities import Utility, parse_utility
from runtime_laws import done_only_before_captimes

# The same examples on every machine, however slow it is.
steady = settings(derandomize=True, deadline=None, max_examples=150)

any_utility = st.sampled_from(
    [
        parse_utility(text)
        for text in ("log-laplace(60, 1)", "uniform(60)", "exponential(10)", "step(8)", "pareto(2, 0.5)", "parc(30, 2)")
    ]
)
# Ordinary runtimes, runtimes on the captimes of a ladder from 1 s, and runs that never finish.
any_runtime = (
    st.floats(0.0, 1e6) | st.sampled_from([1.0, 2.0, 4.0, 8.0, 16.0, 32.0]) | st.sampled_from([0.0, float("inf")])
)
some_runtimes = st.lists(any_runtime, min_size=1, max_size=40).map(np.array)
some_scores = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40).map(np.array)
any_level = st.integers(0, 12)
any_logarithm = st.floats(0.1, 60.0)


def made(utility: Utility, seconds: FloatArray, level: int) -> tuple[Ladder, FloatArray, FloatArray, FloatArray]:
    """A doubling ladder from 1 s, and these runs on one of its rungs: completed, low ends, high ends."""
    ladder = Ladder.doubling(utility, 1.0)
    rung, position = np.full(len(seconds), level), np.arange(len(seconds))
    completed, low, high = ladder.settled(seconds, utility(seconds), rung, position)
    return ladder, completed.astype(np.float64), low, high


def one_interval(n: int, low: float, high: float, log_inverse: float, floor: float) -> tuple[float, float]:
    """Hoeffding's interval for one configuration."""
    single = (np.array([low]), np.array([high]), np.array([log_inverse]), np.array([floor]))
    lower, upper = Hoeffding()(np.array([n]), *single)
    return float(lower[0]), float(upper[0])


@steady
@given(any_utility, some_runtimes, any_level)
def test_the_mean_low_end_is_the_capped_mean_less_the_capping_term(
    utility: Utility, seconds: FloatArray, level: int
) -> None:
    """mean(low) = Û - u(κ)(1 - F̂), and mean(high) = Û, with Û and F̂ as the paper defines them."""
    ladder, _, low, high = made(utility, seconds, level)
    captime = ladder.rungs[level]
    worth_at_captime = float(utility(np.array([captime]))[0])
    capped_mean = float(utility(np.minimum(seconds, captime)).mean())
    finished = float(np.mean(seconds < captime))
    assert high.mean() == pytest.approx(capped_mean, abs=1e-12)
    assert low.mean() == pytest.approx(capped_mean - worth_at_captime * (1.0 - finished), abs=1e-12)


@steady
@given(any_utility, some_runtimes, any_level)
def test_a_run_is_worth_something_between_its_ends(utility: Utility, seconds: FloatArray, level: int) -> None:
    """0 <= low <= u(t) <= high <= 1, equal where the run completed, and no high end below u(κ)."""
    ladder, completed, low, high = made(utility, seconds, level)
    worth = utility(seconds)
    assert (low >= 0.0).all()
    assert (low <= worth).all()
    assert (worth <= high).all()
    assert (high <= 1.0).all()
    assert (high >= ladder.floor(np.array([level]))).all()
    assert ((low == high) | (completed == 0.0)).all()


@steady
@given(any_utility, some_runtimes, any_level, any_logarithm)
def test_the_width_is_what_chance_and_the_cap_add_up_to(
    utility: Utility, seconds: FloatArray, level: int, log_inverse: float
) -> None:
    """UCB - LCB = (2 - u(κ))α + u(κ)(1 - F̂), the exact width."""
    ladder, completed, low, high = made(utility, seconds, level)
    floor, n = float(ladder.floor(np.array([level]))[0]), len(seconds)
    lower, upper = one_interval(n, float(low.sum()), float(high.sum()), log_inverse, floor)
    radius = float(hoeffding_radius(np.array([n]), np.array([log_inverse]))[0])
    expected = (2.0 - floor) * radius + floor * (1.0 - float(completed.mean()))
    assert upper - lower == pytest.approx(expected, abs=1e-12)


@steady
@given(some_scores, any_logarithm, st.data())
def test_raising_a_score_never_lowers_a_bound(scores: FloatArray, log_inverse: float, data: st.DataObject) -> None:
    """Monotone: what makes a cut run safe to count by its ends."""
    which = data.draw(st.integers(0, len(scores) - 1))
    better = scores.copy()
    better[which] = data.draw(st.floats(float(scores[which]), 1.0))
    n = len(scores)
    before = one_interval(n, float(scores.sum()), float(scores.sum()), log_inverse, 0.0)
    after = one_interval(n, float(better.sum()), float(better.sum()), log_inverse, 0.0)
    assert after[0] >= before[0] - 1e-15
    assert after[1] >= before[1] - 1e-15


@steady
@given(some_scores, any_logarithm)
def test_the_upper_bound_mirrors_the_lower_one(scores: FloatArray, log_inverse: float) -> None:
    """UCB(x) = 1 - LCB(1 - x) where scores range over [0, 1]."""
    n, total, mirrored = len(scores), float(scores.sum()), float((1.0 - scores).sum())
    _, upper = one_interval(n, total, total, log_inverse, 0.0)
    lower, _ = one_interval(n, mirrored, mirrored, log_inverse, 0.0)
    assert upper == pytest.approx(1.0 - lower, abs=1e-12)


@steady
@given(any_utility, some_runtimes, any_level)
def test_a_higher_captime_never_widens_what_is_known_of_a_run(
    utility: Utility, seconds: FloatArray, level: int
) -> None:
    """Low ends only rise and high ends only fall from level to level."""
    _, _, low, high = made(utility, seconds, level)
    _, _, low_later, high_later = made(utility, seconds, level + 1)
    assert (low_later >= low).all()
    assert (high_later <= high).all()


@steady
@given(any_utility, st.floats(1e-3, 1e3), st.floats(1e-3, 1e6) | st.just(float("inf")))
def test_captimes_double_and_end_exactly_at_the_top(utility: Utility, first: float, top: float) -> None:
    """first, 2·first, 4·first, … below the top, then the top itself, and no level beyond it."""
    ladder = Ladder.doubling(utility, first, top)
    level = np.arange(len(ladder.rungs))
    captimes = ladder.captime(level, np.zeros_like(level))
    for rung, captime in enumerate(captimes[:-1].tolist()):
        assert captime == first * 2.0**rung
        assert captime < top
    if top < float("inf"):
        assert captimes[-1] == top
        assert top <= first * 2.0 ** int(level[-1])
    else:
        assert captimes[-1] == first * 2.0 ** int(level[-1])
    assert ladder.can_rise(level).tolist() == [True] * int(level[-1]) + [False]
    np.testing.assert_array_equal(ladder.floor(level), utility(captimes))


@steady
@given(any_utility, st.floats(1e-3, 1e3), st.floats(1e-3, 1e6))
def test_completed_means_strictly_before_the_captime(utility: Utility, first: float, top: float) -> None:
    """At κ and at the next number above it a run is cut; at the number before, it is done."""
    assert done_only_before_captimes(Ladder.doubling(utility, first, top))


@pytest.mark.parametrize("rungs", [[], [0.0, 1.0], [-1.0], [1.0, 1.0], [2.0, 1.0], [1.0, float("nan")]])
def test_a_ladder_refuses_captimes_that_do_not_rise(rungs: list[float]) -> None:
    """Positive and strictly increasing, or a clear word about it."""
    with pytest.raises(ScenarioError, match="positive and strictly increasing"):
        Ladder(parse_utility("uniform(60)"), np.array(rungs))


@pytest.mark.parametrize("first", [0.0, -1.0, float("inf"), float("nan")])
def test_a_ladder_refuses_a_first_captime_that_is_no_time(first: float) -> None:
    """A positive, finite number of seconds."""
    with pytest.raises(ScenarioError, match="first captime"):
        Ladder.doubling(parse_utility("uniform(60)"), first)
