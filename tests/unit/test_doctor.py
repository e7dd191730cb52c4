import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from captime.cli import app
from captime.errors import ScenarioError, StorageTrouble
from captime.procedures.set_schedule import captimes_for
from captime.scenario import load_scenario
from captime.scenario.checkup import examine
from captime.scenario.checkup.checks import look_at_captimes, look_at_ledger
from captime.scenario.checkup.running import STORAGE, Trial
from captime.supervision.processes import TAG
from captime.utilities import parse_utility

SOLVER = """\
import sys, time
begun = time.process_time()
while time.process_time() - begun < float(sys.argv[1]):
    pass
print("SATISFIABLE")
sys.exit(10)
"""
SCENARIO = """\
utility = "uniform(2s)"
{top}
[target]
command = [{python}, "-IS", "solver.py", "{{burn}}", "{{seed}}", "{{instance}}"]
answer = "^(SATISFIABLE|UNSATISFIABLE)"
exit_codes = [10, 20]
{target}
[configurations]
quick = {{ burn = 0.02 }}
slow = {{ burn = 0.15 }}
[instances]
files = "*.cnf"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A solver and two instances."""
    (tmp_path / "solver.py").write_text(SOLVER, encoding="utf-8")
    for number in range(2):
        (tmp_path / f"{number}.cnf").write_text(str(number), encoding="utf-8")
    return tmp_path


def written(folder: Path, top: str = "", target: str = "", instances: str = "") -> Path:
    """The scenario file."""
    path = folder / "scenario.toml"
    text = SCENARIO.format(python=json.dumps(sys.executable), top=top, target=target)
    path.write_text(f"{text}{instances}\n", encoding="utf-8")
    return path


def typed(*words: str) -> Result:
    """As a person would type it."""
    return CliRunner().invoke(app, list(words), env={"COLUMNS": "200"})


def test_on_a_space_the_default_and_a_random_draw_are_tried(folder: Path) -> None:
    """And the number of parameters is told; a draw that crashes is found out, though the default works."""
    space = """\
[space]
burn = { type = "float", low = 0.01, high = 0.02, default = 0.01 }
word = { type = "categorical", choices = ["a", "b"], default = "a" }
"""
    path = written(folder)
    listed, text = "[configurations]\nquick = { burn = 0.02 }\nslow = { burn = 0.15 }\n", path.read_text("utf-8")
    assert listed in text
    text = text.replace(listed, space).replace('"{seed}"', '"{seed}", "{word}"')
    path.write_text(text, encoding="utf-8")
    told = json.loads(typed("doctor", str(path), "--json").stdout)
    found: dict[str, Any] = {finding["check"]: finding for finding in told["findings"]}
    assert found["scenario"]["found"].startswith("a space of 2 parameters, 2 instances")
    assert found["scenario"]["facts"]["parameters"] == 2
    assert found["answers"]["found"] == "the default and a random draw on the first instance: 2 answered"
    (folder / "solver.py").write_text(f"import sys\nif sys.argv[1] != '0.01': sys.exit(3)\n{SOLVER}", encoding="utf-8")
    path.write_text(text.replace("[space]", "[space]\nfavourites = [{ word = 'b' }]"), encoding="utf-8")
    told = json.loads(typed("doctor", str(path), "--json").stdout)
    found = {finding["check"]: finding for finding in told["findings"]}
    assert found["answers"]["level"] == "warning"
    assert found["answers"]["found"].startswith("the default, 1 favourite and a random draw on the first instance")
    assert "'random draw'" in found["answers"]["found"]


