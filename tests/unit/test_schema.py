"""The schema of scenarios: what captime reads it accepts, what captime refuses for its shape it refuses too."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft7Validator
from typer.testing import CliRunner

from captime.cli import app
from captime.scenario import load_scenario, template
from captime.scenario.models import ScenarioModel
from captime.scenario.template import SCHEMA_FILE, SCHEMA_LINE, scenario_schema

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").rglob("*.toml"))
VALID = Draft7Validator(scenario_schema())


def test_it_is_a_schema_and_knows_every_field() -> None:
    """Each with a sentence for the editor to show."""
    Draft7Validator.check_schema(scenario_schema())
    schema = scenario_schema()
    fields = schema["properties"]
    assert set(fields) == set(ScenarioModel.model_fields)
    sections = {f"#/$defs/{name}": section for name, section in schema["$defs"].items()}
    told = {name: {**sections.get(field.get("$ref"), {}), **field} for name, field in fields.items()}
    assert [name for name, field in told.items() if not field.get("description")] == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_example_is_accepted(path: Path) -> None:
    """No false alarm in an editor."""
    assert [error.message for error in VALID.iter_errors(tomllib.loads(path.read_text(encoding="utf-8")))] == []


WRONG = {
    "a misspelt field": ("utility =", "worth ="),
    "a number as a text": ("delta = 0.1", 'delta = "0.1"'),
    "an unknown procedure": ("delta = 0.1", 'delta = 0.1\nprocedure = "rice"'),
    "an unknown sampling": ("[instances]", '[instances]\nsampling = "sorted"'),
    "a time that is none": ('cpu = "10m"', 'cpu = "soon"'),
    "no target": ("[target]", "[options]"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_captime_refuses_is_marked(name: str) -> None:
    """While the file is written, not when it is run."""
    before, after = WRONG[name]
    text = template()
    assert before in text
    assert list(VALID.iter_errors(tomllib.loads(text.replace(before, after, 1))))


def test_init_writes_the_line_and_the_schema(tmp_path: Path) -> None:
    """The schema is the one that `captime schema` prints, and the scenario is read as before."""
    done = CliRunner().invoke(app, ["init", str(tmp_path)])
    assert done.exit_code == 0
    scenario = tmp_path / "scenario.toml"
    assert scenario.read_text(encoding="utf-8").startswith(SCHEMA_LINE)
    printed = CliRunner().invoke(app, ["schema"]).stdout
    assert (tmp_path / SCHEMA_FILE).read_text(encoding="utf-8") == printed
    assert json.loads(printed) == scenario_schema()
    assert load_scenario(scenario).wishes.delta == 0.1
    named = CliRunner().invoke(app, ["schema", "-o", str(tmp_path / "mine.json")])
    assert named.exit_code == 0
    assert (tmp_path / "mine.json").read_text(encoding="utf-8") == printed


def test_a_schema_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """The folder does not exist."""
    refused = CliRunner().invoke(app, ["schema", "-o", str(tmp_path / "gone" / "mine.json")])
    assert "cannot be written" in str(refused.exception)


# ------------------------------------------------------------------ completion of the command line

SHELLS = {
    "bash": {"COMP_WORDS": "captime ju", "COMP_CWORD": "1"},
    "zsh": {"_TYPER_COMPLETE_ARGS": "captime ju"},
    "fish": {"_TYPER_COMPLETE_ARGS": "captime ju", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
}


@pytest.mark.parametrize("shell", SHELLS)
def test_shells_complete_commands(shell: str) -> None:
    """What the installed script asks captime, and what captime answers."""
    environment = {**os.environ, "_CAPTIME_COMPLETE": f"complete_{shell}", **SHELLS[shell]}
    command = [sys.executable, "-c", "import sys; sys.argv = ['captime']; from captime.cli import main; main()"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert "judge" in done.stdout
    assert "status" not in done.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_that_completes_can_be_shown(shell: str) -> None:
    """It names the program and the variable by which the shell asks."""
    environment = {**os.environ, "_CAPTIME_COMPLETE": f"source_{shell}"}
    command = [sys.executable, "-c", "import sys; sys.argv = ['captime']; from captime.cli import main; main()"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert "captime" in done.stdout
    assert f"complete_{shell}" in done.stdout
