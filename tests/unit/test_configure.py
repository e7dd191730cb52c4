"""`captime.configure` on a space: which spaces it takes, what it learns from, and what comes back."""

import json
from os import PathLike
from pathlib import Path
from typing import Any

import pytest

from campaign_stand_ins import folder, ledger_in
from captime import configure
from captime.campaign.result import CampaignResult
from captime.errors import ScenarioError
from captime.ledger import LedgerReader
from captime.report.campaigned import campaign_json
from captime.spaces import Space, read_space_section

__all__ = ["folder"]

SECTION: dict[str, Any] = {
    "pace": {"type": "int", "low": 1, "high": 50, "default": 40},
    "trick": {"type": "bool", "default": False},
    "depth": {"type": "int", "low": 1, "high": 9, "default": 3},
    "conditions": ["depth | trick == true"],
}


def count(settings: dict[str, int], instance: int, seed: int) -> bool:
    """Takes time by its pace."""
    return sum(range(1000 * settings["pace"])) + instance + seed >= 0


def configured(space: Any, path: Path, **more: Any) -> CampaignResult:
    """A campaign that is content soon."""
    goals: dict[str, Any] = {"epsilon": 0.8, "gamma": 0.8, "utility": "log-laplace(100ms, 1)"}
    return configure(
        count, list(range(30)), space=space, ledger=path, progress=False, sampling="replace", jobs=1, **(goals | more)
    )


def space_on_record(path: Path) -> dict[str, Any]:
    """What the ledger knows of the space."""
    with LedgerReader(path) as reader:
        found: Any = reader.scenario["space"]
    return dict(found)


def test_a_space_is_searched_and_settings_are_what_the_function_is_called_with(folder: Path) -> None:
    """Flat, in the result and in its JSON; whoever is inactive is absent."""
    result = configured(SECTION, ledger_in(folder))
    assert result.outcome.stopped == "epsilon"
    assert {"pace", "trick"} <= result.settings.keys() <= {"pace", "trick", "depth"}
    assert ("depth" in result.settings) == result.settings["trick"]
    assert json.loads(json.dumps(campaign_json(result)))["settings"] == dict(result.settings)
    assert result.question.goal.gamma == 0.8


def test_listed_configurations_come_back_flat_too(folder: Path) -> None:
    """As they were given."""
    listed = {"fast": {"pace": 1}, "slow": {"pace": 40}}
    wishes: dict[str, Any] = {"utility": "uniform(1)", "progress": False, "jobs": 1, "interrupted": lambda: True}
    result = configure(count, list(range(30)), listed, ledger=ledger_in(folder), sampling="replace", **wishes)
    assert dict(result.settings) == listed[result.config_name]


def test_a_space_may_be_a_dictionary_a_file_or_a_space(folder: Path) -> None:
    """One question in four forms; a scenario's section also says how it is searched."""
    (folder / "p.pcs").write_text(
        "pace integer [1,50] [40]\ntrick categorical {true, false} [false]\ndepth integer [1,9] [3]\n"
        "depth | trick == true\n",
        encoding="utf-8",
    )
    (folder / "s.toml").write_text('[space]\nfile = "p.pcs"\nmodel = false\n', encoding="utf-8")
    made = read_space_section(SECTION, "here", folder)
    # The file is found from the folder, not from where Python was started.
    forms: list[dict[str, Any] | str | PathLike[str] | Space] = [SECTION, made, "p.pcs", Path("s.toml")]
    for number, form in enumerate(forms):
        path = ledger_in(folder, f"{number}")
        configured(form, path, folder=folder, interrupted=lambda: True)
        said = space_on_record(path)
        assert {"pace", "trick", "depth"} <= said.keys()
        assert said["pace"]["default"] == 40
        assert said["model"] == (form != Path("s.toml"))


def test_a_campaign_learns_from_an_earlier_ledger(folder: Path) -> None:
    """One name or a list of them; the result says so."""
    first = configured(SECTION, ledger_in(folder, "first"))
    for number, files in enumerate((str(first.ledger), [first.ledger])):
        path = ledger_in(folder, f"then-{number}")
        again = configured(SECTION, path, seed=1, learn_from=files, interrupted=lambda: True)
        assert "could learn from" in again.learned


def test_exactly_one_of_configurations_and_space_is_wanted(folder: Path) -> None:
    """Neither and both are refused, and so is a gamma without a space."""
    with pytest.raises(ScenarioError, match="neither of configurations and space"):
        configure(count, [1], utility="uniform(1)")
    with pytest.raises(ScenarioError, match="both of configurations and space"):
        configure(count, [1], {"a": {"pace": 1}}, space=SECTION, utility="uniform(1)")
    with pytest.raises(ScenarioError, match="gamma means nothing without"):
        configure(count, [1], {"a": {"pace": 1}}, gamma=0.3, utility="uniform(1)", ledger=ledger_in(folder))
