"""`captime import`: scenarios of other tools become scenarios that run, and every line is accounted for."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from captime.cli import app
from captime.errors import CaptimeError
from captime.executors.local import LocalExecutor
from captime.runs import RunRequest, Verdict
from captime.scenario import load_scenario

WRAPPERS = Path(__file__).parents[2] / "examples" / "wrappers"
PCS = "largest_first categorical {true, false} [false]\ntries integer [1000, 300000] [200000] log\n"
PARAMETERS = 'largest_first "--largest_first " c (true, false)\ntries "--tries " i,log (1000, 300000)\n'
ACLIB = """# as AClib writes them
algo = python3 ./aclib1.py
execdir = .
deterministic = 0
run_obj = runtime
overall_obj = PAR10
cutoff_time = 5
cutoff_length = max
tunerTimeout = 600
memory_limit = 500
paramfile = params.pcs
outdir = output
instance_file = training.txt
test_instance_file = test.txt
colour = blue
"""
PARAMILS = (
    "algo python3 ./aclib1.py\npcs-file params.pcs\nrun-obj RUNTIME\nalgo-cutoff-time 5\ninstance_seed_file seeds.txt\n"
)
IRACE = """## Scenario setup for Iterated Race (irace).
parameterFile = "./parameters.txt"   # the parameters
trainInstancesDir = "./instances"
targetRunner = "./irace.py"
targetRunnerLauncher = "python3"
configurationsFile = "configurations.txt"
maxExperiments = 5000
maxTime = 0
boundMax = 5
capping = TRUE
seed = 1234567
parallel = 1
testType = "t-test"
debugLevel = 1
logFile = ""
boundPar = if (TRUE) 10 else 1
"""
SMAC3 = {
    "name": "x",
    "output_directory": "out",
    "deterministic": False,
    "objectives": "cost",
    "crash_cost": float("inf"),
    "walltime_limit": float("inf"),
    "cputime_limit": 600,
    "trial_walltime_limit": 5,
    "trial_memory_limit": 500,
    "n_trials": 100,
    "seed": 3,
    "n_workers": 1,
}
CONFIGSPACE = {
    "name": None,
    "hyperparameters": [
        {
            "type": "categorical",
            "name": "largest_first",
            "choices": ["true", "false"],
            "weights": None,
            "default_value": "false",
        },
        {"type": "uniform_int", "name": "tries", "lower": 1000, "upper": 300000, "log": True, "default_value": 200000},
    ],
    "conditions": [],
    "forbiddens": [],
    "format_version": 0.4,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The wrappers of the examples with their instances, in a folder of the other tool."""
    home = tmp_path / "theirs"
    shutil.copytree(WRAPPERS, home, ignore=shutil.ignore_patterns("*.toml", "*.ledger*", "__pycache__"))
    (home / "params.pcs").write_text(PCS, encoding="utf-8")
    (home / "parameters.txt").write_text(PARAMETERS, encoding="utf-8")
    (home / "configurations.txt").write_text("largest_first tries\ntrue 1000\nfalse 5000\n", encoding="utf-8")
    names = sorted(f"instances/{each.name}" for each in (home / "instances").iterdir())
    (home / "training.txt").write_text("".join(f"{name} 0\n" for name in names), encoding="utf-8")
    (home / "seeds.txt").write_text("".join(f"{k} {name}\n" for k, name in enumerate(names * 2)), encoding="utf-8")
    (home / "configspace.json").write_text(json.dumps(CONFIGSPACE), encoding="utf-8")
    (home / "scenario.json").write_text(json.dumps({**SMAC3, "instances": names}), encoding="utf-8")
    for name, text in (("aclib.txt", ACLIB), ("paramils.txt", PARAMILS), ("irace.txt", IRACE)):
        (home / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return home


def imported(*words: str | Path) -> dict[str, Any]:
    """What `captime import --json` prints."""
    ran = CliRunner().invoke(app, ["import", *map(str, words), "--json"])
    assert ran.exit_code == 0, ran.output + str(ran.exception)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def answers(path: Path) -> None:
    """The default configuration of an imported scenario answers on an instance."""
    program = load_scenario(path).build().question.program
    with LocalExecutor(program, 1, tag="test-import") as executor:
        executor.submit([RunRequest(0, 0, 30.0)])
        outcome = executor.collect()[0]
    assert outcome.verdict is Verdict.ANSWERED, outcome


def test_a_scenario_of_aclib_runs_as_one_of_captime(folder: Path) -> None:
    """With its wrapper, parameters, limits and instances; every option is decided on or named as lost."""
    found = imported(folder / "aclib.txt", "-o", "mine/scenario.toml")
    wishes = load_scenario(Path("mine/scenario.toml")).wishes
    assert (wishes.utility, wishes.stop.cpu, wishes.target.memory) == ("uniform(5)", 600.0, 500_000_000)
    assert (wishes.target.wrapper, wishes.target.command) == ("aclib1", ["python3", "../theirs/aclib1.py"])
    assert wishes.space == {"file": "../theirs/params.pcs"}
    lost = " ".join(found["not_carried_over"])
    for word in ("PAR10", "cutoff_length", "outdir", "test_instance_file", "colour", "words behind an instance"):
        assert word in lost
    answers(Path("mine/scenario.toml"))


def test_seeds_of_paramils_are_not_carried_over_and_said_so(folder: Path) -> None:
    """Each instance counts once, in a list beside the scenario."""
    found = imported(folder / "paramils.txt")
    assert "the seeds in seeds.txt" in " ".join(found["not_carried_over"])
    listed = Path("scenario-instances.txt").read_text(encoding="utf-8").split()
    assert len(listed) == len(set(listed)) == len(list((folder / "instances").iterdir()))
    answers(Path("scenario.toml"))


def test_a_scenario_of_irace_runs_as_one_of_captime(folder: Path) -> None:
    """R's syntax is read, R code is not run, and initial configurations become favourites."""
    found = imported(folder / "irace.txt")
    scenario = load_scenario(Path("scenario.toml"))
    assert scenario.wishes.space is not None
    assert scenario.wishes.space["favourites"] == [
        {"largest_first": "true", "tries": 1000},
        {"largest_first": "false", "tries": 5000},
    ]
    assert (scenario.wishes.utility, scenario.seed, scenario.wishes.jobs) == ("uniform(5)", 1234567, 1)
    lost = " ".join(found["not_carried_over"])
    assert "R code is not run" in lost
    for word in ("maxExperiments", "testType", "capping"):
        assert word in lost
    answers(Path("scenario.toml"))


def test_a_scenario_of_smac3_needs_nothing_but_the_program(folder: Path) -> None:
    """SMAC3 does not record the program; with it filled in, the scenario runs."""
    found = imported(folder / "scenario.json", "--utility", "log-laplace(1, 1)")
    assert any(each.startswith("the program") for each in found["not_carried_over"])
    path = Path("scenario.toml")
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('["./target-script"]', '["python3", "theirs/smac3.py"]'), encoding="utf-8")
    wishes = load_scenario(path).wishes
    assert (wishes.utility, wishes.stop.cpu, wishes.seed) == ("log-laplace(1, 1)", 600.0, 3)
    answers(path)


