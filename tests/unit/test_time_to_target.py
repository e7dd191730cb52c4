"""Time to target: a run is over, and timed, when a line reaches a value; capped, lost and failed as any other."""

import csv
import json
import shutil
import subprocess
import sys
import textwrap
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from captime.errors import ScenarioError
from captime.executors.local import LocalExecutor
from captime.programs.command import TargetValue
from captime.programs.judge import AnswerRules, judge
from captime.runs import RunOutcome, RunRequest, Status, Verdict
from captime.scenario import load_scenario, scenario_of
from captime.skeptic.outcomes import Context, OutcomeRules
from captime.supervision.messages import Launch, Report, StopValue
from captime.supervision.output import UNTIL, Matcher
from captime.supervision.process_tree import ISOLATIONS
from supervised import PYTHON, TARGETS, Bench, bench, launch, target

PATTERN = {UNTIL: r"^o (\S+)"}
NS = 1e9
EXAMPLE = Path(__file__).parents[2] / "examples" / "time-to-target"


@pytest.fixture(scope="module", params=ISOLATIONS)
def level(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """An executor on each isolation level."""
    with bench(request.param, "until") as opened:
        yield opened


def descending(*arguments: object, until: StopValue, **changes: Any) -> Launch:
    """A program that prints falling values until it is stopped."""
    return target("descend", *arguments, patterns=PATTERN, until=until, **changes)


def told_seconds(report: Report) -> float:
    """CPU seconds by the program's own clock, from its first line of code to the line that reached the target."""
    value = report.matches[UNTIL].decode()
    line = next(each for each in report.stdout_head.decode().splitlines() if each.startswith(f"o {value} "))
    return float(line.split()[-1])


# ---------------------------------------------------------------- supervision


def test_a_run_ends_when_a_line_reaches_the_target(level: Bench) -> None:
    """The value that reached it is the match, and the time is not before the line was written."""
    report = level.one(descending(60, 5, 0.02, until=StopValue(at_most=42)))
    assert report.ended == "target"
    assert report.matches[UNTIL] == b"40"
    assert report.runtime_ns >= told_seconds(report) * NS
    assert report.runtime_ns <= report.cpu_ns


def test_the_time_is_that_of_the_line_and_not_of_the_end(level: Bench) -> None:
    """What is done after the line is no part of the runtime: two targets of one run differ by the work between."""
    near = level.one(descending(60, 10, 0.25, until=StopValue(at_most=50)))
    far = level.one(descending(60, 10, 0.25, until=StopValue(at_most=10)))
    # The interpreter's own start takes a tenth of a second, and several of them on a busy machine.
    assert far.runtime_ns - near.runtime_ns >= 4 * 0.25 * NS * 0.6


def test_cpu_time_of_children_counts(level: Bench) -> None:
    """A program whose work is done by processes of its own has used it when the line is written."""
    report = level.one(descending(60, 10, 0.1, "in-children", until=StopValue(at_most=50)))
    assert report.ended == "target"
    assert report.runtime_ns >= 2 * 0.1 * NS * 0.9


def test_values_that_rise_are_compared_from_below(level: Bench) -> None:
    """`at_least` is for maximisation."""
    script = "for i in 1 2 3 4 5 6 7 8 9; do echo o $i; done; sleep 60"
    report = level.one(launch("/bin/sh", "-c", script, patterns=PATTERN, until=StopValue(at_least=7)))
    assert (report.ended, report.matches[UNTIL]) == ("target", b"7")


def test_the_first_line_that_reaches_the_target_counts(level: Bench) -> None:
    """Later values, better or worse, change nothing; nor does the exit code of a program that ended on its own."""
    script = "printf 'o 100\\no 90\\no 5\\no 95\\n'; exit 3"
    report = level.one(launch("/bin/sh", "-c", script, patterns=PATTERN, until=StopValue(at_most=50)))
    assert (report.ended, report.matches[UNTIL]) == ("target", b"5")
    assert judge(RunRequest(0, 0, 30.0), report, AnswerRules(until=True)).verdict is Verdict.ANSWERED


def test_a_run_that_ends_before_the_target_has_not_answered(level: Bench) -> None:
    """It reports its last value, and is never going to reach it."""
    script = "printf 'o 100\\no 90'"
    report = level.one(launch("/bin/sh", "-c", script, patterns=PATTERN, until=StopValue(at_most=50)))
    assert (report.ended, report.matches[UNTIL]) == ("exit", b"90")
    outcome = judge(RunRequest(0, 0, 30.0), report, AnswerRules(until=True))
    assert (outcome.verdict, outcome.status) == (Verdict.UNKNOWN, Status.FAILED)
    assert "it came to '90'" in outcome.detail


def test_a_run_that_crashes_before_the_target_is_a_crash(level: Bench) -> None:
    """As any other run."""
    report = level.one(descending(60, 5, 0.01, "crash", until=StopValue(at_most=10)))
    assert report.ended == "exit"
    assert judge(RunRequest(0, 0, 30.0), report, AnswerRules(until=True)).verdict is Verdict.CRASH


def test_a_run_is_capped_before_its_target(level: Bench) -> None:
    """The captime is enforced as ever, and was reached without the value."""
    report = level.one(descending(60, 1, 0.05, until=StopValue(at_most=5), captime=0.2))
    assert report.ended == "captime"
    outcome = judge(RunRequest(0, 0, 0.2), report, AnswerRules(until=True))
    assert (outcome.verdict, outcome.runtime) == (Verdict.CAPPED, 0.2)


def test_the_wall_clock_can_be_the_clock(level: Bench) -> None:
    """A program that sleeps is timed by it."""
    script = "echo o 9; sleep 0.3; echo o 1; sleep 60"
    wanted = launch("/bin/sh", "-c", script, patterns=PATTERN, until=StopValue(at_most=1), clock="wall")
    report = level.one(wanted)
    assert report.ended in ("target", "lost")
    if report.ended == "target":
        assert report.runtime_ns >= 0.3 * NS


def test_a_flood_of_lines_does_not_hide_the_one_that_counts(level: Bench) -> None:
    """Lines are looked at in portions; the target is found among many others and the run is stopped there."""
    script = textwrap.dedent("""
        import sys
        for number in range(400_000):
            sys.stdout.write(f"o {400_000 - number} and some more words that no pattern asks for\\n")
        while True:
            pass
    """)
    report = level.one(launch(*PYTHON, "-c", script, patterns=PATTERN, until=StopValue(at_most=200_000)))
    assert (report.ended, report.matches[UNTIL]) == ("target", b"200000")


# ---------------------------------------------------------------- lines and values


@pytest.mark.parametrize(
    ("value", "reached"),
    [
        (b"5", True),
        (b" 5.0 ", True),
        (b"1e1", True),
        (b"-3", True),
        (b"10.000001", False),
        (b"inf", False),
        (b"-inf", False),
        (b"nan", False),
        (b"", False),
        (b"5%", False),
        (b"five", False),
    ],
)
def test_what_reaches_a_value(value: bytes, reached: bool) -> None:
    """Finite numbers are compared; everything else is no value."""
    assert StopValue(at_most=10.0).reached_by(value) is reached


def test_a_line_has_the_time_at_which_its_end_came() -> None:
    """A line in two pieces was written when the second came."""
    matcher = Matcher(PATTERN, StopValue(at_most=10))
    matcher.add(b"o 20\no 1", 100)
    matcher.add(b"0\no 5\n", 200)
    assert matcher.waiting_since_ns == 100
    matcher.look(1.0)
    assert (matcher.reached_ns, matcher.found[UNTIL], matcher.busy) == (200, b"10", False)


def test_launches_with_a_target_come_back_from_json() -> None:
    """As they are sent to slot supervisors and over clusters."""
    wanted = descending(1, 1, 0.1, until=StopValue(at_least=3.5))
    assert Launch.from_json(wanted.to_json()) == wanted


@pytest.mark.parametrize(
    ("goal", "best", "bound"),
    [
        (TargetValue("x", "at_most", number=105.0), None, 105.0),
        (TargetValue("x", "at_most", best_times=1.05), b"100", 105.0),
        (TargetValue("x", "at_most", gap=0.05), b"100", 105.0),
        (TargetValue("x", "at_most", gap=0.05), b"-100", -95.0),
        (TargetValue("x", "at_least", gap=0.05), b"100", 95.0),
        (TargetValue("x", "at_least", gap=0.05), b"-100", -105.0),
        (TargetValue("x", "at_least", best_times=0.9), b"200", 180.0),
    ],
)
def test_bounds_from_the_best_value(goal: TargetValue, best: bytes | None, bound: float) -> None:
    """A multiple of it, or a share of it away from it, whatever its sign."""
    assert goal.bound(best, "a") == pytest.approx(bound)


# ---------------------------------------------------------------- scenarios


def document(**target_fields: Any) -> dict[str, Any]:
    """A scenario whose program prints values."""
    return {
        "utility": "uniform(60)",
        "target": {"command": ["sh", "-c", "echo o {v}"], **target_fields},
        "configurations": {"a": {"v": 1}, "b": {"v": 2}},
        "instances": {"values": [1, 2, 3]},
    }


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"until": {"pattern": "^o (.*)"}}, "exactly one of at_most and at_least"),
        ({"until": {"pattern": "^o (.*)", "at_most": 1, "at_least": 2}}, "exactly one of at_most and at_least"),
        ({"until": {"pattern": "^o (.*)", "at_most": {}}}, "exactly one of best_times and gap"),
        ({"until": {"pattern": "^o (.*)", "at_most": {"gap": 0.1}}}, "no best value is known of instance"),
        ({"until": {"pattern": "^o (.*)", "at_most": 1}, "answer": "^s"}, "means nothing beside until"),
        ({"until": {"pattern": "^o (.*)", "at_most": 1}, "exit_codes": [0]}, "means nothing beside until"),
        ({"until": {"pattern": "^o (", "at_most": 1}}, "no regular expression"),
        ({"until": {"pattern": "^o (.*)", "at_most": "low"}}, "at_most"),
        ({"until": {"at_most": 1}}, "pattern"),
    ],
)
def test_what_makes_no_sense_is_refused(fields: dict[str, Any], words: str, tmp_path: Path) -> None:
    """In one sentence that names the field."""
    with pytest.raises(ScenarioError, match=words):
        scenario_of(document(**fields), tmp_path).build()