def test_a_good_scenario_is_told_to_be_well(folder: Path) -> None:
    """Every check has its line, exit code 0, and real runs were made and cut."""
    result = typed("doctor", str(written(folder)), "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["well"] is True
    found: dict[str, Any] = {finding["check"]: finding for finding in told["findings"]}
    assert set(found) == {
        *("scenario", "SQLite", "ledger", "disk", "scratch", "processors", "captimes", "isolation", "overhead"),
        *("answers", "same answers", "worth", "cap", "repeatability", "this set"),
    }
    assert found["this set"]["facts"]["population"] == "these"
    assert "as a sample of more like them" in found["this set"]["found"]
    assert found["answers"]["facts"]["verdicts"] == {"answered": 2}
    assert found["isolation"]["facts"]["survivors"] == found["cap"]["facts"]["survivors"] == 0
    assert found["cap"]["level"] == "well"
    assert found["overhead"]["facts"]["added"] > 0
    assert len(found["repeatability"]["facts"]["seconds"]) == 5
    assert not list(folder.glob("*.ledger"))


@pytest.mark.parametrize(
    ("solver", "advice"),
    [
        ("import sys; sys.exit('no licence')", "no licence"),
        ("print('UNKNOWN'); raise SystemExit(0)", "its own time limit"),
        ("print('unsat'); raise SystemExit(20)", "target.answer"),
    ],
)
def test_a_program_that_never_answers_is_unusable(folder: Path, solver: str, advice: str) -> None:
    """Exit code 7, with the command, its last words and what to do; plain text without colours when piped."""
    (folder / "solver.py").write_text(solver, encoding="utf-8")
    result = typed("doctor", str(written(folder)))
    assert result.exit_code == 7, result.output
    assert "✗ answers" in result.stdout
    assert "solver.py 0.02" in result.stdout
    assert advice in result.stdout
    assert "\x1b" not in result.stdout


def test_a_wrapper_that_prints_something_else_is_told_what_its_convention_wants(folder: Path) -> None:
    """Exit codes and answers of a scenario do not apply to it."""
    (folder / "solver.py").write_text("print('solved in 3 seconds')", encoding="utf-8")
    path = written(folder)
    text = path.read_text(encoding="utf-8")
    for line in ('answer = "^(SATISFIABLE|UNSATISFIABLE)"', "exit_codes = [10, 20]"):
        text = text.replace(line, "")
    text = text.replace(', "{burn}", "{seed}", "{instance}"]', ']\nwrapper = "irace"')
    path.write_text(text, encoding="utf-8")
    result = typed("doctor", str(path))
    assert result.exit_code == 7, result.output
    assert "expected one or two numbers" in result.stdout
    assert "target.wrapper = 'irace' says how it is called" in result.stdout


def test_a_program_that_only_needs_time_is_no_failure(folder: Path) -> None:
    """Nothing answered within the time given here, so nothing is known."""
    result = typed("doctor", str(written(folder)), "--captime", "10ms", "--json")
    assert result.exit_code == 0, result.output
    found = {finding["check"]: finding for finding in json.loads(result.stdout)["findings"]}
    assert found["answers"]["level"] == "warning"
    assert "--captime" in found["answers"]["advice"]


FUNCTION = """\
utility = "uniform(2s)"
[target]
function = "{module}:solve"
[configurations]
quick = {{ steps = 20000 }}
slow = {{ steps = 400000 }}
[instances]
values = [1, 2]
"""


def function_scenario(folder: Path, body: str) -> Path:
    """A scenario with a function target; its module has a name of its own, since a process imports a name once."""
    module = f"module_{abs(hash((str(folder), body)))}"
    source = f"def solve(settings, instance, seed):\n    sum(range(settings['steps']))\n    {body}\n"
    (folder / f"{module}.py").write_text(source, encoding="utf-8")
    path = folder / "scenario.toml"
    path.write_text(FUNCTION.format(module=module), encoding="utf-8")
    return path


def test_what_a_weaker_level_cannot_hold_is_told(folder: Path) -> None:
    """Beside what it holds; and that a limit on memory is watched by looking where no control group enforces it."""
    path = written(folder, 'isolation = "subreaper"', 'memory = "500MB"')
    result = typed("doctor", str(path), "--json")
    assert result.exit_code == 0, result.output
    found = {finding["check"]: finding for finding in json.loads(result.stdout)["findings"]}
    assert found["isolation"]["level"] == "note"
    assert "kills both its supervisor and the guardian" in found["isolation"]["found"]
    assert "Delegate=yes" in found["isolation"]["advice"]
    assert found["memory"]["level"] == "warning"
    assert "in a memfd and is mapped by no process" in found["memory"]["found"]
    assert found["memory"]["facts"] == {"limit": 500_000_000}


def test_a_function_is_as_well_as_a_command(tmp_path: Path) -> None:
    """The fork server that waits for the next call is no survivor; the check failed for every function."""
    result = typed("doctor", str(function_scenario(tmp_path, "return True")), "--json")
    assert result.exit_code == 0, result.output
    found = {finding["check"]: finding for finding in json.loads(result.stdout)["findings"]}
    assert found["cap"]["facts"]["survivors"] == 0
    assert found["cap"]["level"] != "failed"


def test_a_process_that_outlives_a_call_is_still_a_survivor(folder: Path) -> None:
    """What is forked for a call shows the fork server's tag; its session tells the two apart."""
    spec = load_scenario(written(folder)).build()
    with Trial(spec.question.program) as trial:
        tag = f"{trial.tag}/functions.{trial.executor.pids()[0]}"
        assert trial.survivors() == 0
        left = subprocess.Popen(["sleep", "60"], env={**os.environ, TAG: tag}, start_new_session=True)
        try:
            assert trial.survivors() == 1
        finally:
            left.kill()
            left.wait()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise ValueError('no licence')", "the function raised ValueError: no licence"),
        ("return {'solved': False}", "return True, or a dict"),
        ("return {'answerr': 1}", "did you mean 'answer'"),
    ],
)
def test_a_function_that_fails_is_told_in_words_of_functions(tmp_path: Path, body: str, said: str) -> None:
    """The call, not a command; no word on exit codes."""
    result = typed("doctor", str(function_scenario(tmp_path, body)))
    assert result.exit_code == 7, result.output
    assert said in result.stdout
    assert "The call was: module_" in result.stdout
    assert "command" not in result.stdout
    assert "exit" not in result.stdout


