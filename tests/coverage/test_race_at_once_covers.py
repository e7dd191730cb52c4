"""Races that begin with their first run are wrong no more often than they may be: equal weights, shares of few.

The same harness as for other races. The adversary knows everything and stops every process at its worst position; there
is no warm start, so every position counts for every kind of statement.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from zlib import crc32

import numpy as np
import pytest

from captime.arrays import BoolArray, IntArray
from captime.procedures.problem import SCHEDULE
from captime.procedures.race_claims import FEW, SHARES_OF_FEW
from captime.tally import Tally
from race_harness import (
    DELTA,
    KINDS,
    Racing,
    WatchedRace,
    limit_for,
    lower_wrong,
    paired_wrong,
    plan_for,
    race_failures,
    scores,
    upper_wrong,
)
from race_worlds import WORLDS, RaceWorld, tosses

Record = Callable[[str, object], None]
SHARE = dict(SHARES_OF_FEW)
HARDEST = ("two_point", "tied", "exactly_epsilon_apart", "opposed_slowly", "late_bloomers")
# (configurations, length of the stream, share of the repetitions)
SIZES = ((2, 300, 0.5), (10, 200, 0.3), (FEW - 1, 150, 0.2))
every_world = pytest.mark.parametrize("name", WORLDS)


def check(name: str, wrong: Mapping[str, BoolArray], record: Record) -> None:
    """Every kind of statement within its own limit, and all together within delta."""
    for kind, here in wrong.items():
        record(kind, float(here.mean()))
        most = limit_for(len(here), DELTA * SHARE.get(kind, 1.0))
        assert int(here.sum()) <= most, f"{name}: {kind} {here.mean():.3f}"


def failures(world: RaceWorld, repetitions: int, positions: int, seed: int, leaders: float) -> dict[str, BoolArray]:
    """Which kinds of statements have a cut at which they are wrong, per repetition.

    Args:
        world: Where.
        repetitions: How many independent streams.
        positions: How long they are.
        seed: Of instances and captimes.
        leaders: The weight of each configuration as a leader.
    """
    seconds = world.draw(np.random.default_rng(seed), repetitions * positions)
    low, high = scores(plan_for(world.utility, seed=seed), seconds, repetitions)
    best = int(world.truth.argmax())
    wrong = {kind: np.zeros(repetitions, dtype=np.bool_) for kind in KINDS}
    wrong["upper"] |= upper_wrong(high[best], world.truth[best], SHARE["upper"] * DELTA)
    for config, mean in enumerate(world.truth.tolist()):
        wrong["shown"] |= upper_wrong(high[config], mean, SHARE["shown"] * DELTA / world.n_configs)
        wrong["lower"] |= lower_wrong(low[config], mean, SHARE["lower"] * DELTA * leaders)
        if config != best:
            gap = float(world.truth[best] - mean)
            wrong["paired"] |= paired_wrong(high[best] - low[config], gap, SHARE["paired"] * DELTA * leaders)
    wrong["any"] = np.logical_or.reduce([wrong[kind] for kind in KINDS])
    return wrong


def by_the_omniscient(name: str, repetitions: int) -> dict[str, BoolArray]:
    """Failures over few and many configurations, counted together."""
    parts = [
        failures(
            WORLDS[name](n_configs),
            int(repetitions * share),
            positions,
            crc32(f"{name}-{n_configs}-{repetitions}".encode()),
            1.0 / (n_configs + 1),
        )
        for n_configs, positions, share in SIZES
    ]
    return {kind: np.concatenate([part[kind] for part in parts]) for kind in parts[0]}


def raced(name: str, n_configs: int, racing: Racing, repetitions: int) -> dict[str, BoolArray]:
    """Whole races in that world."""
    return race_failures(WORLDS[name](n_configs), racing, repetitions, crc32(f"{name}-{n_configs}-once".encode()))


def racing(length: int) -> Racing:
    """A goal so coarse that there is no warm start."""
    return Racing(length, {"growth": 2.0}, epsilon=0.15, schedule=SCHEDULE)


@every_world
def test_no_moment_is_wrong_more_often_than_allowed(name: str, record_property: Record) -> None:
    """100 streams; an adversary who knows everything picks the worst cut of every process."""
    check(name, by_the_omniscient(name, 100), record_property)


@pytest.mark.parametrize("name", HARDEST)
def test_whole_races_are_wrong_no_more_often_than_allowed(name: str, record_property: Record) -> None:
    """100 races, looked at after every decision."""
    check(name, raced(name, 4, racing(60), 100), record_property)


def test_whole_races_really_have_no_warm_start() -> None:
    """What is tested here is what it says: every configuration has runs that count from position 0 on."""
    world = tosses(np.array([0.5, 0.6, 0.7]), goal=0.15)
    begun = []

    class Seen(WatchedRace):
        def tell(self, tally: Tally, changed: IntArray) -> None:
            begun.append(self._start)
            super().tell(tally, changed)

    race_failures(world, replace(racing(60), kind=Seen), 1, 0)
    assert set(begun) == {0}


def test_every_leader_at_the_full_share_is_caught() -> None:
    """The planted error: no union over leaders, although any of them may lead. The honest weights pass."""
    world, repetitions = tosses(np.full(FEW - 1, 0.5), goal=0.15), 200
    most = limit_for(repetitions, SHARE["lower"] * DELTA)
    assert failures(world, repetitions, 120, 7, 1.0)["lower"].sum() > most
    assert failures(world, repetitions, 120, 7, 1.0 / FEW)["lower"].sum() <= most


def test_shares_are_no_more_than_delta() -> None:
    """Kinds are tested one by one; together they must not be allowed more than was promised."""
    assert math.fsum(SHARE.values()) <= 1.0 + 1e-12


@pytest.mark.slow
@every_world
def test_at_full_size_no_moment_is_wrong_more_often_than_allowed(name: str, record_property: Record) -> None:
    """2,000 streams per world."""
    check(name, by_the_omniscient(name, 2000), record_property)


@pytest.mark.slow
@every_world
def test_at_full_size_whole_races_are_wrong_no_more_often_than_allowed(name: str, record_property: Record) -> None:
    """2,000 races per world."""
    check(name, raced(name, 4, racing(100), 2000), record_property)
