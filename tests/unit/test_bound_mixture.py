import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from captime.arrays import FloatArray, IntArray
from captime.bounds.mixture import (
    BinnedMixture,
    PairedMixture,
    log_wealth,
    mixture_lower,
    mixture_lower_finite,
    mixture_upper,
    mixture_upper_finite,
    regret_lower,
    sine_nodes,
)
from captime.errors import ScenarioError

# The same examples on every machine, however slow it is.
steady = settings(derandomize=True, deadline=None, max_examples=50)

unit = st.floats(0.0, 1.0)
MANY_NODES = BinnedMixture(nodes=sine_nodes())
scores_in_order = st.lists(unit, min_size=1, max_size=40).map(np.array)
levels = st.floats(0.5, 20.0)


@st.composite
def score_and_raised(draw: st.DrawFn) -> tuple[FloatArray, FloatArray]:
    """Scores, and scores none of which is smaller."""
    pairs = draw(st.lists(st.tuples(unit, unit), min_size=1, max_size=30))
    return np.array([min(pair) for pair in pairs]), np.array([max(pair) for pair in pairs])


def counts_of(index: IntArray, bins: int) -> IntArray:
    """One row of counts."""
    return np.bincount(index, minlength=bins)[None, :].astype(np.int64)


# ---------------------------------------------------------------- exact


@steady
@given(scores_in_order, levels)
def test_the_bound_is_where_the_wealth_suffices_and_just_above_it_does_not(
    scores: FloatArray, log_inverse: float
) -> None:
    """From below: never above the exact value, and within 1e-7 of it."""
    bound = mixture_lower(scores, log_inverse)
    if bound > 1e-200:
        assert log_wealth(scores, bound) >= log_inverse
    assert log_wealth(scores, min(1.0, bound + 1e-7)) < log_inverse


@steady
@given(score_and_raised(), levels)
def test_raising_scores_never_lowers_a_bound(pair: tuple[FloatArray, FloatArray], log_inverse: float) -> None:
    """The licence to let open runs stand in by their ends; for the exact form, the regret form and the finite form."""
    low, high = pair
    slack = 1e-12
    assert mixture_lower(low, log_inverse) <= mixture_lower(high, log_inverse) + slack
    assert mixture_upper(low, log_inverse) <= mixture_upper(high, log_inverse) + slack
    assert regret_lower(low, log_inverse) <= regret_lower(high, log_inverse) + slack
    for population in (len(low), len(low) + 5):
        for bound in (mixture_lower_finite, mixture_upper_finite):
            assert bound(low, population, log_inverse) <= bound(high, population, log_inverse) + slack


@steady
@given(scores_in_order, levels)
def test_order_and_counting_do_not_matter(scores: FloatArray, log_inverse: float) -> None:
    """Shuffled scores, and scores with counts, give the same bound."""
    backwards = scores[::-1]
    twice = np.concatenate((scores, backwards))
    expected = mixture_lower(twice, log_inverse)
    assert mixture_lower(twice[::-1], log_inverse) == pytest.approx(expected, abs=1e-12)
    assert mixture_lower(scores, log_inverse, counts=np.full(len(scores), 2)) == pytest.approx(expected, abs=1e-12)
    assert regret_lower(scores, log_inverse, np.full(len(scores), 2)) == pytest.approx(
        regret_lower(twice, log_inverse), abs=1e-9
    )


@pytest.mark.parametrize("nodes", [np.array([1.0]), np.array([0.0, 1.0]), np.array([0.0])])
def test_all_or_nothing_bets_are_bets_too(nodes: FloatArray) -> None:
    """Everything on a score of 0 is ruin; nothing at all gains nothing. No warnings, no undefined numbers."""
    scores = np.concatenate((np.ones(1000), np.zeros(1)))
    assert mixture_lower(scores, 3.0, nodes) == 0.0
    binned = BinnedMixture(nodes=nodes)
    assert binned.lower(counts_of(binned.bin_down(scores), 129), np.array([3.0])) == 0.0
    assert mixture_lower_finite(scores, 2000, 3.0, nodes=nodes) == 0.5
    # Against q every 1 earns 1/q.
    if nodes[-1] == 1.0:
        expected = math.exp(-(3.0 + math.log(len(nodes))) / 10)
        assert mixture_lower(np.ones(10), 3.0, nodes) == pytest.approx(expected, rel=1e-2)


