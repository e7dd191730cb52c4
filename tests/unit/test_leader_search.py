"""The search for a leader that needs no challengers: estimates, what it may cost, and races that gain by it."""

import math
from pathlib import Path

import numpy as np
import pytest

from captime.arrays import BoolArray, FloatArray
from captime.evidence import Evidence
from captime.executors import VirtualExecutor
from captime.live import drive_parallel
from captime.plans import RandomCaptimes, Schedule, Stops
from captime.procedures import Problem
from captime.procedures.leader_search import Estimates, LeaderSearch, Measurements, RaceStanding, Rest, expected_saving
from captime.procedures.problem import SEVENTH_SCHEDULE, SIXTH_SCHEDULE
from captime.procedures.race import Race
from captime.sources.table import RuntimeTable
from captime.sources.window import stream_of
from captime.tally import Tally, blank_tally
from captime.utilities import parse_utility
from written_ledgers import audited, written

UTILITY = parse_utility("log-laplace(60, 1)")
LIMIT = 300.0


def slow_starters(seed: int, n_configs: int = 96, n_instances: int = 600) -> FloatArray:
    """Six configurations answer nearly everything within half a minute, but take two seconds for it.

    All others answer three instances of four within a second, and are slow on the rest: on short runs they look better.
    """
    rng = np.random.default_rng(seed)
    hard = rng.random(n_instances) < 0.25
    others = np.where(hard, rng.uniform(20.0, LIMIT, (n_configs, n_instances)), rng.exponential(0.4, (1, n_instances)))
    good = np.where(hard, rng.uniform(1.0, 3.0, (n_configs, n_instances)), rng.uniform(1.0, 2.5, (1, n_instances)))
    excellent = np.isin(np.arange(n_configs), rng.choice(n_configs, 6, replace=False))[:, None]
    return np.where(excellent, good, others)


def table_of(seconds: FloatArray) -> RuntimeTable:
    """The runtimes as a table."""
    configs, instances = ([f"{letter}{i}" for i in range(n)] for letter, n in zip("ci", seconds.shape, strict=True))
    return RuntimeTable.build("made up", configs, instances, seconds, timeout=LIMIT)


def tally_of(seconds: FloatArray, captime: FloatArray | float) -> Tally:
    """Books in which every configuration has run all of these, stopped at these captimes."""
    n_configs, n = seconds.shape
    cut = np.broadcast_to(captime, seconds.shape)

    def times(config: int, last: int) -> tuple[FloatArray, BoolArray]:
        ended = seconds[config, :last] < cut[config, :last]
        return np.minimum(seconds[config, :last], cut[config, :last]), ended

    tally = blank_tally(n_configs, lambda *_: (np.empty(0), np.empty(0)), times)
    tally.n[:] = n
    tally.completed[:] = (seconds < cut).sum(axis=1)
    tally.runs[:] = n
    return tally


def measured(seconds: FloatArray, captime: FloatArray | float) -> Estimates:
    """Estimates from these runs."""
    plan = RandomCaptimes(UTILITY, 1, Schedule(1.25), Schedule(LIMIT))
    return Measurements(plan).estimates(tally_of(seconds, captime))


def test_many_runs_show_what_configurations_are_worth() -> None:
    """With 200 runs on positions of different difficulty, the estimates are near the truth and between 0 and 1."""
    rng = np.random.default_rng(1)
    scale = np.geomspace(2.0, 200.0, 30)[:, None] * rng.lognormal(0.0, 1.5, (1, 200))
    seconds = scale * rng.exponential(1.0, (30, 200))
    found, truth = measured(seconds, LIMIT), UTILITY(seconds).mean(axis=1)
    assert np.all((found.mean >= 0.0) & (found.mean <= 1.0))
    assert np.abs(found.mean - truth).max() < 0.06
    assert np.all(np.abs(found.mean - truth) <= 4.0 * found.deviation(np.arange(30)) + 0.01)


def test_runs_that_were_all_stopped_early_say_little() -> None:
    """Where all first runs look alike, any of the configurations may still be excellent."""
    seconds = np.full((50, 2), 100.0)
    seconds[:, 0] = 0.1
    short, long = measured(seconds, 0.5), measured(seconds, 150.0)
    middle = np.array([7])
    assert float(short.deviation(middle)[0]) > 0.08
    assert short.cut[7] == 0.5
    assert long.hidden[7] == 0.0
    assert float(long.deviation(middle)[0]) < float(short.deviation(middle)[0])


def test_easy_positions_do_not_make_a_configuration_better() -> None:
    """One that ran easy positions only is not ahead of one that ran hard ones too and is as fast everywhere."""
    rng = np.random.default_rng(3)
    easy, hard = np.full(20, 0.5), np.full(20, 60.0)
    seconds = np.concatenate((easy, hard)) * rng.lognormal(0.0, 0.1, (20, 40))
    tally = tally_of(seconds, LIMIT)
    tally.n[:10] = 20
    found = Measurements(RandomCaptimes(UTILITY, 1, Schedule(1.25), Schedule(LIMIT))).estimates(tally)
    plain = UTILITY(seconds[:, :20]).mean(axis=1)[:10].mean() - UTILITY(seconds).mean(axis=1)[10:].mean()
    assert plain > 0.2
    assert abs(float(found.mean[:10].mean() - found.mean[10:].mean())) < 0.7 * plain


