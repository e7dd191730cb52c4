"""Questions that are asked badly: nothing answers, everything is worth the same, the program only waits."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from captime.campaign.run import mean_scores
from captime.cli import app
from captime.errors import TargetProgramError
from captime.report.campaigned import Showing, doubts
from captime.report.ledger_data import read_story
from captime.report.ledger_words import summary_of_story
from captime.report.words import cpu_time
from captime.tally import Tally

SCENARIO = """
utility = "{utility}"
jobs = 1
isolation = "posix"
seed = 3
[target]
command = ["/bin/sh", "-c", "{{script}}"]
answer = "^answer"
{target}
[instances]
values = [1, 2, 3]
sampling = "replace"
[configurations]
one = {{ script = "{script}" }}
two = {{ script = "{script} " }}
[stop]
epsilon = {epsilon}
{stop}
"""
BURN = "i=0; while [ $i -lt {rounds} ]; do i=$((i+1)); done; "


def scenario(folder: Path, script: str, *, utility: str = "uniform(1)", **more: str) -> Path:
    """Two configurations of one little program."""
    known = {"target": "", "epsilon": "0.3", "stop": ""} | more
    path = folder / "s.toml"
    path.write_text(SCENARIO.format(utility=utility, script=script, **known))
    return path


def captime(*words: str) -> Result:
    """The command, as a user gives it; errors end it as they do outside of tests."""
    result = CliRunner().invoke(app, list(words), env={"COLUMNS": "200"})
    if result.exception is not None and not isinstance(result.exception, SystemExit | TargetProgramError):
        raise result.exception
    return result


def showing(**more: object) -> Showing:
    """A campaign without anything to be said against it, but for what is said otherwise."""
    known = {"counted": 100, "answered": 80, "idle": 0, "guarded": 0, "clock": "cpu", "means": np.array([0.5, 0.6])}
    return Showing(**known | more)  # type: ignore[arg-type] # whatever a test wants to say


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, ()),
        ({"counted": 162, "answered": 6}, ("only 6 of 162 runs answered",)),
        ({"counted": 162, "answered": 0}, ("not one of 162 runs answered",)),
        ({"counted": 19, "answered": 0}, ("not one of 19 runs answered",)),
        ({"counted": 0, "answered": 0}, ()),
        ({"counted": 19, "answered": 1}, ()),
        ({"means": np.array([0.02, 0.19, np.nan])}, ("worth less than 0.2, the best one 0.19",)),
        ({"means": np.array([0.02, 0.21])}, ()),
        ({"means": np.array([0.985, 0.99])}, ("worth more than 0.98",)),
        ({"means": np.array([0.97, 0.99])}, ()),
        ({"idle": 55}, ('55 of 100 runs slept most of their time.*clock = "wall"',)),
        ({"idle": 55, "clock": "wall"}, ()),
        ({"idle": 15}, ()),
    ],
)
def test_what_speaks_against_the_question_is_said(more: dict[str, object], expected: tuple[str, ...]) -> None:
    """Nearly no answer, none or all worth anything, a program that waits; and nothing without enough runs."""
    told = doubts(showing(**more))
    assert len(told) == len(expected)
    for words, pattern in zip(told, expected, strict=True):
        assert re.search(pattern, words)


def test_an_answer_that_is_never_recognised_is_no_success(tmp_path: Path) -> None:
    """Before: some runs capped, the others unknown, a certificate and exit code 0."""
    done = captime("run", str(scenario(tmp_path, BURN.format(rounds=2000) + "echo solved")), "--quiet")
    assert isinstance(done.exception, TargetProgramError), done.stdout
    assert re.search("none answered|not one of|all failed", str(done.exception))
    assert "no line of its output is an answer" in str(done.exception)
    assert "of the best" not in done.stdout


def test_a_utility_that_falls_before_any_answer_is_no_success(tmp_path: Path) -> None:
    """Every run is cut; before: a certificate that all are within epsilon of nothing, and exit code 0."""
    path = scenario(tmp_path, BURN.format(rounds=400000) + "echo answer", utility="step(0.005)", epsilon="0.3")
    done = captime("run", str(path), "--quiet")
    assert isinstance(done.exception, TargetProgramError), done.stdout
    assert re.search(r"not one of \d+ runs answered \(\d+ capped", str(done.exception))
    told = json.loads(captime("status", str(path.with_suffix(".ledger")), "--json").stdout)
    assert [event["words"] for event in told["events"] if event["kind"] == "stopped"][-1] == "no run ever answered"


def test_doctor_compares_the_utility_with_the_times_it_measured(tmp_path: Path) -> None:
    """In the words of the question: it took so long here, and that is worth this much."""
    strict = scenario(tmp_path, BURN.format(rounds=100000) + "echo answer", utility="exponential(0.005)")
    told = json.loads(captime("doctor", str(strict), "--json", "--captime", "2s").stdout)
    found = {finding["check"]: finding for finding in told["findings"]}["worth"]
    assert found["level"] == "warning"
    assert re.search(r"took \d.* m?s of CPU time here; under exponential.* that is worth 0\.\d\d", found["found"])
    assert found["facts"]["worth"] < 0.2
    loose = scenario(tmp_path, "echo answer", utility="uniform(1h)")
    told = json.loads(captime("doctor", str(loose), "--json", "--captime", "2s").stdout)
    found = {finding["check"]: finding for finding in told["findings"]}["worth"]
    assert found["level"] == "warning"
    assert "falls sooner" in found["advice"]


def test_a_program_that_waits_is_told_from_one_that_works(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """doctor, the certificate, its JSON and the report name the other clock; before, only the report had a flag."""
    path = scenario(tmp_path, "sleep 0.3; echo answer", epsilon="0.25")
    told = json.loads(captime("doctor", str(path), "--json", "--captime", "2s").stdout)
    found = {finding["check"]: finding for finding in told["findings"]}["clock"]
    assert found["level"] == "warning"
    assert 'clock = "wall"' in found["advice"]
    done = captime("run", str(path), "--json")
    assert done.exit_code == 0, done.stderr
    assert 'set clock = "wall"' in caplog.text
    warnings = json.loads(done.stdout)["warnings"]
    assert any('clock = "wall"' in words for words in warnings)
    summary = summary_of_story(read_story(path.with_suffix(".ledger")))
    assert any('clock = "wall"' in words for words in summary.warnings)


def test_on_the_wall_clock_nothing_is_called_cpu_time(tmp_path: Path) -> None:
    """Certificate, status, report, best: seconds on the wall are run time."""
    path = scenario(tmp_path, "sleep 0.05; echo answer", target='clock = "wall"', epsilon="0.3")
    ledger = path.with_suffix(".ledger")
    page = tmp_path / "report.html"
    doctor = captime("doctor", str(path), "--captime", "2s")
    said = [
        captime("run", str(path)),
        captime("run", str(path), "--quiet"),
        captime("status", str(ledger)),
        captime("best", str(ledger)),
        captime("report", str(ledger), "--out", str(page)),
    ]
    assert [done.exit_code for done in said] == [0] * len(said), said
    for done in said:
        assert "CPU" not in done.stdout + done.stderr
    assert "of run time" in said[0].stdout
    assert "of run time" in said[2].stdout
    assert "of wall-clock time here" in doctor.stdout
    text = re.sub(r"<script.*?</script>|<style.*?</style>", "", page.read_text(), flags=re.DOTALL)
    assert "run time spent" in text
    assert [text[max(0, each.start() - 60) : each.end() + 20] for each in re.finditer("CPU", text)] == []


def test_times_are_named_after_their_clock() -> None:
    """Days too."""
    assert cpu_time(90.0) == "1.5 min of CPU time"
    assert cpu_time(90.0, "wall") == "1.5 min of run time"
    assert cpu_time(2 * 86400.0) == "2.0 CPU days"
    assert cpu_time(2 * 86400.0, "wall") == "2.0 days of run time"


def test_a_few_open_runs_do_not_hide_what_a_configuration_is_worth() -> None:
    """All of the 29 answers are worth 1, one run was cancelled; much that is open is a matter of the middle."""
    seen = SimpleNamespace(
        n=np.array([30, 30, 10, 5]),
        skipped=np.array([0, 0, 0, 5]),
        utility_low=np.array([29.0, 28.0, 0.0, 0.0]),
        utility_high=np.array([30.0, 30.0, 9.0, 0.0]),
    )
    means = mean_scores(cast("Tally", seen))
    assert means[:3].tolist() == [1.0, 1.0, 0.45]
    assert np.isnan(means[3])