def test_one_lucky_score_among_thousands_is_found() -> None:
    """Tiny bounds are bounds: the climb finds them where tangents are flat."""
    scores = np.concatenate((np.zeros(3000), np.ones(100)))
    bound = mixture_lower(scores, 3.0, np.array([0.0, 0.9]))
    assert 0.0 < bound < 1e-25
    assert log_wealth(scores, bound, np.array([0.0, 0.9])) >= 3.0


@pytest.mark.parametrize("wrong", [np.array([]), np.array([0.5, 1.5]), np.array([math.nan])])
def test_nodes_that_are_no_shares_are_refused(wrong: FloatArray) -> None:
    """A share of the wealth lies in [0, 1]."""
    with pytest.raises(ScenarioError, match=r"shares of a wealth"):
        mixture_lower(np.ones(3), 3.0, wrong)
    with pytest.raises(ScenarioError, match=r"at least one; try 64"):
        sine_nodes(0)


def test_other_wrong_input_is_refused() -> None:
    """Counts that do not fit, a table of scores, a mean of nothing."""
    with pytest.raises(ScenarioError, match=r"one count, at least 0, per score"):
        mixture_lower(np.ones(3), 3.0, counts=np.array([1, 2]))
    with pytest.raises(ScenarioError, match=r"one list of them at a time"):
        mixture_lower(np.ones((3, 2)), 3.0)
    with pytest.raises(ScenarioError, match=r"has to lie in \(0, 1\]"):
        log_wealth(np.ones(3), 0.0)


# ---------------------------------------------------------------- binned


@pytest.mark.parametrize("candidates", [1, 2, 7, 255])
def test_the_search_finds_what_a_look_at_all_candidates_finds(candidates: int) -> None:
    """Largest candidate with enough wealth, for few and many configurations, one after another or at once."""
    rng = np.random.default_rng(7)
    mixture = BinnedMixture(np.linspace(0.0, 1.0, 17), np.linspace(0.0, 1.0, candidates + 2)[1:-1], sine_nodes(8))
    counts = rng.multinomial(60, rng.dirichlet(np.ones(17), size=500))
    counts[0] = 0
    log_inverse = rng.uniform(0.5, 20.0, 500)
    enough = mixture.lower_table.log_wealth(counts) >= log_inverse[:, None]
    expected = np.where(enough, mixture.candidates, 0.0).max(axis=1)
    found = mixture.lower(counts, log_inverse)
    np.testing.assert_array_equal(found, expected)
    for row in range(0, 500, 50):
        assert mixture.lower(counts[[row]], log_inverse[[row]]) == found[row]


@steady
@given(scores_in_order, levels)
@example(np.array([1.0, 1.0 / 256.0]), 1.0)
def test_binned_bounds_are_on_the_safe_side_and_near(scores: FloatArray, log_inverse: float) -> None:
    """Rounded down for lower ends, up for upper ends: never tighter than exact, a step wider at most than rounded."""
    bins, steps, mixture = 128, 256, MANY_NODES
    level = np.array([log_inverse])
    down, up = mixture.bin_down(scores), mixture.bin_up(scores)
    lower = float(mixture.lower(counts_of(down, bins + 1), level)[0])
    upper = float(mixture.upper(counts_of(up, bins + 1), level)[0])
    # The bound of few scores may move by more than the scores do, so what rounding them costs is not claimed here.
    rounded = mixture_lower(mixture.grid[down], log_inverse), mixture_upper(mixture.grid[up], log_inverse)
    assert rounded[0] - 1.0 / steps - 1e-4 <= lower <= mixture_lower(scores, log_inverse) + 1e-9
    assert mixture_upper(scores, log_inverse) - 1e-9 <= upper <= rounded[1] + 1.0 / steps + 1e-4


@pytest.mark.parametrize("bins", [16, 64, 1024])
def test_rounding_costs_at_most_one_bin(bins: int) -> None:
    """Exact candidates on rounded scores, by their counts, at a cost that depends on the bins alone."""
    rng = np.random.default_rng(8)
    mixture = BinnedMixture(np.arange(bins + 1) / np.float64(bins), nodes=sine_nodes())
    for scores in (rng.random(3000), rng.beta(8.0, 1.0, 3000), rng.beta(0.3, 0.3, 3000)):
        counts = counts_of(mixture.bin_down(scores), bins + 1)[0]
        exact = mixture_lower(scores, 9.0)
        assert exact - 1.0 / bins <= mixture_lower(mixture.grid, 9.0, counts=counts) <= exact


