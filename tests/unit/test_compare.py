"""`captime compare` and `captime.compare` on small real programs: verdicts, exit codes, outputs, ledgers."""

import json
import math
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import captime
from captime.campaign.abort_rules import Repeatability, try_twice
from captime.cli import app
from captime.cli.compare import CERTIFIED_WORSE
from captime.comparison import Difference, GateVerdict
from captime.comparison.commands import as_toml, as_typed, candidates_of, one_function
from captime.comparison.comparing import new_ledger
from captime.comparison.population import rounded_scale
from captime.comparison.words import as_json, as_markdown, sentence
from captime.errors import ScenarioError, TargetProgramError
from captime.executors import VirtualExecutor
from captime.report.campaigned import summary_and_table
from captime.runs import RunOutcome, RunRequest, Status

QUICK, SLOW = 1, 12_000
SCALE = "5ms"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two programs and a few instances, and a home of its own."""
    for name, loops in (("quick", QUICK), ("slow", SLOW), ("also_quick", QUICK)):
        program = tmp_path / f"{name}.sh"
        count = f"i=0; while [ $i -lt {loops} ]; do i=$((i+1)); done"
        program.write_text(f'#!/bin/sh\n{count}\necho "s SATISFIABLE"\nexit 10\n')
        program.chmod(0o755)
    (tmp_path / "bench").mkdir()
    for number in range(6):
        (tmp_path / "bench" / f"{number}.cnf").write_text(f"p cnf {number} 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def typed(*words: str) -> Result:
    """A command as a user would type it, with answers recognised by their exit code."""
    return CliRunner().invoke(app, ["compare", *words, "-i", "bench/*.cnf", "--exit-codes", "10", "--quiet"])


def test_the_quicker_of_two_commands_is_found(place: Path) -> None:
    """One sentence, a table with both, the ledger's name; the exit code says that it is decided."""
    found = typed("./slow.sh {instance}", "./quick.sh {instance}", "--half-after", SCALE, "--epsilon", "0.3")
    assert found.exit_code == 0, found.output
    assert found.stdout.startswith("With probability at least 90 %, quick.sh is")
    assert "best of these 2 commands on exactly these 6 instances (" in found.stdout
    assert "If they are a fair sample of what is to come: " in found.stdout
    assert "slow.sh" in found.stdout
    [ledger] = (place / "state" / "captime").glob("*.ledger")
    assert str(ledger) in found.stdout


def test_the_json_is_the_object_of_run_with_one_key_more(place: Path) -> None:
    """`certificate.config` counts commands from 0; status, verify and report read the ledger."""
    words = ("./slow.sh {instance}", "./quick.sh {instance}", "--half-after", SCALE, "--epsilon", "0.3")
    found = typed(*words, "--ledger", "pair.ledger", "--json")
    told = json.loads(found.stdout)
    assert told["certificate"]["config"] == 1
    assert told["certificate"]["config_name"] == "quick.sh"
    assert [row["name"] for row in told["configurations"]] == ["quick.sh", "slow.sh"]
    assert told["comparison"]["verdict"] is None
    assert told["comparison"]["decided"] is True
    assert [each["command"][0] for each in told["comparison"]["commands"]] == ["./slow.sh", "./quick.sh"]
    pattern = str(place / "bench" / "[01].cnf")
    for command in (["status"], ["verify"], ["report"], ["validate", "--instances", pattern, "--captime", "20ms"]):
        read = CliRunner().invoke(app, [command[0], str(place / "pair.ledger"), *command[1:]])
        assert read.exit_code == 0, (read.output, read.exception)


def test_a_folder_is_compared_at_no_more_than_the_whole_matrix(place: Path) -> None:
    """Two equal commands, epsilon 0.01: every file once by each, and the claim about these files is exact."""
    words = ("./quick.sh {instance}", "./also_quick.sh {instance}", "--deadline", "10s", "--epsilon", "0.01")
    told = json.loads(typed(*words, "--ledger", "set.ledger", "--json").stdout)
    assert told["certificate"]["population"] == "these"
    assert told["certificate"]["epsilon"] == 0.0
    assert told["certificate"]["other"]["population"] == "drawn"
    assert told["runs"] == 2 * 6
    assert "is the best of these 2 commands on exactly these 6 instances" in told["comparison"]["sentence"]
    assert CliRunner().invoke(app, ["verify", "set.ledger"]).exit_code == 0
    again = json.loads(typed(*words, "--ledger", "set.ledger", "--json").stdout)
    assert again["runs"] == told["runs"]
    resumed = CliRunner().invoke(app, ["run", "set.toml", "--ledger", "set.ledger", "--json"])
    assert (resumed.exit_code, json.loads(resumed.stdout)["runs"]) == (0, told["runs"]), resumed.output
    assert (place / "set.toml").exists()


