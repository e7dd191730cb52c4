"""`captime judge`: real files of other tuners, raced on instances that chose none of their incumbents."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from captime.campaign.judge_candidates import candidates_of, gain_over_default, without_met
from captime.cli import app
from captime.errors import ScenarioError
from captime.scenario import Scenario, load_scenario
from captime.tuners import read_incumbents

FILES = Path(__file__).parents[1] / "tuners"
STORAGE, HISTORY, TABLE = FILES / "optuna.db", FILES / "smac3" / "runhistory.json", FILES / "irace.csv"
SCENARIO = """
utility = "uniform(40ms)"
seed = 5
[target]
function = "target:solve"
{space}
[instances]
{instances}
[stop]
epsilon = 0.3
"""
TARGET = '''
"""The cost that the tuners of tests/tuners were run on, as time."""
import math
import time


def solve(settings, instance, seed):
    wrong = 0.0 if str(settings["phase"]) == "false" else 0.3
    cost = abs(settings["decay"] - 0.8) + abs(math.log(settings["restarts"] / 50)) / 10 + wrong
    end = time.process_time() + 0.05 * (cost + settings.get("noise", 0.0))
    while time.process_time() < end:
        pass
    return True
'''
VALUES = f"values = {list(range(40))}"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scenario on the space that the tuners searched."""
    return written(tmp_path, monkeypatch, VALUES)