@steady
@given(scores_in_order)
def test_down_is_down_and_up_is_up(scores: FloatArray) -> None:
    """Each score lies between its two bins, which are the same or neighbours."""
    mixture = BinnedMixture(np.array([0.0, 0.1, 0.5, 0.75, 1.0]))
    down, up = mixture.bin_down(scores), mixture.bin_up(scores)
    assert (mixture.grid[down] <= scores).all()
    assert (scores <= mixture.grid[up]).all()
    assert ((up - down == 1) | (mixture.grid[down] == scores)).all()


def test_a_table_of_wealth_refuses_what_does_not_fit() -> None:
    """Grids, candidates, counts and levels."""
    with pytest.raises(ScenarioError, match=r"bins of the scores .* strictly increasing .* \[0, 1\]"):
        BinnedMixture(np.array([0.0, 0.0, 1.0]))
    with pytest.raises(ScenarioError, match=r"candidate means .* \(0, 1\)"):
        BinnedMixture(candidates=np.array([0.0, 0.5]))
    mixture = BinnedMixture(np.array([0.25, 0.5]))
    with pytest.raises(ScenarioError, match=r"counts have the shape \(1, 3\), but there are 2 grid values"):
        mixture.lower(np.zeros((1, 3), dtype=np.int64), np.ones(1))
    with pytest.raises(ScenarioError, match=r"failure probability\) is positive"):
        mixture.lower(np.zeros((1, 2), dtype=np.int64), np.zeros(1))
    with pytest.raises(ScenarioError, match=r"grid starts at 0.25"):
        mixture.bin_down(np.array([0.1]))
    with pytest.raises(ScenarioError, match=r"grid ends at 0.5"):
        mixture.bin_up(np.array([0.6]))


# ---------------------------------------------------------------- pairs

differences = st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=30).map(np.array)


@steady
@given(differences, levels)
def test_a_margin_is_a_mean_seen_from_the_other_side(gaps: FloatArray, log_inverse: float) -> None:
    """The evidence against ε from D is the mixture's against q = (1 - ε)/2 from y = (1 - D)/2, bet by bet."""
    paired = PairedMixture(fractions=sine_nodes(64))
    index = paired.bin_up(gaps)
    rounded = paired.differences[index]
    evidence = paired.log_wealth(counts_of(index, 129))[0]
    for number in (0, 17, 200):
        q = (1.0 - float(paired.margins[number])) / 2.0
        assert evidence[number] == pytest.approx(log_wealth((1.0 - rounded) / 2.0, q), abs=1e-8)
    found = float(paired.smallest_margin(counts_of(index, 129), np.array([log_inverse]))[0])
    exact = 1.0 - 2.0 * mixture_lower((1.0 - rounded) / 2.0, log_inverse)
    assert found == 1.0 or found >= exact - 1e-8
    assert found - 1.0 / 256.0 <= max(exact, 0.0) + 1e-6


@steady
@given(differences)
def test_evidence_grows_with_the_margin(gaps: FloatArray) -> None:
    """A larger lead is easier to refute, so all margins share one event."""
    paired = PairedMixture(np.linspace(-1.0, 1.0, 41), np.arange(20) / np.float64(20.0), sine_nodes(8))
    evidence = paired.log_wealth(counts_of(paired.bin_up(gaps), 41))[0]
    assert (np.diff(evidence) >= -1e-9).all()


def test_without_pairs_any_lead_is_possible() -> None:
    """1.0, and with many equal scores a small margin."""
    paired = PairedMixture()
    counts = np.zeros((3, 129), dtype=np.int64)
    counts[1, 64] = 100_000  # differences of 0
    counts[2, 128] = 1000  # the challenger is worth 1 more each time
    found = paired.smallest_margin(counts, np.array([5.0]))
    assert found.tolist() == [1.0, 1.0 / 256.0, 1.0]