def test_the_cutoff_of_adaptive_capping_in_smac3_decides_the_utility(folder: Path) -> None:
    """Since SMAC3 2.4 a scenario may have one, beside the limit of the wall clock."""
    capped = {**SMAC3, "instances": ["a", "b"], "adaptive_capping": True, "runtime_cutoff": 7}
    (folder / "capped.json").write_text(json.dumps(capped), encoding="utf-8")
    found = imported(folder / "capped.json")
    assert 'utility = "uniform(7)"' in Path("scenario.toml").read_text(encoding="utf-8")
    assert "adaptive_capping = true: captime always caps" in found["not_carried_over"]


def test_a_list_of_instances_becomes_a_scenario_to_fill_in(folder: Path) -> None:
    """The format has to be said: a list looks like anything."""
    found = imported(folder / "seeds.txt", "--from", "instances")
    assert "examples to be replaced" in " ".join(found["decided"])
    assert Path("scenario-instances.txt").exists()


def test_what_is_printed_is_also_in_the_file(folder: Path) -> None:
    """Both lists stand before the scenario as comments; nothing is overwritten."""
    ran = CliRunner().invoke(app, ["import", os.fspath(folder / "aclib.txt")])
    assert ran.exit_code == 0
    text = Path("scenario.toml").read_text(encoding="utf-8")
    for line in ran.stdout.splitlines():
        if line.startswith("  - "):
            assert f"# {line}" in text
    again = CliRunner().invoke(app, ["import", os.fspath(folder / "aclib.txt")])
    assert "exists already" in str(again.exception)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("none.txt", None, "cannot be read"),
        ("odd.txt", "hello world\n", "not seen which tool"),
        ("bad.json", "{", "is no JSON"),
        ("other.json", "[1]", "no scenario of SMAC3"),
        ("noalgo.txt", "paramfile = params.pcs\n", "algo is missing"),
        ("noparams.txt", "algo = ./aclib1.py\n", "paramfile is missing"),
        ("nolist.txt", "algo = ./a\nparamfile = params.pcs\ninstance_file = gone.txt\n", "was not found"),
        ("noinst.txt", "algo = ./a\nparamfile = params.pcs\n", "instance_file is missing"),
        ("cut.txt", ACLIB.replace("cutoff_time = 5", "cutoff_time = soon"), "cutoff_time is 'soon'"),
        ("cut0.txt", ACLIB.replace("cutoff_time = 5", "cutoff_time = 0"), "expected seconds above 0"),
        ("cutnan.txt", ACLIB.replace("cutoff_time = 5", "cutoff_time = nan"), "expected a number"),
        ("quote.txt", ACLIB.replace("./aclib1.py", '"./aclib1.py'), "algo is"),
        ("launch.txt", IRACE.replace('"python3"', '"python3 \'"'), "targetRunnerLauncher is"),
        ("table.txt", IRACE.replace("configurations.txt", "instances"), "expected a table of configurations"),
        ("nofolder.txt", IRACE.replace("./instances", "irace.py"), "which is no folder"),
        ("limit.json", json.dumps({**SMAC3, "trial_walltime_limit": "soon"}), "trial_walltime_limit is 'soon'"),
        ("text.json", json.dumps({**SMAC3, "instances": "a b c"}), "expected a list of names"),
        ("irace2.txt", 'targetRunner = "./x"\ntrainInstancesDir = "gone"\n', "trainInstancesDir is 'gone'"),
    ],
)
def test_bad_input_gets_one_sentence(name: str, text: str | None, words: str, folder: Path) -> None:
    """It names the file and what was expected, and nothing is written."""
    if text is not None:
        (folder / name).write_text(text, encoding="utf-8")
    ran = CliRunner().invoke(app, ["import", os.fspath(folder / name)])
    assert isinstance(ran.exception, CaptimeError)
    assert words in str(ran.exception)
    assert not Path("scenario.toml").exists()


