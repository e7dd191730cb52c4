"""Of the configurations with a certificate at the goal, the one that measured times show to be best is named."""

import math
from pathlib import Path

import numpy as np
import pytest

from captime.arrays import FloatArray
from captime.certificate import Certificate
from captime.evidence import Evidence
from captime.executors import VirtualExecutor
from captime.live import drive_parallel
from captime.procedures import Problem, race_claims
from captime.procedures.board import measured_utility, product_limit
from captime.procedures.problem import SCHEDULE
from captime.procedures.race import Race
from captime.simulation import simulate
from captime.sources import RuntimeTable
from captime.sources.window import stream_of
from captime.tally import blank_tally
from captime.utilities import parse_utility
from written_ledgers import audited, written

UTILITY = parse_utility("uniform(5)")
LIMIT = 60.0


def table_of(seconds: FloatArray, names: list[str]) -> RuntimeTable:
    """A table of these runtimes."""
    return RuntimeTable.build("near", names, [f"i{j}" for j in range(seconds.shape[1])], seconds, timeout=LIMIT)


def near_ties(length: int = 200) -> FloatArray:
    """Two that are worth nearly the same, of which the second is a little faster everywhere, and a hopeless one."""
    rng = np.random.default_rng(5)
    hard = 1.8 * rng.lognormal(0.0, 0.3, length)
    first, second = (speed * hard * rng.lognormal(0.0, 0.05, length) for speed in (1.25, 1.0))
    return np.array([first, second, np.full(length, 60.0)])


def named(order: list[int], seed: int, *, schedule: int = SCHEDULE, workers: int = 1) -> str:
    """Who is named if the list is in this order."""
    table = table_of(near_ties()[order], [f"c{each}" for each in order])
    race = Race(Problem(3, UTILITY, 0.1, 0.25, captime_limit=LIMIT, seed=seed, schedule=schedule))
    executor = VirtualExecutor(table, stream_of("replace", table.groups, seed), workers)
    drive_parallel(race, executor, Evidence(3, race.plan, UTILITY))
    held = race.certificate()
    assert held.epsilon <= 0.25
    return table.configs[held.config]


@pytest.mark.parametrize("seed", range(6))
def test_the_order_of_a_list_does_not_decide_between_near_ties(seed: int) -> None:
    """Swapping two lines changes nothing: the faster one is named."""
    assert {named([0, 1, 2], seed), named([1, 0, 2], seed)} == {"c1"}


def test_many_workers_name_the_faster_one_more_often_than_scores_would() -> None:
    """With runs under way the faster one may lack a certificate of its own; then the leader is named."""
    found = [[named([1, 0, 2], seed, schedule=schedule, workers=8) for seed in range(4)] for schedule in (1, 2)]
    assert found[1].count("c1") > found[0].count("c1")


def test_scores_alone_do_not_tell_them_apart() -> None:
    """Under the first schedule the order of the list decided in some of these races."""
    assert "c0" in {named([0, 1, 2], seed, schedule=1) for seed in range(4)}


def test_a_replay_names_the_same() -> None:
    """A simulation has the same times as a live campaign."""
    for order in ([0, 1, 2], [1, 0, 2]):
        table = table_of(near_ties()[order], [f"c{each}" for each in order])
        done = simulate(table, utility=UTILITY, delta=0.1, epsilon=0.25, sampling="replace", seed=1)
        assert table.configs[done.outcome.certificate.config] == "c1"


def test_the_one_named_has_a_certificate_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A configuration that looks best and has not cleared the others is not named."""
    monkeypatch.setattr(race_claims, "measured_utility", lambda tally, config, utility: float(config == 2))
    assert named([0, 1, 2], 0) != "c2"


def test_the_check_confirms_a_configuration_that_never_led(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A configuration other than the leader is named, and the rows show the claim without the engine."""
    never_led = []
    statement = race_claims.ListClaims._statement

    def watch(claims: Race, epsilon: float, challenger: int | None = None, config: int | None = None) -> Certificate:
        never_led.extend([] if config in (None, claims.leader) else [config])
        return statement(claims, epsilon, challenger, config)

    monkeypatch.setattr(race_claims.ListClaims, "_statement", watch)
    monkeypatch.setattr(race_claims.ListClaims, "_consider_leaders", lambda *_: None)
    path = tmp_path / "named.ledger"
    # The first one is ahead in the warm start, the second one from then on.
    seconds = near_ties(2000)
    seconds[:2, :16] = [[1.5], [1.7]]
    held = written(path, seconds, utility="uniform(5)", epsilon=0.25, seed=1, workers=1)
    assert never_led
    assert held.config == never_led[-1] == 1
    found = audited(path)
    assert found.verdict == "confirmed"
    assert found.certified is not None
    assert found.certified.certificate.config == 1


def test_capped_runs_count_as_what_was_seen_of_them() -> None:
    """Half of the runs are capped before they answer: the estimate is that of the complete times, not their mean."""
    seconds = np.array([1.0, 1.0, 1.0, 0.5, 0.5, 0.5])
    answered = np.array([True, True, True, False, False, False])
    found = product_limit(seconds, answered, np.zeros(6, dtype=np.bool_))
    assert found.mean_utility(UTILITY) == pytest.approx(0.8)
    assert found.left == 0.0


def test_failed_runs_are_worth_nothing_and_missing_ones_are_left_out() -> None:
    """One answer, one failure, one position that was never run."""
    times = np.array([1.0, math.inf, math.nan])
    ended = np.array([True, True, False])
    tally = blank_tally(1, lambda *_: (np.empty(0), np.empty(0)), lambda _config, last: (times[:last], ended[:last]))
    tally.n[:] = 3
    assert measured_utility(tally, 0, UTILITY) == pytest.approx(0.4)
    assert math.isnan(measured_utility(blank_tally(1, lambda *_: (np.empty(0), np.empty(0))), 0, UTILITY))
