import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from captime.arrays import FloatArray
from captime.bounds import BOUNDS, Bound, MomentBound, Moments, SampleBound, Use, check_fit, misfits
from captime.bounds.dkw import Dkw
from captime.bounds.from_sums import (
    Fan,
    Hoeffding,
    Kl,
    KlSequence,
    RegretBetting,
    fan_lower,
    hoeffding_radius,
    kl_divergence,
    kl_lower,
)
from captime.bounds.mixture import Mixture, mixture_lower, mixture_upper, regret, regret_lower, sine_nodes
from captime.errors import ScenarioError
from captime_research.bounds import (
    EmpiricalBernstein,
    PlugInBernstein,
    PlugInBetting,
    empirical_bernstein_lower,
    plug_in_bernstein_lower,
    plug_in_betting_lower,
)

# The same examples on every machine, however slow it is.
steady = settings(derandomize=True, deadline=None, max_examples=50)

# mypy holds every member to the protocol of what it needs.
FROM_SUMS: list[type[Bound]] = [Hoeffding, Kl, KlSequence]
FROM_MOMENTS: list[type[MomentBound]] = [Fan, EmpiricalBernstein]
FROM_SAMPLES: list[type[SampleBound]] = [Mixture, RegretBetting, Dkw, PlugInBetting, PlugInBernstein]
# Bounds of other authors, in the package beside the wheel: tested alike, offered by no procedure.
OF_OTHERS: set[type[object]] = {EmpiricalBernstein, PlugInBetting, PlugInBernstein}

LOG_20 = math.log(20.0)
FOUR_VALUES = np.tile([0.9, 0.8, 1.0, 0.7], 25)
THIRTY_OF_A_HUNDRED = np.concatenate((np.ones(30), np.zeros(70)))

scores_in_order = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40).map(np.array)


def kl_sequence_lower(scores: FloatArray, log_inverse: float) -> float:
    """The time-uniform KL bound of one list of scores."""
    n = np.array([len(scores)])
    return float(kl_lower(n, scores.sum(keepdims=True), log_inverse + regret(n))[0])


def fan_of(scores: FloatArray, log_inverse: float) -> float:
    """The bound from moments of one list of scores."""
    return float(fan_lower(Moments.of(scores), np.array(log_inverse)))


def test_kl_has_the_reference_values() -> None:
    """Mean 0.7 of 200 at one in a million, beside Hoeffding's."""
    log_inverse = np.array([math.log(1e6)])
    n, total, floor = np.array([200]), np.array([140.0]), np.zeros(1)
    lower, upper = Kl()(n, total, total, log_inverse, floor)
    assert (lower[0], upper[0]) == pytest.approx((0.517244, 0.847447), abs=1e-6)
    radius = float(hoeffding_radius(n, log_inverse)[0])
    assert (0.7 - radius, 0.7 + radius) == pytest.approx((0.514154, 0.885846), abs=1e-6)


def test_hoeffding_is_its_formula() -> None:
    """The radius below, and above a radius for the range that the floor leaves."""
    n, log_inverse, floor = np.array([200]), np.array([math.log(1e6)]), np.array([0.25])
    lower, upper = Hoeffding()(n, np.array([120.0]), np.array([140.0]), log_inverse, floor)
    radius = math.sqrt(math.log(1e6) / 400.0)
    assert (lower[0], upper[0]) == pytest.approx((0.6 - radius, 0.7 + 0.75 * radius))


def test_the_regret_has_the_reference_values() -> None:
    """R(1), R(10), …, R(10⁵), and about ½ ln(πn)."""
    n = np.array([1, 10, 100, 1000, 10**4, 10**5])
    assert regret(n) == pytest.approx([0.6931, 1.7362, 2.8762, 4.0264, 5.1775, 6.3288], abs=5e-5)
    assert regret(np.array([1, 100, 1000])) == pytest.approx([0.693147, 2.876200, 4.026368], abs=1e-6)
    assert regret(n) == pytest.approx(0.5 * np.log(np.pi * n), abs=0.13)


