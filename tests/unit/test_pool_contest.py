"""The contest for the lead: who is run because it may be better than the leader, and what that is good for."""

import numpy as np
import pytest

from captime.arrays import IntArray
from captime.procedures import Problem
from captime.procedures.pool import Pool
from captime.procedures.pool_bets import Contest
from captime.sources.replay import Replay
from captime.utilities import parse_utility
from runtime_laws import in_order, table_of

UTILITY = parse_utility("uniform(60)")


def contest_of(*ahead: list[float]) -> Contest:
    """A contest in which these are the differences to the leader."""
    contest = Contest()
    for config, differences in enumerate(ahead):
        contest.enter()
        contest.compare(config, np.array(differences))
    return contest


def test_who_is_ahead_after_a_few_runs_is_settled_first() -> None:
    """In every round, the furthest ahead first; one that has met the leader often enough waits as all others do."""
    contest = contest_of([0.1] * 4, [0.3] * 4, [-0.1] * 4, [0.2] * 40)
    for rounds in (1, 2):
        assert contest.order(np.arange(4), turn=bool(rounds % 2)).tolist() == [1, 0]
    assert contest.order(np.array([0, 2, 3]), turn=False).tolist() == [0]


def test_the_promising_have_every_second_round() -> None:
    """By what may be hoped of them, a standard error above the mean; the hopeless have none of it."""
    contest = contest_of([0.05] * 100, [-0.02, 0.0] * 50, [-1.0] * 20, [0.1, 0.0] * 50)
    assert contest.order(np.arange(4), turn=False).tolist() == []
    assert contest.order(np.arange(4), turn=True).tolist() == [3, 0, 1]


def test_few_equal_scores_do_not_make_hopeless() -> None:
    """Four draws against the leader say little; a hundred are something else once it is a little behind."""
    contest = contest_of([0.0] * 4, [-0.02] * 100)
    assert contest.order(np.arange(2), turn=True).tolist() == [0]


def test_who_has_not_met_the_leader_takes_no_part() -> None:
    """A newcomer, and a configuration that has nothing in common with a new leader."""
    contest = contest_of([], [0.5] * 4)
    contest.enter()
    assert contest.order(np.arange(3), turn=True).tolist() == [1]
    contest.compare(1, np.empty(0))
    assert contest.order(np.arange(3), turn=True).tolist() == []


def _runs_until_the_best_leads(seed: int) -> int:
    """Thirty that are alike and then one that is better, which comes when the others have been run for a while."""
    rng = np.random.default_rng(seed)
    slow, fast = 30.0, 18.0
    mean = np.full((48, 1), slow)
    mean[40] = fast
    table = table_of(mean * np.exp(0.3 * rng.standard_normal((48, 3000))))
    pool = Pool(Problem(48, UTILITY, 0.1, epsilon=0.02, n_instances=3000, seed=seed), gamma=0.0)
    replay = Replay(table, in_order(3000), pool.plan, UTILITY)
    met = 0
    while pool.finished() is None and pool.leader != 40:
        pool.tell(replay.tally, replay.answer(pool.ask(1)))
        known = len(replay.tally.n) > 40 and int(replay.tally.n[40]) > 0
        met = met if known else int(replay.tally.runs.sum())
    assert pool.leader == 40
    return int(replay.tally.runs.sum()) - met


def test_a_better_one_takes_the_lead_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    """All runs from its first one until it leads: half as many more if only the certificate counts."""
    with_contest = sum(_runs_until_the_best_leads(seed) for seed in range(5))

    def no_order(self: Contest, rivals: IntArray, *, turn: bool) -> IntArray:
        return rivals[:0]

    monkeypatch.setattr(Contest, "order", no_order)
    without = sum(_runs_until_the_best_leads(seed) for seed in range(5))
    assert without > 1.4 * with_contest


def _changes_of_the_lead(seed: int, gamma: float) -> int:
    """Sixty that are all alike: what takes the lead was lucky."""
    rng = np.random.default_rng(seed)
    table = table_of(30.0 * np.exp(0.5 * rng.standard_normal((60, 400))))
    pool = Pool(Problem(60, UTILITY, 0.1, epsilon=0.02, n_instances=400, seed=seed), gamma=gamma)
    replay = Replay(table, in_order(400), pool.plan, UTILITY)
    changes = 0
    while pool.finished() is None and int(replay.tally.runs.sum()) < 3000:
        before = pool.leader
        pool.tell(replay.tally, replay.answer(pool.ask(1)))
        changes += pool.leader != before
    return changes


def test_lucky_ones_take_the_lead_less_often_where_newcomers_come_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two standard errors instead of one and a half, if there is no goal for gamma."""
    strict = sum(_changes_of_the_lead(seed, 0.0) for seed in range(4))
    monkeypatch.setattr("captime.procedures.pool._CLEARLY_AMONG_ENDLESS", 1.5)
    assert sum(_changes_of_the_lead(seed, 0.0) for seed in range(4)) > strict