@pytest.mark.parametrize(
    ("printed", "target", "level"),
    [
        ("o {burn}", 'answer = "^o (.*)"', "failed"),
        ("o {burn}", 'answer = "^o (.*)"\ncompare_answers = false', "warning"),
        ("o 3", 'answer = "^o (.*)"', "well"),
        ("o about {burn}", 'answer = "^o (.*)"', "warning"),
    ],
)
def test_answers_of_the_configurations_are_compared(folder: Path, printed: str, target: str, level: str) -> None:
    """Before hours are spent on two programs of which one is wrong."""
    source = SOLVER.replace('print("SATISFIABLE")', f"burn = sys.argv[1]\nprint(f'{printed}')")
    (folder / "solver.py").write_text(source, encoding="utf-8")
    path = written(folder, target="TARGET")
    own = 'answer = "^(SATISFIABLE|UNSATISFIABLE)"\n'
    path.write_text(path.read_text("utf-8").replace(own, "").replace("TARGET", target), encoding="utf-8")
    result = typed("doctor", str(path), "--json")
    found = {finding["check"]: finding for finding in json.loads(result.stdout)["findings"]}
    assert found["same answers"]["level"] == level, result.output
    assert result.exit_code == (7 if level == "failed" else 0)


def test_a_wrong_scenario_is_refused_before_anything_runs(folder: Path) -> None:
    """With the place of the mistake; the command line makes exit code 2 of it."""
    with pytest.raises(ScenarioError, match="line 2: jobs is 'x'"):
        examine(load_scenario(written(folder, top='jobs = "x"')))
    command = [sys.executable, "-m", "captime", "doctor", "nothing.toml"]
    refused = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "captime init" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_the_longest_captime_and_what_a_ceiling_hides_are_told(folder: Path) -> None:
    """In the numbers of the utility; for a claim about exactly these instances there is one limit."""
    free = look_at_captimes(load_scenario(written(folder, instances='population = "drawn"')).build())
    assert [finding.check for finding in free] == ["captimes"]
    assert 1.5 < free[0].facts["longest"] <= 2.0
    assert free[0].facts["median"] < free[0].facts["most"] < free[0].facts["longest"]
    these = look_at_captimes(load_scenario(written(folder)).build())[0]
    assert (these.level, these.found) == ("well", "every run may take 2 s")
    assert these.facts == {"first": 2.0, "longest": 2.0}
    path = written(folder)
    path.write_text(path.read_text(encoding="utf-8").replace("uniform(2s)", "log-laplace(2s, 1)"), encoding="utf-8")
    endless = look_at_captimes(load_scenario(path).build())[0]
    rungs = captimes_for(load_scenario(path).build().question.problem())
    assert endless.facts == {"first": rungs[0], "longest": rungs[-1]}
    assert endless.found.startswith("captimes start at 10 s and reach ")
    assert len(rungs) > 1
    harsh = look_at_captimes(load_scenario(written(folder, target='ceiling = "500ms"')).build())[1]
    assert harsh.level == "warning"
    assert harsh.facts["hidden"] == pytest.approx(float(parse_utility("uniform(2s)")(np.array([0.5]))[0]))
    mild = look_at_captimes(load_scenario(written(folder, target='ceiling = "1.9s"')).build())[1]
    assert (mild.level, mild.facts["epsilon"]) == ("well", 0.1)