def test_a_program_beside_the_scenario_is_not_looked_for_on_the_path(folder: Path) -> None:
    """A runner that is called by its own name keeps its ./, without which it would not be found."""
    alone = IRACE.replace('targetRunnerLauncher = "python3"\n', "")
    (folder / "alone.txt").write_text(alone, encoding="utf-8")
    imported(folder / "alone.txt", "-o", folder / "scenario.toml")
    assert load_scenario(folder / "scenario.toml").wishes.target.command == ["./irace.py"]
    (folder / "own.txt").write_text(ACLIB.replace("python3 ./aclib1.py", "./aclib1.py"), encoding="utf-8")
    imported(folder / "own.txt", "-o", folder / "second.toml")
    assert load_scenario(folder / "second.toml").wishes.target.command == ["./aclib1.py"]


def test_two_scenarios_can_be_imported_into_one_folder(folder: Path) -> None:
    """Each list of instances has the name of its scenario."""
    imported(folder / "aclib.txt", "-o", "first.toml")
    found = imported(folder / "paramils.txt", "-o", "second.toml")
    assert found["files"] == ["second.toml", "second-instances.txt"]
    assert Path("first-instances.txt").exists()


def test_a_wrong_format_or_utility_is_refused(folder: Path) -> None:
    """Before anything is written."""
    for words, said in ((["--from", "irac"], "did you mean 'irace'?"), (["--utility", "fast"], "--utility")):
        ran = CliRunner().invoke(app, ["import", os.fspath(folder / "aclib.txt"), *words])
        assert said in str(ran.exception)
    assert not Path("scenario.toml").exists()
