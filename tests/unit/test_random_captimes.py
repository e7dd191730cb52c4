from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from captime.arrays import FloatArray, IntArray
from captime.errors import ScenarioError
from captime.plans import RandomCaptimes, Schedule
from captime.sources.window import stream_of
from captime.utilities import UTILITIES, Utility, parse_utility
from captime.utilities.formula import Named

# Every member of the register, and shapes with jumps, flat parts, both, and long tails.
TEXTS = [
    *(cast("Named", member).example for member in UTILITIES.values()),
    "step(1)",
    "tabulated(0:1, 5:1, 10:0.5, 20:0.5, 60:0)",
    "tabulated(0:1, 10:0.5, tail=drop)",
    "tabulated(0:1, 10:0.5, tail=pareto)",
    "cost-adjusted(step(60), 1, 0.01)",
    "cost-adjusted(uniform(60), 1, 0.5, step, 30)",
    "scipy(poisson, mu=0.5, loc=3)",
    "log-laplace(60, 0.3)",
    "pareto(0.001, 2.5)",
]
BUILT = {text: parse_utility(text) for text in TEXTS}
BOOSTS = [1.0, 1.1, 1.25, 2.0, 3.7, 100.0]
SOON = np.nextafter(1.0, 0.0)

each_utility = pytest.mark.parametrize("utility", BUILT.values(), ids=BUILT.keys())
each_boost = pytest.mark.parametrize("boost", BOOSTS)
steady = settings(derandomize=True, deadline=None, max_examples=200)


def planned(utility: Utility, boost: float, longest: float, draws: FloatArray) -> RandomCaptimes:
    """A plan whose draws are these, position by position."""
    plan = RandomCaptimes(utility, 0, Schedule(boost), Schedule(longest))
    plan._draws = np.asarray(draws, dtype=np.float64)
    return plan


def settled(plan: RandomCaptimes, seconds: FloatArray) -> tuple[list[bool], FloatArray, FloatArray]:
    """What runs of these lengths on positions 0, 1, … come to."""
    position = np.arange(len(seconds))
    completed, low, high = plan.settled(seconds, plan.utility(seconds), np.zeros_like(position), position)
    return completed.tolist(), low, high


def alive(plan: RandomCaptimes, seconds: FloatArray) -> FloatArray:
    """High ends of runs on positions 0, 1, … that were last seen unfinished after so long."""
    position = np.arange(len(seconds))
    return plan.alive(seconds, np.zeros_like(position), position)


def moments(utility: Utility) -> FloatArray:
    """Times over many magnitudes, every breakpoint and its two neighbours, and never."""
    at = np.array(utility.breakpoints)
    near = [at, np.nextafter(at, 0.0), np.nextafter(at, np.inf)]
    return np.unique(np.concatenate([[0.0, 1.0, 30.0, 60.0, np.inf], np.geomspace(1e-6, 1e6, 241), *near]))


Score = Callable[[FloatArray], FloatArray]


def expectation(score: Score, n: int) -> list[tuple[Fraction, Fraction]]:
    """Where n scores fall to 0 as their draws rise, and their exact integrals over the draw.

    A score is constant up to some draw and 0 from there on, so its integral is height times width. The width is found
    by halving the distance between two draws down to neighbouring numbers, not from any formula.
    """
    height = score(np.zeros(n))
    low = np.zeros(n).view(np.int64).copy()
    high = np.full(n, 1.0).view(np.int64).copy()
    while np.any(high - low > 1):
        middle = low + (high - low) // 2
        value = score(middle.view(np.float64))
        assert np.all((value == height) | (value == 0.0)), "a score takes one value and 0"
        high = np.where(value == 0.0, middle, high)
        low = np.where(value == 0.0, low, middle)
    width = np.where(height > 0.0, high.view(np.float64), 0.0)
    return [(Fraction(w), Fraction(h) * Fraction(w)) for h, w in zip(height.tolist(), width.tolist(), strict=True)]


# ---------------------------------------------------------------- what is known of a run

