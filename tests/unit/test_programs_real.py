import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from captime.executors.local import LocalExecutor
from captime.runs import Halt, RunOutcome, RunRequest, Status, Verdict
from captime.scenario import load_scenario, scenario_of

PYTHON = sys.executable
ROOT = Path(__file__).parents[2]


@contextmanager
def slot(document: dict[str, Any], folder: Path, **given: Any) -> Iterator[LocalExecutor]:
    """One real slot for a scenario."""
    full = {"utility": "uniform(60)", **document}
    with LocalExecutor(scenario_of(full, folder, **given).build().question.program, 1, tag="test-programs") as executor:
        yield executor


def outcomes_of(executor: LocalExecutor, requests: Sequence[RunRequest]) -> list[RunOutcome]:
    """What becomes of these, in their order."""
    executor.submit(requests)
    found: dict[RunRequest, RunOutcome] = {}
    while len(found) < len(requests):
        found |= {outcome.request: outcome for outcome in executor.collect()}
    return [found[request] for request in requests]


def script(folder: Path, name: str, text: str) -> str:
    """A Python program in that folder."""
    (folder / name).write_text(textwrap.dedent(text), encoding="utf-8")
    return name


NASTY = [
    "a b",
    "'q'",
    '"dq"',
    "new\nline",
    "-dash",
    "$(touch PWNED)",
    "; touch PWNED",
    "*",
    "ü",
    "\udcff\udcfe",
    "{x}",
    "&",
]


def test_nasty_names_and_values_reach_the_program_byte_by_byte(tmp_path: Path) -> None:
    """Twelve names of instances, each also as the value of a setting; no shell ever sees them (T21, T22)."""
    (tmp_path / "in").mkdir()
    for number, name in enumerate(NASTY):
        (tmp_path / "in" / name).write_text(str(number), encoding="utf-8")
    script(tmp_path, "echo.py", "import os, sys\nprint('GOT', os.fsencode('|'.join(sys.argv[1:])).hex())")
    document = {
        "target": {"command": [PYTHON, "-IS", "echo.py", "{instance}", "--v={v}"], "answer": "^GOT (.*)"},
        "configurations": [{"name": str(number), "v": value} for number, value in enumerate(NASTY)],
        "instances": {"files": "in/*"},
    }
    stream = scenario_of({"utility": "uniform(60)", **document}, tmp_path).stream
    with slot(document, tmp_path) as executor:
        requests = [RunRequest(config, config, 20.0) for config in range(len(NASTY))]
        for request, outcome in zip(requests, outcomes_of(executor, requests), strict=True):
            assert outcome.verdict is Verdict.ANSWERED, outcome
            assert outcome.measured is not None
            path = stream.at(request.instance).instance.path
            expected = os.fsencode(f"{path}|--v={NASTY[request.config]}").hex()
            assert outcome.measured.answer == expected.encode()
    assert not list(tmp_path.rglob("PWNED"))


def test_a_verifier_has_the_last_word(tmp_path: Path) -> None:
    """It reads what the program printed; 0 is right, 1 is wrong, anything else is no verdict (T14)."""
    (tmp_path / "i").write_text("x", encoding="utf-8")
    script(tmp_path, "solve.py", "import sys\nprint('ANSWER', sys.argv[1])")
    script(
        tmp_path,
        "check.py",
        """
        import sys
        piped, kept = sys.stdin.read(), open(sys.argv[1]).read()
        assert piped == kept, (piped, kept)
        sys.exit({"ANSWER right\\n": 0, "ANSWER wrong\\n": 1}.get(piped, 9))
        """,
    )
    document = {
        "target": {
            "command": [PYTHON, "-IS", "solve.py", "{word}"],
            "answer": "^ANSWER",
            "verifier": [PYTHON, "-IS", "check.py", "{stdout}"],
        },
        "configurations": {word: {"word": word} for word in ("right", "wrong", "odd")},
        "instances": {"files": "i"},
    }
    with slot(document, tmp_path) as executor:
        found = outcomes_of(executor, [RunRequest(config, 0, 20.0) for config in range(3)])
    assert [outcome.verdict for outcome in found] == [Verdict.ANSWERED, Verdict.WRONG, Verdict.UNKNOWN]


