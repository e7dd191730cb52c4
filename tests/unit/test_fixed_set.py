"""The race on exactly these instances: exact in the end, whatever the order of completion, and never overpriced."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from captime.arrays import FloatArray
from captime.certificate import Certificate, Population
from captime.drive import drive
from captime.errors import ScenarioError
from captime.evidence import Evidence
from captime.executors.virtual import VirtualExecutor
from captime.live import drive_parallel
from captime.procedures import REGISTERS, Problem
from captime.procedures.fixed_set import FixedSetRace, Way
from captime.procedures.problem import SCHEDULE, build_procedure
from captime.procedures.set_schedule import captimes_for
from captime.runs import RunRequest
from captime.simulation import simulate
from captime.sources import RuntimeTable
from captime.sources.replay import Replay
from captime.sources.window import FixedOrder
from captime.utilities import parse_utility

_LIMIT = 100.0


def _table(seconds: FloatArray) -> RuntimeTable:
    names = [f"c{index}" for index in range(len(seconds))], [f"i{index}" for index in range(seconds.shape[1])]
    return RuntimeTable.build("set", *names, seconds, timeout=_LIMIT)


def _world(seed: int, n_configs: int, size: int, *, ties: bool = False) -> FloatArray:
    rng = np.random.default_rng(seed)
    speed = np.exp(0.4 * rng.normal(size=n_configs))
    hard = np.exp(1.5 * rng.normal(size=size))
    seconds = np.minimum(8.0 * speed[:, None] * hard * rng.exponential(size=(n_configs, size)), _LIMIT)
    if ties:
        seconds[1] = seconds[0]
        seconds[2] = seconds[0][::-1]
    return np.asarray(seconds)


def _problem(seconds: FloatArray, epsilon: float, utility: str = "uniform(60)") -> Problem:
    return Problem(
        n_configs=len(seconds),
        utility=parse_utility(utility),
        delta=0.1,
        epsilon=epsilon,
        captime_limit=_LIMIT,
        n_instances=seconds.shape[1],
        population=Population.THESE,
    )


def _in_parallel(seconds: FloatArray, epsilon: float, workers: int, utility: str = "uniform(60)") -> Certificate:
    problem = _problem(seconds, epsilon, utility)
    race = FixedSetRace(problem)
    executor = VirtualExecutor(_table(seconds), FixedOrder(np.arange(seconds.shape[1])), workers)
    evidence = Evidence(len(seconds), race.plan, problem.utility)
    return drive_parallel(race, executor, evidence, look_every=5.0).certificate


@pytest.mark.parametrize("workers", [1, 8, 64])
@pytest.mark.parametrize(("size", "ties"), [(1, False), (5, False), (5, True), (20, False), (20, True), (60, True)])
def test_the_end_is_exact(workers: int, size: int, ties: bool) -> None:
    """With epsilon 0 the best of the set is recommended, ties included, in any order of completion."""
    for seed in range(2):
        seconds = _world(seed, 5, size, ties=ties)
        held = _in_parallel(seconds, 0.0, workers)
        worth = np.maximum(1.0 - seconds / 60.0, 0.0).mean(axis=1)
        assert held.epsilon == 0.0
        assert worth[held.config] >= worth.max() - 1e-12
        assert held.population is Population.THESE
        assert held.instances == size


@pytest.mark.parametrize("workers", [1, 8, 64])
def test_claims_hold_in_any_order_of_completion(workers: int) -> None:
    """The epsilon is reached, and the claim about the set and its interval are true."""
    for seed in range(2):
        seconds = _world(seed, 6, 60)
        held = _in_parallel(seconds, 0.1, workers, "log-laplace(10, 1)")
        worth = parse_utility("log-laplace(10, 1)")(np.where(seconds >= _LIMIT, np.inf, seconds)).mean(axis=1)
        assert held.epsilon <= 0.1
        assert worth.max() - worth[held.config] <= 0.1
        assert held.utility_low <= worth[held.config] <= held.utility_high + 0.05
        assert held.other is not None
        assert held.other.config == held.config
        assert held.other.population is Population.DRAWN
        assert held.other.epsilon >= held.epsilon


def test_nothing_is_paid_twice_and_nothing_beyond_the_matrix() -> None:
    """One slot, epsilon 0: at most every run once, up to the longest captime."""
    for seed in range(2):
        result = simulate(
            _table(_world(seed, 5, 40)), utility="uniform(60)", epsilon=0.0, population="these", seed=seed
        )
        assert result.matrix_cpu_seconds is not None
        assert result.cpu_seconds <= result.matrix_cpu_seconds * (1.0 + 1e-12)
        assert result.outcome.rerun_seconds["restart"] == 0.0


def test_few_instances_are_all_run() -> None:
    """With very few instances everything is run at once, and the procedure says so."""
    race = FixedSetRace(_problem(_world(1, 3, 3), 0.1))
    replay = Replay(_table(_world(1, 3, 3)), FixedOrder(np.arange(3)), race.plan, race.problem.utility)
    outcome = drive(race, replay)
    assert race.way is Way.EVERYTHING
    assert outcome.certificate.epsilon <= 0.1
    facts = race.facts()
    assert facts is not None
    assert facts["way"] == "everything"


def test_a_table_that_hides_the_rest_says_what_it_cannot_show() -> None:
    """Beyond the timeout nothing is known: epsilon stays above 0, the claim is true, and the race ends."""
    seconds = np.full((3, 20), _LIMIT)
    result = simulate(_table(seconds), utility="log-laplace(60, 1)", epsilon=0.0, population="these")
    hidden = float(result.utility(np.array(_LIMIT)))
    assert result.outcome.stopped == "instances"
    assert result.certificate.epsilon == pytest.approx(hidden)


def test_captimes_are_long_enough_for_the_goal() -> None:
    """Heavy tails begin with the captime at which an answer is worth epsilon; the last captime is the longest."""
    heavy = _problem(_world(0, 3, 30), 0.1, "log-laplace(1, 1)")
    assert captimes_for(heavy).tolist() == pytest.approx([5.0, 20.0, _LIMIT], rel=1e-5)
    assert captimes_for(replace(heavy, epsilon=0.0)).tolist() == [_LIMIT]
    assert captimes_for(replace(heavy, short_captimes=False)).tolist() == [_LIMIT]
    assert captimes_for(_problem(_world(0, 3, 30), 0.1)).tolist() == [60.0]


def test_another_goal_on_the_way() -> None:
    """A smaller goal resumes the race, which ends exact."""
    seconds = _world(3, 5, 40)
    race = FixedSetRace(_problem(seconds, 0.2))
    replay = Replay(_table(seconds), FixedOrder(np.arange(40)), race.plan, race.problem.utility)
    assert drive(race, replay).certificate.epsilon <= 0.2
    race.retarget(0.0)
    held = drive(race, replay).certificate
    worth = np.maximum(1.0 - seconds / 60.0, 0.0).mean(axis=1)
    assert held.epsilon == 0.0
    assert held.config == worth.argmax()


@pytest.mark.parametrize("begun", [True, False])
def test_more_instances_make_a_claim_about_the_larger_set(begun: bool) -> None:
    """What was shown of the smaller set is dropped; in the end the best of the larger set is known exactly."""
    seconds = _world(5, 4, 50)
    short = replace(_problem(seconds, 0.05), n_instances=30)
    race = FixedSetRace(short)
    replay = Replay(_table(seconds), FixedOrder(np.arange(50)), race.plan, race.problem.utility)
    if begun:
        assert drive(race, replay).certificate.instances == 30
    race.more_instances(50)
    assert race.certificate().instances == 50
    race.retarget(0.0)
    held = drive(race, replay).certificate
    worth = np.maximum(1.0 - seconds / 60.0, 0.0).mean(axis=1)
    facts = race.facts()
    assert facts is not None
    assert facts["set"]["start"] >= 30  # type: ignore[index]
    assert (held.epsilon, held.config, held.instances) == (0.0, worth.argmax(), 50)


@pytest.mark.parametrize("begun", [True, False])
def test_configurations_added_later_are_compared_too(begun: bool) -> None:
    """A better configuration that comes late is recommended in the end; its bets begin behind everything seen."""
    seconds = _world(6, 5, 40)
    seconds[4] = 0.5 * seconds[:4].min(axis=0)
    problem = replace(_problem(seconds, 0.05), n_configs=4)
    race = FixedSetRace(problem)
    replay = Replay(_table(seconds), FixedOrder(np.arange(40)), race.plan, race.problem.utility)
    if begun:
        drive(race, replay)
        seen = int(race._ordered.max())
    assert race.newcomers(1) == 4
    held = drive(race, replay).certificate
    assert (held.config, held.n_configs) == (4, 5)
    assert held.epsilon <= 0.05
    facts = race.facts()
    assert facts is not None
    if begun:
        assert facts["set"]["joined"] == [[4, seen]]  # type: ignore[index]


def test_what_cannot_be_claimed_is_refused() -> None:
    """Endless streams, other procedures and orders that captime does not draw carry no claim about a set."""
    problem = _problem(_world(0, 3, 10), 0.1)
    with pytest.raises(ScenarioError, match="have no end"):
        FixedSetRace(replace(problem, n_instances=None))
    with pytest.raises(ScenarioError, match="makes no claim about exactly these instances"):
        build_procedure("up", REGISTERS, problem, {})
    with pytest.raises(ScenarioError, match="use sampling 'shuffle'"):
        simulate(_table(_world(0, 3, 10)), utility="uniform(60)", population="these", sampling="given")
    with pytest.raises(ScenarioError, match="there are these, drawn"):
        simulate(_table(_world(0, 3, 10)), utility="uniform(60)", population="those")


def _runs_made(seconds: FloatArray, epsilon: float, workers: int, schedule: int = SCHEDULE) -> tuple[list[int], float]:
    """Return how often each pair of configuration and instance was run, and the epsilon at the end."""
    problem = replace(_problem(seconds, epsilon, "log-laplace(1, 1)"), schedule=schedule)
    race = FixedSetRace(problem)
    executor = VirtualExecutor(_table(seconds), FixedOrder(np.arange(seconds.shape[1])), workers)
    made: Counter[tuple[int, int]] = Counter()
    submit = executor.submit

    def watch(requests: list[RunRequest]) -> None:
        made.update((request.config, request.instance) for request in requests)
        submit(requests)

    executor.submit = watch  # type: ignore[method-assign,assignment] # every start is counted
    drive_parallel(race, executor, Evidence(len(seconds), race.plan, problem.utility))
    return list(made.values()), race.certificate().epsilon


def _hard_worlds(size: int) -> list[FloatArray]:
    """Near ties with heavy tails, answers behind every short captime, all or nothing, and one that is often stopped."""
    rng = np.random.default_rng(size)
    alike = np.exp(2.0 * rng.normal(size=size)) * np.exp(0.1 * rng.normal(size=(3, size)))
    cut = alike.copy()
    cut[0] = np.where(rng.random(size) < 0.5, 0.99 * _LIMIT, 0.1)
    worlds = (
        alike,
        40.0 * np.exp(0.1 * rng.normal(size=(2, size))),
        np.where(rng.random((4, size)) < 0.5, 0.5, 99.0),
        cut,
    )
    return [np.minimum(world, _LIMIT) for world in worlds]


@pytest.mark.parametrize("workers", [1, 8])
@pytest.mark.parametrize("size", [5, 20, 40])
def test_no_run_is_made_twice_and_the_goal_is_reached(size: int, workers: int) -> None:
    """So a race never costs more than the whole matrix."""
    for seconds in (*_hard_worlds(size), *(_world(seed, 4, size, ties=True) for seed in range(3))):
        for epsilon in (0.02, 0.1, 0.3):
            made, reached = _runs_made(seconds, epsilon, workers)
            assert set(made) == {1}
            assert reached <= epsilon


def test_the_schedule_before_made_runs_twice() -> None:
    """Ledgers of that time are resumed by its rules; here they are seen to be others."""
    assert max(_runs_made(_hard_worlds(20)[2], 0.1, 1, schedule=3)[0]) > 1
