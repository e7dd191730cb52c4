"""Changing the goal on the way: a user who moves it after looking is wrong no more often than one who never does."""

import numpy as np
import pytest

from campaigns import limit_for
from captime.evidence import Evidence
from captime.executors import VirtualExecutor
from captime.live import drive_parallel
from captime.procedures import Problem
from captime.procedures.race import Race
from runtime_laws import LAWS, alike, in_order, table_of

DELTA = 0.2
_ROUNDING = 1e-9


def wrong_campaigns(law: str, repetitions: int, seed: int) -> int:
    """How many races showed anything false while the goal was moved at every look, up and down."""
    world = LAWS[law](alike(3))
    rng, wrong, length = np.random.default_rng(seed), 0, 90
    for _ in range(repetitions):
        problem = Problem(3, world.utility, DELTA, 0.3, n_instances=length, seed=int(rng.integers(1 << 30)))
        race, moves = Race(problem, growth=0.5), np.random.default_rng(int(rng.integers(1 << 30)))
        found = [False]

        def look(*_: object, race: Race = race, moves: np.random.Generator = moves, found: list[bool] = found) -> None:
            held, leader, best = race.certificate(), race.leader, int(world.truth.argmax())
            false = world.truth.max() - world.truth[held.config] > held.epsilon + _ROUNDING
            below = race.lower[leader] > world.truth[leader] + _ROUNDING
            above = race.upper[best] < world.truth[best] - _ROUNDING
            found[0] = found[0] or bool(false) or bool(below) or bool(above)
            # Always a little below what is held, so that it continues; sometimes far below, sometimes just.
            race.retarget(max(0.0, held.epsilon * float(moves.uniform(0.0, 0.99))))

        table = table_of(world.draw(rng, length))
        drive_parallel(
            race, VirtualExecutor(table, in_order(length), 3), Evidence(3, race.plan, world.utility), observer=look
        )
        wrong += found[0]
    return wrong


@pytest.mark.parametrize("repetitions", [12, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize("law", ["two_point", "log_normal"])
def test_a_goal_that_moves_makes_nothing_wrong(law: str, repetitions: int) -> None:
    """Equal configurations, where every false difference shows."""
    assert wrong_campaigns(law, repetitions, 4711) <= limit_for(repetitions, DELTA)
