"""`captime.configure`: which spaces it takes, what it learns from, what comes back, and what is refused how."""

import json
import tempfile
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from campaign_stand_ins import folder, ledger_in
from captime import AskTell, configure, simulate
from captime.campaign.result import CampaignResult
from captime.cli import app
from captime.errors import ScenarioError, TargetProgramError
from captime.ledger import LedgerReader
from captime.report.campaigned import campaign_json, summary_and_table
from captime.sources.synthetic import synthetic_table
from captime.spaces import Space, as_configspace, read_space_section
from stub_targets import count

__all__ = ["folder"]

SECTION: dict[str, Any] = {
    "pace": {"type": "int", "low": 1, "high": 50, "default": 40},
    "trick": {"type": "bool", "default": False},
    "depth": {"type": "int", "low": 1, "high": 9, "default": 3},
    "conditions": ["depth | trick == true"],
}


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
    """Flat, in the result and in its JSON; an inactive parameter is absent."""
    result = configured(SECTION, ledger_in(folder))
    assert result.outcome.stopped == "epsilon"
    assert {"pace", "trick"} <= result.settings.keys() <= {"pace", "trick", "depth"}
    assert ("depth" in result.settings) == result.settings["trick"]
    assert json.loads(json.dumps(campaign_json(result, *summary_and_table(result))))["settings"] == dict(
        result.settings
    )
    assert result.question.goal.gamma == 0.8


def test_listed_configurations_come_back_flat_too(folder: Path) -> None:
    """As they were given."""
    listed = {"fast": {"pace": 1}, "slow": {"pace": 40}}
    wishes: dict[str, Any] = {"utility": "uniform(1)", "progress": False, "jobs": 1, "interrupted": lambda: True}
    result = configure(count, list(range(30)), listed, ledger=ledger_in(folder), sampling="replace", **wishes)
    assert dict(result.settings) == listed[result.config_name]


def test_a_space_may_be_a_dictionary_a_file_a_space_or_an_object_of_configspace(folder: Path) -> None:
    """One question in five forms; a scenario's section also says how it is searched."""
    (folder / "p.pcs").write_text(
        "pace integer [1,50] [40]\ntrick categorical {true, false} [false]\ndepth integer [1,9] [3]\n"
        "depth | trick == true\n",
        encoding="utf-8",
    )
    (folder / "s.toml").write_text('[space]\nfile = "p.pcs"\nmodel = false\n', encoding="utf-8")
    made = read_space_section(SECTION, "here", folder)
    # The file is found from the folder, not from where Python was started.
    forms: list[Mapping[str, Any] | str | PathLike[str] | Space]
    forms = [SECTION, made, "p.pcs", Path("s.toml"), as_configspace(made)]
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


@pytest.mark.parametrize(
    ("wishes", "sentence"),
    [
        ({"target": "minisat {instance} -x {pace}"}, r"such as \['minisat', '\{instance\}', '-x', '\{pace\}'\]$"),
        ({"target": "fn.py:solve"}, r"named by \{'function': 'fn:solve'\}"),
        ({"target": None}, r"target is None \(NoneType\); expected a function, or a command"),
        ({"target": b"minisat"}, r"target is b'minisat' \(bytes\); expected a function"),
        ({"instances": 5}, r"instances is 5 \(int\); expected a pattern of file names"),
        ({"target": ["true", "{instance}"]}, r"instances\[0\] is 1 \(int\); expected a file for a command"),
        ({"configurations": "fast"}, r"configurations is 'fast' \(str\); expected a dict of settings by name"),
        ({"configurations": ["fast"]}, r"configurations is \['fast'\] \(list\); expected"),
        ({"configurations": None, "space": ["pace"]}, r"space is \['pace'\] \(list\); expected a dict"),
        ({"utility": None}, r"utility is None \(NoneType\); expected a text"),
        ({"learn_from": 3}, r"learn_from is 3 \(int\); expected a ledger"),
        ({"epsilom": 0.3}, r"epsilom is no keyword of configure; did you mean 'epsilon'\?"),
        ({"nonsense": 0.3}, r"nonsense is no keyword of configure; there are target, instances"),
        ({"ceiling": 3}, r"ceiling is a field of the target; write target=\{'function': solve, 'ceiling'"),
        ({"allow_duplicates": True}, r"allow_duplicates is a field of the instances"),
    ],
)
def test_a_wrong_call_is_refused_in_one_sentence_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wishes: dict[str, Any], sentence: str
) -> None:
    """In the words of Python; no traceback of ours, no letter of a command taken for a word, no empty folder."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    call: dict[str, Any] = {"target": count, "instances": [1], "configurations": {"a": {"pace": 1}}}
    with pytest.raises(ScenarioError, match=sentence) as refused:
        configure(**{**call, "utility": "uniform(1)", **wishes})
    assert str(refused.value).startswith("configure: ")
    assert not list(tmp_path.iterdir())


def test_numbers_of_numpy_and_tuples_are_taken_as_they_are_meant(folder: Path) -> None:
    """Settings, seeds, jobs and budgets; the certificate's settings are plain."""
    listed = ({"name": "fast", "pace": np.int64(1)}, {"name": "slow", "pace": np.uint8(40), "x": np.float32(0.5)})
    numbers: dict[str, Any] = {"seed": np.int64(3), "jobs": np.int32(1), "cpu": np.int64(60)}
    result = configure(
        {"function": count, "ceiling": np.int64(9)},
        np.arange(30),
        listed,
        ledger=ledger_in(folder),
        utility="uniform(1)",
        **numbers,
        sampling="replace",
        progress=False,
        interrupted=lambda: True,
    )
    with LedgerReader(result.ledger) as reader:
        assert [row.settings["settings"] for row in reader.configs] == [{"pace": 1}, {"pace": 40, "x": 0.5}]
        assert reader.scenario["seed"] == 3
    assert result.question.ceiling == 9.0


