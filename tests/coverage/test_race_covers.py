"""The race is wrong no more often than it may be: all of its statements at all moments, and whole races.

Every kind of statement is held to its own share of delta. A count fails when it exceeds what is left with probability
1e-4 under the allowed rate. That these tests can fail is shown by `test_race_planted_errors.py`. Under `-s` the rates
are printed; `--junitxml` records them.
"""

import math
from collections.abc import Callable, Mapping
from zlib import crc32

import numpy as np
import pytest

from captime.arrays import BoolArray
from captime.errors import ScenarioError
from captime.procedures.problem import SCHEDULE
from race_harness import (
    DELTA,
    SHARE,
    Racing,
    allowed,
    limit_for,
    lower_wrong,
    omniscient_failures,
    paired_wrong,
    plan_for,
    race_failures,
    report,
    scores,
    upper_wrong,
)
from race_worlds import CONFIGURED, WORLDS, tosses
from runtime_laws import LAWS, mixed

Record = Callable[[str, object], None]

# (configurations, length of the stream, share of the repetitions in twentieths)
POOLS = ((2, 300, 10), (10, 200, 7), (50, 150, 3))
# Where races are hardest to get right; the others are shorter and counted together.
HARDEST = ("two_point", "tied", "exactly_epsilon_apart", "opposed_slowly", "late_bloomers")
# Longer strides make fewer decisions: as much evidence, in a third of the time.
QUICK: dict[str, float | bool | str] = {"growth": 2.0}

every_world = pytest.mark.parametrize("name", WORLDS)


def check(name: str, wrong: Mapping[str, BoolArray], record: Record) -> None:
    """Every kind of statement within its own limit."""
    line = report(name, wrong)
    print(line)  # noqa: T201 (the table of observed rates, shown under -s)
    for kind, here in wrong.items():
        record(kind, float(here.mean()))
        assert int(here.sum()) <= limit_for(len(here), allowed(kind)), line


def by_the_omniscient(name: str, repetitions: int, *, boost: float, longest: float = math.inf) -> dict[str, BoolArray]:
    """Failures over few and many configurations, counted together."""
    parts = [
        omniscient_failures(
            WORLDS[name](n_configs),
            repetitions * share // 20,
            positions,
            crc32(f"{name}-{n_configs}-{repetitions}".encode()),
            boost=boost,
            longest=longest,
        )
        for n_configs, positions, share in POOLS
    ]
    return {kind: np.concatenate([part[kind] for part in parts]) for kind in parts[0]}


def raced(name: str, n_configs: int, racing: Racing, repetitions: int) -> dict[str, BoolArray]:
    """Whole races in that world, with luck of its own."""
    return race_failures(WORLDS[name](n_configs), racing, repetitions, crc32(f"{name}-{n_configs}".encode()))


def test_the_shares_are_no_more_than_delta() -> None:
    """Kinds are tested one by one; together they must not be allowed more than was promised."""
    assert math.fsum(SHARE.values()) <= 1.0 + 1e-12


@every_world
def test_no_moment_is_wrong_more_often_than_allowed(name: str, record_property: Record) -> None:
    """400 streams; an adversary who knows everything picks the worst cut of every process."""
    check(name, by_the_omniscient(name, 400, boost=1.25), record_property)


@pytest.mark.parametrize("name", ["two_point", "opposed_slowly", "late_bloomers"])
def test_neither_the_pure_lottery_nor_short_runs_bend_the_truth(name: str, record_property: Record) -> None:
    """Scores of 0 and 1 only, and runs stopped after 40 s whose scores stay intervals."""
    check(f"{name}, B = 1", by_the_omniscient(name, 200, boost=1.0), record_property)
    check(f"{name}, stopped at 40 s", by_the_omniscient(name, 200, boost=1.25, longest=40.0), record_property)


def test_captimes_chosen_with_full_knowledge_make_nothing_wrong_that_was_right() -> None:
    """Runs are stopped early wherever that looks worst, after everything was seen; monotone bounds only get wider."""
    world, repetitions, positions = LAWS["two_point"](mixed(2)), 300, 150
    rng = np.random.default_rng(11)
    plan = plan_for(world.utility)
    score, _ = scores(plan, world.draw(rng, repetitions * positions), repetitions)
    # What a run is known to be worth at most if it is stopped after 20 s.
    place = np.arange(repetitions * positions)
    open_end = plan.alive(np.full(len(place), 20.0), np.zeros(1, dtype=np.int64), place).reshape(repetitions, positions)
    level = 0.5  # so that enough is wrong to compare
    best, gap = float(world.truth[1]), float(world.truth[1] - world.truth[0])
    compared = 0
    for stopped in (score[1] > 0.0, score[1] == 0.0, score[1] > score[0], rng.random(score[1].shape) < 0.5):
        low = np.where(stopped, 0.0, score)
        high = np.where(stopped, np.maximum(open_end, score), score)
        for cut, whole in (
            (lower_wrong(low[1], best, level), lower_wrong(score[1], best, level)),
            (upper_wrong(high[1], best, level), upper_wrong(score[1], best, level)),
            (paired_wrong(high[1] - low[0], gap, level), paired_wrong(score[1] - score[0], gap, level)),
        ):
            assert not (cut & ~whole).any()
            compared += int(whole.sum())
    assert compared > 100