def test_an_instance_that_changes_is_never_counted(tmp_path: Path) -> None:
    """Replaced, emptied or gone: the run is lost and names the file (F26)."""
    instance = tmp_path / "i"
    instance.write_text("before", encoding="utf-8")
    script(tmp_path, "solve.py", "print('DONE')")
    document = {
        "target": {"command": [PYTHON, "-IS", "solve.py", "{instance}"], "answer": "^DONE"},
        "configurations": {"only": {}},
        "instances": {"files": "i"},
    }
    with slot(document, tmp_path) as executor:
        assert outcomes_of(executor, [RunRequest(0, 0, 20.0)])[0].verdict is Verdict.ANSWERED
        instance.write_text("after!", encoding="utf-8")
        changed = outcomes_of(executor, [RunRequest(0, 0, 20.0, 1)])[0]
        instance.unlink()
        gone = outcomes_of(executor, [RunRequest(0, 0, 20.0, 2)])[0]
    for outcome in (changed, gone):
        assert outcome.verdict is Verdict.LOST
        assert outcome.halt is Halt.FILE_CHANGED
        assert str(instance) in outcome.detail


@pytest.mark.parametrize("way", ["copy", "rename", "link"])
def test_a_replaced_program_is_noticed_before_the_next_run(tmp_path: Path, way: str) -> None:
    """By copying over it, by renaming onto it, by pointing a link elsewhere (F27)."""
    (tmp_path / "i").write_text("x", encoding="utf-8")
    for name in ("old", "new"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho DONE {name}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    program = tmp_path / "solver"
    if way == "link":
        program.symlink_to(tmp_path / "old")
    else:
        shutil.copy2(tmp_path / "old", program)
    document = {
        "target": {"command": ["./solver", "{instance}"], "answer": "^DONE"},
        "configurations": {"only": {}},
        "instances": {"files": "i"},
    }
    with slot(document, tmp_path) as executor:
        assert outcomes_of(executor, [RunRequest(0, 0, 20.0)])[0].verdict is Verdict.ANSWERED
        if way == "copy":
            shutil.copyfile(tmp_path / "new", program)
        elif way == "rename":
            shutil.copy2(tmp_path / "new", tmp_path / "fresh")
            (tmp_path / "fresh").rename(program)
        else:
            program.unlink()
            program.symlink_to(tmp_path / "new")
        outcome = outcomes_of(executor, [RunRequest(0, 0, 20.0, 1)])[0]
    assert outcome.verdict is Verdict.LOST
    assert outcome.halt is Halt.FILE_CHANGED
    assert str(program) in outcome.detail


def test_instances_are_made_when_they_are_needed_first(tmp_path: Path) -> None:
    """By the generator's stdout or by the file it writes; a second configuration finds the same file."""
    script(tmp_path, "gen.py", "import sys\nopen(sys.argv[2], 'w').write('instance ' + sys.argv[1])")
    script(tmp_path, "solve.py", "import sys\nprint('READ', open(sys.argv[1]).read())")
    document = {
        "target": {"command": [PYTHON, "-IS", "solve.py", "{instance}"], "answer": "^READ (.*)"},
        "configurations": {"one": {}, "two": {}},
        "instances": {"generator": [PYTHON, "-IS", "gen.py", "{k}", "{output}"], "first": 7},
    }
    with slot(document, tmp_path) as executor:
        found = outcomes_of(executor, [RunRequest(config, 1, 20.0) for config in range(2)])
    answers = [outcome.measured and outcome.measured.answer for outcome in found]
    assert answers == [b"instance 8", b"instance 8"]


def test_answers_are_also_looked_for_in_the_output_file(tmp_path: Path) -> None:
    """For programs that write their answer where {output} says, or read their standard input."""
    (tmp_path / "i").write_text("from stdin", encoding="utf-8")
    script(tmp_path, "solve.py", "import sys\nopen(sys.argv[1], 'w').write('ANSWER ' + sys.stdin.read())")
    document = {
        "target": {
            "command": [PYTHON, "-IS", "solve.py", "{output}"],
            "answer": "^ANSWER (.*)",
            "stdin": "{instance}",
        },
        "configurations": {"only": {}},
        "instances": {"files": "i"},
    }
    with slot(document, tmp_path) as executor:
        outcome = outcomes_of(executor, [RunRequest(0, 0, 20.0)])[0]
    assert outcome.measured is not None
    assert outcome.measured.answer == b"from stdin"


def judge_by_name(instance: int, seed: int, level: int) -> object:
    """A function as people write it: by the names of its parameters."""
    assert seed > 0
    if instance == 1:
        message = f"no {level}"
        raise ValueError(message)
    if instance == 2:
        while True:
            pass
    return {"answer": instance + level} if instance == 3 else instance != 4


def test_functions_are_programs_too(tmp_path: Path) -> None:
    """Answers, exceptions, endless loops, and False, which is no answer."""
    document = {"configurations": {"only": {"level": 40}}, "instances": {"sampling": "given"}}
    with slot(document, tmp_path, function=judge_by_name, values=[0, 1, 2, 3, 4]) as executor:
        found = outcomes_of(executor, [RunRequest(0, position, 0.5) for position in range(5)])
    assert [outcome.verdict for outcome in found] == [
        Verdict.ANSWERED,
        Verdict.CRASH,
        Verdict.CAPPED,
        Verdict.ANSWERED,
        Verdict.UNKNOWN,
    ]
    assert "ValueError: no 40" in found[1].detail
    assert found[2].runtime == 0.5
    assert found[3].measured is not None
    assert found[3].measured.answer == b"43"


def test_functions_are_found_beside_the_scenario(tmp_path: Path) -> None:
    """As module:function, called with settings, instance and seed."""
    script(
        tmp_path, "beside_it.py", "def solve(settings, path, seed):\n    return open(path).read() == settings['word']\n"
    )
    (tmp_path / "i").write_text("yes", encoding="utf-8")
    document = {
        "target": {"kind": "function", "function": "beside_it:solve"},
        "configurations": {"right": {"word": "yes"}, "wrong": {"word": "no"}},
        "instances": {"files": "i"},
    }
    with slot(document, tmp_path) as executor:
        found = outcomes_of(executor, [RunRequest(config, 0, 20.0) for config in range(2)])
    assert [outcome.verdict for outcome in found] == [Verdict.ANSWERED, Verdict.UNKNOWN]


@pytest.mark.skipif(shutil.which("minisat") is None, reason="minisat is not installed")
def test_the_minisat_example_runs_as_it_is(tmp_path: Path) -> None:
    """Every configuration once, on a formula that the example's own generator makes."""
    shutil.copytree(ROOT / "examples" / "minisat", tmp_path / "minisat")
    spec = load_scenario(tmp_path / "minisat" / "scenario.toml").build()
    with LocalExecutor(spec.question.program, 1, tag="test-minisat") as executor:
        found = outcomes_of(executor, [RunRequest(config, 0, 30.0) for config in range(len(spec.configurations))])
    assert {outcome.verdict for outcome in found} == {Verdict.ANSWERED}
    assert len({outcome.measured and outcome.measured.answer for outcome in found}) == 1


@pytest.mark.parametrize("name", ["aclib1", "aclib2", "irace", "smac3"])
def test_wrappers_of_other_configurators_work_unchanged(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples, each run once; measured and reported time are both recorded."""
    monkeypatch.setenv("PATH", f"{Path(PYTHON).parent}:{os.environ['PATH']}")
    spec = load_scenario(ROOT / "examples" / "wrappers" / f"{name}.toml").build()
    with LocalExecutor(spec.question.program, 1, tag="test-wrappers") as executor:
        outcome = outcomes_of(executor, [RunRequest(0, 0, 30.0)])[0]
    assert outcome.status is Status.COMPLETED, outcome
    assert outcome.measured is not None
    assert outcome.measured.reported is not None
    assert 0 < outcome.measured.reported <= outcome.runtime * 1.2


def test_the_time_of_a_generator_is_not_taken_for_that_of_the_run(tmp_path: Path) -> None:
    """A run is never called unfinished after more seconds than it has used, however long its instance was made."""
    document = {
        "target": {"command": ["sh", "-c", "sleep 1; cat {instance}"], "answer": "(made)", "repeatable": True},
        "configurations": {"only": {}},
        "instances": {"generator": ["sh", "-c", "sleep 2; echo made {k}"]},
    }
    seen: list[float] = []
    with slot(document, tmp_path) as executor:
        executor.submit([RunRequest(0, 0, 20.0)])
        while not (found := executor.collect(0.05)):
            seen += [seconds for _, seconds in executor.watch()]
    assert found[0].verdict is Verdict.ANSWERED
    assert all(seconds <= found[0].cost for seconds in seen), (seen, found[0].cost)
