"""Commands that take a scenario for its ledger, `status --watch`, files to watch, and validations in the report."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from captime.cli import app
from captime.errors import ScenarioError
from captime.scenario import load_scenario
from report_ledgers import hand_written

SCENARIO = """
utility = "uniform(60)"
jobs = 1
[target]
command = ["sh", "-c", "echo done {instance} {seed} {level}"]
answer = "^done"
files = FILES
[configurations]
fast = { level = 0 }
slow = { level = 1 }
[instances]
values = [1, 2, 3, 4, 5, 6, 7, 8]
sampling = "replace"
[stop]
epsilon = 0.9
"""


def written(folder: Path, files: str = "[]") -> Path:
    """A scenario that watches these files."""
    path = folder / "scenario.toml"
    path.write_text(SCENARIO.replace("FILES", files), encoding="utf-8")
    return path


def captime(*words: object) -> Result:
    """The command."""
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.mark.parametrize("words", [("status",), ("report", "--json"), ("best", "--as", "name"), ("export", "-o")])
def test_a_scenario_stands_for_its_ledger(tmp_path: Path, words: tuple[str, ...]) -> None:
    """What is printed about the one is printed about the other."""
    scenario = written(tmp_path)
    hand_written(tmp_path / "scenario.ledger").close()
    out = (tmp_path / "runs.csv",) if words[-1] == "-o" else ()
    by_scenario = captime(*words, *out, scenario)
    assert by_scenario.exit_code == 0, by_scenario.output
    assert by_scenario.output == captime(*words, *out, tmp_path / "scenario.ledger").output


@pytest.mark.parametrize(
    "words", [("status",), ("report",), ("best",), ("verify",), ("plot", "epsilon", "-o", "x.png")]
)
def test_a_scenario_that_was_never_run_says_what_to_do(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Its ledger is named, and the command that makes one."""
    told = captime(*words, written(tmp_path))
    assert isinstance(told.exception, ScenarioError)
    assert "scenario.ledger does not exist" in str(told.exception)
    assert "captime run" in str(told.exception)


def test_watching_shows_every_change_and_ends_with_the_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One JSON object for each state that differs from the one before, the last one when the ledger is closed."""
    ledger = hand_written(tmp_path / "hand.ledger")
    waits: list[float] = []

    def instead_of_sleeping(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            ledger.close()

    monkeypatch.setattr("captime.cli.status.time.sleep", instead_of_sleeping)
    told = captime("status", "--watch", "--json", tmp_path / "hand.ledger")
    states = [json.loads(line)["state"] for line in told.output.splitlines()]
    assert states == ["running", "closed"]
    assert len(waits) == 2


def test_watching_shows_the_table_to_people(tmp_path: Path) -> None:
    """A campaign that is over is shown once."""
    hand_written(tmp_path / "hand.ledger").close()
    told = captime("status", "--watch", tmp_path / "hand.ledger")
    assert told.exit_code == 0
    assert told.output.count("configuration  runs") == 1


def test_further_files_belong_to_the_program(tmp_path: Path) -> None:
    """They are part of the identity, and every run is launched with them under guard."""
    (tmp_path / "lib").mkdir()
    for name in ("a.so", "b.so"):
        (tmp_path / "lib" / name).write_text(name, encoding="ascii")
    before = load_scenario(written(tmp_path, '["lib/*.so"]'))
    assert {"lib/a.so", "lib/b.so"} <= set(before.program.programs())
    before_words = before.canonical()
    (tmp_path / "lib" / "b.so").write_text("other", encoding="ascii")
    assert load_scenario(tmp_path / "scenario.toml").canonical() != before_words


def test_a_pattern_without_files_is_refused(tmp_path: Path) -> None:
    """The message names the field, the pattern and the folder."""
    with pytest.raises(ScenarioError, match=r"target\.files\.0 is 'lib/\*\.so', which matches no file"):
        _ = load_scenario(written(tmp_path, '["lib/*.so"]')).program


def test_a_campaign_is_not_resumed_with_another_file(tmp_path: Path) -> None:
    """The second command names the file that has changed."""
    (tmp_path / "model.bin").write_text("one", encoding="ascii")
    scenario = written(tmp_path, '["model.bin"]')
    begun = captime("run", scenario, "--json")
    assert begun.exit_code == 0, begun.output
    assert [each["name"] for each in json.loads(begun.output)["configurations"]].count("fast") == 1
    (tmp_path / "model.bin").write_text("two", encoding="ascii")
    again = captime("run", scenario, "--quiet")
    assert "model.bin" in str(again.exception)


FUNCTION = """
utility = "uniform(60)"
jobs = 1
[target]
function = "work:work"
[configurations]
quick = { steps = 10 }
long = { steps = 2000 }
[instances]
values = [1, 2, 3, 4, 5, 6, 7, 8]
[stop]
epsilon = 0.9
"""


def test_validations_stand_in_the_report(tmp_path: Path) -> None:
    """Those beside the ledger are found; one can be named; a ledger of another kind is refused in one sentence."""
    (tmp_path / "work.py").write_text(
        "def work(settings, instance, seed):\n    return sum(range(settings['steps'])) >= 0\n", encoding="ascii"
    )
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(FUNCTION, encoding="utf-8")
    assert captime("run", scenario, "--quiet").exit_code == 0
    numbers: dict[str, Any] = json.loads(captime("report", scenario, "--json").output)
    assert numbers["validations"] == []
    held_out = captime("validate", scenario, "--values", "[70, 71, 72]", "--quiet", "--json")
    assert held_out.exit_code == 0, held_out.output
    told = json.loads(held_out.output)
    numbers = json.loads(captime("report", scenario, "--json").output)
    assert [each["n_instances"] for each in numbers["validations"]] == [3]
    assert numbers["validations"][0]["worth"] == told["worth"]
    assert captime("report", scenario).exit_code == 0
    page = (tmp_path / "scenario.html").read_text(encoding="utf-8")
    assert "On held-out instances" in page
    wrong = captime("report", scenario, "--validation", tmp_path / "scenario.ledger")
    assert "expected a ledger of `captime validate" in str(wrong.exception)