@pytest.mark.usefixtures("place")
def test_commands_that_do_not_repeat_themselves_are_compared_by_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then each draw has luck of its own, and the user is told why files are drawn with replacement."""
    monkeypatch.setattr(
        "captime.comparison.comparing.try_commands", lambda *_: Repeatability(((0.1, 0.9), (0.2, 0.2)), 1)
    )
    words = ["compare", "./quick.sh {instance}", "./slow.sh {instance}", "-i", "bench/*.cnf", "--exit-codes", "10"]
    found = CliRunner().invoke(app, [*words, "--half-after", SCALE, "--epsilon", "0.4", "--json"])
    assert found.exit_code == 0, found.output
    assert "1 of 2 pairs of trial runs took different times, such as 0.1 s and 0.9 s" in found.stderr
    told = json.loads(found.stdout)
    assert (told["sampling"], told["certificate"]["population"]) == ("replace", "drawn")


class _Twice(VirtualExecutor):
    """Slots whose program takes the first or the second time of a pair, up to the captime."""

    def __init__(self, times: tuple[float, float]) -> None:
        """Answer with these times."""
        self.times = times
        self.asked: list[RunRequest] = []

    def submit(self, requests: Sequence[RunRequest]) -> None:
        """Keep them until they are collected."""
        self.asked += requests

    def collect(self, timeout: float | None = None) -> list[RunOutcome]:
        """Return every run at once."""
        asked, self.asked = self.asked, []
        return [
            RunOutcome(each, Status.COMPLETED, takes, takes)
            if takes <= each.captime
            else RunOutcome(each, Status.CAPPED, each.captime, each.captime)
            for number, each in enumerate(asked)
            for takes in (self.times[number % 2],)
        ]


@pytest.mark.parametrize(
    ("times", "pairs", "holds"),
    [
        ((0.99, 1.01), ((0.99, 1.0),), True),
        ((0.40, 3.00), ((0.40, 1.0),), False),
        ((0.60, 3.00), ((0.60, 1.0),), True),
        ((2.00, 9.00), (), True),
        ((0.01, 0.05), ((0.01, 0.05),), True),
    ],
)
def test_a_run_cut_just_before_its_end_is_no_difference(
    times: tuple[float, float], pairs: tuple[tuple[float, float], ...], holds: bool
) -> None:
    """A capped trial run took at least its captime, and no more is known; pairs that were both capped say nothing."""
    found = try_twice(_Twice(times), captime=1.0, n_pairs=1)
    assert (found.pairs, found.holds) == (pairs, holds)


@pytest.mark.usefixtures("place")
def test_a_gate_says_that_it_needs_draws() -> None:
    """Pairs of draws decide it, so files are drawn with replacement, whatever the commands are like."""
    words = ["compare", "./quick.sh {instance}", "./slow.sh {instance}", "-i", "bench/*.cnf", "--exit-codes", "10"]
    found = CliRunner().invoke(app, [*words, "--half-after", SCALE, "--not-worse-by", "0.3"])
    assert found.exit_code == CERTIFIED_WORSE, found.output
    assert "not-worse-by and at-least are decided from pairs of draws" in found.stderr
    assert "exactly these 6 instances, drawn with replacement" in found.stdout


def test_files_that_hold_the_same_are_refused_with_an_option_that_exists(place: Path) -> None:
    """The message names a remedy that the command has."""
    (place / "bench" / "twin.cnf").write_text("p cnf 0 0\n")
    words = ("./quick.sh {instance}", "./slow.sh {instance}", "--half-after", SCALE, "--epsilon", "0.5")
    refused = typed(*words)
    assert isinstance(refused.exception, ScenarioError)
    assert "--allow-duplicates" in str(refused.exception)
    allowed = typed(*words, "--allow-duplicates")
    assert allowed.exit_code == 0, allowed.output
    assert "exactly these 7 instances" in allowed.stdout


@pytest.mark.usefixtures("place")
def test_the_gate_lets_an_equal_command_pass_and_stops_a_worse_one() -> None:
    """Exit code 0 for certified not worse, a code of its own for certified worse; both ledgers are confirmed."""
    base = "./quick.sh {instance}"
    gate = ("--not-worse-by", "0.3", "--half-after", SCALE)
    passed = typed(base, "./also_quick.sh {instance}", *gate, "--ledger", "equal.ledger")
    assert passed.exit_code == 0, passed.output
    assert "also_quick.sh is not worse than quick.sh by more than 0.3." in passed.stdout
    failed = typed(base, "./slow.sh {instance}", *gate, "--ledger", "worse.ledger", "--json")
    assert failed.exit_code == CERTIFIED_WORSE, failed.output
    told = json.loads(failed.stdout)
    assert told["comparison"]["verdict"] == GateVerdict.WORSE.value
    assert told["comparison"]["difference_high"] <= 0.0
    assert told["stopped"] == "decided"
    for ledger in ("equal.ledger", "worse.ledger"):
        assert CliRunner().invoke(app, ["verify", ledger]).exit_code == 0


@pytest.mark.usefixtures("place")
def test_a_decided_gate_is_decided_when_asked_again() -> None:
    """The verdict is a function of the runs on record: the same command makes no further run."""
    words = ("./quick.sh {instance}", "./slow.sh {instance}", "--not-worse-by", "0.3", "--ledger", "g.ledger", "--json")
    first = json.loads(typed(*words, "--half-after", SCALE).stdout)
    # Where no utility is said, that of the ledger holds.
    again = json.loads(typed(*words).stdout)
    assert again["comparison"]["verdict"] == first["comparison"]["verdict"]
    assert again["runs"] == first["runs"]


@pytest.mark.usefixtures("place")
def test_a_ledger_of_another_comparison_is_no_verdict() -> None:
    """Exit code 2, not 3: a gate that answers 3 has compared, and is undecided."""
    words = ("--half-after", SCALE, "--epsilon", "0.5", "--ledger", "other.ledger")
    assert typed("./quick.sh {instance}", "./slow.sh {instance}", *words).exit_code == 0
    refused = typed("./quick.sh {instance}", "./also_quick.sh {instance}", *words)
    assert isinstance(refused.exception, ScenarioError)
    assert "belongs to another scenario" in str(refused.exception)


def test_the_scenario_beside_the_ledger_says_what_was_asked() -> None:
    """Every value comes back as it was, names and patterns with strange characters included."""
    document = {
        "utility": "uniform(1)",
        "seed": 7,
        "configurations": {'a "b" é\n': {"command": ["x", "{instance}", "\\d"], "exit_codes": [10, 20]}},
        "stop": {"epsilon": 0.05},
    }
    assert tomllib.loads(as_toml(document, "A remark.")) == document


@pytest.mark.usefixtures("place")
def test_an_undecided_gate_says_so() -> None:
    """Six instances, each once, say nothing about a margin of 0.01: exit code 3, and no verdict."""
    words = ("./quick.sh {instance}", "./also_quick.sh {instance}", "--sampling", "shuffle")
    found = typed(*words, "--not-worse-by", "0.01", "--half-after", SCALE)
    assert found.exit_code == 3, found.output
    assert found.stdout.startswith("Undecided: ")


@pytest.mark.usefixtures("place")
def test_the_comment_for_a_pull_request() -> None:
    """Markdown: a heading with the verdict, the sentence in bold, a table, the details folded away."""
    words = ("./quick.sh {instance}", "./slow.sh {instance}", "--name", "main", "--name", "a|b *bold*")
    found = typed(*words, "--not-worse-by", "0.3", "--half-after", SCALE, "--markdown")
    assert found.exit_code == CERTIFIED_WORSE, found.output
    lines = found.stdout.splitlines()
    assert lines[0] == "### :x: captime compare"
    assert lines[2].startswith("**With probability at least 90 %, a\\|b \\*bold\\* is worse than main.")
    assert any(line.startswith("| main |") for line in lines)
    assert "</details>" in lines


@pytest.mark.usefixtures("place")
def test_without_a_utility_a_scale_is_proposed_and_told() -> None:
    """A few runs that do not count; the sentence about it comes before the runs that do."""
    words = ["compare", "./quick.sh {instance}", "./slow.sh {instance}", "-i", "bench/*.cnf", "--exit-codes", "10"]
    found = CliRunner().invoke(app, [*words, "--epsilon", "0.4"])
    assert found.exit_code == 0, found.output
    assert "quick.sh: counts as an answer: exit code 10" in found.stderr
    assert "4 trial runs answered within" in found.stderr
    assert "The trial runs do not count" in found.stderr
    assert "log-laplace(" in found.stdout


@pytest.mark.usefixtures("place")
def test_a_picture_on_request(tmp_path: Path) -> None:
    """A file in the format of its suffix."""
    words = ("./quick.sh {instance}", "./slow.sh {instance}", "--half-after", SCALE, "--epsilon", "0.5")
    found = typed(*words, "--plot", "pair.png")
    assert found.exit_code == 0, found.output
    assert (tmp_path / "pair.png").read_bytes().startswith(b"\x89PNG")


def counting(loops: int) -> Any:
    """A function that counts."""

    def count(instance: int) -> int:
        return sum(range(loops * instance))

    return count


def test_functions_are_compared_like_commands(tmp_path: Path) -> None:
    """`at_least` in Python: the quick function is worth 50 % more than the slow one."""
    found = captime.compare(
        [counting(2), counting(400_000)],
        [1, 2, 3],
        names=["few", "many"],
        half_after=0.005,
        at_least="50%",
        ledger=tmp_path / "functions.ledger",
        progress=False,
    )
    assert found.verdict is Difference.FIRST
    assert found.decided
    summary, _ = summary_and_table(found.campaign)
    assert sentence(found, summary) == "With probability at least 90 %, few is worth at least 50 % more than many."
    assert str(found).startswith(sentence(found, summary))
    assert "few" in as_markdown(found)
    assert as_json(found)["comparison"]["at_least"] == 0.5  # type: ignore[index] # a dict
    assert found.config_name == "few"
    assert found.certificate.config == 0
    assert found.ledger == tmp_path / "functions.ledger"


def test_functions_are_called_with_what_they_name() -> None:
    """The instance, and the seed if they take it; all have to take it for runs to be repeatable."""

    def plain(instance: int) -> int:
        return instance

    def seeded(instance: int, seed: int) -> int:
        return instance + seed

    both, repeatable = one_function({"plain": plain, "seeded": seeded})
    assert (both("plain", 3, 4), both("seeded", 3, 4), repeatable) == (3, 7, False)
    assert one_function({"seeded": seeded})[1]


def test_names_tell_commands_apart() -> None:
    """Programs' names if they differ, else the commands; `--name` wins; known solvers bring their rules."""
    plain = candidates_of(["/opt/kissat -q {instance}", "cadical -q {instance}"])
    assert [each.name for each in plain] == ["kissat", "cadical"]
    assert [each.exit_codes for each in plain] == [(10, 20), (10, 20)]
    assert plain[0].solver == "kissat"
    options = candidates_of(["minisat {instance}", "minisat -luby {instance}"])
    assert [each.name for each in options] == ["minisat", "minisat -luby"]
    twins = candidates_of(["./a {instance}", "./a {instance}"])
    assert [each.name for each in twins] == ["./a [1]", "./a [2]"]
    assert twins[0].counts == "exit code 0"
    limited = candidates_of(["kissat --time=5 {instance}", "./a {instance}"])
    assert "--time=5" in limited[0].warning
    assert as_typed(["a", "x y", "{instance}"]) == "a 'x y' {instance}"