def test_functions_and_generators_are_refused(tmp_path: Path) -> None:
    """A function prints nothing that is watched, and of generated instances no best value is known."""
    until = {"pattern": "^o (.*)", "at_most": {"gap": 0.1}}
    with pytest.raises(ScenarioError, match="means nothing for a function"):
        scenario_of({**document(), "target": {"function": "solver:solve", "until": until}}, tmp_path).build()
    generated = {**document(until=until), "instances": {"generator": ["sh", "-c", "echo {k}"]}}
    with pytest.raises(ScenarioError, match="a generator makes"):
        scenario_of(generated, tmp_path).build()


# ---------------------------------------------------------------- campaigns


SCENARIO = """
utility = "log-laplace(200ms, 1)"
seed = 1
jobs = 1
[target]
command = ["{python}", "-I", "-S", "{descend}", "{{instance}}", "{{step}}", "0.01"]
until = {{ pattern = "^o (\\\\S+)", at_most = {bound} }}
repeatable = true
[configurations]
large = {{ step = 10 }}
small = {{ step = 1 }}
never = {{ step = 1000 }}
[instances]
values = [50, 51, 52, 53, 54, 55, 56, 57]
answers = "best.csv"
sampling = "replace"
[stop]
epsilon = 0.4
cpu = "2m"
"""


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """Three configurations that descend from the instance, a number, to twice its best known value."""
    (tmp_path / "best.csv").write_text(
        "instance,answer\n" + "".join(f"{number},10\n" for number in range(50, 58)), encoding="utf-8"
    )
    text = SCENARIO.format(python=sys.executable, descend=TARGETS / "descend.py", bound="{ best_times = 2 }")
    path = tmp_path / "scenario.toml"
    path.write_text(text, encoding="utf-8")
    return path