NOTHING = (0.0, 0.0)


@dataclass(frozen=True)
class Known:
    """A row of the table: what is known of one run, and the interval of its score.

    Attributes:
        state: In words.
        seconds: How long it takes without a captime, or was last seen unfinished.
        interval: What is known of its score, with B = 1 and with B = 1.6.
        longest: The longest captime.
        running: It is only known to be unfinished after this many seconds.
    """

    state: str
    seconds: float
    interval: tuple[tuple[float, float], tuple[float, float]]
    longest: float = np.inf
    running: bool = False


# u falls evenly from 1 at 0 s to 0 at 60 s and v / B is ½, so K is 30 s: with B = 1 and v = 0.5, with B = 1.6 and
# v = 0.8. The worth is 0.8 at 12 s, 0.7 at 18 s and 0.55 at 27 s; with B = 1.6 no positive score is below 0.625.
TABLE = [
    Known("completed", 12.0, ((1.0, 1.0), (0.8, 0.8))),
    Known("completed with little worth left", 27.0, ((1.0, 1.0), (0.625, 0.625))),
    Known("completed at once", 0.0, ((1.0, 1.0), (1.0, 1.0))),
    Known("reached K", 45.0, (NOTHING, NOTHING)),
    Known("finished late, exactly at K", 30.0, (NOTHING, NOTHING)),
    Known("finished late, during the kill", 30.3, (NOTHING, NOTHING)),
    Known("failed", np.inf, (NOTHING, NOTHING)),
    Known("failed, and the longest captime is below K", np.inf, (NOTHING, NOTHING), longest=18.0),
    Known("completed below the longest captime", 12.0, ((1.0, 1.0), (0.8, 0.8)), longest=18.0),
    Known("stopped at c < K", 45.0, ((0.0, 1.0), (0.0, 0.7)), longest=18.0),
    Known("stopped at c < K a moment before its end", 18.0, ((0.0, 1.0), (0.0, 0.7)), longest=18.0),
    Known("reached K, the longest captime is beyond", 50.0, (NOTHING, NOTHING), longest=45.0),
    Known("in flight, e < K", 18.0, ((0.0, 1.0), (0.0, 0.7)), running=True),
    Known("in flight, e < K, little worth left", 27.0, ((0.0, 1.0), (0.0, 0.625)), running=True),
    Known("in flight, e = K", 30.0, (NOTHING, NOTHING), running=True),
    Known("in flight, e > K", 31.0, (NOTHING, NOTHING), running=True),
    Known("not started", 0.0, ((0.0, 1.0), (0.0, 1.0)), running=True),
]


@pytest.mark.parametrize("known", TABLE, ids=[row.state for row in TABLE])
@pytest.mark.parametrize(("boost", "draw"), [(1.0, 0.5), (1.6, 0.8)], ids=["B=1", "B=1.6"])
def test_every_state_of_a_run_has_its_interval(known: Known, boost: float, draw: float) -> None:
    """The table of docs/engine.md, row by row."""
    plan = planned(parse_utility("uniform(60)"), boost, known.longest, np.array([draw]))
    seconds = np.array([known.seconds])
    expected = known.interval[0 if boost == 1.0 else 1]
    if known.running:
        found = (0.0, float(alive(plan, seconds)[0]))
        assert found == pytest.approx(expected, rel=1e-12)
        return
    completed, low, high = settled(plan, seconds)
    assert (float(low[0]), float(high[0])) == pytest.approx(expected, rel=1e-12)
    assert completed == [known.state.startswith("completed")]


@each_boost
@each_utility
def test_both_ends_of_an_open_run_are_attained(utility: Utility, boost: float) -> None:
    """A run seen unfinished may end at once, which is worth the high end, or never, which is worth 0."""
    seen = moments(utility)
    draws = np.random.default_rng(1).random(len(seen))
    plan = planned(utility, boost, np.inf, draws)
    _, at_once, _ = settled(plan, seen)
    _, at_no_time, _ = settled(plan, np.full(len(seen), np.inf))
    assert alive(plan, seen).tolist() == at_once.tolist()
    assert not at_no_time.any()