@pytest.mark.parametrize(
    ("wishes", "found"),
    [
        ({"commands": ["./a {instance}"]}, "expected two or more commands"),
        ({"commands": "./a {instance}"}, "expected two or more commands"),
        ({"commands": ["./a", "./b {instance}"]}, "command 1 is './a', without {instance}"),
        ({"commands": ["./a {instance}", ""]}, "command 2 is empty"),
        ({"commands": ["./a 'x {instance}", "./b {instance}"]}, "close the quotes"),
        ({"commands": ["./a < {instance}", "./b {instance}"]}, "starts programs without a shell"),
        ({"commands": ["./a {instance}", len]}, "expected all of one kind"),
        ({"commands": [len, abs], "answer": "x"}, "mean nothing for functions"),
        ({"not_worse_by": 0.0}, "not-worse-by is 0; expected a margin"),
        ({"not_worse_by": 1.5}, "not-worse-by is 1.5; expected a margin"),
        ({"not_worse_by": 0.1, "at_least": 0.1}, "ask one of them at a time"),
        ({"not_worse_by": 0.1, "delta": 0.0}, "delta is 0.0"),
        ({"not_worse_by": 0.1, "commands": ["./a {instance}"] * 3}, "a question about two commands, but 3"),
        ({"at_least": "ten"}, "expected a percentage, such as 10%"),
        ({"at_least": "0%"}, "at-least is 0 %"),
        ({"half_after": "10s", "deadline": 3}, "half-after and deadline are given"),
        ({"budget": -1.0}, "budget is -1.0; expected a positive time"),
        ({"sampling": "shuffle"}, "Give a utility"),
        ({"names": ["one"]}, "1 names are given for 2 commands"),
        ({"names": ["one", "one"]}, "two commands have the same name"),
        ({"answer": "("}, "is no regular expression"),
        ({"half_after": 1.0, "instances": [1, 2]}, "expected names of files for commands"),
        ({"half_after": 1.0, "instances": 7}, "expected a pattern of file names"),
    ],
)
@pytest.mark.usefixtures("place")
def test_wrong_wishes_are_refused_with_what_to_do(wishes: dict[str, Any], found: str) -> None:
    """One sentence each, before anything is run."""
    given = {"commands": ["./quick.sh {instance}", "./slow.sh {instance}"], "instances": "bench/*.cnf", **wishes}
    with pytest.raises(ScenarioError) as error:
        captime.compare(given.pop("commands"), given.pop("instances"), progress=False, **given)
    assert found in str(error.value)


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("gone/*.cnf", "a pattern that matches no file as seen from the current folder"),
        ("", "an empty text as seen from the current folder"),
        ("empty", "a folder without files"),
    ],
)
def test_a_pattern_without_files_is_refused_as_it_was_typed(pattern: str, said: str, place: Path) -> None:
    """Not as the scenario that the comparison writes for itself would say it."""
    (place / "empty").mkdir()
    found = CliRunner().invoke(app, ["compare", "./quick.sh {instance}", "./slow.sh {instance}", "-i", pattern])
    assert isinstance(found.exception, ScenarioError)
    assert f"--instances is {pattern!r}, {said}" in str(found.exception)


