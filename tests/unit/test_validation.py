"""Validation on held-out instances: intervals around known means, paired differences, and the command as a whole."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from campaign_stand_ins import folder
from captime.campaign.validating import score_ends, validate
from captime.cli import app
from captime.sources import RuntimeTable
from captime.utilities import parse_utility
from scripted_campaign import scripted_campaign

__all__ = ["folder"]

UTILITY = parse_utility("uniform(10)")


def table_of(seconds: list[list[float]], limit: float = 8.0) -> RuntimeTable:
    """A table of these runtimes."""
    array = np.array(seconds)
    names = [f"c{row}" for row in range(len(array))]
    return RuntimeTable.build(
        "held-out", names, [f"i{column}" for column in range(array.shape[1])], array, recorded_limit=limit
    )


def test_answers_failures_and_cut_runs_are_worth_what_they_are() -> None:
    """u(t), nothing, and anything up to u(captime)."""
    low, high = score_ends(table_of([[2.0, np.inf, 8.0]]), UTILITY)
    np.testing.assert_allclose(low, [[0.8, 0.0, 0.0]])
    np.testing.assert_allclose(high, [[0.8, 0.0, 0.2]])


def test_intervals_hold_the_truth_and_differences_profit_from_pairing() -> None:
    """The same instances are hard for both, so their difference is known better than either mean."""
    rng = np.random.default_rng(3)
    misses = 0
    for _ in range(60):
        hard = rng.uniform(0.0, 7.0, size=150)
        found = validate(table_of([hard.tolist(), (hard + 0.9).tolist()]), UTILITY, 0.1)
        truth = {"c0": 1 - 3.5 / 10, "c1": 1 - 4.4 / 10}
        better = found.better["c1"]
        misses += any(not worth.low <= truth[name] <= worth.high for name, worth in found.worth.items())
        misses += not better.low <= 0.09 <= better.high
        assert better.high - better.low < 0.9 * (found.worth["c0"].high - found.worth["c0"].low)
    # Sixty times at most one chance in ten, and far less in truth.
    assert misses <= 15


def test_a_wrong_delta_is_refused() -> None:
    """As everywhere."""
    with pytest.raises(Exception, match="delta"):
        validate(table_of([[1.0, 2.0]]), UTILITY, 1.5)


def test_the_leader_of_a_campaign_is_validated_with_one_command(folder: Path) -> None:
    """It runs leader and another one on instances of a folder, and says what each is worth there."""
    campaign = scripted_campaign(folder / "chosen", order="arrival")
    campaign.certificate()
    others = scripted_campaign(folder / "others", instances=30).folder / "instances"
    line = ["validate", str(campaign.ledger), "--instances", str(others), "--configs", "leader,slow", "--json"]
    done = CliRunner().invoke(app, line)
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["n_instances"] == 30
    assert list(told["worth"]) == ["quick", "slow"]
    seen = {name: worth["seen_low"] for name, worth in told["worth"].items()}
    assert seen["quick"] > seen["slow"]
    assert told["improvement_over"]["slow"]["low"] > 0.0
    assert told["gap"][0] <= 0.0 <= told["gap"][1]


def test_a_configuration_that_nobody_knows_is_named(folder: Path) -> None:
    """Exit code 2 with those there are."""
    campaign = scripted_campaign(folder, order="arrival")
    campaign.certificate()
    done = CliRunner().invoke(
        app, ["validate", str(campaign.ledger), "--instances", str(folder / "instances"), "--configs", "nobody"]
    )
    assert "there are leader, quick, steady, slow" in str(done.exception)