@each_boost
@each_utility
def test_a_stopped_run_hides_what_an_answer_just_then_is_worth(utility: Utility, boost: float) -> None:
    """Stopped at c < K: from 0 up to the score of a run that ends at c; both happen."""
    for longest in (1.0, 29.0, 300.0):
        draws = np.linspace(0.0, SOON, 201)
        short, free = planned(utility, boost, longest, draws), planned(utility, boost, np.inf, draws)
        completed, low, high = settled(short, np.full(201, 1e7))
        _, least, _ = settled(free, np.full(201, np.inf))
        _, most, _ = settled(free, np.full(201, longest))
        assert low.tolist() == least.tolist()
        assert high.tolist() == most.tolist()
        assert not any(completed)


@steady
@given(
    utility=st.sampled_from(list(BUILT.values())),
    boost=st.sampled_from(BOOSTS),
    draw=st.floats(min_value=0.0, max_value=1.0, exclude_max=True),
    seconds=st.floats(min_value=0.0, max_value=1e6) | st.just(np.inf),
    longest=st.floats(min_value=1e-3, max_value=1e6),
    share=st.floats(min_value=0.0, max_value=1.0),
)
def test_intervals_contain_the_score(
    *, utility: Utility, boost: float, draw: float, seconds: float, longest: float, share: float
) -> None:
    """Whatever is known of a run, the score it would have if it had not been stopped lies within."""
    run = np.array([seconds])
    _, score, same = settled(planned(utility, boost, np.inf, np.array([draw])), run)
    plan = planned(utility, boost, longest, np.array([draw]))
    completed, low, high = settled(plan, run)
    assert score.tolist() == same.tolist()
    assert 0.0 <= low[0] <= score[0] <= high[0] <= 1.0
    assert low[0] == high[0] == score[0] or not completed[0]
    if np.isfinite(seconds):
        seen = alive(plan, share * run)
        assert score[0] <= seen[0] <= 1.0


# ---------------------------------------------------------------- unbiased


@each_boost
@each_utility
def test_the_mean_score_over_all_draws_is_the_worth(utility: Utility, boost: float) -> None:
    """E[x | t] = u(t), by exact integration over v, at jumps, on flat parts and in tails."""
    seconds = moments(utility)

    def score(draws: FloatArray) -> FloatArray:
        return settled(planned(utility, boost, np.inf, draws), seconds)[1]

    worth = utility(seconds)
    for u, (width, mean) in zip(worth.tolist(), expectation(score, len(seconds)), strict=True):
        # The chance to finish is min(1, B·u): one rounding in B·u, one in 1/B.
        assert float(width) == pytest.approx(min(1.0, boost * u), rel=4e-16, abs=0.0)
        assert float(mean) == pytest.approx(u, rel=8e-16, abs=0.0)


@each_utility
def test_finishing_before_the_captime_and_having_a_score_are_the_same(utility: Utility) -> None:
    """A run has t < K if and only if u(t) > v / B, also for runs that end where u jumps or begins to be flat."""
    seconds = moments(utility)
    draws = np.random.default_rng(2).random(len(seconds))
    position, level = np.arange(len(seconds)), np.zeros(len(seconds), dtype=np.int64)
    for boost in BOOSTS:
        plan = planned(utility, boost, np.inf, draws)
        assert plan.completes(seconds, level, position).tolist() == settled(plan, seconds)[0]


@each_boost
def test_a_longer_captime_never_lets_fewer_runs_finish(boost: float) -> None:
    """With a larger boost every captime is at least as long, and none is beyond the longest."""
    utility = parse_utility("log-laplace(60, 1)")
    position, level = np.arange(500), np.zeros(500, dtype=np.int64)
    plain = RandomCaptimes(utility, 3, Schedule(1.0), Schedule(900.0))
    boosted = RandomCaptimes(utility, 3, Schedule(boost), Schedule(900.0))
    assert np.all(boosted.captime(level, position) >= plain.captime(level, position))
    assert boosted.captime(level, position).max() <= 900.0


