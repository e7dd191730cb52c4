"""The growing pool on a fixed set of instances: exact ends, shares, where bets begin, and changes on the way."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from captime import simulate
from captime.arrays import FloatArray
from captime.certificate import Certificate, Population
from captime.drive import drive
from captime.errors import ScenarioDiffers, ScenarioError
from captime.evidence import Evidence
from captime.executors.virtual import VirtualExecutor
from captime.live import drive_parallel
from captime.procedures import Problem
from captime.procedures.pool_shares import ArrivalTable, PoolShares
from captime.procedures.pool_terms import ON_SET_SHARES, PoolTerms
from captime.procedures.set_pool import FixedSetPool
from captime.simulation import MadeUp, RowProposer, Rows, settings_of_rows, simulate_on_space
from captime.sources import RuntimeTable
from captime.sources.replay import Replay
from captime.sources.synthetic import synthetic_table
from captime.spaces import Proposer
from captime.spaces.formats.section import read_section
from captime.utilities import parse_utility
from runtime_laws import in_order

UTILITY = parse_utility("uniform(60)")


def table_of(n_configs: int = 30, size: int = 20, seed: int = 5) -> RuntimeTable:
    """Runtimes without a timeout that matters: under uniform(60) nothing is hidden behind it."""
    return synthetic_table(seed, n_configs, size, limit=300.0)


def problem_on(table: RuntimeTable, **more: Any) -> Problem:
    """Which is best on exactly the instances of the table?"""
    wishes: dict[str, Any] = {"epsilon": 0.1, "n_instances": table.n_instances, "population": Population.THESE, **more}
    return Problem(table.n_configs, UTILITY, 0.1, captime_limit=table.limit, **wishes)


def driven(table: RuntimeTable, pool: FixedSetPool) -> Certificate:
    """The certificate at the end, instances in the order of the table."""
    drive(pool, Replay(table, in_order(table.n_instances), pool.plan, UTILITY))
    return pool.certificate()


def worth_of(table: RuntimeTable) -> FloatArray:
    """Means over the set."""
    worth: FloatArray = UTILITY(table.seconds).mean(axis=1)
    return worth


@pytest.mark.parametrize("size", [1, 2, 5, 20])
@pytest.mark.parametrize("workers", [1, 8])
def test_the_end_is_exact(size: int, workers: int) -> None:
    """With epsilon 0 the recommended configuration is the best of all that were tried, always."""
    table = table_of(12, size)
    pool = FixedSetPool(problem_on(table, epsilon=0.0), gamma=0.3)
    if workers == 1:
        held = driven(table, pool)
    else:
        executor = VirtualExecutor(table, in_order(size), workers)
        drive_parallel(pool, executor, Evidence(table.n_configs, pool.plan, UTILITY))
        held = pool.certificate()
    worth = worth_of(table)[: held.n_configs]
    assert held.epsilon == 0.0
    assert worth[held.config] == pytest.approx(worth.max(), abs=1e-12)
    assert (pool.finished(), held.gamma) == ("epsilon", 0.3)


def test_a_goal_is_reached_for_less_than_everything() -> None:
    """Both claims stand in the certificate, about the same configurations and with the same gamma."""
    table = table_of(60, 60)
    result = simulate(
        table, utility="uniform(60)", procedure="pool", population="these", options={"gamma": 0.2}, epsilon=0.1
    )
    held = result.certificate
    assert (held.population, held.instances, held.shares) == (Population.THESE, 60, ON_SET_SHARES)
    assert (held.epsilon <= 0.1, held.gamma) == (True, 0.2)
    assert held.other is not None
    assert (held.other.population, held.other.gamma) == (Population.DRAWN, held.gamma)
    assert (held.other.n_configs, held.other.config) == (held.n_configs, held.config)
    assert held.other.epsilon > held.epsilon
    assert result.matrix_cpu_seconds is not None
    assert result.cpu_seconds < 0.5 * result.matrix_cpu_seconds
    assert set(result.outcome.spending) == {"pilot", "leader", "challengers"}
    assert sum(result.outcome.spending.values()) == pytest.approx(result.cpu_seconds)


def test_one_that_is_nearly_perfect_is_enough_for_the_whole_space() -> None:
    """A leader whose mean is close to 1 is within epsilon of anything: gamma 0, and few others are run."""
    rng = np.random.default_rng(1)
    seconds = rng.uniform(20.0, 60.0, size=(50, 40))
    seconds[2] = 0.5
    table = RuntimeTable.build("set", [f"c{i}" for i in range(50)], [f"i{i}" for i in range(40)], seconds, timeout=90.0)
    held = driven(table, FixedSetPool(problem_on(table), gamma=0.05))
    assert (held.config, held.gamma) == (2, 0.0)
    assert held.epsilon <= 0.1


def test_shares_sum_to_one() -> None:
    """Kinds of statements share delta, and the levels of duels are those of the arrivals."""
    assert math.fsum(share for _, share in ON_SET_SHARES) == pytest.approx(1.0)
    shares = PoolShares(PoolTerms(1, model=True), 10)
    for _ in range(4):
        shares.arrive()
    table = ArrivalTable(shares, pilot=3)
    members = np.arange(4)
    assert np.isinf(table.log_inverse(1, members, 0.1)).all()
    shares.rank(1, 2.0)
    levels = np.exp(-table.log_inverse(1, members, 0.1))
    leader, best = (np.exp(-np.array(each)) for each in (shares.log_leader, shares.log_best))
    assert levels == pytest.approx(0.47 * 0.1 * leader[1] * best)


def test_bets_on_proposals_begin_behind_everything_ordered_and_stay_there() -> None:
    """Draws begin behind the pilot; a proposal where no configuration had been ordered to run; a larger set later."""
    table = table_of(30, 40)
    pool = FixedSetPool(problem_on(table, pool=PoolTerms(1, model=True, limit=30), epsilon=0.05), gamma=0.4)
    began: dict[int, int] = {}
    replay = Replay(table, in_order(40), pool.plan, UTILITY)
    while pool.finished() is None:
        ordered = int(pool._ordered.max())
        orders = pool.ask(1)
        for config in pool._of_set.begins.keys() - began.keys():
            began[config] = pool._of_set.begins[config]
            assert began[config] == max(pool._pilot, ordered)
            assert pool.first_counted(config) == began[config]
        pool.tell(replay.tally, replay.answer(orders))
    assert set(began) == {config for config in range(pool.size) if pool.terms.origin(config) == "model"}
    assert max(began.values()) > pool._pilot
    starts = pool._of_set.starts(pool.size)
    assert starts[0] == starts[1] == pool._pilot
    assert pool.facts()["begins"] == [[config, began[config]] for config in sorted(began)]
    before = pool.certificate()
    pool.more_instances(60)
    assert (pool._of_set.starts(pool.size) >= 40).all()
    assert pool._of_draws.starts(pool.size)[0] == pool._pilot
    assert pool.certificate().instances == 60
    assert pool.certificate().epsilon >= before.epsilon
    assert pool.finished() is None


def test_ranks_follow_from_the_pilot_at_its_first_captime() -> None:
    """Captimes rise later; what they show of the pilot's positions changes no rank."""
    table = table_of(40, 40)
    utility = parse_utility("log-laplace(20, 1)")
    problem = replace(problem_on(table, epsilon=0.15), utility=utility)
    pool = FixedSetPool(problem, gamma=0.3)
    assert len(pool.plan.rungs) > 1
    drive(pool, Replay(table, in_order(40), pool.plan, utility))
    pilot = table.seconds[: pool.size, : pool._pilot]
    sums = np.where(pilot < pool.plan.rungs[0], utility(pilot), 0.0).sum(axis=1)
    assert pool._pilot_sums == pytest.approx(sums)
    assert pool.facts()["pilot"] == {"positions": pool._pilot, "captime": float(pool.plan.rungs[0])}


