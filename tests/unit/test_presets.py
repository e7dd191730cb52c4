"""Presets: valid as they are written, in agreement with the table of solvers, and right about the real programs."""

import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from captime.cli import app
from captime.comparison.commands import known_solvers
from captime.executors.local import LocalExecutor
from captime.programs import Configuration
from captime.runs import RunRequest, Verdict
from captime.scenario import load_scenario
from captime.scenario.presets import INSTALL, preset
from preset_solvers import MISSING, instances, provide

SOLVERS = list(INSTALL)
DRAWS = 10


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for a scenario."""
    return tmp_path / "study"


def begun(solver: str, folder: Path, monkeypatch: pytest.MonkeyPatch, count: int = 2) -> Path:
    """Do what a user does: `captime init --solver`, and instances where the scenario looks for them."""
    wrote = CliRunner().invoke(app, ["init", "--solver", solver, os.fspath(folder)])
    assert wrote.exit_code == 0, wrote.output
    programs = folder.parent / "bin"
    if not provide(solver, programs):
        pytest.skip(MISSING[solver])
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    instances(solver, folder / "instances", count)
    return folder / "scenario.toml"


def test_there_are_the_presets_that_the_issue_tracker_asked_for() -> None:
    """Thirteen solvers."""
    assert sorted(SOLVERS) == sorted(MISSING)
    assert len(SOLVERS) == 13


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_preset_agrees_with_the_table_of_solvers(solver: str) -> None:
    """The pattern, the exit codes and the words for the seed are those by which `captime compare` knows the solver."""
    target = tomllib.loads(preset(solver).scenario)["target"]
    known = known_solvers()[solver]
    if "function" in target:
        return
    assert target.get("answer") == known.answer
    assert tuple(target["exit_codes"]) == known.exit_codes
    words = " ".join(target["command"])
    assert "{instance}" in words
    for word in known.seed:
        # HiGHS reads its seed from a file of options, where it is called the same without the dashes.
        assert word.removeprefix("--") in words
    assert known.seed or target["repeatable"] is True


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_space_of_a_preset_can_be_drawn_from(solver: str, folder: Path) -> None:
    """`captime space` reads it, the default is no forbidden combination, and every default is inside its range."""
    CliRunner().invoke(app, ["init", "--solver", solver, os.fspath(folder)])
    shown = CliRunner().invoke(app, ["space", os.fspath(folder / "scenario.toml"), "--sample", "50", "--json"])
    assert shown.exit_code == 0, shown.output
    found = json.loads(shown.stdout)
    assert found["notes"] == []
    assert len({json.dumps(each, sort_keys=True) for each in found["samples"]}) > 45
    assert len(found["default"]) >= 6


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_real_solver_answers_in_every_configuration(
    solver: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The default, the favourites and random draws are all accepted, and agree on the answers."""
    path = begun(solver, folder, monkeypatch)
    scenario = load_scenario(path)
    proposer = scenario.proposer
    assert proposer is not None
    listed = [dict(proposer.propose(index)) for index in range(proposer.n_listed)]
    drawn = [dict(proposer.space.draw(7, number)) for number in range(DRAWS)]
    candidates = tuple(Configuration(str(number), each) for number, each in enumerate([*listed, *drawn]))
    program = replace(scenario, candidates=candidates).build().question.program
    requests = [RunRequest(config, position, 60.0) for config in range(len(candidates)) for position in range(2)]
    answers: dict[int, set[bytes | None]] = {0: set(), 1: set()}
    with LocalExecutor(program, 1, tag="test-presets") as executor:
        executor.submit(requests)
        left = set(requests)
        while left:
            for outcome in executor.collect():
                left.discard(outcome.request)
                settings = candidates[outcome.request.config].settings
                # A draw of zstd's settings may compress too little, which is for the verifier to say.
                fine = {Verdict.ANSWERED, Verdict.WRONG} if solver == "zstd" else {Verdict.ANSWERED}
                assert outcome.verdict in fine, (outcome.detail, outcome.measured, dict(settings))
                assert outcome.measured is not None
                if outcome.measured.answer is not None:
                    answers[outcome.request.instance].add(outcome.measured.answer)
    words = {frozenset(re.split(rb"[^A-Z]+", each or b"")[0] for each in found) for found in answers.values()}
    assert all(len(found) <= 1 for found in words), answers


# Half a minute each on a busy machine: two of them with every test run, the others with the slow ones.
QUICK = ("minisat", "highs")


@pytest.mark.parametrize(
    "solver", [each if each in QUICK else pytest.param(each, marks=pytest.mark.slow) for each in SOLVERS]
)
def test_a_campaign_with_a_preset_reaches_a_certificate(
    solver: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On small instances, with an easy goal; the check agrees."""
    path = begun(solver, folder, monkeypatch, count=30)
    text = path.read_text(encoding="utf-8")
    for old, new in (
        ('"log-laplace(60, 1)"', '"log-laplace(1, 1)"\nseed = 1\njobs = 1'),
        ("epsilon = 0.1 ", "epsilon = 0.35 "),
        ("gamma = 0.1 ", "gamma = 0.5 "),
        ('cpu = "1h"', 'cpu = "5m"'),
        ("\n[stop]", 'sampling = "replace"\n\n[stop]'),
        ("\n[space]", "\n[space]\nmodel = false"),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")
    ran = _captime("run", path, "--quiet", "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["certificate"]["epsilon"] <= 0.35
    checked = _captime("verify", path.with_suffix(".ledger"))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_nothing_is_overwritten_and_unknown_solvers_are_named(folder: Path) -> None:
    """A companion that exists keeps the scenario from being written; a misspelt name is answered with the right one."""
    folder.mkdir()
    (folder / "highs.sh").write_text("mine\n", encoding="utf-8")
    refused = CliRunner().invoke(app, ["init", "--solver", "highs", os.fspath(folder)])
    assert refused.exit_code != 0
    assert "highs.sh exists already" in str(refused.exception)
    assert [each.name for each in folder.iterdir()] == ["highs.sh"]
    unknown = _captime("init", "--solver", "kisat", folder)
    assert unknown.returncode == 2
    assert "did you mean 'kissat'?" in unknown.stderr.replace("\n", " ")


def _captime(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "captime", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)
