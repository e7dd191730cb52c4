"""The pool that grows: its shares, its gammas, what only ever tightens, who begins where, when it is content."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from captime import simulate
from captime.drive import drive
from captime.errors import ScenarioError
from captime.evidence import Evidence
from captime.executors.virtual import VirtualExecutor
from captime.live import drive_parallel
from captime.procedures import PROCEDURES, Problem
from captime.procedures.pool import Pool
from captime.procedures.pool_gamma import GammaBets
from captime.procedures.pool_growth import SPLITS, Stakes, newcomers_turn, runs_to_show
from captime.procedures.pool_shares import PoolShares, by_arrival, by_rank
from captime.procedures.pool_terms import SHARES, PoolTerms
from captime.sources.replay import Replay
from captime.sources.table import RuntimeTable
from captime.utilities import parse_utility
from runtime_laws import NEVER, in_order, table_of

UTILITY = parse_utility("uniform(60)")

# ---------------------------------------------------------------------------- shares


def test_the_parts_of_delta_are_delta() -> None:
    """Draws, upper bounds, duels, lower bounds and what is shown together spend no more than there is."""
    assert math.isclose(sum(share for _, share in SHARES), 1.0, rel_tol=1e-12)


@pytest.mark.parametrize("expected", [1, 7, 33, 400])
def test_shares_by_arrival_sum_to_one_however_many_come(expected: int) -> None:
    """Up to any number of arrivals the sum is below 1, and it comes close."""
    sums = np.cumsum([by_arrival(number, expected) for number in range(1, 4096 * expected // 16)])
    assert sums[-1] <= 1.0
    assert sums[-1] > 0.97


@pytest.mark.parametrize("among", [1, 2, 17])
def test_weights_of_ranks_sum_to_one(among: int) -> None:
    """And fall with the rank, as the proof needs it."""
    weights = [by_rank(rank, among) for rank in range(among)]
    assert math.isclose(sum(weights), 1.0, rel_tol=1e-12)
    assert weights == sorted(weights, reverse=True)


@pytest.mark.parametrize(
    ("pilots", "worth"),
    [
        ((1.0, 2.0, 3.0, 4.0, 5.0), (0.1, 0.2, 0.3, 0.4, 0.5)),
        ((1.0, 2.0, 3.0, 4.0, 5.0), (0.5, 0.4, 0.3, 0.2, 0.1)),
        ((3.0, 1.0, 3.0, 2.0, 1.0), (0.3, 0.3, 0.1, 0.5, 0.5)),
        ((2.0, 2.0, 2.0, 2.0, 2.0), (0.2, 0.2, 0.2, 0.2, 0.2)),
        ((0.0, 1.0, 0.0, 1.0, 2.0), (0.1, 0.9, 0.9, 0.1, 0.5)),
    ],
)
def test_over_all_orders_of_the_draws_the_shares_keep_their_sums(
    pilots: tuple[float, ...], worth: tuple[float, ...]
) -> None:
    """The lemma behind i·b_i, by enumeration: leaders alone, bests alone, and pairs of a leader and a best."""
    n = len(pilots)
    leaders = bests = pairs = 0.0
    orders = list(itertools.permutations(range(n)))
    for order in orders:
        shares = PoolShares(PoolTerms(), n)
        for place, draw in enumerate(order):
            shares.arrive()
            shares.rank(place, pilots[draw])
        leader, best = np.exp(-np.array(shares.log_leader)), np.exp(-np.array(shares.log_best))
        truth = np.array([worth[draw] for draw in order])
        record = [place for place in range(n) if (truth[:place] < truth[place]).all()]
        leaders += leader.sum()
        bests += best[record].sum()
        pairs += sum(best[i] * (leader.sum() - leader[i]) for i in record)
    within = sum(by_arrival(number, n) for number in range(1, n + 1)) * (1.0 + 1e-12)
    assert leaders / len(orders) <= within
    assert bests / len(orders) <= within
    assert pairs / len(orders) <= within**2


def test_without_exchangeable_draws_the_shares_would_be_too_large() -> None:
    """If the best always came last and looked it, i·b_i would overspend: the lemma is about random order."""
    shares = PoolShares(PoolTerms(), 5)
    for place in range(5):
        shares.arrive()
        shares.rank(place, float(place))
    assert sum(math.exp(-share) for share in shares.log_best) > 1.0
    assert sum(math.exp(-share) for share in shares.log_leader) > 1.0


@pytest.mark.parametrize("terms", [PoolTerms(), PoolTerms(1), PoolTerms(3, model=True), PoolTerms(0, model=True)])
def test_all_origins_together_share_one_whole(terms: PoolTerms) -> None:
    """As the best: one listed one, draws weighed by 1/i, every proposal. What is shown: every single one."""
    shares = PoolShares(terms, 20)
    for _ in range(200):
        shares.arrive()
    best, shown = np.exp(-np.array(shares.log_best)), np.exp(-np.array(shares.log_shown))
    draws = np.cumsum([origin == "random" for origin in shares.origin])
    listed = best[:1].sum() if terms.n_listed else 0.0
    kinds = np.array(shares.origin)
    total = listed + (best / np.maximum(draws, 1))[kinds == "random"].sum() + best[kinds == "model"].sum()
    assert 0.9 < total <= 1.0 + 1e-12
    assert 0.9 < shown.sum() <= 1.0 + 1e-12


# ---------------------------------------------------------------------------- gamma


@pytest.mark.parametrize("goal", [0.0, 0.2, 0.05])
def test_gamma_bets_stake_no_more_than_there_is_and_never_rise(goal: float) -> None:
    """Weights sum to 1; more draws never leave more out; a known goal is reached with the draws it says."""
    gammas = GammaBets(0.04, goal)
    assert math.isclose(float(gammas.weights.sum()), 1.0, rel_tol=1e-12)
    said = [gammas.after(draws) for draws in range(300)]
    assert said[0] == 1.0
    assert said == sorted(said, reverse=True)
    if goal:
        needed = gammas.draws_for(goal)
        assert said[needed] <= goal < said[needed - 1]


def test_a_goal_costs_far_fewer_draws_than_a_union_over_all_numbers_of_draws() -> None:
    """And not fewer than one look at one fixed number would."""
    alpha, goal = 0.04, 0.1
    once = math.ceil(math.log(alpha) / math.log1p(-goal))
    union = next(n for n in range(1, 1000) if n * math.log1p(-goal) <= math.log(alpha / (n * (n + 1))))
    assert (once, GammaBets(alpha, goal).draws_for(goal), union) == (31, 33, 122)


@pytest.mark.parametrize("goal", [1.5, 1.0, -0.1, 1e-6])
def test_an_impossible_gamma_is_refused(goal: float) -> None:
    """With the kind of number it has to be; a millionth would take millions of draws."""
    with pytest.raises(ScenarioError, match=f"gamma is {goal!r}.*below 1.*--gamma"):
        GammaBets(0.1, goal)


# ---------------------------------------------------------------------------- what only ever tightens


def space_table(seed: int, n_configs: int, n_instances: int) -> RuntimeTable:
    """Configurations drawn at random; the fastest take a quarter of a minute, the slowest three minutes."""
    rng = np.random.default_rng(seed)
    speed = 2.7 + 2.5 * rng.random(n_configs)[:, None]
    noise = 0.3 * rng.standard_normal((n_configs, n_instances))
    return table_of(np.exp(speed + 0.5 * rng.standard_normal(n_instances) + noise))


def pool_on(table: RuntimeTable, *, terms: PoolTerms | None = None, epsilon: float = 0.2, **options: object) -> Pool:
    """A pool for the whole table."""
    problem = Problem(table.n_configs, UTILITY, 0.1, epsilon=epsilon, n_instances=table.n_instances, seed=1, pool=terms)
    return Pool(problem, **options)  # type: ignore[arg-type]  # mixed options, checked by the pool


@settings(derandomize=True, deadline=None, max_examples=12)
@given(st.integers(0, 1000), st.sampled_from([PoolTerms(limit=30), PoolTerms(2, model=True, limit=30)]))
def test_nothing_loosens_when_the_pool_grows(seed: int, terms: PoolTerms) -> None:
    """Upper bounds never rise, lower bounds never fall, and shares, once given, stay as they are."""
    table = space_table(seed, 30, 120)
    pool = pool_on(table, terms=terms, gamma=0.2, epsilon=0.3)
    replay = Replay(table, in_order(120), pool.plan, UTILITY)
    grown = 0
    while pool.finished() is None:
        n, upper, lower = pool.size, pool.upper.copy(), pool.lower.copy()
        fixed = (list(pool.shares.log_best), list(pool.shares.log_shown))
        leads = list(pool.shares.log_leader)
        gamma = pool.gammas.after(pool.shares.draws)
        pool.tell(replay.tally, replay.answer(pool.ask(1)))
        grown += pool.size > n
        assert (pool.upper[:n] <= upper).all()
        assert (pool.lower[:n] >= lower).all()
        assert fixed == (pool.shares.log_best[:n], pool.shares.log_shown[:n])
        assert all(before in (math.inf, now) for before, now in zip(leads, pool.shares.log_leader, strict=False))
        assert pool.gammas.after(pool.shares.draws) <= gamma
    assert grown > 3


# ---------------------------------------------------------------------------- who begins where


def test_what_a_model_proposed_begins_behind_everything_that_was_run() -> None:
    """Draws and listed ones run the stream from its start."""
    table = space_table(3, 40, 400)
    terms = PoolTerms(1, model=True, limit=40)
    pool = pool_on(table, terms=terms, gamma=0.3)
    replay = Replay(table, in_order(400), pool.plan, UTILITY)
    reached, proposed = 0, 0
    begun: set[int] = set()
    while pool.finished() is None:
        orders = pool.ask(1)
        assert orders.first is not None
        for config, first in zip(orders.config.tolist(), orders.first.tolist(), strict=True):
            if terms.origin(config) != "model":
                assert first == 0
            elif config not in begun:
                assert first >= reached
                proposed += 1
            begun.add(config)
        reached = max(reached, int(orders.n.max()))
        pool.tell(replay.tally, replay.answer(orders))
    assert proposed > 2
    for config in range(pool.size):
        skipped = int(replay.tally.skipped[config])
        assert (skipped > 0) == (terms.origin(config) == "model" and config in begun)


def test_it_asks_for_configurations_that_do_not_exist_yet() -> None:
    """New indices come in order and without gaps; there is an entry for each that was asked for."""
    table = space_table(4, 40, 300)
    problem = Problem(1, UTILITY, 0.1, epsilon=0.2, n_instances=300, pool=PoolTerms(1))
    pool = Pool(problem, gamma=0.3)
    replay = Replay(table, in_order(300), pool.plan, UTILITY)
    exist = 1
    while pool.finished() is None:
        orders = pool.ask(1)
        new = np.sort(orders.config[orders.config >= exist])
        assert new.tolist() == list(range(exist, exist + len(new)))
        exist += len(new)
        assert len(pool.candidates) == exist
        pool.tell(replay.tally, replay.answer(orders))
        assert len(pool.candidates) == exist
    assert exist > 5


def test_nobody_is_shown_less_than_what_is_known() -> None:
    """Once a statement is held, none about the same leader has a smaller epsilon and no larger gamma."""
    about_anyone = 0
    for seed in range(2):
        table = table_of(space_table(seed, 30, 1500).seconds / 20.0)
        pool = pool_on(table, epsilon=0.02, gamma=0.2, terms=PoolTerms(1, model=True, limit=30))
        replay = Replay(table, in_order(1500), pool.plan, UTILITY)
        for _ in range(250):
            pool.tell(replay.tally, replay.answer(pool.ask(1)))
            shown = pool.certificate()
            assert shown.gamma is not None
            if shown.epsilon < 1.0:
                epsilon, gamma = pool._statements()
                assert not ((epsilon < shown.epsilon) & (gamma <= shown.gamma)).any()
                about_anyone += shown.gamma == 0.0
    assert about_anyone > 100


# ---------------------------------------------------------------------------- when it is content


def test_one_that_is_good_enough_for_anyone_ends_everything() -> None:
    """A lower bound of 1 - epsilon speaks about every configuration, drawn or not: gamma is 0."""
    seconds = np.full((300, 2000), 30.0)
    seconds[1] = 0.1
    table = table_of(seconds)
    pool = pool_on(table, epsilon=0.1, gamma=0.02)
    outcome = drive(pool, Replay(table, in_order(2000), pool.plan, UTILITY))
    assert (outcome.stopped, outcome.certificate.gamma, outcome.certificate.config) == ("epsilon", 0.0, 1)
    assert outcome.certificate.utility_low >= 0.9
    assert pool.shares.draws < pool.gammas.draws_for(0.02) / 4


@pytest.mark.parametrize("stop", ["both", "epsilon", "gamma"])
def test_it_stops_at_the_goals_it_was_given(stop: str) -> None:
    """Both, or one of them; the other is then whatever it came to."""
    table = space_table(6, 200, 3000)
    pool = pool_on(table, epsilon=0.25, gamma=0.08, stop=stop)
    said = drive(pool, Replay(table, in_order(3000), pool.plan, UTILITY)).certificate
    assert said.gamma is not None
    assert said.epsilon <= 0.25 or stop == "gamma"
    assert said.gamma <= 0.08 or stop == "epsilon"


def test_smaller_goals_on_the_way_keep_everything_that_is_known() -> None:
    """No bound loosens, no run is made again, and the new goals are reached."""
    table = space_table(11, 200, 3000)
    pool = pool_on(table, epsilon=0.3, gamma=0.2)
    replay = Replay(table, in_order(3000), pool.plan, UTILITY)
    first = drive(pool, replay)
    upper, lower, said = pool.upper.copy(), pool.lower.copy(), pool.certificate()
    pool.retarget(0.2, gamma=0.1)
    assert pool.finished() is None
    # Duels are weighed at other epsilons from now on: of several who may be as far ahead, another one may be left.
    assert replace(pool.certificate(), challenger=said.challenger) == said
    second = drive(pool, replay)
    assert (first.stopped, second.stopped) == ("epsilon", "epsilon")
    assert (pool.upper[: len(upper)] <= upper).all()
    assert (pool.lower[: len(lower)] >= lower).all()
    assert (second.runs >= first.runs).all()
    assert second.certificate.epsilon <= 0.2
    assert second.certificate.gamma is not None
    assert second.certificate.gamma <= 0.1


def test_a_table_with_too_few_rows_is_told_as_such() -> None:
    """All of them are compared, and gamma says how little that is."""
    result = simulate(space_table(7, 6, 2000), utility=UTILITY, procedure="pool", epsilon=0.3, options={"gamma": 0.1})
    assert result.outcome.stopped == "configurations"
    assert result.certificate.epsilon <= 0.3
    assert result.certificate.n_configs == 6
    assert result.certificate.gamma is not None
    assert result.certificate.gamma > 0.1


def test_the_listed_ones_are_compared_but_do_not_count_for_gamma() -> None:
    """With three listed, the goal takes three more configurations."""
    table = space_table(8, 200, 3000)
    alone = pool_on(table, gamma=0.1)
    with_listed = pool_on(table, gamma=0.1, terms=PoolTerms(3, limit=200))
    sizes = []
    for pool in (alone, with_listed):
        assert drive(pool, Replay(table, in_order(3000), pool.plan, UTILITY)).stopped == "epsilon"
        sizes.append(pool.size)
    assert sizes[1] == sizes[0] + 3


@pytest.mark.parametrize("workers", [1, 6, 40])
def test_many_workers_reach_the_same_goals(workers: int) -> None:
    """Open runs count as intervals, newcomers come in as many as there is room for."""
    table = space_table(9, 200, 2000)
    pool = pool_on(table, epsilon=0.25, gamma=0.1)
    evidence = Evidence(table.n_configs, pool.plan, UTILITY)
    outcome = drive_parallel(pool, VirtualExecutor(table, in_order(2000), workers), evidence)
    assert outcome.stopped == "epsilon"
    assert outcome.certificate.epsilon <= 0.25
    assert outcome.certificate.gamma == 0.1


# ---------------------------------------------------------------------------- rules of thumb, and refusals


def test_newcomers_get_time_as_much_is_at_stake_outside() -> None:
    """More for a larger gamma, less for a larger epsilon; needed draws at least half, and some without any goal."""
    wide, narrow = Stakes(0.2, 0.5, 0.5), Stakes(0.2, 0.01, 0.5)
    assert wide.outside() > 0.5 > narrow.outside()
    assert Stakes(0.0, 0.0, 1.0).outside() == 0.0
    assert newcomers_turn(45.0, 100.0, wide, 0.0, SPLITS["balanced"])
    assert not newcomers_turn(45.0, 100.0, narrow, 0.0, SPLITS["balanced"])
    assert newcomers_turn(35.0, 100.0, narrow, 0.0, SPLITS["balanced"])
    assert newcomers_turn(40.0, 100.0, narrow, 9.0, SPLITS["balanced"])
    assert not newcomers_turn(60.0, 100.0, narrow, 9.0, SPLITS["balanced"])
    assert newcomers_turn(60.0, 100.0, narrow, 1.0, SPLITS["balanced"])


def test_what_does_not_look_good_enough_is_never_waited_for() -> None:
    """Below the goal no number of runs will do; above it, fewer the further."""
    assert runs_to_show(0.9, 0.9, 0.01, 5.0) == math.inf
    assert runs_to_show(0.9, 0.99, 0.01, 5.0) < runs_to_show(0.9, 0.95, 0.01, 5.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stop": "soon"}, "pool has no stop 'soon'"),
        ({"gamma": -0.1}, "gamma is -0.1"),
        ({"pilot": 0}, "at least once"),
    ],
)
def test_options_without_sense_are_refused(options: dict[str, object], message: str) -> None:
    """Each with what would make sense."""
    with pytest.raises(ScenarioError, match=message):
        PROCEDURES["pool"](Problem(5, UTILITY, 0.1, epsilon=0.2), **options)


@pytest.mark.parametrize(
    ("terms", "message"),
    [({"n_listed": -1}, "cannot be negative"), ({"n_listed": 3, "limit": 2}, "from the start")],
)
def test_pools_without_sense_are_refused(terms: dict[str, int], message: str) -> None:
    """Before anything is drawn."""
    with pytest.raises(ScenarioError, match=message):
        PoolTerms(**terms)  # type: ignore[arg-type]  # the names decide, not the type checker


def test_a_configuration_that_never_finishes_does_not_stand_in_the_way() -> None:
    """Crashes and endless runs are worth nothing, and are cleared as such."""
    seconds = space_table(10, 60, 1500).seconds.copy()
    seconds[::3] = NEVER
    table = table_of(seconds)
    pool = pool_on(table, epsilon=0.3, gamma=0.2)
    assert drive(pool, Replay(table, in_order(1500), pool.plan, UTILITY)).stopped == "epsilon"