def test_a_ledger_that_cannot_be_written_is_storage_trouble(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another exit code than that of a bad program."""

    def refuse(ledger: Path) -> None:
        message = f"{ledger}: its directory cannot be written to"
        raise StorageTrouble(message)

    monkeypatch.setattr("captime.scenario.checkup.checks.check_writable", refuse)
    found = look_at_ledger(folder / "x.ledger")
    assert (found[0].level, found[0].exit_code) == ("failed", STORAGE)


def test_procedures_that_repeat_runs_need_a_program_that_repeats_itself(folder: Path) -> None:
    """A solver whose times are drawn anew each time cannot be used with them."""
    (folder / "solver.py").write_text(
        "import random, sys\n" + SOLVER.replace("float(sys.argv[1])", "random.choice((0.01, 0.3))"), encoding="utf-8"
    )
    checkup = examine(load_scenario(written(folder, top='procedure = "up"')))
    found = {finding.check: finding for finding in checkup.findings}
    assert found["repeatability"].facts["needed"] is True
    spread = found["repeatability"].facts["spread"]
    assert (found["repeatability"].level == "failed") == (spread > 0.1)


@pytest.mark.parametrize(
    ("said", "target", "level", "words"),
    [
        ("", "", "note", "more instances like these"),
        ('population = "these"', "", "failed", "instances.population = 'drawn'"),
        ('population = "these"', "repeatable = true", "warning", "target.repeatable"),
        ('population = "drawn"', "", "note", "nothing needs to be done"),
    ],
)
def test_times_that_differ_fail_only_a_claim_about_these_instances_that_was_asked_for(
    folder: Path, said: str, target: str, level: str, words: str
) -> None:
    """Where no population is named, the campaign chooses the claim that the program allows."""
    differing = f"import pathlib\nmark = pathlib.Path({str(folder / 'mark')!r})\n" + SOLVER.replace(
        "float(sys.argv[1])", "0.3 * len(old)"
    ).replace("import sys, time", "import sys, time\nold = mark.read_text() if mark.exists() else ''")
    flip = "mark.write_text('' if old else 'x')\n"
    (folder / "solver.py").write_text(differing.replace("print(", flip + "print("), encoding="utf-8")
    scenario = load_scenario(written(folder, target=target, instances=said))
    found = {finding.check: finding for finding in examine(scenario).findings}["repeatability"]
    assert found.level == level
    assert words in found.advice


def test_init_writes_a_scenario_and_never_overwrites_one(tmp_path: Path) -> None:
    """Into a folder, or under a name of its own."""
    assert typed("init", str(tmp_path / "new")).exit_code == 0
    assert (tmp_path / "new" / "scenario.toml").is_file()
    assert typed("init", str(tmp_path / "mine.toml")).exit_code == 0
    (tmp_path / "mine.toml").write_text("precious", encoding="utf-8")
    again = typed("init", str(tmp_path / "mine.toml"))
    assert isinstance(again.exception, ScenarioError)
    assert (tmp_path / "mine.toml").read_text(encoding="utf-8") == "precious"
