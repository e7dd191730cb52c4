"""`captime explain`: paths, the instances they are bounded on, the command as a whole, and what the report shows."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from captime.campaign.explain import (
    ablation,
    difference_between,
    is_decided,
    named_steps,
    order_of,
    path_of,
    share_of,
    trials_of,
)
from captime.cli import app
from captime.errors import ScenarioError
from captime.ledger import ConfigRow
from captime.spaces.formats import read_space_section
from captime.spaces.formats.section import section_in
from captime.spaces.space import Space

TARGET = '''
"""A target whose settings save known shares of the time: a most of it, b some, c hardly any."""
import time


def solve(settings, instance, seed):
    cost = 1.0 - 0.6 * settings["a"] - 0.1 * settings["b"] - 0.001 * settings["c"]
    end = time.process_time() + 0.03 * cost
    while time.process_time() < end:
        pass
    return True
'''
SCENARIO = f"""
utility = "step(21ms)"
seed = 3
[target]
function = "target:solve"
[configurations]
default = {{ a = 0, b = 0, c = 0 }}
tuned = {{ a = 1, b = 1, c = 1 }}
same = {{ a = 0, b = 0, c = 0, note = "x" }}
[instances]
values = {list(range(400))}
[stop]
epsilon = 0.4
"""


@pytest.fixture
def campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The ledger of a campaign that recommends `tuned`."""
    (tmp_path / "scenario.toml").write_text(SCENARIO, encoding="utf-8")
    (tmp_path / "target.py").write_text(TARGET, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    assert command("run", "scenario.toml", "-q").exit_code == 0
    return tmp_path / "scenario.ledger"


def command(*arguments: object) -> Result:
    """The command as a person types it."""
    return CliRunner().invoke(app, [*map(str, arguments)])


def row(index: int, settings: dict[str, object], **own: object) -> ConfigRow:
    """A configuration of a ledger."""
    return ConfigRow(index, f"c{index}", {"settings": settings, **own})


def space_of(text: str) -> Space:
    """The space of a section."""
    return read_space_section(section_in(f"[space]\n{text}", "space.toml"), "space.toml", Path())


def test_the_settings_that_carry_the_gain_are_named(campaign: Path) -> None:
    """One of three carries everything under a deadline; table, picture, report and JSON agree."""
    picture = campaign.with_name("steps.svg")
    asked = ("explain", campaign, "--choose-on", 4, "--budget", "60s", "--within", 0.5, "--plot", picture)
    told = command(*asked)
    assert told.exit_code == 0, told.stdout
    assert "this 1 of 3 settings carries" in told.stdout
    assert picture.stat().st_size > 0
    found = json.loads(command(*asked, "--json").stdout)
    assert found["settings"] == ["a"]
    assert found["share"]["low"] >= 0.5
    assert found["gain"]["low"] > 0.3
    assert found["stopped"] == "decided"
    assert found["steps"][0]["settings"] == {"a": [0, 1]}
    again = json.loads(command(*asked, "--json").stdout)
    assert again == found
    kept = json.loads(campaign.with_suffix(".explained.json").read_text(encoding="utf-8"))
    assert kept == found
    figures = json.loads(command("report", campaign, "--json").stdout)["figures"]
    assert figures["ablation"]["title"] == "Which settings matter?"
    assert found["statement"] in figures["ablation"]["caption"]
    page = campaign.with_name("report.html")
    assert command("report", campaign, "-o", page).exit_code == 0
    assert 'id="ablation"' in page.read_text(encoding="utf-8")


def test_an_explanation_of_another_campaign_is_not_shown(campaign: Path) -> None:
    """The file beside the ledger names its campaign; a broken one is passed over."""
    for text in ('{"campaign": "another"}', "{", '{"campaign": 3, "steps": []}'):
        campaign.with_suffix(".explained.json").write_text(text, encoding="utf-8")
        assert "ablation" not in json.loads(command("report", campaign, "--json").stdout)["figures"]


def test_what_cannot_be_explained_is_refused(campaign: Path, tmp_path: Path) -> None:
    """The same settings, unknown names, and too few instances that are left."""
    assert "there is nothing to explain" in str(command("explain", campaign, "--to", "default").exception)
    assert "--to names 'tuend'" in str(command("explain", campaign, "--to", "tuend").exception)
    assert "expected one of them" in str(command("explain", campaign, "--instances", "*", "--values", "[1]").exception)
    few = command("explain", campaign, "--values", "[1000, 1001]")
    assert "expected at least 20 unused ones" in str(few.exception)


def test_different_programs_have_no_path_between_them() -> None:
    """A command of its own is no setting."""
    with pytest.raises(ScenarioError, match="differ in their command: they are different programs"):
        difference_between(row(0, {}, command=["a"]), row(1, {}, command=["b"]), None)


def test_parameters_change_with_those_they_depend_on() -> None:
    """A child that only one side has is in the group of its parent; a parent that stays the same keeps to itself."""
    space = space_of(
        'mode = { type = "categorical", choices = ["x", "y"], default = "x" }\n'
        'depth = { type = "int", low = 1, high = 9, default = 5 }\n'
        'speed = { type = "int", low = 1, high = 9, default = 5 }\n'
        'conditions = ["depth | mode == y"]\n'
    )
    found = difference_between(row(0, {"mode": "x", "speed": 1}), row(1, {"mode": "y", "depth": 3, "speed": 2}), space)
    assert found.groups == (("mode", "depth"), ("speed",))
    assert found.n_settings == 3
    assert found.mixed([("mode", "depth")]) == {"mode": "y", "depth": 3, "speed": 1}
    assert found.mixed([("speed",)]) == {"mode": "x", "speed": 2}


def test_a_forbidden_step_is_walked_around() -> None:
    """The better group would come first, but alone it is forbidden; together all is well."""
    space = space_of(
        'a = { type = "int", low = 0, high = 1, default = 0 }\n'
        'b = { type = "int", low = 0, high = 1, default = 0 }\n'
        'forbidden = ["a == 1 && b == 0"]\n'
    )
    found = difference_between(row(0, {"a": 0, "b": 0}), row(1, {"a": 1, "b": 1}), space)
    trials = trials_of(found)
    assert sorted(trials) == ["goal", "start", "with-1", "without-0"]
    means = np.array([{"start": 0.2, "goal": 0.9, "with-1": 0.3, "without-0": 0.3}[name] for name in trials])
    steps = order_of(found, list(trials), means, 5)
    assert steps == [(("b",),), (("a",),)]
    assert [each.settings for each in path_of(found, steps)] == [{"a": 0, "b": 0}, {"a": 0, "b": 1}, {"a": 1, "b": 1}]


def test_groups_that_hardly_matter_change_together_at_the_end() -> None:
    """Each with a small effect, or behind the number of steps asked for."""
    found = difference_between(row(0, dict.fromkeys("abcd", 0)), row(1, dict.fromkeys("abcd", 1)), None)
    seen = {"start": 0.1, "goal": 0.9}
    for number, effect in enumerate((0.0, 0.5, 0.001, 0.3)):
        seen[f"with-{number}"], seen[f"without-{number}"] = 0.1 + effect, 0.9 - effect
    means = np.array(list(seen.values()))
    assert order_of(found, list(seen), means, 5) == [(("b",),), (("d",),), (("c",), ("a",))]
    assert order_of(found, list(seen), means, 1) == [(("b",),), (("d",), ("c",), ("a",))]


def test_a_share_is_bounded_from_both_sides() -> None:
    """Exact runs: three quarters of the gain in the first step, on every instance."""
    hard = np.random.default_rng(2).uniform(0.0, 0.2, 2_000)
    low = np.array([hard, hard + 0.45, hard + 0.6])
    share = share_of(low, low, 1, 5.0)
    assert share.seen == pytest.approx(0.75)
    assert share.low is not None
    assert share.high is not None
    assert 0.7 <= share.low <= 0.75 <= share.high <= 0.8
    assert named_steps(low, low, 0.7) == 1
    assert named_steps(low, low, 0.9) == 2
    assert is_decided(low, low, 0.1, carry=0.7, within=0.1, least=0.01)
    assert not is_decided(low[:, :10], low[:, :10], 0.1, carry=0.7, within=0.1, least=0.01)


def test_where_there_is_no_gain_nothing_is_shared_out() -> None:
    """An upper bound below the least gain ends it; a share of nothing is not shown."""
    worth = np.random.default_rng(3).random(5_000)
    low = np.array([worth, worth, worth])
    assert is_decided(low, low, 0.1, carry=0.9, within=0.1, least=0.05)
    found = ablation(low[:, :50], low[:, :50], 0.1, 0.9)
    assert found.named == 2
    assert found.gain.low < 0.0 < found.gain.high
    assert found.shares[0].seen is None