def test_accepting_a_run_that_ends_exactly_at_its_captime_is_biased() -> None:
    """Planted: t <= K. A run at the deadline of a step is worth 0 and would count 1 on average."""
    deadline = parse_utility("step(300)")
    ends_at = np.array([300.0])

    def planted(draws: FloatArray) -> FloatArray:
        return (ends_at <= deadline.inverse(draws)).astype(np.float64)

    def honest(draws: FloatArray) -> FloatArray:
        return settled(planned(deadline, 1.0, np.inf, draws), ends_at)[1]

    assert expectation(planted, 1)[0][1] == 1
    assert expectation(honest, 1)[0][1] == 0 == deadline(ends_at)[0]


def test_a_utility_continuous_from_the_left_would_be_biased() -> None:
    """Planted: "1 up to and including 300 s". A run at 300 s is worth 1 there and counts 0 on average."""
    ends_at = np.array([300.0])
    worth = 1.0  # of that run, by the rule t <= 300

    def planted(draws: FloatArray) -> FloatArray:
        # The first moment from which such a utility is at v or below is 300 s, for every draw.
        return (ends_at < np.full_like(draws, 300.0)).astype(np.float64)

    assert float(expectation(planted, 1)[0][1]) - worth == -1.0
    # None of ours is like that: the value at a jump is the one after it, and the score follows it.
    for text in ("step(300)", "tabulated(0:1, 300:0.5, tail=drop)", "cost-adjusted(step(300), 1, 0.01)"):
        utility = BUILT.get(text) or parse_utility(text)
        plan = planned(utility, 1.0, np.inf, np.zeros(1))
        assert settled(plan, ends_at)[1][0] == utility(ends_at)[0] == 0.0


def test_a_score_decided_from_a_rounded_captime_would_be_biased() -> None:
    """Planted: captimes in whole seconds, rounded down, and scored as if they were K."""
    utility = parse_utility("uniform(60)")
    ends_at = np.array([45.5])

    def planted(draws: FloatArray) -> FloatArray:
        return (ends_at < np.floor(utility.inverse(draws))).astype(np.float64)

    # It finishes if K >= 46, that is with chance 14/60 instead of 14.5/60.
    assert float(expectation(planted, 1)[0][1]) == pytest.approx(14.0 / 60.0, rel=1e-12)
    assert float(utility(ends_at)[0]) == pytest.approx(14.5 / 60.0, rel=1e-12)


# ---------------------------------------------------------------- draws


def plan_of(seed: int) -> RandomCaptimes:
    """A plan with draws of its own."""
    return RandomCaptimes(parse_utility("uniform(60)"), seed, Schedule(1.0), Schedule(np.inf))


def test_a_draw_belongs_to_its_position_whoever_looks_first() -> None:
    """Any order, any step, any far jump: position j carries the same v."""
    positions = np.array([9000, 3, 4095, 4096, 0, 8191, 20_000, 3])
    together = plan_of(7).draws(positions)
    slowly = plan_of(7)
    one_by_one = [float(slowly.draws(np.array([position]))[0]) for position in np.sort(positions)]
    assert sorted(zip(positions.tolist(), together.tolist(), strict=True)) == list(
        zip(np.sort(positions).tolist(), one_by_one, strict=True)
    )
    assert together[1] == together[7]


def test_draws_are_uniform_and_independent_from_position_to_position() -> None:
    """Moments and the correlation of neighbours, across blocks."""
    drawn = plan_of(7).draws(np.arange(100_000))
    assert drawn.min() >= 0.0
    assert drawn.max() < 1.0
    counts = np.bincount((drawn * 20).astype(np.int64), minlength=20)
    assert float(((counts - 5000.0) ** 2 / 5000.0).sum()) < 52.4  # chance 1e-4 with 19 degrees of freedom
    assert abs(float(np.corrcoef(drawn[:-1], drawn[1:])[0, 1])) < 4.0 / np.sqrt(100_000)
    assert len(np.unique(drawn)) == 100_000