@pytest.mark.parametrize(
    ("scores", "lower", "upper"),
    [
        (FOUR_VALUES, 0.808712, 0.883913),
        (THIRTY_OF_A_HUNDRED, 0.170482, 0.449844),
        (np.ones(10), 0.662410, 1.0),
        (np.full(100, 0.5), 0.479470, 0.520530),
    ],
    ids=["four-values", "thirty-of-a-hundred", "ten-ones", "halves"],
)
def test_the_mixture_has_the_reference_values(scores: FloatArray, lower: float, upper: float) -> None:
    """64 sine nodes, one in twenty on each side."""
    assert mixture_lower(scores, LOG_20) == pytest.approx(lower, abs=1e-6)
    assert mixture_upper(scores, LOG_20) == pytest.approx(upper, abs=1e-6)
    assert Mixture()(scores, scores, LOG_20) == pytest.approx((lower, upper), abs=1e-6)


def test_the_relatives_of_the_mixture_have_the_reference_values() -> None:
    """Regret form, time-uniform KL and Fan's floor on the same data."""
    assert regret_lower(FOUR_VALUES, LOG_20) == pytest.approx(0.794522, abs=1e-6)
    assert kl_sequence_lower(FOUR_VALUES, LOG_20) == pytest.approx(0.703304, abs=1e-6)
    assert fan_of(FOUR_VALUES, LOG_20) == pytest.approx(0.768812, abs=1e-6)
    assert kl_sequence_lower(THIRTY_OF_A_HUNDRED, LOG_20) == pytest.approx(0.162177, abs=1e-6)
    assert regret_lower(np.ones(10), LOG_20) == pytest.approx(0.623013, abs=1e-6)


def test_empirical_bernstein_is_its_formula() -> None:
    """One number at a time in plain Python; two samples at least."""
    rng = np.random.default_rng(3)
    scores = 0.8 + 0.2 * rng.random(400)
    log_two = math.log(2.0 / 0.01)
    mean = sum(scores.tolist()) / 400
    variance = sum((x - mean) ** 2 for x in scores.tolist()) / 399
    expected = mean - math.sqrt(2.0 * variance * log_two / 400) - 7.0 * log_two / (3.0 * 399)
    found = empirical_bernstein_lower(Moments.of(scores), np.array(-math.log(0.01)))
    assert float(found) == pytest.approx(expected, abs=1e-12)
    single = Moments.of(scores[:1])
    assert [float(end) for end in EmpiricalBernstein()(single, single, np.array(3.0))] == [0.0, 1.0]


def test_plug_in_bernstein_is_its_formula() -> None:
    """Step by step, as the definition reads."""
    scores = np.random.default_rng(4).beta(4.0, 2.0, 60).tolist()
    mean, variance, total, squares = 0.5, 0.25, 0.0, 0.0
    gained = price = staked = 0.0
    for t, x in enumerate(scores, start=1):
        bet = min(math.sqrt(2.0 * LOG_20 / (variance * t * math.log(1.0 + t))), 0.5)
        gained += bet * x
        price += (x - mean) ** 2 * (-math.log(1.0 - bet) - bet)
        staked += bet
        total += x
        mean = (0.5 + total) / (t + 1)
        squares += (x - mean) ** 2
        variance = (0.25 + squares) / (t + 1)
    found = plug_in_bernstein_lower(np.array(scores), LOG_20)
    assert found == pytest.approx((gained - LOG_20 - price) / staked, abs=1e-12)


def test_plug_in_betting_stops_where_the_capital_is_just_enough() -> None:
    """The capital against the bound is 20, against anything above it is less."""
    scores = np.random.default_rng(5).beta(4.0, 2.0, 60)
    bound = plug_in_betting_lower(scores, LOG_20)
    logs = []
    for q in (bound, bound + 1e-6):
        total, squares, variance, capital = 0.0, 0.0, 0.25, 0.0
        for t, x in enumerate(scores.tolist(), start=1):
            bet = min(math.sqrt(2.0 * LOG_20 / (variance * t * math.log(1.0 + t))), 0.5 / q)
            capital += math.log(1.0 + bet * (x - q))
            total += x
            squares += (x - (0.5 + total) / (t + 1)) ** 2
            variance = (0.25 + squares) / (t + 1)
        logs.append(capital)
    assert logs[0] == pytest.approx(LOG_20, abs=1e-8)
    assert logs[1] < LOG_20


