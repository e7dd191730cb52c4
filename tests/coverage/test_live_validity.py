"""Certificates of campaigns with real processes, and what becomes of them if runs are lost or doubled carelessly.

The programs burn CPU time by a law that is known, so the truth is known. Eight at once on however many cores there are.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from campaign_stand_ins import folder, ledger_in
from campaigns import limit_for
from captime import configure
from captime.arrays import FloatArray
from captime.evidence import Evidence
from captime.executors import VirtualExecutor
from captime.executors.retry import LossLimit
from captime.live import drive_parallel
from captime.procedures import Problem
from captime.procedures.race import Race
from captime.runs import RunRequest
from captime.utilities import parse_utility
from runtime_laws import in_order, table_of
from stub_targets import CHANCES, FAST, burn

__all__ = ["folder"]

UTILITY = "uniform(40ms)"
# What starting, measuring and other people's work add to a run of 2 ms, as a share of the utility; generous.
OVERHEAD = 0.1
DELTA = 0.2


@pytest.mark.parametrize("campaigns", [1, pytest.param(30, marks=pytest.mark.fault)])
def test_no_certificate_of_real_campaigns_is_false(folder: Path, campaigns: int) -> None:
    """The recommended one is within epsilon of the best by the law that the stubs follow; the interval holds too."""
    worth = {name: chance * (1.0 - FAST / 0.04) for name, chance in CHANCES.items()}
    for number in range(campaigns):
        result = configure(
            burn,
            instances=list(range(3000)),
            configurations={name: {"chance": chance} for name, chance in CHANCES.items()},
            utility=UTILITY,
            epsilon=0.25,
            ledger=ledger_in(folder, f"{number}"),
            jobs=8,
            oversubscribe=True,
            seed=number,
            progress=False,
        )
        held = result.certificate
        assert held.epsilon <= 0.25
        assert worth[result.config_name] >= max(worth.values()) - held.epsilon - OVERHEAD
        assert held.utility_low <= worth[result.config_name] + 1e-9
        assert held.utility_high >= worth[result.config_name] - OVERHEAD


# ---------------------------------------------------------------------------- planted errors

Planted = Callable[[FloatArray, np.random.Generator], FloatArray]
N_INSTANCES = 125


def as_they_are(seconds: FloatArray, _: np.random.Generator) -> FloatArray:
    """Lost runs are made again with the same seed, doubled ones counted by their lease: the times are what they are."""
    return seconds


def tried_again_with_luck(seconds: FloatArray, rng: np.random.Generator) -> FloatArray:
    """A machine is lost every 5 s or so; the run is dropped, and another one takes its place."""
    kept = seconds.copy()
    for _ in range(4):
        lost = rng.exponential(5.0, size=kept.shape) < kept
        kept = np.where(lost, rng.permuted(seconds, axis=1), kept)
    return kept


def first_of_two_counts(seconds: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Nine runs in ten are made twice, and the first to come back counts."""
    twice = rng.random(seconds.shape) < 0.9
    return np.where(twice, np.minimum(seconds, rng.permuted(seconds, axis=1)), seconds)


def wrong_campaigns(planted: Planted, repetitions: int) -> int:
    """In how many campaigns the leader's lower bound was above the truth at any look; 8 virtual workers and losses."""
    utility = parse_utility("uniform(60)")
    truth = 0.6 * (1 - 1 / 60) + 0.4 * (1 - 50 / 60)
    rng = np.random.default_rng(77)
    wrong = 0
    for _ in range(repetitions):
        fast = rng.random((2, N_INSTANCES)) < 0.6
        table = table_of(planted(np.where(fast, 1.0, 50.0), rng))
        problem = Problem(2, utility, DELTA, 0.0, n_instances=N_INSTANCES, seed=int(rng.integers(1 << 30)))
        race = Race(problem, growth=1.0)
        lost = np.random.default_rng(int(rng.integers(1 << 30)))

        def loses(_: RunRequest, lost: np.random.Generator = lost) -> float | None:
            return float(lost.exponential(200.0)) if lost.random() < 0.2 else None

        executor = LossLimit(VirtualExecutor(table, in_order(N_INSTANCES), 8, loses=loses), repeatable=True)
        seen = [False]

        def look(*_: object, race: Race = race, seen: list[bool] = seen) -> None:
            seen[0] = seen[0] or bool(race.lower[race.leader] > truth)

        drive_parallel(race, executor, Evidence(2, race.plan, utility), observer=look)
        wrong += seen[0]
    return wrong


def test_careless_handling_of_lost_and_doubled_runs_is_caught() -> None:
    """The same harness finds the planted errors, and nothing wrong with the honest twin."""
    assert wrong_campaigns(as_they_are, 8) <= limit_for(8, DELTA)
    for planted in (tried_again_with_luck, first_of_two_counts):
        assert wrong_campaigns(planted, 8) > limit_for(8, DELTA), planted.__name__
