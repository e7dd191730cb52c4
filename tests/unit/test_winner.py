"""The winner in forms that people paste."""

import ast
import json
import shlex
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from campaign_stand_ins import folder
from captime.cli import app
from captime.cli.best import FORMS, as_arguments, as_irace, as_json, as_pcs, as_python, as_toml
from captime.report.words import rounded_up
from scripted_campaign import scripted_campaign
from space_campaigns import on_space, search

__all__ = ["folder"]

SETTINGS = {"decay": 0.1, "restarts": 7, "luby": True, "mode": "a 'b' \"c\"", "odd name": 1e-9}


def test_every_form_can_be_read_back() -> None:
    """Numbers keep all their digits, and quotes their meaning."""
    assert json.loads(as_json(SETTINGS)) == SETTINGS
    assert ast.literal_eval(as_python(SETTINGS)) == SETTINGS
    assert tomllib.loads(f"x = {as_toml(SETTINGS)}")["x"] == SETTINGS
    words = shlex.split(as_arguments(SETTINGS))
    assert words[:6] == ["-decay", "0.1", "-restarts", "7", "-luby", "true"]
    assert words[7] == SETTINGS["mode"]
    assert as_pcs({"decay": 0.1, "luby": True, "mode": "it's"}) == r"decay='0.1', luby='true', mode='it\'s'"
    header, values = as_irace({"decay": 0.1, "luby": True}).splitlines()
    assert (header, values) == ("decay luby", '"0.1" "true"')


def test_nothing_to_set_is_said_in_every_form() -> None:
    """The default of a program that is called without options."""
    assert [make({}) for make in FORMS.values()] == ["{}", "{}", "{}", "", "", "\n"]


def test_the_command_shows_the_winner_of_a_ledger(folder: Path) -> None:
    """All forms, or the one that is asked for; the command is the program's own."""
    campaign = scripted_campaign(folder, order="arrival")
    campaign.certificate()
    shown = CliRunner().invoke(app, ["best", str(campaign.ledger)])
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.startswith("With probability at least 90 %, quick is within 0.2")
    assert "of the best of these 3 configurations on exactly these 400 instances" in shown.stdout
    assert "program.sh INSTANCE" in shown.stdout
    told = json.loads(CliRunner().invoke(app, ["best", str(campaign.ledger), "--json"]).stdout)
    assert told["settings"] == {"line": 1}
    assert told["gamma"] is None
    assert told["statement"] == shown.stdout.splitlines()[0]
    assert CliRunner().invoke(app, ["best", str(campaign.ledger), "--as", "name"]).stdout == "quick\n"
    assert CliRunner().invoke(app, ["best", str(campaign.ledger), "--as", "json"]).stdout == '{"line": 1}\n'
    assert CliRunner().invoke(app, ["best", str(campaign.ledger), "--as", "dict"]).stdout == "{'line': 1}\n"
    refused = CliRunner().invoke(app, ["best", str(campaign.ledger), "--as", "poetry"])
    assert "'poetry'; it can be name, command, json, python, toml, pcs, arguments, irace" in str(refused.exception)


@pytest.mark.parametrize("form", FORMS)
def test_forms_are_one_line_or_two(form: str) -> None:
    """They are meant to be pasted."""
    assert len(FORMS[form]({"a": 1, "b": "x"}).splitlines()) == (2 if form == "irace" else 1)


def test_on_a_space_the_luckiest_share_is_not_left_unsaid(folder: Path) -> None:
    """A certificate about a space is about all but a share of it, and so is its sentence."""
    path = folder / "space.ledger"
    search(on_space(1), path)
    shown = CliRunner().invoke(app, ["best", str(path)])
    assert shown.exit_code == 0, shown.output
    told = json.loads(CliRunner().invoke(app, ["best", str(path), "--json"]).stdout)
    assert 0.0 < told["gamma"] < 1.0
    assert f"outside the top {rounded_up(100 * told['gamma'], 1)} % of the space" in shown.stdout


def test_the_winner_of_a_portfolio_is_named_with_its_command(folder: Path) -> None:
    """Programs without settings: every form but the command was empty."""
    (folder / "scenario.toml").write_text(
        """
utility = "uniform(1s)"
[target]
exit_codes = [0]
[configurations.cat]
command = ["cat", "{instance}"]
[configurations.checksum]
command = ["cksum", "{instance}"]
answer = "^[0-9]+"
[instances]
files = "scenario.toml"
sampling = "replace"
""",
        encoding="utf-8",
    )
    done = CliRunner().invoke(app, ["run", str(folder / "scenario.toml"), "--quiet", "--jobs", "1", "--epsilon", "0.7"])
    assert done.exit_code == 0, done.output
    ledger = str(folder / "scenario.ledger")
    told = json.loads(CliRunner().invoke(app, ["best", ledger, "--json"]).stdout)
    assert told["name"] in {"cat", "checksum"}
    assert told["forms"]["name"] == told["name"]
    program = {"cat": "cat", "checksum": "cksum"}[told["name"]]
    entry = tomllib.loads(f"x = {told['forms']['toml']}")["x"]
    assert entry["command"] == [program, "{instance}"]
    assert json.loads(told["forms"]["json"]) == ast.literal_eval(told["forms"]["python"]) == entry
    assert not {"pcs", "arguments", "irace"} & told["forms"].keys()
    assert CliRunner().invoke(app, ["best", ledger, "--as", "name"]).stdout == f"{told['name']}\n"
    assert program in CliRunner().invoke(app, ["best", ledger, "--as", "command"]).stdout


def test_the_winner_of_functions_is_a_call(folder: Path) -> None:
    """A line of Python, with no quotes of a shell around it."""
    module = f"module_{abs(hash(str(folder)))}"
    (folder / f"{module}.py").write_text("def solve(settings, instance, seed):\n    return True\n", encoding="utf-8")
    (folder / "scenario.toml").write_text(
        f"""
utility = "uniform(1s)"
[target]
function = "{module}:solve"
[configurations]
only = {{ steps = 3 }}
[instances]
values = [1]
sampling = "replace"
""",
        encoding="utf-8",
    )
    done = CliRunner().invoke(app, ["run", str(folder / "scenario.toml"), "--quiet", "--jobs", "1"])
    assert done.exit_code == 0, done.output
    for form in ("command", "call"):
        shown = CliRunner().invoke(app, ["best", str(folder / "scenario.ledger"), "--as", form])
        assert shown.stdout == f"{module}:solve(settings={{'steps': 3}}, instance=INSTANCE, seed=1)\n"