@steady
@given(scores_in_order, st.floats(0.5, 20.0))
def test_the_better_informed_bound_is_never_below(scores: FloatArray, log_inverse: float) -> None:
    """Mixture over very many bets >= regret form >= bound from moments >= KL >= Hoeffding, all time-uniform."""
    fine = mixture_lower(scores, log_inverse, sine_nodes(1024))
    by_regret, by_moments = regret_lower(scores, log_inverse), fan_of(scores, log_inverse)
    by_kl = kl_sequence_lower(scores, log_inverse)
    n = len(scores)
    by_hoeffding = float(scores.mean() - math.sqrt((log_inverse + float(regret(n))) / (2 * n)))
    assert fine >= by_regret - 1e-7
    assert by_regret >= by_moments - 1e-8
    assert by_regret >= by_kl - 1e-8
    assert by_moments >= by_kl - 1e-8
    assert by_kl >= by_hoeffding - 1e-9


@steady
@given(st.integers(1, 1000), st.floats(0.0, 1.0), st.floats(0.01, 100.0))
def test_kl_is_the_root_of_its_equation_from_below(n: int, mean: float, log_inverse: float) -> None:
    """The divergence at the bound is what was asked for, or a hair more."""
    bound = kl_lower(np.array([n]), np.array([n * mean]), np.array([log_inverse]))
    assert 0.0 <= bound[0] <= mean
    if bound[0] > 1e-290:
        found = float(n * kl_divergence(np.array([mean]), bound)[0])
        assert found >= log_inverse * (1.0 - 1e-9) - 1e-12
        above = bound + 1e-6
        if above[0] < mean:
            assert float(n * kl_divergence(np.array([mean]), above)[0]) < log_inverse


@pytest.mark.parametrize("member", FROM_SAMPLES)
@steady
@given(scores=scores_in_order, log_inverse=st.floats(0.5, 20.0))
def test_upper_is_lower_seen_from_the_other_side(
    member: type[SampleBound], scores: FloatArray, log_inverse: float
) -> None:
    """UCB(x) = 1 - LCB(1 - x), and both lie in [0, 1] around each other."""
    bound = member()
    lower, upper = bound(scores, scores, log_inverse)
    mirrored = bound(1.0 - scores, 1.0 - scores, log_inverse)
    assert 0.0 <= lower <= upper <= 1.0
    assert (1.0 - mirrored[1], 1.0 - mirrored[0]) == pytest.approx((lower, upper), abs=1e-9)


@pytest.mark.parametrize("member", FROM_MOMENTS)
def test_bounds_from_moments_serve_many_configurations_at_once(member: type[MomentBound]) -> None:
    """Rows of scores give what each row gives alone; the upper end mirrors the lower."""
    scores = np.random.default_rng(6).beta(8.0, 2.0, (5, 300))
    lower, upper = member()(Moments.of(scores), Moments.of(scores), np.full(5, 4.0))
    mirrored, _ = member()(Moments.of(1.0 - scores), Moments.of(1.0 - scores), np.full(5, 4.0))
    assert upper == pytest.approx(1.0 - mirrored, abs=1e-9)
    for row in range(5):
        alone = member()(Moments.of(scores[row]), Moments.of(scores[row]), np.array(4.0))
        assert (float(alone[0]), float(alone[1])) == pytest.approx((lower[row], upper[row]), abs=1e-12)
        assert 0.0 < lower[row] < scores[row].mean() < upper[row] < 1.0