@pytest.mark.usefixtures("place")
def test_exit_codes_that_may_be_answers_are_named() -> None:
    """A solver that captime does not know by its name ends with 10, as SAT solvers do."""
    words = ["compare", "./quick.sh {instance}", "./also_quick.sh {instance}", "-i", "bench", "--sampling", "replace"]
    found = CliRunner().invoke(app, [*words, "--half-after", SCALE, "--quiet"])
    assert isinstance(found.exception, TargetProgramError)
    assert "If exit code 10 means an answer, add it to target.exit_codes" in str(found.exception)


@pytest.mark.usefixtures("place")
def test_a_folder_stands_for_its_files() -> None:
    """As for `captime validate`."""
    words = ["compare", "./slow.sh {instance}", "./quick.sh {instance}", "-i", "bench", "--exit-codes", "10", "--quiet"]
    found = CliRunner().invoke(app, [*words, "--half-after", SCALE, "--epsilon", "0.5"])
    assert "exactly these 6 instances" in found.stdout


@pytest.mark.usefixtures("place")
def test_wrong_options_end_with_exit_code_2() -> None:
    """No traceback; the message names the option."""
    found = typed("./quick.sh {instance}", "./slow.sh {instance}", "--json", "--markdown")
    assert isinstance(found.exception, ScenarioError)
    codes = CliRunner().invoke(app, ["compare", "a {instance}", "b {instance}", "-i", "x", "--exit-codes", "ten"])
    assert "--exit-codes is 'ten'" in str(codes.exception)


def test_ledgers_have_names_of_their_own(place: Path) -> None:
    """In the user's state folder; two comparisons in one second do not meet."""
    first = new_ledger(["a b", "c/d"])
    assert first.parent == place / "state" / "captime"
    assert first.name.endswith("-a-b-c-d.ledger")
    first.write_text("")
    assert new_ledger(["a b", "c/d"]) != first


def test_scales_are_round() -> None:
    """1, 2 or 5 times a power of ten, and nothing below a millisecond."""
    assert [rounded_scale(10.0**k) for k in range(-3, 3)] == [10.0**k for k in range(-3, 3)]
    assert all(math.isclose(rounded_scale(x), y) for x, y in ((0.3, 0.2), (0.4, 0.5), (8.0, 10.0), (1e-9, 0.001)))
