"""Resuming later through the command line: real processes, with outcomes that are written in a script."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from captime.cli import app
from captime.errors import ScenarioDiffers
from captime.ledger import LedgerReader
from scripted_campaign import Scripted, scripted_campaign

_LISTED = """[configurations]
quick = { line = 1 }
steady = { line = 2 }
slow = { line = 3 }
"""
_SPACE = """[space]
line = { type = "int", low = 1, high = 3, default = 3 }
favourites = FAVOURITES
"""


def campaign_with(
    folder: Path, section: str, epsilon: float = 0.35, *, seed: int = 0, population: str = ""
) -> Scripted:
    """A scripted campaign whose candidates are these."""
    campaign = scripted_campaign(folder, order="arrival", instances=150)
    text = campaign.scenario.read_text(encoding="utf-8")
    assert _LISTED in text
    text = text.replace("seed = 0\n", f"seed = {seed}\n").replace(_LISTED, section)
    text = text.replace("epsilon = 0.25", f"epsilon = {epsilon}")
    if population:
        text = text.replace("population = 'these'\n", f"population = '{population}'\n")
    campaign.scenario.write_text(text, encoding="utf-8")
    return campaign


def told(campaign: Scripted, *arguments: str) -> dict[str, Any]:
    """Run to the goal; what is printed."""
    code, out, said = campaign.run(*arguments)
    assert code == 0, said
    found: dict[str, Any] = json.loads(out)
    return found


def captime(*arguments: str) -> Result:
    """Any command that reads a ledger; in this process, because most of its time would be spent on loading captime."""
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def runs_on_record(campaign: Scripted) -> int:
    """How many came back."""
    with LedgerReader(campaign.ledger) as reader:
        return len(reader.outcomes()["config"])


def test_configurations_added_to_a_file_are_judged_beside_the_others(tmp_path: Path) -> None:
    """The same ledger, no run made again, the better newcomer wins; an entry that is removed or moved is missed."""
    # Only a claim about draws has to begin newcomers behind what was seen.
    campaign = campaign_with(tmp_path, '[configurations]\nfile = "configs.csv"\n', population="drawn")
    table = tmp_path / "configs.csv"
    table.write_text("name,line\nslow,3\nsteady,2\n", encoding="utf-8")
    first = told(campaign)
    assert first["n_configs"] == 2
    made = runs_on_record(campaign)
    table.write_text("name,line\nslow,3\nsteady,2\nquick,1\n", encoding="utf-8")
    second = told(campaign, "--epsilon", "0.15")
    assert second["certificate"]["config_name"] == "quick"
    assert second["n_configs"] == 3
    assert second["resumed"]
    with LedgerReader(campaign.ledger) as reader:
        runs = reader.outcomes()
        assert [config.name for config in reader.configs] == ["slow", "steady", "quick"]
    old, new = runs["position"][:made], runs["position"][runs["config"] == 2]
    assert new.min() > old.max()
    keys = set(zip(runs["config"].tolist(), runs["position"].tolist(), runs["attempt"].tolist(), strict=True))
    assert len(keys) == len(runs["config"])
    checked = captime("verify", str(campaign.ledger))
    assert checked.exit_code == 0, checked.stdout + checked.stderr
    assert "joined later" in checked.stdout
    for wrong, words in (("slow,3\nsteady,2\n", "gone"), ("steady,2\nslow,3\nquick,1\n", "order")):
        table.write_text("name,line\n" + wrong, encoding="utf-8")
        code, _, said = campaign.run()
        assert code == 3
        assert words in said
        assert "Traceback" not in said


def test_a_configuration_that_cannot_run_is_refused_before_it_joins(tmp_path: Path) -> None:
    """A setting that the command does not know: exit code 2, and the ledger is as it was."""
    campaign = campaign_with(tmp_path, _LISTED, 0.8)
    told(campaign)
    head = runs_on_record(campaign)
    text = campaign.scenario.read_text(encoding="utf-8")
    campaign.scenario.write_text(text.replace("slow = {", "odd = { line = [1] }\nslow = {"), encoding="utf-8")
    assert campaign.run()[0] in {2, 3}
    assert runs_on_record(campaign) == head


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Scripted:
    """A campaign on a space that has reached its goals."""
    campaign = campaign_with(tmp_path_factory.mktemp("space") / "old", _SPACE.replace("FAVOURITES", "[]"))
    found = told(campaign, "--gamma", "0.6")
    assert found["certificate"]["gamma"] <= 0.6
    return campaign


def test_gamma_favourites_and_verification_on_a_space(searched: Scripted, tmp_path: Path) -> None:
    """A smaller gamma, then a favourite that joins: one ledger, shown by status and report, confirmed by verify."""
    campaign = Scripted(Path(shutil.copytree(searched.folder, tmp_path / "copy")))
    finer = told(campaign, "--gamma", "0.5")
    assert finer["certificate"]["gamma"] <= 0.5
    text = campaign.scenario.read_text(encoding="utf-8")
    campaign.scenario.write_text(text.replace("favourites = []", "favourites = [{ line = 1 }]"), encoding="utf-8")
    grown = told(campaign, "--gamma", "0.5")
    assert grown["certificate"]["epsilon"] <= 0.35
    assert grown["resumed"]
    with LedgerReader(campaign.ledger) as reader:
        late = [config for config in reader.configs if config.origin == "favourite"]
    assert [config.settings["settings"] for config in late] == [{"line": 1}]
    assert late[0].index > 1
    checked = captime("verify", str(campaign.ledger))
    assert checked.exit_code == 0, checked.stdout + checked.stderr
    assert "random draws" in checked.stdout
    status = captime("status", str(campaign.ledger), "--json")
    assert json.loads(status.stdout)["certificate"]["gamma"] == grown["certificate"]["gamma"]
    assert json.loads(status.stdout)["gamma_goal"] == 0.5
    assert "(goal 0.5)" in captime("status", str(campaign.ledger)).stdout
    code, _, said = campaign.run("--gamma", "1.5")
    assert code == 2
    assert "gamma" in said


def test_lessons_from_an_earlier_ledger_are_said_in_words(searched: Scripted, tmp_path: Path) -> None:
    """The certificate, its JSON and the report say so; another target teaches nothing; a list cannot be taught."""
    new = campaign_with(tmp_path / "new", _SPACE.replace("FAVOURITES", "[]"), seed=5)
    found = told(new, "--gamma", "0.6", "--learn-from", str(searched.ledger))
    assert any("could learn from up to" in line and "scenario.ledger" in line for line in found["assumptions"])
    with LedgerReader(new.ledger) as reader:
        facts = next(note.facts for note in reader.events() if note.kind == "learned")
    # The same files: everything is held back until the stream has passed it.
    assert facts["held_back"] == facts["runs"]
    again = told(new, "--gamma", "0.6")
    assert any("could learn from up to" in line for line in again["assumptions"])
    page = tmp_path / "page.html"
    captime("report", str(new.ledger), "--out", str(page))
    assert "could learn from up to" in page.read_text(encoding="utf-8")
    for command in ("verify", "status"):
        printed = captime(command, str(new.ledger))
        assert printed.exit_code == 0, printed.stdout + printed.stderr
        assert "could learn from up to" in " ".join(printed.stdout.split())
        assert "scenario.ledger" in json.loads(captime(command, str(new.ledger), "--json").stdout)["learned"]
    assert json.loads(captime("status", str(searched.ledger), "--json").stdout)["learned"] is None
    text = new.scenario.read_text(encoding="utf-8")
    other = new.scenario.with_name("other.toml")
    other.write_text(text.replace("[target]", "[target]\nwall_factor = 7.0"), encoding="utf-8")
    refused = CliRunner().invoke(app, ["run", str(other), "--learn-from", str(searched.ledger), "--json"])
    assert isinstance(refused.exception, ScenarioDiffers)
    assert "another target" in str(refused.exception)
    listed = campaign_with(tmp_path / "list", _LISTED)
    code, _, said = listed.run("--learn-from", str(searched.ledger))
    assert code == 2
    assert "model" in said


def test_every_stop_rule_stops(searched: Scripted, tmp_path: Path) -> None:
    """On gamma alone, then on epsilon alone, and on a budget: exit code 3, and a certificate that says both numbers."""
    campaign = Scripted(Path(shutil.copytree(searched.folder, tmp_path / "copy")))
    text = campaign.scenario.read_text(encoding="utf-8")
    for stop, epsilon, gamma in (("gamma", 0.01, 0.5), ("epsilon", 0.3, 0.01)):
        rules = f'epsilon = {epsilon}\ngamma = {gamma}\n[options]\nstop = "{stop}"\n'
        campaign.scenario.write_text(text.replace("epsilon = 0.35\n", rules), encoding="utf-8")
        held = told(campaign)["certificate"]
        assert held[stop] <= {"epsilon": epsilon, "gamma": gamma}[stop]
    spent = text.replace("epsilon = 0.35\n", 'epsilon = 0.01\ngamma = 0.01\ncpu = "0.001s"\n')
    campaign.scenario.write_text(spent, encoding="utf-8")
    code, out, _ = campaign.run()
    assert code == 3
    assert json.loads(out)["stopped"] == "budget"
    assert json.loads(out)["certificate"]["gamma"] < 1.0