def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, instances: str) -> Path:
    """The scenario, with those instances."""
    space = (FILES / "space.toml").read_text(encoding="utf-8")
    (tmp_path / "scenario.toml").write_text(SCENARIO.format(space=space, instances=instances), encoding="utf-8")
    (tmp_path / "target.py").write_text(TARGET, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def judged(*arguments: object) -> Result:
    """The command as a person types it."""
    return CliRunner().invoke(app, ["judge", *map(str, arguments)])


def scenario_with(text: str, tmp_path: Path) -> Scenario:
    """A scenario with listed candidates."""
    (tmp_path / "target.py").write_text(TARGET, encoding="utf-8")
    (tmp_path / "listed.toml").write_text(SCENARIO.format(space=text, instances=VALUES), encoding="utf-8")
    return load_scenario(tmp_path / "listed.toml")


def test_incumbents_of_three_tuners_are_judged(place: Path) -> None:
    """The winner, its epsilon, and its gain over the default; a second call runs nothing again."""
    files = (STORAGE, HISTORY, TABLE, "--values", json.dumps(list(range(100, 300))), "--budget", "30s", "--json")
    found = json.loads(judged(*files).stdout)
    assert [each["name"] for each in found["candidates"]] == ["default", "optuna", "smac3", "irace"]
    assert found["best"] != "default"
    assert found["race"]["certificate"]["epsilon"] <= 0.3
    assert found["race"]["certificate"]["delta"] == pytest.approx(0.075)
    # The default costs 0.52 of 50 ms, the incumbents at most 0.15 of it: the difference is about 0.5.
    assert found["gain"]["low"] > 0.0
    assert found["gain"]["high"] - found["gain"]["low"] <= 0.3
    again = json.loads(judged(*files).stdout)
    assert (again["best"], again["gain"]) == (found["best"], found["gain"])
    assert again["race"]["runs"] == found["race"]["runs"]
    told = judged(*files[:-1])
    assert told.exit_code == 0
    assert told.stdout.startswith(f"With probability at least 90 %, {found['best']} is within")
    assert "and its expected utility exceeds that of default by" in told.stdout


def test_the_same_settings_take_part_once(place: Path) -> None:
    """Both storages recommend the same trial; its candidate names both files."""
    found = candidates_of(
        load_scenario("scenario.toml"), [read_incumbents(FILES / name) for name in ("optuna.db", "optuna.journal")]
    )
    assert [each.name for each in found] == ["default", "optuna"]
    assert [result.path.name for result, _ in found[1].sources] == ["optuna.db", "optuna.journal"]


def test_what_a_tuner_does_not_name_is_the_defaults(place: Path) -> None:
    """Gaps are filled, parameters that are not active are dropped, both are told; a wrong one is refused."""
    table = place / "mine.csv"
    table.write_text("name,decay,phase,noise\nfew,0.7,,\nidle,0.7,true,0.5\n")
    candidates = candidates_of(load_scenario("scenario.toml"), [read_incumbents(table)])
    # Without the parameter that is not active, the second is the first again.
    assert [each.name for each in candidates] == ["default", "few"]
    assert candidates[1].filled == ("restarts", "phase")
    assert dict(candidates[1].configuration.settings) == {"decay": 0.7, "restarts": 100, "phase": "true"}
    table.write_text("decya\n0.7\n")
    with pytest.raises(ScenarioError, match=r"mine\.csv, row 1: there is no parameter decya"):
        candidates_of(load_scenario("scenario.toml"), [read_incumbents(table)])
    table.write_text("decay\n7\n")
    with pytest.raises(ScenarioError, match=r"decay is set to '7', expected a number from 0\.5 to 1"):
        candidates_of(load_scenario("scenario.toml"), [read_incumbents(table)])
    table.write_text("decay\n0.95\n")
    with pytest.raises(ScenarioError, match="nothing to judge"):
        candidates_of(load_scenario("scenario.toml"), [read_incumbents(table)])


def test_candidates_of_a_listed_scenario_follow_its_default(tmp_path: Path) -> None:
    """Names stay apart; the default is the one of that name."""
    listed = """[configurations]
        first = { decay = 0.6, restarts = 1, phase = 'a' }
        default = { decay = 0.9, restarts = 2, phase = 'b' }"""
    table = tmp_path / "default.csv"
    table.write_text("name,decay\ndefault,0.7\n,0.8\n")
    found = candidates_of(scenario_with(listed, tmp_path), [read_incumbents(table)])
    assert [each.name for each in found] == ["default", "default-2", "default-2-2"]
    assert dict(found[1].configuration.settings) == {"decay": 0.7, "restarts": 2, "phase": "b"}


def test_instances_that_a_tuner_has_met_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By content where the file is at hand, by name where it is not."""
    for folder, names in (("test", ["a", "b", "c", "0"]), ("train", ["z"])):
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / f"{name}.cnf").write_text(f"p {name}")
    (tmp_path / "test" / "b.cnf").write_text("p z")
    written(tmp_path, monkeypatch, 'files = "test/*.cnf"')
    scenario = load_scenario("scenario.toml")
    left, met = without_met(scenario, ["train/0.cnf"], [tmp_path / "train" / "z.cnf"])
    assert met == ["test/0.cnf", "test/b.cnf"]
    assert sorted(left.stream.at(place).instance.name.rpartition("/")[2] for place in range(2)) == ["a.cnf", "c.cnf"]
    with pytest.raises(ScenarioError, match="met all 4 instances"):
        without_met(scenario, ["a.cnf", "b.cnf", "c.cnf", "0.cnf"], [])
    assert without_met(scenario, [], []) == (scenario, [])


def test_nothing_is_run_unless_something_is_held_out(place: Path) -> None:
    """Optuna does not tell its instances, and a generator has no list of them: one sentence, and exit code 2."""
    refused = judged(STORAGE)
    assert "does not tell which instances its tuner was run on" in str(refused.exception)
    both = judged(STORAGE, "--values", "[1]", "--instances", "*.cnf")
    assert "both say which instances to run on" in str(both.exception)
    generated = (place / "scenario.toml").read_text(encoding="utf-8").replace(VALUES, 'generator = ["echo", "{k}"]')
    (place / "scenario.toml").write_text(generated, encoding="utf-8")
    assert "--skip N" in str(judged(HISTORY).exception)
    assert not list(place.glob("*.ledger"))


def test_a_default_that_wins_is_said_to(place: Path) -> None:
    """No incumbent is better, and there is no gain to measure."""
    (place / "bad.csv").write_text("decay,restarts,phase,noise\n0.5,1000,random,0.9\n")
    done = judged("bad.csv", "--values", json.dumps(list(range(100, 200))))
    assert done.exit_code == 0
    assert "default is within" in done.stdout
    assert "no incumbent is better than the default by more than that" in done.stdout
    assert not list(place.glob("*gain*"))


def test_the_gain_pays_for_every_candidate_that_could_have_won() -> None:
    """More candidates, a wider interval; one candidate beside the default, none."""
    rng = np.random.default_rng(1)
    utilities = rng.random((2, 80))
    two, twenty = (gain_over_default(utilities, utilities, count, 0.1) for count in (2, 20))
    assert twenty.low < two.low
    assert twenty.high > two.high
    assert two.seen_low == two.seen_high


def test_a_copied_storage_is_only_read(place: Path) -> None:
    """The tuner's file stays as it is, to the byte, even if it may be written to."""
    copy = place / "study.db"
    shutil.copy(STORAGE, copy)
    read_incumbents(copy, top=5)
    assert copy.read_bytes() == STORAGE.read_bytes()
    assert sorted(each.name for each in place.glob("study*")) == ["study.db"]