def test_a_difference_is_rounded_up() -> None:
    """In the challenger's favour."""
    paired = PairedMixture(np.array([-1.0, 0.0, 1.0]))
    assert paired.bin_up(np.array([-1.0, -0.9, 0.0, 1e-9])).tolist() == [0, 1, 1, 2]
    with pytest.raises(ScenarioError, match=r"margins .* \[0, 1\)"):
        PairedMixture(margins=np.array([0.0, 1.0]))


# ---------------------------------------------------------------- finite sets


@steady
@given(scores_in_order, levels)
def test_the_whole_set_leaves_no_doubt(scores: FloatArray, log_inverse: float) -> None:
    """With all N instances seen both ends are the mean; before, they hold what is certain."""
    n = len(scores)
    assert mixture_lower_finite(scores, n, log_inverse) == pytest.approx(float(scores.mean()), abs=1e-12)
    assert mixture_upper_finite(scores, n, log_inverse) == pytest.approx(float(scores.mean()), abs=1e-12)
    half = scores[: n // 2]
    assert float(half.sum()) / n <= mixture_lower_finite(half, n, log_inverse) + 1e-12
    assert mixture_upper_finite(half, n, log_inverse) <= (float(half.sum()) + n - len(half)) / n + 1e-12


def test_a_large_set_is_like_a_stream() -> None:
    """What was drawn hardly changes what is left."""
    scores = np.random.default_rng(9).random(50)
    assert mixture_lower_finite(scores, 10**9, 3.0) == pytest.approx(mixture_lower(scores, 3.0), abs=1e-6)
    assert mixture_upper_finite(scores, 10**9, 3.0) == pytest.approx(mixture_upper(scores, 3.0), abs=1e-6)


def test_known_sums_of_the_scores_themselves_change_nothing() -> None:
    """Where scores are utilities the sums can be left out."""
    scores = np.random.default_rng(10).random(40)
    sums = np.concatenate((np.zeros(1), np.cumsum(scores)))
    for bound in (mixture_lower_finite, mixture_upper_finite):
        assert bound(scores, 60, 3.0, sums) == pytest.approx(bound(scores, 60, 3.0), abs=1e-9)


@pytest.mark.parametrize("ones", [1, 3, 4])
def test_every_order_of_a_small_set_counted(ones: int) -> None:
    """Exactly: of all orders of N = 8 zeros and ones, at most δ have a wrong bound at some time, on either side."""
    population, delta = 8, 0.3
    truth = ones / population
    wrong = dict.fromkeys((mixture_lower_finite, mixture_upper_finite), 0)
    orders = list(itertools.combinations(range(population), ones))
    for places in orders:
        scores = np.zeros(population)
        scores[list(places)] = 1.0
        for bound in wrong:
            ends = [bound(scores[:n], population, -math.log(delta)) - truth for n in range(1, population + 1)]
            side = 1.0 if bound is mixture_lower_finite else -1.0
            wrong[bound] += any(side * end > 1e-9 for end in ends)
    for count in wrong.values():
        assert Fraction(count, len(orders)) <= Fraction(delta)


def test_the_pilot_counts_in_the_sums_of_a_later_start() -> None:
    """Positions before the first sample are part of what is known."""
    scores = np.ones(20)
    late = np.arange(10, 30)
    poor, rich = np.arange(21.0), 10.0 + np.arange(21.0)
    bounds = [mixture_lower_finite(scores, 40, 3.0, known, positions=late) for known in (poor, rich)]
    assert bounds[0] < bounds[1]
    assert bounds[0] >= 20 / 40
    assert bounds[1] >= 30 / 40
    with pytest.raises(ScenarioError, match=r"give known_sum"):
        mixture_lower_finite(scores, 40, 3.0, positions=late)


def test_wrong_sets_are_refused() -> None:
    """More samples than instances, sums of the wrong length, falling sums, more known than can be."""
    with pytest.raises(ScenarioError, match=r"has no more"):
        mixture_lower_finite(np.ones(5), 4, 3.0)
    for known in (np.arange(5.0), np.array([0.0, 1.0, 0.5, 1.0, 2.0, 2.0]), np.arange(6.0) * 2.0):
        with pytest.raises(ScenarioError, match=r"one sum before each of the 5 samples"):
            mixture_lower_finite(np.ones(5), 10, 3.0, known)
    with pytest.raises(ScenarioError, match=r"a mean needs at least 1"):
        mixture_lower_finite(np.empty(0), 0, 3.0)