@pytest.mark.parametrize("name", HARDEST)
def test_whole_races_are_wrong_no_more_often_than_allowed(name: str, record_property: Record) -> None:
    """160 races, looked at after every decision, so that stopping at the worst moment is included."""
    check(name, raced(name, 3, Racing(80, QUICK), 160), record_property)


def test_short_races_in_all_worlds_are_wrong_no_more_often_than_allowed(record_property: Record) -> None:
    """5 races in each world, counted together, with the options as they come."""
    parts = [raced(name, 3, Racing(40), 5) for name in WORLDS]
    check("all worlds", {kind: np.concatenate([part[kind] for part in parts]) for kind in parts[0]}, record_property)


@pytest.mark.parametrize(
    ("about", "racing"),
    [
        ("simultaneous", Racing(80, {**QUICK, "mode": "simultaneous"})),
        ("unpaired, pure lottery", Racing(80, {**QUICK, "paired": False, "boost": 1.0})),
        ("table that ends at 40 s", Racing(80, QUICK, limit=40.0)),
        ("goal 0.3", Racing(80, QUICK, epsilon=0.3)),
    ],
)
def test_the_other_forms_of_the_race_are_wrong_no_more_often_than_allowed(
    about: str, racing: Racing, record_property: Record
) -> None:
    """16 races in each of the hardest worlds, counted together."""
    parts = [raced(name, 3, racing, 16) for name in HARDEST]
    check(about, {kind: np.concatenate([part[kind] for part in parts]) for kind in parts[0]}, record_property)


# As many configurations as short captimes take, and some more.
MANY = 44


def raced_with_many(name: str, repetitions: int) -> dict[str, BoolArray]:
    """Whole races of many configurations, most of whose runs are stopped before their draw."""
    racing = Racing(60, QUICK, epsilon=0.15, schedule=SCHEDULE)
    return race_failures(CONFIGURED[name](MANY), racing, repetitions, crc32(f"{name}-{MANY}".encode()))


@pytest.mark.parametrize("name", CONFIGURED)
def test_races_of_many_configurations_are_wrong_no_more_often_than_allowed(name: str, record_property: Record) -> None:
    """8 races with captimes that follow from everything known so far, looked at after every decision."""
    check(name, raced_with_many(name, 8), record_property)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGURED)
def test_at_full_size_races_of_many_are_wrong_no_more_often_than_allowed(name: str, record_property: Record) -> None:
    """2,000 races per world."""
    check(name, raced_with_many(name, 2000), record_property)


def test_a_scout_that_cannot_be_right_is_rarely_content(record_property: Record) -> None:
    """Thirty configurations, each just below 1 - epsilon: to stop after scouting means a wrong lower bound."""
    world = tosses(np.full(30, 0.69), goal=0.3)
    check("scouts", race_failures(world, Racing(60, QUICK), 40, 5), record_property)


def test_nonsense_among_the_options_is_refused() -> None:
    """The harness passes options on unread; nonsense among them must not go unnoticed."""
    with pytest.raises(ScenarioError):
        race_failures(tosses(np.array([0.5, 0.5])), Racing(20, {"boost": 0.5}), 1, 0)


@pytest.mark.slow
@every_world
def test_at_full_size_no_moment_is_wrong_more_often_than_allowed(name: str, record_property: Record) -> None:
    """2,000 streams per world."""
    check(name, by_the_omniscient(name, 2000, boost=1.25), record_property)


@pytest.mark.slow
@every_world
def test_at_full_size_whole_races_are_wrong_no_more_often_than_allowed(name: str, record_property: Record) -> None:
    """2,000 races per world."""
    check(name, raced(name, 4, Racing(100, QUICK), 2000), record_property)


def test_a_limit_is_where_the_binomial_says() -> None:
    """The table of tolerances at δ = 0.2: 111 of 400, 468 of 2,000."""
    assert [limit_for(400, DELTA), limit_for(2000, DELTA)] == [111, 468]