@pytest.mark.parametrize(
    ("returned", "sentence"),
    [
        ("{'answerr': 1}", "the key 'answerr'; did you mean 'answer'?"),
        ("(each for each in ())", "the function returned generator, which cannot be pickled"),
        ("1 / 0", "the function raised ZeroDivisionError: division by zero"),
        ("sys.exit(3)", "the function ended its process with exit code 3"),
        ("0", "the function returned 0, which is no answer"),
    ],
)
def test_failures_of_functions_are_told_in_the_words_of_functions(folder: Path, returned: str, sentence: str) -> None:
    """With the call; a command was never given."""
    (folder / f"fails_{abs(hash(returned))}.py").write_text(
        f"import sys\ndef solve(settings, instance, seed):\n    return {returned}\n", encoding="utf-8"
    )
    with pytest.raises(TargetProgramError) as stopped:
        configure(
            {"function": f"fails_{abs(hash(returned))}:solve"},
            list(range(30)),
            {"a": {"pace": 1}, "b": {"pace": 2}},
            ledger=ledger_in(folder),
            utility="uniform(1)",
            jobs=1,
            sampling="replace",
            progress=False,
            folder=folder,
        )
    assert sentence in str(stopped.value)
    assert "The call was: fails_" in str(stopped.value)
    assert "command" not in str(stopped.value)


def without_seed(settings: dict[str, int], instance: int) -> bool:
    """Does not say that it takes the same time again."""
    return settings["pace"] + instance > 0


def test_calls_that_are_refused_late_leave_nothing_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A temporary folder for the ledger, the folder of generated instances, the folder of the demo."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(ScenarioError, match="it is not given the seed"):
        configure(
            without_seed,
            [1, 2],
            {"a": {"pace": 1}, "b": {"pace": 2}},
            utility="uniform(60)",
            procedure="up",
            progress=False,
        )
    command, generated = ["true", "{instance}"], {"generator": ["echo", "{k}"], "folder": str(tmp_path / "made")}
    with pytest.raises(ScenarioError, match="it is not given the seed"):
        configure(command, generated, {"a": {}, "b": {}}, utility="uniform(60)", procedure="up", progress=False)
    refused = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "demo"), "--wall", "soon"])
    assert refused.exit_code != 0
    assert not list(tmp_path.iterdir())


def test_one_text_is_no_list_of_configurations_and_no_utility_is_none() -> None:
    """Where configurations are handed over one by one, a text was taken letter by letter."""
    with pytest.raises(ScenarioError, match=r"configurations is 'fast', one text; expected a list"):
        AskTell("fast", "uniform(10)")
    nothing: Any = None
    with pytest.raises(ScenarioError, match=r"the utility is None, expected a text .*captime\.from_callable"):
        AskTell(["fast", "slow"], nothing)
    with pytest.raises(ScenarioError, match="the utility is None"):
        simulate(synthetic_table(1, 2, 20, limit=90.0), utility=nothing)