def test_what_is_saved_on_average_is_an_integral_over_what_may_be_found() -> None:
    """For a saving that rises evenly from 0 on it is E[max(X, 0)] of a normal X."""
    gap, deviation = np.array([-0.1, 0.0, 0.05]), np.array([0.1, 0.2, 0.02])
    found = expected_saving(gap, deviation**2, lambda better: np.maximum(better, 0.0))
    z = gap / deviation
    tail = np.array([0.5 * math.erfc(-each / math.sqrt(2.0)) for each in z.tolist()])
    exact = gap * tail + deviation * np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)
    assert found == pytest.approx(exact, abs=0.01)
    assert expected_saving(gap, np.zeros(3), lambda better: np.maximum(better, 0.0)) == pytest.approx([0.0, 0.0, 0.05])


def test_a_leader_that_is_good_enough_leaves_only_its_own_runs() -> None:
    """A better leader leaves less to do; one above 1 - epsilon with enough runs leaves nothing on challengers."""
    rest = Rest(mean=np.full(99, 0.7), stop=24.0, drawn=60.0, least=0.8, wanted=5.0, epsilon=0.1)
    leaders = np.array([0.75, 0.85, 0.92, 0.97])
    to_go = rest.to_go(leaders, np.full(4, 10.0), np.full(4, 8.0), np.full(4, 6.0))
    assert np.all(np.diff(to_go) < 0.0)
    alone = float(rest.to_go(np.array([0.97]), np.array([5000.0]), np.array([8.0]), np.array([6.0]))[0])
    assert alone == pytest.approx(0.0)


def standing(n_configs: int, leader: int, epsilon: float) -> RaceStanding:
    """A race in which nothing is cleared."""
    same = np.full(n_configs, 6.0)
    return RaceStanding(
        leader=leader,
        rivals=np.delete(np.arange(n_configs), leader),
        more=np.ones(n_configs, dtype=np.bool_),
        raced=np.full(n_configs, 20),
        scored=np.full(n_configs, 20),
        level=np.zeros(n_configs, dtype=np.int64),
        lower=same,
        duels=same - 1.0,
        upper=3.0,
        drawn=60.0,
        epsilon=epsilon,
    )


def search_of() -> LeaderSearch:
    """A search over captimes that double up to the last stop."""
    plan = RandomCaptimes(UTILITY, 1, Schedule(1.25), Schedule(LIMIT), Stops.doubling(UTILITY, 1.25, LIMIT))
    return LeaderSearch(plan, int(np.count_nonzero(plan.stops.reach == 0.0)) - 1, 0.8)


def test_nothing_is_searched_where_no_configuration_can_be_good_enough() -> None:
    """All are far below 1 - epsilon, and that is well known: duels and own bounds have to do it."""
    rng = np.random.default_rng(5)
    seconds = rng.exponential(120.0, (60, 40))
    found = search_of().look(tally_of(seconds, LIMIT), standing(60, 3, 0.1))
    assert (found.leader, len(found.config)) == (3, 0)


def test_a_search_costs_a_share_of_what_it_may_save() -> None:
    """What is ordered is booked, and once 15 % of all that could be saved is booked nothing more is ordered."""
    seconds = slow_starters(7)[:, :6]
    search, tally = search_of(), tally_of(seconds, 0.4)
    estimates = search._measured.estimates(tally)
    rest = Rest(np.delete(estimates.mean, 0), 24.0, 60.0, 0.8, 4.2, 0.1)
    most = float(search._saving(estimates, standing(96, 0, 0.1), rest, 0)[-1])
    found = search.look(tally, standing(96, 0, 0.1))
    assert len(found.config) > 0
    assert 0.0 < search._booked < 0.15 * most
    search._booked = 0.15 * most
    assert not len(search.look(tally, standing(96, 0, 0.1)).config)


def raced(seconds: FloatArray, epsilon: float, seed: int, schedule: int, slots: int = 1) -> tuple[Race, float]:
    """A race on these runtimes, and the CPU seconds it took."""
    table = table_of(seconds)
    race = Race(Problem(table.n_configs, UTILITY, 0.1, epsilon, captime_limit=LIMIT, seed=seed, schedule=schedule))
    evidence = Evidence(table.n_configs, race.plan, UTILITY)
    drive_parallel(race, VirtualExecutor(table, stream_of("replace", table.groups, seed), slots), evidence)
    return race, float(evidence.tally.seconds.sum())


@pytest.mark.parametrize(("slots", "most"), [(1, 0.75), (16, 1.15)])
def test_a_leader_is_found_that_short_runs_hide(slots: int, most: float) -> None:
    """Three races together take three quarters of the CPU time of schedule 6 at most, and their answers are right.

    With many slots challengers run beside the search, so little is gained, and little must be lost.
    """
    spent = {SEVENTH_SCHEDULE: 0.0, SIXTH_SCHEDULE: 0.0}
    for seed in range(3):
        seconds = slow_starters(seed, 64, 400)
        truth = UTILITY(seconds).mean(axis=1)
        for schedule in spent:
            race, cost = raced(seconds, 0.05, seed, schedule, slots)
            held = race.certificate()
            assert held.epsilon <= 0.05
            assert truth[held.config] >= truth.max() - 0.05
            spent[schedule] += cost
    assert spent[SEVENTH_SCHEDULE] < most * spent[SIXTH_SCHEDULE], spent


@pytest.mark.parametrize("workers", [1, 8])
def test_the_check_confirms_a_race_that_searched(tmp_path: Path, workers: int) -> None:
    """Runs of a search are runs of the race: in stream order, without gaps, with captimes of any origin."""
    path = tmp_path / "a.ledger"
    held = written(
        path,
        slow_starters(2, 48, 500),
        utility="log-laplace(60, 1)",
        epsilon=0.1,
        schedule=SEVENTH_SCHEDULE,
        workers=workers,
    )
    assert held.epsilon <= 0.1
    assert audited(path).verdict == "confirmed"