def test_draws_have_nothing_to_do_with_the_instances_or_with_other_seeds() -> None:
    """The stream that picks instances is made from the same seed, and is another one."""
    n = 4000
    drawn = plan_of(7).draws(np.arange(n))
    others = [
        plan_of(8).draws(np.arange(n)),
        np.random.default_rng(7).random(n),
        stream_of("shuffle", np.arange(n), 7).rows(0, n).astype(np.float64),
        stream_of("replace", np.arange(n), 7).rows(0, n).astype(np.float64),
    ]
    for other in others:
        assert not np.array_equal(drawn, other)
        assert abs(float(np.corrcoef(drawn, other)[0, 1])) < 4.0 / np.sqrt(n)


def test_an_instance_met_again_has_a_draw_of_its_own() -> None:
    """With replacement the same row comes back; its captime does not."""
    rows = stream_of("replace", np.arange(3), 1).rows(0, 60)
    drawn = plan_of(1).draws(np.arange(60))
    assert all(len(np.unique(drawn[rows == row])) == np.count_nonzero(rows == row) for row in range(3))


def test_nobody_but_the_position_moves_a_captime() -> None:
    """The level does not, and no configuration is mentioned at all: all meet the same captimes."""
    plan = plan_of(5)
    position = np.arange(50)
    at_zero = plan.captime(np.zeros(50, dtype=np.int64), position)
    assert at_zero.tolist() == plan.captime(np.arange(50), position).tolist()
    assert not plan.can_rise(np.zeros(3, dtype=np.int64)).any()
    assert not plan.floor(np.zeros(3, dtype=np.int64)).any()


# ---------------------------------------------------------------- schedules


def ends(plan: RandomCaptimes, position: IntArray) -> list[FloatArray]:
    """Captimes, and the interval ends of runs of 40 s."""
    seconds = np.full(len(position), 40.0)
    level = np.zeros_like(position)
    _, low, high = plan.settled(seconds, plan.utility(seconds), level, position)
    return [plan.captime(level, position), low, high, plan.alive(seconds / 2.0, level, position)]


@pytest.mark.parametrize("which", ["boost", "longest"])
def test_a_schedule_changes_the_future_and_never_the_past(which: str) -> None:
    """Captimes, scores and open intervals of positions before the change stay what they were."""
    plan = RandomCaptimes(parse_utility("uniform(60)"), 11, Schedule(1.25), Schedule(50.0))
    before, after = np.arange(100), np.arange(100, 200)
    past, future = ends(plan, before), ends(plan, after)
    changed = plan.boost if which == "boost" else plan.longest
    changed.change_from(100, 3.0 if which == "boost" else 30.0)
    assert all(np.array_equal(old, new) for old, new in zip(past, ends(plan, before), strict=True))
    assert not all(np.array_equal(old, new) for old, new in zip(future, ends(plan, after), strict=True))
    later = ends(plan, after)
    changed.change_from(150, 2.0 if which == "boost" else 20.0)
    assert all(np.array_equal(old, new) for old, new in zip(past, ends(plan, before), strict=True))
    assert all(np.array_equal(old[:50], new[:50]) for old, new in zip(later, ends(plan, after), strict=True))


def test_a_schedule_refuses_to_change_what_was_decided_earlier() -> None:
    """With the position asked for and the last one that is open."""
    schedule = Schedule(1.0)
    schedule.change_from(10, 2.0)
    with pytest.raises(ScenarioError, match="position 9 has its value already; the last change was at 10"):
        schedule.change_from(9, 3.0)
    with pytest.raises(ScenarioError, match="position 10 has its value already"):
        schedule.change_from(10, 3.0)
    assert schedule.at(np.array([0, 9, 10, 11])).tolist() == [1.0, 1.0, 2.0, 2.0]
    assert schedule.last_change == 10