def test_favourites_join_as_proposals_and_the_claim_covers_them() -> None:
    """What was certified is not shown any longer; a list keeps its indices."""
    table = table_of(10, 20)
    pool = FixedSetPool(problem_on(replace_rows(table, 8), epsilon=0.2), gamma=0.4)
    driven(replace_rows(table, 8), pool)
    assert pool.finished() == "epsilon"
    assert pool.newcomers(2, earliest=7) == 8
    assert (pool.terms.late, pool.size) == ((8, 9), 10)
    assert pool.certificate().gamma == 0.0 or pool.certificate().epsilon == 1.0
    drive(pool, Replay(table, in_order(20), pool.plan, UTILITY))
    held = pool.certificate()
    assert held.gamma == 0.0 or held.n_configs == 10
    assert pool._of_set.begins[8] >= 7
    full = FixedSetPool(problem_on(table, pool=PoolTerms(limit=10)), gamma=0.0)
    full.shares._of["model"] = 0.0
    with pytest.raises(ScenarioDiffers, match="no share of delta left"):
        full.newcomers(1)


def replace_rows(table: RuntimeTable, count: int) -> RuntimeTable:
    """The first rows of a table."""
    return RuntimeTable.build(
        "part", list(table.configs[:count]), list(table.instances), table.seconds[:count], timeout=table.limit
    )


