"""The leader of a race is the one nearest to a certificate, at the level of its own rank, from the runs there are."""

import numpy as np
import pytest

from captime.arrays import FloatArray
from captime.campaign.identity import schedule_on_record
from captime.evidence import Evidence
from captime.executors import VirtualExecutor
from captime.live import drive_parallel
from captime.procedures import Problem
from captime.procedures.problem import FIFTH_SCHEDULE, SCHEDULE, SECOND_SCHEDULE
from captime.procedures.race import Race
from captime.sources import RuntimeTable
from captime.sources.window import stream_of
from captime.utilities import parse_utility

LIMIT, UTILITY = 300.0, parse_utility("log-laplace(60, 1)")


def near_ties(n_configs: int = 10, seed: int = 3) -> RuntimeTable:
    """Configurations of nearly the same speed, on instances that are hard or easy for all of them."""
    rng = np.random.default_rng(seed)
    hard = rng.lognormal(2.5, 1.3, 300)
    speed = rng.uniform(0.8, 1.4, n_configs)
    seconds = np.minimum(hard * speed[:, None] * rng.lognormal(0.0, 0.5, (n_configs, 300)), LIMIT)
    names = [f"c{i}" for i in range(n_configs)]
    return RuntimeTable.build("ties", names, [f"i{j}" for j in range(300)], seconds, timeout=LIMIT)


def truth_of(table: RuntimeTable) -> FloatArray:
    """Mean utilities on the table."""
    worth: FloatArray = (UTILITY(table.seconds) * (table.seconds < LIMIT)).mean(axis=1)
    return worth


def raced(table: RuntimeTable, epsilon: float, *, seed: int = 0, schedule: int = SCHEDULE, workers: int = 1) -> Race:
    """A race to its end."""
    n = table.n_configs
    race = Race(Problem(n, UTILITY, 0.1, epsilon, captime_limit=LIMIT, seed=seed, schedule=schedule))
    executor = VirtualExecutor(table, stream_of("replace", table.groups, seed), workers)
    drive_parallel(race, executor, Evidence(n, race.plan, UTILITY))
    return race


@pytest.fixture(scope="module")
def race() -> Race:
    """A race of near ties that has reached its goal, under rules by which it has a ranking."""
    return raced(near_ties(), 0.15, schedule=FIFTH_SCHEDULE)


def test_another_leader_pays_for_its_own_rank(race: Race) -> None:
    """What another one is said to show is what it shows once it leads, for every configuration."""
    leader, margin = race.leader, race._margin.copy()
    for other in (int(race._ranking[1]), int(race._ranking[4])):  # type: ignore[index]
        told = race._epsilons_of(other)
        race._crown(other)
        shown = race._epsilons()
        goal = race.problem.epsilon
        assert np.maximum(told, goal) == pytest.approx(np.maximum(shown, goal))
        race._crown(leader)
        race._margin[:] = margin


def test_the_level_of_the_one_who_leads_now_would_show_too_much(race: Race) -> None:
    """The planted error of a clearance that is carried over: a later rank clears less from the same runs."""
    last = int(race._ranking[-1])  # type: ignore[index]
    challengers = np.array([config for config in range(10) if config not in (last, race.leader)])
    own, borrowed = race.levels.duels(last, challengers), race.levels.duels(int(race._ranking[0]), challengers)  # type: ignore[index]
    assert own == pytest.approx(borrowed + np.log(10.0 * 11.0 / 2.0))


def test_looking_changes_no_statement(race: Race) -> None:
    """A look at other leaders leaves bounds, duels and the certificate of the one who leads as they are."""
    before = (race.leader, race.certificate(), race._epsilons(), race.lower.copy(), race.upper.copy())
    for other in range(10):
        race._epsilons_of(other)
    after = (race.leader, race.certificate(), race._epsilons(), race.lower.copy(), race.upper.copy())
    assert before[:2] == after[:2]
    for here, there in zip(before[2:], after[2:], strict=True):
        assert np.array_equal(here, there)


def test_a_leader_that_is_far_from_a_certificate_costs_more(race: Race) -> None:
    """Runs that are missing: none with the one that has its certificate, many with the worst one."""
    worst = int(truth_of(near_ties()).argmin())
    assert race._cost_to_certify(race.leader, race._epsilons()) == 0.0
    assert race._cost_to_certify(worst, race._epsilons_of(worst)) > 10.0


@pytest.mark.parametrize("schedule", [1, SECOND_SCHEDULE])
def test_answers_are_within_the_goal_under_every_schedule(schedule: int) -> None:
    """Near ties, several streams, one worker and several: the answer is within epsilon of the best."""
    for seed in range(3):
        table = near_ties(8, seed)
        truth = truth_of(table)
        held = raced(table, 0.15, seed=seed, schedule=schedule, workers=1 + 7 * (seed % 2)).certificate()
        assert held.epsilon <= 0.15
        assert truth[held.config] >= truth.max() - 0.15


def test_ledgers_keep_the_schedule_they_were_begun_with() -> None:
    """A ledger that names no schedule was begun under the first one."""
    assert schedule_on_record({}) == 1 < SECOND_SCHEDULE
    assert schedule_on_record({"schedule": SCHEDULE}) == SCHEDULE
    assert Problem(3, UTILITY, 0.1).schedule == SCHEDULE