def captime(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """The command line."""
    command = [sys.executable, "-m", "captime", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_campaign_with_targets_is_certified_and_confirmed(campaign: Path) -> None:
    """The configuration with large steps wins; one whose values never reach the target loses; the check agrees."""
    path = campaign
    ran = captime("run", path, "--quiet", "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["certificate"]["config"] == 0
    ledger = path.with_suffix(".ledger")
    checked = captime("verify", ledger)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    exported = captime("export", ledger, "-o", ledger.with_suffix(".csv"))
    assert exported.returncode == 0, exported.stderr
    with ledger.with_suffix(".csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    verdicts = Counter(row["verdict"] for row in rows)
    answers = [row["answer"] for row in rows if row["verdict"] == "answered"]
    assert verdicts["answered"] > 3
    assert all(float(answer) <= 20 for answer in answers)
    resumed = captime("run", path, "--quiet")
    assert resumed.returncode == 0, resumed.stderr


def test_the_check_refuses_a_value_that_does_not_reach_the_target(campaign: Path) -> None:
    """An outcome that is called answered although its value is above the bound is found by `captime verify`."""
    rules = OutcomeRules(scenario_of_file(campaign))
    told = {"answer": b"20", "exit_code": None, "signal": 9}
    context = Context(captime=1.0, config={}, instance="50")
    assert rules._answered(told, context) == ""
    assert "does not reach the target" in rules._answered({**told, "answer": b"20.5"}, context)
    assert "does not reach the target" in rules._answered({**told, "answer": b"low"}, context)
    assert "has no value" in rules._answered({**told, "answer": None}, context)
    unknown = {**told, "exit_code": 0, "signal": None}
    assert "reaches the target" in rules._unknown(unknown, context)
    assert rules._unknown({**unknown, "answer": b"30"}, context) == ""


def scenario_of_file(path: Path) -> dict[str, Any]:
    """What a ledger records of a scenario, after a way through JSON."""
    found: dict[str, Any] = json.loads(json.dumps(load_scenario(path).canonical()))
    return found


def test_the_local_search_of_the_examples_reaches_its_target(tmp_path: Path) -> None:
    """Every configuration of it, on the first instance; each value is within 3 % of the best one known."""
    home = shutil.copytree(EXAMPLE, tmp_path / "example", ignore=shutil.ignore_patterns("*.ledger*", "*.instances"))
    scenario = load_scenario(home / "local-search.toml")
    best = float(scenario.stream.at(0).instance.answer or b"nan")
    spec = scenario.build()
    requests = [RunRequest(config, 0, 60.0) for config in range(len(spec.configurations))]
    found: dict[RunRequest, RunOutcome] = {}
    with LocalExecutor(spec.question.program, 1, tag="test-tours") as executor:
        executor.submit(requests)
        while len(found) < len(requests):
            found |= {outcome.request: outcome for outcome in executor.collect()}
    for outcome in found.values():
        assert outcome.verdict is Verdict.ANSWERED, outcome
        assert outcome.measured is not None
        assert float(outcome.measured.answer or b"inf") <= 1.03 * best


def test_the_solver_of_the_examples_is_read_as_it_prints() -> None:
    """The pattern of mip.toml finds the gap in lines of HiGHS's log, and in no other line."""
    pattern = tomllib.loads((EXAMPLE / "mip.toml").read_text(encoding="utf-8"))["target"]["until"]["pattern"]
    matcher = Matcher({UNTIL: pattern}, StopValue(at_most=2))
    matcher.add(
        b"Src  Proc. InQueue |  Leaves   Expl. | BestBound       BestSol              Gap |   Cuts   InLp\n"
        b" J       0       0         0   0.00%   inf             28.381             Large        0      0\n"
        b" R       0       0         0   0.00%   226.0557106     29.047           678.24%        0      0\n"
        b"  Gap               0% (tolerance: 0.01%)\n",
        1,
    )
    matcher.look(1.0)
    assert (matcher.reached_ns, matcher.found[UNTIL]) == (None, b"678.24")
    matcher.add(b"         1       0         1 100.00%   223.0084523     222.993            0.01%      288     50\n", 2)
    matcher.look(1.0)
    assert (matcher.reached_ns, matcher.found[UNTIL]) == (2, b"0.01")
