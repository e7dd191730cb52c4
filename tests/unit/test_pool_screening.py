"""Short captimes in a search: which runs are stopped early, which are made again, and what stopped runs count."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import captime
from captime.arrays import BoolArray, FloatArray
from captime.certificate import Orders
from captime.errors import LedgerDamaged
from captime.ledger import LedgerReader
from captime.plans import Stops
from captime.procedures import Problem
from captime.procedures.pool import Pool
from captime.procedures.pool_bets import BestBets
from captime.procedures.pool_screening import MeasuredBets, worth_in_the_end
from captime.procedures.pool_terms import PoolTerms
from captime.report.campaigned import assumptions
from captime.sources.replay import Replay
from captime.utilities import parse_utility
from runtime_laws import in_order, table_of
from space_campaigns import on_space, search
from stub_targets import restless
from written_ledgers import audited

UTILITY = parse_utility("log-laplace(20, 1)")
TERMS = PoolTerms(n_listed=1, model=True, draws_first=2, proposals=8, limit=60)
LENGTH = 600
PROBLEM = Problem(60, UTILITY, 0.1, epsilon=0.02, n_instances=LENGTH, seed=3, pool=TERMS)


def searched(problem: Problem, runs: int) -> tuple[Pool, Replay, list[Orders]]:
    """Search sixty rows until this many runs are made, or nothing is left to learn."""
    rng = np.random.default_rng(4)
    seconds = rng.uniform(5.0, 40.0, (60, 1)) * np.exp(rng.standard_normal((60, LENGTH)))
    length = problem.n_instances or LENGTH
    pool = Pool(problem, gamma=0.0, effort="search")
    replay = Replay(table_of(seconds), in_order(length), pool.plan, UTILITY)
    placed: list[Orders] = []
    while pool.finished() is None and int(replay.tally.runs.sum()) < runs:
        placed.append(pool.ask(1))
        assert len(placed[-1])
        pool.tell(replay.tally, replay.answer(placed[-1]))
    return pool, replay, placed


def test_first_runs_of_proposals_are_stopped_early_and_those_of_draws_are_not() -> None:
    """Ranks of draws at arrival need complete scores."""
    pool, replay, placed = searched(PROBLEM, 400)
    first: dict[int, tuple[int, int]] = {}
    for orders in placed:
        for config, n, level in zip(orders.config, orders.n, orders.level, strict=True):
            first.setdefault(int(config), (int(n), int(level)))
    origins = {config: TERMS.origin(config) for config in first}
    top = pool.plan.stops.top
    assert top == 1
    assert {level for config, (_, level) in first.items() if origins[config] == "random"} == {top}
    assert {level for config, (_, level) in first.items() if origins[config] != "random"} == {0}
    short = [config for config in first if origins[config] == "model" and replay.tally.level[config] == 0]
    assert len(short) >= 8
    stop = float(pool.plan.stops.stop[0])
    for config in short:
        seconds, ended = replay.times(config, int(replay.tally.n[config]))
        assert not (seconds[~np.isnan(seconds) & ended] > stop).any()


def test_the_leader_makes_its_stopped_runs_again() -> None:
    """What is claimed of it needs complete scores; before it has made a number of runs it may lead by luck."""
    pool, replay, _ = searched(PROBLEM, 600)
    made = replay.tally.n - replay.tally.skipped
    assert made[pool.leader] >= 16
    assert replay.tally.level[pool.leader] == pool.plan.stops.top


def test_the_certificate_has_its_share_of_the_cpu_time() -> None:
    """Runs that are made again are dear: rounds that are split eight to one would spend most of the time on them."""
    _, replay, _ = searched(PROBLEM, 1500)
    level, seconds = replay.tally.level[: len(replay.tally.seconds)], replay.tally.seconds
    long = [config for config in range(len(seconds)) if level[config] and TERMS.origin(config) != "random"]
    short = [config for config in range(len(seconds)) if not level[config]]
    assert len(short) > 2 * len(long)
    assert 0.0 < seconds[long].sum() < 0.8 * seconds.sum()


@pytest.mark.parametrize("problem", [replace(PROBLEM, short_captimes=False), replace(PROBLEM, schedule=5)])
def test_runs_are_made_once_where_they_have_to_be(problem: Problem) -> None:
    """A program that takes another time each time, and ledgers that were begun by earlier rules."""
    pool = Pool(problem, gamma=0.0, effort="search")
    assert not pool.plan.repeats
    assert Pool(PROBLEM, gamma=0.0, effort="search").plan.repeats
    assert not Pool(PROBLEM, gamma=0.0, effort="balanced").plan.repeats


def test_a_search_on_a_stream_that_ends_comes_to_its_end() -> None:
    """Configurations that have seen all of it can still make their stopped runs again, and then nothing is left."""
    terms = replace(TERMS, limit=12)
    problem = replace(PROBLEM, n_configs=12, n_instances=60, pool=terms)
    pool, replay, _ = searched(problem, 10_000)
    assert pool.finished() is not None
    assert int(replay.tally.runs.sum()) < 10_000


def test_stops_are_where_a_captime_begins_to_show_a_loss() -> None:
    """At u⁻¹(1/B); without a boost there is no such place."""
    stops = Stops.one(UTILITY, 1.25, 300.0)
    assert stops.stop[0] == pytest.approx(float(UTILITY.inverse(np.array(0.8))))
    drawn = np.array([1.0, 200.0])
    assert stops.applied(drawn, np.array([0, 0])).tolist() == [1.0, stops.stop[0]]
    assert stops.applied(drawn, np.array([1, 1])).tolist() == [1.0, 200.0]
    assert Stops.one(UTILITY, 1.0, 300.0).top == 0


def test_a_stopped_run_counts_what_such_runs_are_worth_in_the_end() -> None:
    """Of those watched longer, half answered for 0.5 and half for nothing."""
    ended, of_ended, stopped = np.zeros(4), np.zeros(4), np.zeros(4)
    stopped[0], ended[2], ended[3], of_ended[2] = 6.0, 5.0, 5.0, 2.5
    assert worth_in_the_end(ended, of_ended, stopped)[0] == pytest.approx(0.25)


def bets_of(runs: list[tuple[FloatArray, BoolArray]]) -> MeasuredBets:
    """Bets on proposals that made these runs from the start of the stream."""
    bets = MeasuredBets(UTILITY)
    for config, (seconds, ended) in enumerate(runs):
        bets.enter("model")
        bets.take_in_times(config, 0, seconds, ended)
    return bets


def test_runs_that_were_made_again_replace_the_stopped_ones() -> None:
    """The estimates are those of the longer runs alone."""
    rng = np.random.default_rng(1)
    seconds = 20.0 * np.exp(rng.standard_normal((5, 12)))
    full = [(each, np.ones(12, dtype=np.bool_)) for each in seconds]
    cut = [(np.minimum(each, 8.0), each < 8.0) for each in seconds]
    at_once, later = bets_of(full), bets_of(cut)
    later.weigh()
    for config, (each, ended) in enumerate(full):
        later.take_in_times(config, 0, each, ended)
    for bets in (at_once, later):
        for _ in range(60):
            bets.weigh()
    assert later.mean == pytest.approx(at_once.mean, abs=1e-6)
    assert later.scores.tolist() == [12] * 5


def test_short_and_long_runs_are_compared_fairly() -> None:
    """Two that are alike, one stopped early: by middles of what stopped runs may be worth, one would look better."""
    rng = np.random.default_rng(2)
    differences = []
    for _ in range(20):
        seconds = 25.0 * np.exp(1.5 * rng.standard_normal((4, 60)))
        cut = seconds < 6.0
        runs = [(each, np.ones(60, dtype=np.bool_)) for each in seconds[:3]]
        bets = bets_of([*runs, (np.minimum(seconds[3], 6.0), cut[3])])
        middles = BestBets()
        for config, (made, ended) in enumerate([*runs, (np.minimum(seconds[3], 6.0), cut[3])]):
            middles.enter("model")
            middles.take_in(config, 0, 0, np.where(ended, UTILITY(made), 0.5 * UTILITY(made)))
        for each in (bets, middles):
            each.weigh()
        differences.append([each.mean[3] - each.mean[:3].mean() for each in (bets, middles)])
    by_times, by_middles = np.mean(differences, axis=0)
    assert abs(by_times) < 0.5 * abs(by_middles)


def test_a_search_with_short_captimes_is_confirmed(tmp_path: Path) -> None:
    """Stopped runs, and the same runs made again, are on record; the check takes their intervals as the proof does."""
    path = tmp_path / "search.ledger"
    left = iter(range(900))
    question = on_space(1, epsilon=0.05, options={"gamma": 0.2, "effort": "search"})
    search(question, path, interrupted=lambda: next(left, None) is None)
    assert audited(path).verdict == "confirmed"
    with LedgerReader(path) as reader:
        made = [(row.request.config, row.request.instance) for row in reader.newest(10_000)]
    assert len(set(made)) < len(made)


def test_draws_that_are_stopped_early_in_the_pilot_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: every second draw gets short captimes, so that its rank suffers; ranks would no longer be fair."""
    honest = Pool._level_of

    def unfair(pool: Pool, config: int, *, certify: bool = False) -> int:
        level = honest(pool, config, certify=certify)
        stopped = pool.shares.origin[config] == "random" and config % 4 == 0
        return int(pool._agenda.level[config]) if stopped else level

    monkeypatch.setattr(Pool, "_level_of", unfair)
    path = tmp_path / "unfair.ledger"
    left = iter(range(500))
    question = on_space(1, epsilon=0.05, options={"gamma": 0.2, "effort": "search"})
    search(question, path, interrupted=lambda: next(left, None) is None)
    with pytest.raises(LedgerDamaged, match="was stopped earlier than other draws"):
        audited(path)


def test_a_program_that_does_not_repeat_itself_makes_every_run_of_a_search_once(tmp_path: Path) -> None:
    """Trial runs find that out before the first run that counts; the report says so, and the same call resumes it."""
    section = {
        "x": {"type": "float", "low": 0.0, "high": 1.0, "default": 0.5},
        "folder": {"type": "categorical", "choices": [str(tmp_path)]},
    }
    wishes: dict[str, Any] = {"utility": "log-laplace(60, 1)", "epsilon": 0.5, "gamma": 0.7, "jobs": 1}
    path = tmp_path / "search.ledger"
    first, resumed = (
        captime.configure(
            restless, list(range(30)), space=section, effort="search", ledger=path, progress=False, **wishes
        )
        for _ in range(2)
    )
    assert first.question.short_captimes is False
    assert any(line.startswith("Trial runs did not show") for line in assumptions(first))
    assert not first.repeats
    assert not resumed.repeats
    assert audited(path).verdict == "confirmed"
