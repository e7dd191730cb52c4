"""Bounds miss the truth no more often than they say, at all the times at which they claim to hold.

A count fails when it exceeds what is left with probability 1e-4 under the allowed rate. Each harness is shown to have
teeth: errors planted on purpose are caught by it.
"""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binom

from captime.arrays import FloatArray, IntArray
from captime.bounds import BOUNDS, Moments, Use, check_fit
from captime.bounds.mixture import BinnedMixture, PairedMixture, mixture_lower_finite, mixture_upper_finite, sine_nodes
from captime.errors import ScenarioError
from captime_research.bounds import EmpiricalBernstein, empirical_bernstein_lower

DELTA = 0.1
LOG_INVERSE = float(-np.log(DELTA))
HORIZON = 160
# Time-uniform bounds are looked at here; bounds without it only at the last of them.
LOOKS = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, HORIZON])

Ends = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
"""From low and high ends, one row per repetition, to lower and upper bounds, one per repetition."""


def uniform(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    """Scores anywhere in [0, 1], mean ½."""
    return rng.random(shape)


def coin(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    """0 or 1, mean ½: as much variance as there can be."""
    return rng.integers(0, 2, shape).astype(np.float64)


def rare(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    """1 once in ten, else 0."""
    return (rng.random(shape) < 0.1).astype(np.float64)


def steady(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    """Nearly always 0.9, now and then 0; mean 0.855."""
    return np.where(rng.random(shape) < 0.05, 0.0, 0.9)


LAWS: dict[str, tuple[Callable[[np.random.Generator, tuple[int, int]], FloatArray], float]] = {
    "uniform": (uniform, 0.5),
    "coin": (coin, 0.5),
    "rare": (rare, 0.1),
    "steady": (steady, 0.855),
}
every_law = pytest.mark.parametrize("law", LAWS)


def limit(repetitions: int, level: float = DELTA) -> int:
    """More misses than this happen with probability 1e-4 at most, if misses are as likely as allowed."""
    return int(binom.isf(1e-4, repetitions, level))


def by_rows(name: str) -> Ends:
    """A registered bound, over rows of repetitions."""
    bound = BOUNDS[name]()

    def ends(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        level = np.full(len(low), LOG_INVERSE)
        if bound.needs == "sums":
            n = np.full(len(low), low.shape[1])
            lower, upper = bound(n, low.sum(axis=1), high.sum(axis=1), level, np.zeros(1))
        elif bound.needs == "moments":
            lower, upper = bound(Moments.of(low), Moments.of(high), level)
        elif bound.needs == "bins":
            lower = bound.lower(binned(bound.bin_down(low), len(bound.grid)), level)
            upper = bound.upper(binned(bound.bin_up(high), len(bound.grid)), level)
        else:
            both = np.array([bound(below, above, LOG_INVERSE) for below, above in zip(low, high, strict=True)])
            lower, upper = both[:, 0], both[:, 1]
        return np.asarray(lower), np.asarray(upper)

    return ends


def binned(index: IntArray, bins: int) -> IntArray:
    """Counts per row."""
    rows = len(index)
    flat = index + bins * np.arange(rows)[:, None]
    return np.bincount(flat.ravel(), minlength=rows * bins).reshape(rows, bins)


def misses(
    ends: Ends, low: FloatArray, high: FloatArray, truth: float | FloatArray, looks: IntArray
) -> tuple[int, int]:
    """Repetitions in which the lower bound was above the truth at some look, and the upper bound below it."""
    above, below = np.zeros(len(low), dtype=np.bool_), np.zeros(len(low), dtype=np.bool_)
    for n in looks:
        lower, upper = ends(low[:, :n], high[:, :n])
        above |= lower > truth
        below |= upper < truth
    return int(above.sum()), int(below.sum())


def drawn(law: str, repetitions: int, seed: int) -> tuple[FloatArray, float]:
    """Scores of that law, one row per repetition, and their expectation."""
    draw, mean = LAWS[law]
    return draw(np.random.default_rng(seed), (repetitions, HORIZON)), mean


COVERED = sorted(name for name, member in BOUNDS.items() if member.needs != "pairs")


@every_law
@pytest.mark.parametrize("name", COVERED)
def test_a_bound_misses_no_more_often_than_it_says(name: str, law: str) -> None:
    """At all looks if it is time-uniform, at one if it is not."""
    repetitions = 150 if BOUNDS[name].needs == "samples" else 600
    scores, mean = drawn(law, repetitions, 101)
    looks = LOOKS if BOUNDS[name].time_uniform else LOOKS[-1:]
    assert max(misses(by_rows(name), scores, scores, mean, looks)) <= limit(repetitions)


@pytest.mark.slow
@every_law
@pytest.mark.parametrize("name", COVERED)
def test_a_bound_misses_no_more_often_than_it_says_at_full_size(name: str, law: str) -> None:
    """More repetitions, and so a limit nearer to the level."""
    repetitions = 1500 if BOUNDS[name].needs == "samples" else 6000
    scores, mean = drawn(law, repetitions, 102)
    looks = LOOKS if BOUNDS[name].time_uniform else LOOKS[-1:]
    assert max(misses(by_rows(name), scores, scores, mean, looks)) <= limit(repetitions)


@pytest.mark.parametrize("name", ["hoeffding", "kl"])
def test_a_bound_for_one_sample_size_looked_at_often_is_caught(name: str) -> None:
    """The same harness sees that such a bound is not time-uniform."""
    rng = np.random.default_rng(103)
    scores = coin(rng, (600, 4000))
    assert max(misses(by_rows(name), scores, scores, 0.5, np.arange(5, 4001, 20))) > limit(600)


def test_half_of_the_evidence_is_caught() -> None:
    """A mixture that asks for √(1/δ) instead of 1/δ fails the same test."""
    mixture = BinnedMixture()

    def ends(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        level = np.full(len(low), LOG_INVERSE / 2.0)
        return mixture.lower(binned(mixture.bin_down(low), 129), level), np.ones(len(high))

    scores, mean = drawn("coin", 600, 104)
    assert misses(ends, scores, scores, mean, LOOKS)[0] > limit(600)


# ---------------------------------------------------------------- captimes chosen by an adversary

MONOTONE = sorted(
    name for name, member in BOUNDS.items() if member.monotone and member.time_uniform and member.needs != "pairs"
)


def censored(scores: FloatArray, n: int, *, flatter: bool) -> tuple[FloatArray, FloatArray]:
    """What an adversary shows of the scores who knows them all, at sample size n.

    To flatter, good runs are let finish and bad ones are cut where they still look good; to slander, good runs are
    cut at once. The captimes depend on everything, and change from look to look.
    """
    good = scores >= np.median(scores[:, :n], axis=1, keepdims=True)
    finish = good if flatter else ~good
    seen_at_cut = np.clip(scores + 0.3 + 0.2 * (n % 2), 0.0, 1.0)
    return np.where(finish, scores, 0.0), np.where(finish, scores, seen_at_cut)


@every_law
@pytest.mark.parametrize("flatter", [True, False], ids=["flattered", "slandered"])
@pytest.mark.parametrize("name", MONOTONE)
def test_a_monotone_bound_covers_under_adversarial_captimes(name: str, law: str, *, flatter: bool) -> None:
    """Whatever the captimes: low ends below, high ends above, so the bounds only widen."""
    repetitions = 100
    scores, mean = drawn(law, repetitions, 105)
    ends = by_rows(name)

    def adversary(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        return ends(*censored(low, low.shape[1], flatter=flatter))

    assert max(misses(adversary, scores, scores, mean, LOOKS[2::3])) <= limit(repetitions)


def test_finished_runs_only_are_caught() -> None:
    """The error that intervals are there to avoid: cut runs left out instead of counted at their ends."""
    scores, mean = drawn("uniform", 300, 106)
    finished = np.sort(scores, axis=1)[:, HORIZON // 2 :]  # the better half finishes first
    assert misses(by_rows("mixture-bins"), finished, finished, mean, np.array([HORIZON // 2]))[0] > limit(300)


def test_cutting_a_run_can_raise_empirical_bernstein_so_it_is_refused() -> None:
    """One lucky run among many poor ones: without it the variance is smaller and the lower bound *larger*."""
    scores = np.full(2000, 0.2)
    scores[7] = 1.0
    cut = scores.copy()
    cut[7] = 0.0
    level = np.array(LOG_INVERSE)
    assert empirical_bernstein_lower(Moments.of(cut), level) > empirical_bernstein_lower(Moments.of(scores), level)
    adaptive = Use("adaptive", frozenset({"moments"}), looks_often=True, pays_for_looks=True, intervals=True)
    with pytest.raises(ScenarioError, match=r"can rise when a score falls"):
        check_fit("empirical-bernstein", EmpiricalBernstein, adaptive)
    settled = Use("settled", frozenset({"moments"}), looks_often=True, pays_for_looks=True, intervals=False)
    check_fit("empirical-bernstein", EmpiricalBernstein, settled)


# ---------------------------------------------------------------- rounding

COARSE = np.array([0.0, 0.25, 0.5, 0.75, 1.0])


def coarse(*, low_up: bool = False, high_down: bool = False) -> Ends:
    """Mixture betting on five bins, rounded to the safe side or not."""
    mixture = BinnedMixture(COARSE, nodes=sine_nodes(24))

    def ends(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        level = np.full(len(low), LOG_INVERSE)
        below = mixture.bin_up(low) if low_up else mixture.bin_down(low)
        above = mixture.bin_down(high) if high_down else mixture.bin_up(high)
        return mixture.lower(binned(below, 5), level), mixture.upper(binned(above, 5), level)

    return ends


def test_bins_rounded_to_the_safe_side_cover() -> None:
    """Scores between 0.3 and 0.45, all of them between two bins."""
    scores = np.random.default_rng(107).uniform(0.3, 0.45, (300, HORIZON))
    assert max(misses(coarse(), scores, scores, 0.375, LOOKS)) <= limit(300)


def test_low_ends_rounded_up_are_caught() -> None:
    """Every score becomes ½, and so does the lower bound in the end."""
    scores = np.random.default_rng(107).uniform(0.3, 0.45, (300, HORIZON))
    above, below = misses(coarse(low_up=True), scores, scores, 0.375, LOOKS)
    assert above > limit(300)
    assert below <= limit(300)


def test_high_ends_rounded_down_are_caught() -> None:
    """Every score becomes ¼, and so does the upper bound in the end."""
    scores = np.random.default_rng(107).uniform(0.3, 0.45, (300, HORIZON))
    above, below = misses(coarse(high_down=True), scores, scores, 0.375, LOOKS)
    assert above <= limit(300)
    assert below > limit(300)


# ---------------------------------------------------------------- pairs


def wrong_margins(rounded: Callable[[PairedMixture, FloatArray], IntArray], lead: float, *, seed: int) -> int:
    """Repetitions in which a margin below the challenger's true lead was shown to be enough."""
    paired = PairedMixture(np.linspace(-1.0, 1.0, 33))
    rng = np.random.default_rng(seed)
    shared = rng.random((300, HORIZON))  # an instance is hard for both
    leader = (shared < 0.5).astype(np.float64)
    challenger = (shared < 0.5 + lead).astype(np.float64) * rng.uniform(0.98, 1.0, shared.shape)
    truth = float((0.5 + lead) * 0.99 - 0.5)
    wrong = np.zeros(300, dtype=np.bool_)
    for n in LOOKS:
        index = rounded(paired, challenger[:, :n] - leader[:, :n])
        wrong |= paired.smallest_margin(binned(index, 33), np.full(300, LOG_INVERSE)) < truth
    return int(wrong.sum())


@pytest.mark.parametrize("lead", [0.0, 0.1, 0.3])
def test_a_margin_below_the_true_lead_is_rarely_shown(lead: float) -> None:
    """At any look, for leads large and small, on shared instances."""
    assert wrong_margins(lambda paired, gaps: paired.bin_up(gaps), lead, seed=108) <= limit(300)


def test_differences_rounded_down_are_caught() -> None:
    """A sixteenth off in the leader's favour, every time."""

    def down(paired: PairedMixture, gaps: FloatArray) -> IntArray:
        return np.searchsorted(paired.differences, gaps, side="right") - 1

    assert wrong_margins(down, 0.03, seed=109) > limit(300)


# ---------------------------------------------------------------- finite sets


def lottery_misses(*, sum_of_scores: bool) -> tuple[int, int]:
    """Random captimes on a fixed set: scores are coins whose chance is the utility; N = 30, all drawn in the end."""
    population, repetitions = 30, 120
    rng = np.random.default_rng(110)
    utilities = np.full(population, 0.5)
    above = below = 0
    looks = range(3, population + 1, 3)
    for _ in range(repetitions):
        worth = rng.permutation(utilities)
        scores = (rng.random(population) < worth).astype(np.float64)
        # Cut runs are known to be worth something between 0 and the utility at which they were cut.
        known_low = np.concatenate((np.zeros(1), np.cumsum(scores if sum_of_scores else scores * worth)))
        high = scores if sum_of_scores else np.where(scores > 0, worth, 1.0)
        known_high = np.concatenate((np.zeros(1), np.cumsum(high)))
        above += any(
            mixture_lower_finite(scores[:n], population, LOG_INVERSE, known_low[: n + 1]) > 0.5 + 1e-9 for n in looks
        )
        below += any(
            mixture_upper_finite(scores[:n], population, LOG_INVERSE, known_high[: n + 1]) < 0.5 - 1e-9 for n in looks
        )
    return above, below


def test_lotteries_on_a_fixed_set_are_covered_with_sums_of_utilities() -> None:
    """What is known for certain, and nothing else, is taken off what is left."""
    assert max(lottery_misses(sum_of_scores=False)) <= limit(120)


def test_sums_of_scores_on_a_fixed_set_are_caught() -> None:
    """A lottery's result is not what the instance was worth."""
    assert min(lottery_misses(sum_of_scores=True)) > limit(120)
