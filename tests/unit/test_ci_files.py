"""What the GitHub Action and the GitLab job execute is executed here: scripts as they stand in the files."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped] # it comes without types

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / ".github" / "actions" / "compare" / "action.yml").read_text(encoding="utf-8"))
WORKFLOW = yaml.safe_load((ROOT / "examples" / "ci" / "github-workflow.yml").read_text(encoding="utf-8"))
GITLAB = yaml.safe_load((ROOT / "examples" / "ci" / "gitlab-ci.yml").read_text(encoding="utf-8"))["captime"]
EXPRESSION = re.compile(r"\$\{\{ *([\w.-]+) *\}\}")
QUICK, SLOW = 1, 12_000


@dataclass
class Runner:
    """As much of GitHub's runner as the action needs: inputs, outputs, files of the job, steps in their order."""

    place: Path
    inputs: dict[str, str]
    github: dict[str, str]
    outputs: dict[str, str] = field(default_factory=dict)
    codes: dict[str, int] = field(default_factory=dict)

    def run(self) -> int:
        """Run the steps until one fails; return its exit code, or 0."""
        for step in ACTION["runs"]["steps"]:
            if self._wanted(step.get("if", "")):
                code = self._step(step)
                self.codes[step["name"]] = code
                if code:
                    return code
        return 0

    def value(self, name: str) -> str:
        """What an expression stands for."""
        kind, _, rest = name.partition(".")
        if kind == "inputs":
            return self.inputs.get(rest, str(ACTION["inputs"][rest].get("default", "")))
        return self.outputs[rest.rpartition(".")[2]] if kind == "steps" else self.github[rest]

    def _wanted(self, condition: str) -> bool:
        parts = [part.split() for part in condition.split(" && ") if part]
        return all((self.value(name) == text.strip("'")) == (sign == "==") for name, sign, text in parts)

    def _step(self, step: dict[str, Any]) -> int:
        own = {
            name: EXPRESSION.sub(lambda found: self.value(found[1]), str(value)) for name, value in step["env"].items()
        }
        files = {name: str(self.place / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_PATH")}
        assert "${{" not in step["run"], "what users write must not become part of a script"
        # GitHub's own way to start bash.
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.place,
            env={**surroundings(self.place), **files, **own, "RUNNER_TEMP": str(self.place)},
            check=False,
        )
        written = self.place / "GITHUB_OUTPUT"
        if written.exists():
            self.outputs |= dict(line.split("=", 1) for line in written.read_text(encoding="utf-8").splitlines())
        return done.returncode


def surroundings(place: Path) -> dict[str, str]:
    """The environment, with this captime and the stand-ins for other tools on the path."""
    path = os.pathsep.join((str(place / "tools"), str(Path(sys.executable).parent), os.environ["PATH"]))
    return {**os.environ, "PATH": path, "XDG_STATE_HOME": str(place / "state")}


def program(path: Path, text: str) -> None:
    """Write a shell script that can be started."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


def solver(loops: int) -> str:
    """A solver that counts before it answers."""
    return f"i=0; while [ $i -lt {loops} ]; do i=$((i+1)); done"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with instances and with stand-ins that note how they were called."""
    for tool in ("gh", "pip", "curl"):
        program(tmp_path / "tools" / tool, f'printf "%s\\n" "$*" >> "{tmp_path}/{tool}.calls"')
    for number in range(5):
        (tmp_path / "bench").mkdir(exist_ok=True)
        (tmp_path / "bench" / f"{number}.cnf").write_text(f"p cnf {number} 0\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("loops", "verdict", "code"), [(QUICK, "not-worse", 0), (SLOW, "worse", 1)], ids=["equal", "worse"]
)
def test_the_action_lets_equal_changes_pass_and_fails_worse_ones(
    place: Path, loops: int, verdict: str, code: int
) -> None:
    """Verdict, summary, comment and the end of the job, by the steps of the action itself."""
    program(place / "base.sh", solver(QUICK))
    program(place / "candidate.sh", solver(loops))
    inputs = {
        "base": "./base.sh {instance}",
        "candidate": "./candidate.sh {instance}",
        "instances": "bench/*.cnf",
        "not-worse-by": "0.3",
        "half-after": "5ms",
        "options": "--seed 1 --quiet",
        "captime": "",
    }
    github = {"token": "t", "event_name": "pull_request", "event.pull_request.number": "7", "repository": "o/r"}
    runner = Runner(place, inputs, github)
    assert runner.run() == code
    assert runner.outputs["verdict"] == verdict
    assert (place / "captime.ledger").samefile(runner.outputs["ledger"])
    assert "install" not in runner.codes
    assert (place / "GITHUB_STEP_SUMMARY").read_text(encoding="utf-8").startswith("### :")
    assert "pr comment 7 --repo o/r" in (place / "gh.calls").read_text(encoding="utf-8")


@pytest.mark.parametrize(("undecided", "code"), [("pass", 0), ("fail", 1)])
def test_an_undecided_change_does_what_the_input_says(place: Path, undecided: str, code: int) -> None:
    """Five instances, each once, decide nothing about a margin of 0.01; without a pull request there is no comment."""
    program(place / "base.sh", solver(QUICK))
    inputs = {
        "base": "./base.sh {instance}",
        "candidate": "./base.sh {instance}",
        "instances": "bench/*.cnf",
        "not-worse-by": "0.01",
        "half-after": "5ms",
        "options": "--sampling shuffle --quiet",
        "undecided": undecided,
        "captime": "",
    }
    runner = Runner(place, inputs, {"token": "t", "event_name": "push"})
    assert runner.run() == code
    assert runner.outputs["verdict"] == "undecided"
    assert not (place / "gh.calls").exists()


def test_a_mistake_fails_the_job_with_its_own_code(place: Path) -> None:
    """A solver that does not exist is no verdict."""
    inputs = {"base": "./no.sh {instance}", "candidate": "./no.sh {instance}", "instances": "bench/*.cnf"}
    runner = Runner(place, {**inputs, "half-after": "5ms", "captime": ""}, {"token": "t", "event_name": "push"})
    assert runner.run() == 2
    assert runner.outputs == {}


def test_the_install_step_makes_an_environment_of_its_own(place: Path) -> None:
    """What is installed is what the input says, and later steps find it."""
    program(place / "tools" / "python3", f'mkdir -p "$3/bin" && cp "{place}/tools/pip" "$3/bin/pip"')
    step = ACTION["runs"]["steps"][0]
    runner = Runner(place, {"captime": "captime==0.1"}, {})
    assert runner._wanted(step["if"])
    assert runner._step(step) == 0
    assert (place / "pip.calls").read_text(encoding="utf-8").split()[-1] == "captime==0.1"
    assert (place / "GITHUB_PATH").read_text(encoding="utf-8").strip() == str(place / "captime" / "bin")


def test_the_workflow_uses_the_action_as_it_is() -> None:
    """Every input that the example gives exists, those that have to be given are, and the output it reads is there."""
    steps = WORKFLOW["jobs"]["compare"]["steps"]
    used = next(step for step in steps if "/.github/actions/compare@" in step.get("uses", ""))
    assert set(used["with"]) <= set(ACTION["inputs"])
    assert {name for name, each in ACTION["inputs"].items() if each.get("required")} <= set(used["with"])
    assert ACTION["outputs"]["ledger"]["value"] == "${{ steps.compare.outputs.ledger }}"
    assert steps[-1]["with"]["path"] == f"${{{{ steps.{used['id']}.outputs.ledger }}}}"


@pytest.mark.parametrize(("loops", "code"), [(QUICK, 0), (SLOW, 8)], ids=["equal", "worse"])
def test_the_job_for_gitlab(place: Path, loops: int, code: int) -> None:
    """From the worktree of the base to the exit code, by the lines of the job itself, in a repository with a change."""
    repository = place / "repository"
    repository.mkdir()
    (place / "bench").rename(repository / "bench")
    identity = ["-c", "user.name=captime", "-c", "user.email=captime@example.org", "-c", "commit.gpgsign=false"]

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *identity, *words], cwd=repository, check=True, capture_output=True, text=True, encoding="utf-8"
        )
        return done.stdout.strip()

    git("init", "--quiet")
    program(repository / "build" / "solver", solver(QUICK))
    git("add", "--all")
    git("commit", "--quiet", "--message", "base")
    base = git("rev-parse", "HEAD")
    program(repository / "build" / "solver", solver(loops) + "\n:")
    git("commit", "--quiet", "--all", "--message", "change")
    given = {
        **{name: str(value) for name, value in GITLAB["variables"].items()},
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": base,
        "BUILD": "true",
        "MARGIN": "0.3",
        "HALF_AFTER": "5ms",
        "CAPTIME_TOKEN": "token",
        "CI_API_V4_URL": "https://gitlab.example.org/api/v4",
        "CI_PROJECT_ID": "1",
        "CI_MERGE_REQUEST_IID": "2",
    }
    lines = "\n".join([*GITLAB["before_script"], *GITLAB["script"]])
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", lines], cwd=repository, env={**surroundings(place), **given}, check=False
    )
    assert done.returncode == code
    assert (repository / "captime.md").read_text(encoding="utf-8").startswith("### :")
    assert all((repository / path).exists() for path in GITLAB["artifacts"]["paths"])
    assert "merge_requests/2/notes" in (place / "curl.calls").read_text(encoding="utf-8")
    assert GITLAB["allow_failure"] == {"exit_codes": [3]}