def test_every_member_says_what_it_is_and_needs() -> None:
    """Two facts, what it is computed from, and a line for listings; the protocols above have every kind."""
    for name, member in BOUNDS.items():
        assert isinstance(member.monotone, bool), name
        assert isinstance(member.time_uniform, bool), name
        assert member.needs in {"sums", "moments", "samples", "bins", "pairs"}, name
        assert member.summary, name
        assert "\n" not in member.summary, name
    for kind, members in (("sums", FROM_SUMS), ("moments", FROM_MOMENTS), ("samples", FROM_SAMPLES)):
        assert {member for member in BOUNDS.values() if member.needs == kind} == set(members) - OF_OTHERS


PAPER = Use("up", frozenset({"sums"}), looks_often=True, pays_for_looks=True, intervals=True)
RACE = Use("race", frozenset({"samples", "bins", "pairs"}), looks_often=True, pays_for_looks=False, intervals=True)


@pytest.mark.parametrize(
    ("use", "fitting"),
    [
        (PAPER, {"hoeffding", "kl", "kl-sequence"}),
        (RACE, {"mixture", "mixture-regret", "mixture-bins", "mixture-pairs", "dkw"}),
    ],
    ids=["paper", "race"],
)
def test_a_procedure_is_offered_what_it_may_use(use: Use, fitting: set[str]) -> None:
    """By the facts that the members declare."""
    assert {name for name, member in BOUNDS.items() if not misfits(member, use)} == fitting


@pytest.mark.parametrize(
    ("name", "use", "reason"),
    [
        ("mixture-moments", RACE, "can rise when a score falls.*choose a monotone bound"),
        ("hoeffding", RACE, "computed from the sums of the scores.*holds at one sample size only"),
        ("mixture", PAPER, "computed from the scores one by one, and the procedure keeps the sums"),
    ],
)
def test_an_invalid_combination_is_refused_with_the_reason(name: str, use: Use, reason: str) -> None:
    """Who, why, and what to choose instead."""
    with pytest.raises(ScenarioError, match=rf"'{name}' does not fit the procedure '{use.procedure}': .*{reason}"):
        check_fit(name, BOUNDS[name], use)


@pytest.mark.parametrize("member", FROM_SAMPLES)
@pytest.mark.parametrize("wrong", [[0.5, 1.5], [-0.1], [math.nan]])
def test_scores_outside_the_unit_interval_are_refused(member: type[SampleBound], wrong: list[float]) -> None:
    """With their number and value."""
    scores = np.array(wrong)
    with pytest.raises(ScenarioError, match=r"score number \d is .* lies in \[0, 1\]"):
        member()(scores, scores, 3.0)


@pytest.mark.parametrize("member", FROM_SAMPLES)
@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan])
def test_a_failure_probability_of_one_or_more_is_refused(member: type[SampleBound], wrong: float) -> None:
    """Nothing is certified by a bound that always fails."""
    with pytest.raises(ScenarioError, match=r"ln\(1 / failure probability\) is positive"):
        member()(np.full(50, 0.5), np.full(50, 0.5), wrong)


@pytest.mark.parametrize("member", FROM_SAMPLES)
def test_without_scores_nothing_is_known(member: type[SampleBound]) -> None:
    """[0, 1]."""
    assert member()(np.empty(0), np.empty(0), 3.0) == (0.0, 1.0)


PAGE = (Path(__file__).parents[2] / "docs" / "bounds.md").read_text(encoding="utf-8")


def test_the_page_on_bounds_has_every_member_with_its_facts() -> None:
    """Name, monotone, time-uniform and needs, as declared."""
    rows = re.findall(r"^\| `([\w-]+)` \| (yes|no) \| (yes|no) \| (\w+) \|", PAGE, flags=re.MULTILINE)
    said = {name: (monotone == "yes", uniform == "yes", needs) for name, monotone, uniform, needs in rows}
    assert said == {name: (bound.monotone, bound.time_uniform, bound.needs) for name, bound in BOUNDS.items()}


def test_the_figures_on_the_page_are_what_its_code_gives() -> None:
    """The block runs, and what it asserts is true."""
    found = re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert found
    for block in found:
        exec(compile(block, "docs/bounds.md", "exec"), {"__name__": "example"})  # noqa: S102 (our own documentation)
