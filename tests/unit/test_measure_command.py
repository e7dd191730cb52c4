"""`captime measure`: what it says while it runs, why it ended, and what to type next."""

import json
import shlex
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from campaign_stand_ins import folder
from captime.cli import app
from captime.errors import ScenarioError
from scripted_campaign import CONFIGS, scripted_campaign

__all__ = ["folder"]

_LISTED = "".join(f"{name} = {{ line = {line} }}\n" for line, name in enumerate(CONFIGS, start=1))


def measured(made: Path, *more: str) -> Result:
    """A table of the scripted program."""
    line = ["measure", str(made / "scenario.toml"), "--out", str(made / "table.npz"), "--captime", "30s", *more]
    return CliRunner().invoke(app, line)


def test_a_table_that_the_scenario_ended_says_why(folder: Path) -> None:
    """Runs are missing by the scenario's own rule; progress counts runs, not candidates."""
    campaign = scripted_campaign(folder, order="arrival", instances=40)
    text = campaign.scenario.read_text(encoding="utf-8")
    campaign.scenario.write_text(text + 'cpu = "40ms"\n', encoding="utf-8")
    done = measured(folder)
    assert done.exit_code == 3, done.output
    assert "some runs are missing, because the budget of stop.cpu is spent" in done.stderr
    assert "stop.cpu" in done.stderr
    assert " of 120 " in done.stderr
    assert "epsilon" not in done.stderr
    campaign.scenario.write_text(text, encoding="utf-8")
    done = measured(folder, "--quiet")
    assert (done.exit_code, done.stderr) == (0, "")


@pytest.mark.parametrize("space", [False, True], ids=["listed", "space"])
def test_the_next_command_asks_the_scenario_s_question(folder: Path, space: bool) -> None:
    """Its utility, its goals, and on a space that there is one; typed as it stands, it works."""
    campaign = scripted_campaign(folder, order="arrival", instances=40)
    text = campaign.scenario.read_text(encoding="utf-8")
    if space:
        drawn = 'line = { type = "int", low = 1, high = 3, default = 1 }\n'
        text = text.replace("[configurations]\n" + _LISTED, "[space]\n" + drawn) + "gamma = 0.5\n"
        campaign.scenario.write_text(text, encoding="utf-8")
    done = measured(folder, "--quiet", *(["--draws", "6"] if space else []))
    assert done.exit_code == 0, done.output
    word, *arguments = shlex.split(done.stdout.splitlines()[-1].removeprefix("Next: "))
    assert word == "captime"
    assert ("--space" in arguments, "gamma=0.5" in arguments) == (space, space)
    goals = dict(pairwise(arguments))
    assert (goals["--utility"], goals["--epsilon"]) == ("uniform(60)", "0.25")
    assert CliRunner().invoke(app, arguments).exit_code in (0, 3)


def test_instances_with_replacement_are_refused_before_any_run(folder: Path) -> None:
    """A table has every instance once; nothing is started, and no ledger is begun."""
    campaign = scripted_campaign(folder, order="arrival", instances=40, population="drawn")
    text = campaign.scenario.read_text(encoding="utf-8").replace("population = 'drawn'\n", "")
    changed = text.replace("[instances]\n", '[instances]\nsampling = "replace"\n').replace('sampling = "given"\n', "")
    campaign.scenario.write_text(changed, encoding="utf-8")
    refused = measured(folder, "--instances", "10")
    assert isinstance(refused.exception, ScenarioError), refused.output
    assert 'instances.sampling is "replace"' in str(refused.exception)
    assert not list(folder.glob("table*.ledger"))


def test_run_and_measure_of_one_name_have_ledgers_of_their_own(folder: Path) -> None:
    """`scenario.npz` and `scenario.toml` are natural names; both commands called their ledger scenario.ledger."""
    campaign = scripted_campaign(folder, order="arrival", instances=40)
    campaign.certificate()
    table = folder / "scenario.npz"
    words = ["measure", str(campaign.scenario), "--out", str(table), "--captime", "30s", "--quiet", "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, (done.output, done.exception)
    assert json.loads(done.stdout)["ledger"] == str(folder / "scenario.measured.ledger")
    # A ledger that an earlier release has begun under the old name is resumed.
    older = folder / "older.ledger"
    (folder / "scenario.measured.ledger").rename(older)
    again = CliRunner().invoke(app, [*words[:2], "--out", str(folder / "older.npz"), *words[4:]])
    assert json.loads(again.stdout)["ledger"] == str(older)
