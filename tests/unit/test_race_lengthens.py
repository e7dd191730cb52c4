"""Captimes of the race grow as epsilon shrinks, and only on positions without a run."""

from itertools import pairwise

import numpy as np
import pytest

from captime import PROCEDURES, Problem, parse_utility
from captime.procedures.race import Race
from captime.sources.replay import Replay
from captime.sources.synthetic import synthetic_table
from captime.sources.window import stream_of


def test_longer_captimes_come_with_smaller_epsilons_and_never_for_positions_already_ordered() -> None:
    """The longest captime of every position, as it stood when the position was first ordered, stands to the end."""
    table = synthetic_table(4, 3, 20_000, limit=float("inf"), spread=0.1)
    utility = parse_utility("log-laplace(60, 1)")
    race = PROCEDURES["race"](Problem(3, utility, 0.1, 0.01, n_instances=20_000))
    assert isinstance(race, Race)
    replay = Replay(table, stream_of("shuffle", table.groups, 0), race.plan, utility)
    recorded = np.empty(0)
    levels = [float(race.plan.longest.at(np.array([0]))[0])]
    for _ in range(3_000):
        if race.finished() is not None:
            break
        order = race.ask(1)
        reach = int(order.n.max(initial=len(recorded)))
        now = np.broadcast_to(race.plan.longest.at(np.arange(reach)), reach)
        np.testing.assert_array_equal(now[: len(recorded)], recorded)
        recorded = np.maximum(recorded, 0) if reach < len(recorded) else now.copy()
        race.tell(replay.tally, replay.answer(order))
        newest = float(race.plan.longest.at(np.array([10**9]))[0])
        if newest != levels[-1]:
            levels.append(newest)
    assert len(levels) > 2
    assert all(before < after for before, after in pairwise(levels))
    # u falls to a tenth of epsilon at the longest captime; the first one is made for 0.1.
    assert float(utility(np.array(levels[0]))) == pytest.approx(0.01)
    assert utility(np.array(levels[-1])) >= 0.1 * 0.01 - 1e-12