def test_other_goals_on_the_way_count_from_then_on() -> None:
    """A larger goal is reached at once; a smaller one continues with the same shares."""
    table = table_of(40, 40)
    pool = FixedSetPool(problem_on(table, epsilon=0.3), gamma=0.5)
    first = driven(table, pool)
    pool.retarget(0.05, 0.3)
    assert pool.finished() is None
    second = driven(table, pool)
    assert second.epsilon <= 0.05 < first.epsilon
    assert second.gamma is not None
    assert second.gamma <= 0.3
    assert pool.reached(0.05, 0.3, "both")
    pool.retarget(0.05, 0.3, "gamma")
    assert pool.finished() == "epsilon"
    with pytest.raises(ScenarioError, match="gamma is 2"):
        pool.retarget(0.1, 2.0)


def test_a_list_that_is_used_up_says_so() -> None:
    """Five rows cannot show a gamma of 0.1: epsilon ends at 0, and no configuration is left to draw."""
    table = table_of(5, 10)
    pool = FixedSetPool(problem_on(table, epsilon=0.02))
    held = driven(table, pool)
    assert pool.finished() == "configurations"
    assert held.epsilon <= 0.02


def test_what_lies_behind_the_longest_captime_stays_hidden() -> None:
    """A timeout that hides utility ends the pool with the epsilon it leaves, and the gamma that was asked for."""
    rng = np.random.default_rng(3)
    seconds = rng.choice([1.0, 20.0], size=(30, 12))
    table = RuntimeTable.build("cut", [f"c{i}" for i in range(30)], [f"i{i}" for i in range(12)], seconds, timeout=20.0)
    pool = FixedSetPool(problem_on(table, epsilon=0.01), gamma=0.3)
    held = driven(table, pool)
    assert pool.finished() == "instances"
    assert 0.01 < held.epsilon < 1.0


def test_options_and_sets_that_make_no_sense_are_refused() -> None:
    """An endless stream has no set; the other options are those of the pool."""
    table = table_of(5, 10)
    with pytest.raises(ScenarioError, match="have no end"):
        FixedSetPool(replace(problem_on(table), n_instances=None))
    with pytest.raises(ScenarioError, match="pilot is 0"):
        FixedSetPool(problem_on(table), pilot=0)
    with pytest.raises(ScenarioError, match="gamma is 3"):
        FixedSetPool(problem_on(table), gamma=3.0)
    with pytest.raises(ScenarioError, match="no option 'boost'"):
        simulate(table, utility="uniform(60)", procedure="pool", population="these", options={"boost": "2"})


def test_simulations_on_a_space_speak_about_exactly_these() -> None:
    """Rows of a table as draws and proposals; a target without end has no set."""
    space = read_section({"x": {"type": "float", "low": 0.0, "high": 1.0, "default": 0.5}}, "here")
    rng = np.random.default_rng(2)
    x = rng.random(60)
    seconds = rng.exponential(20.0, size=30) * (0.3 + 3.0 * abs(x[:, None] - 0.7))
    table = RuntimeTable.build("t", [f"--x={each}" for each in x], [f"i{i}" for i in range(30)], seconds, timeout=100.0)
    settings = settings_of_rows(space, table)
    wishes: dict[str, Any] = {"utility": "uniform(60)", "options": {"gamma": 0.3}, "population": "these"}
    result = simulate_on_space(
        RowProposer(space, settings, 0), Rows(space, table, settings), sampling="shuffle", **wishes
    )
    held, found = result.certificate, result.table
    assert (held.population, held.instances, result.outcome.stopped) == (Population.THESE, 30, "epsilon")
    worth = parse_utility("uniform(60)")(table.seconds).mean(axis=1)
    assert found.found.worth == pytest.approx(  # type: ignore[union-attr] # a pool, not a table
        float(worth[list(x).index(found.settings[held.config]["x"])])  # type: ignore[union-attr]
    )
    assert found.found.best - found.found.worth <= held.epsilon  # type: ignore[union-attr]
    assert result.matrix_cpu_seconds is not None
    assert result.cpu_seconds < result.matrix_cpu_seconds
    with pytest.raises(ScenarioError, match="instances without end"):
        simulate_on_space(Proposer(space, 0), MadeUp(space, 10.0), sampling="shuffle", **wishes)
    with pytest.raises(ScenarioError, match="needs an order that captime draws itself"):
        simulate_on_space(Proposer(space, 0), MadeUp(space, 10.0), **wishes)
