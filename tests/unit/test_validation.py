"""Validation on held-out instances: intervals around known means, paired differences, and the command as a whole."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import captime
from captime import configure
from captime.campaign.validation import Validation, Worth, score_ends, used_in_tuning, validation_of
from captime.certificate import Certificate
from captime.cli import app
from captime.cli.validate import row_named, values_typed
from captime.errors import ScenarioError, TargetProgramError
from captime.ledger import ConfigRow, LedgerReader
from captime.ledger.rows import SampleRow
from captime.report.validated import Validated, print_validated, validated_json
from captime.scenario import load_scenario
from captime.sources import RuntimeTable
from captime.streams import FiniteStream
from captime.streams.files import Listed, look_at
from captime.utilities import parse_utility
from scripted_campaign import Scripted, scripted_campaign
from stub_targets import by_steps

UTILITY = parse_utility("uniform(10)")


def table_of(seconds: list[list[float]], limit: float = 8.0) -> RuntimeTable:
    """A table of these runtimes."""
    array = np.array(seconds)
    names = [f"c{row}" for row in range(len(array))]
    return RuntimeTable.build(
        "held-out", names, [f"i{column}" for column in range(array.shape[1])], array, recorded_limit=limit
    )


def test_answers_failures_and_cut_runs_are_worth_what_they_are() -> None:
    """u(t), nothing, and anything up to u(captime)."""
    low, high = score_ends(table_of([[2.0, np.inf, 8.0]]), UTILITY)
    np.testing.assert_allclose(low, [[0.8, 0.0, 0.0]])
    np.testing.assert_allclose(high, [[0.8, 0.0, 0.2]])


def test_intervals_hold_the_truth_and_differences_profit_from_pairing() -> None:
    """The same instances are hard for both, so their difference is known better than either mean."""
    rng = np.random.default_rng(3)
    misses = 0
    for _ in range(60):
        hard = rng.uniform(0.0, 7.0, size=150)
        found = validation_of(table_of([hard.tolist(), (hard + 0.9).tolist()]), UTILITY, 0.1)
        truth = {"c0": 1 - 3.5 / 10, "c1": 1 - 4.4 / 10}
        better = found.better["c1"]
        misses += any(not worth.low <= truth[name] <= worth.high for name, worth in found.worth.items())
        misses += not better.low <= 0.09 <= better.high
        assert better.high - better.low < 0.9 * (found.worth["c0"].high - found.worth["c0"].low)
    # Sixty times at most one chance in ten, and far less in truth.
    assert misses <= 15


def test_a_wrong_delta_is_refused() -> None:
    """As everywhere."""
    with pytest.raises(Exception, match="delta"):
        validation_of(table_of([[1.0, 2.0]]), UTILITY, 1.5)


@pytest.fixture(scope="module")
def campaign() -> Iterator[Scripted]:
    """A campaign that has ended, for all tests of the command; `quick` is its leader."""
    memory = Path("/dev/shm")  # noqa: S108 (a folder of its own is made in it)
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as made:
        ended = scripted_campaign(Path(made) / "chosen", order="arrival")
        ended.certificate()
        yield ended


@pytest.fixture
def others(tmp_path: Path) -> Path:
    """A folder of instances that the campaign has not met."""
    return written(tmp_path / "others", 12)


def written(made: Path, count: int) -> Path:
    """A folder with this many instances of the scripted program."""
    made.mkdir(parents=True)
    for number in range(count):
        lines = "".join(f"{(1.0 + number / 7) * pace:.6f}\n" for pace in (1.0, 1.8, 6.0))
        (made / f"new-{number:02d}").write_text(lines, encoding="ascii")
    return made


def validated(campaign: Scripted, instances: Path | str, *more: str) -> Result:
    """The command on these instances."""
    return CliRunner().invoke(app, ["validate", str(campaign.ledger), "--instances", str(instances), *more])


def n_outcomes(ledger: Path) -> int:
    """How many runs are in a ledger."""
    with LedgerReader(ledger) as reader:
        return len(reader.outcomes()["position"])


def test_the_leader_of_a_campaign_is_validated_with_one_command(campaign: Scripted, tmp_path: Path) -> None:
    """It runs leader and another one on instances of a folder, and says what each is worth there."""
    done = validated(campaign, written(tmp_path / "many", 30), "--configs", "leader,slow", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["n_instances"], told["n_met"], told["stopped"]) == (30, 0, "instances")
    assert (told["first"], told["leader"], told["certified"]["name"]) == ("quick", "quick", "quick")
    assert list(told["worth"]) == ["quick", "slow"]
    seen = {name: worth["seen_low"] for name, worth in told["worth"].items()}
    assert seen["quick"] > seen["slow"]
    assert told["improvement_over"]["slow"]["low"] > 0.0
    assert told["gap"][0] <= 0.0 <= told["gap"][1]


def test_every_question_has_a_ledger_and_the_same_question_has_the_same(campaign: Scripted, others: Path) -> None:
    """Other configurations, instances or captimes are other files; asked again, nothing is run twice."""
    questions = [
        [str(others), "--configs", "leader,slow"],
        [str(others), "--configs", "leader,steady"],
        [str(others / "new-0[0-3]"), "--configs", "leader,slow"],
        [str(others), "--configs", "leader,slow", "--captime", "30s"],
    ]
    ledgers = []
    for question in questions:
        done = validated(campaign, *question, "--json")
        assert done.exit_code == 0, done.output
        ledgers.append(Path(json.loads(done.stdout)["ledger"]))
    assert len(set(ledgers)) == 4
    assert [n_outcomes(ledger) for ledger in ledgers] == [24, 24, 8, 24]
    assert all(ledger.name.startswith("scenario.validation-others-") for ledger in ledgers)
    again = validated(campaign, others, "--configs", "leader,slow", "--delta", "0.2", "--json")
    assert json.loads(again.stdout)["ledger"] == str(ledgers[0])
    assert n_outcomes(ledgers[0]) == 24


def test_the_ledger_of_a_validation_can_be_named(campaign: Scripted, others: Path, tmp_path: Path) -> None:
    """With --ledger, as the refusal of another question says."""
    own = tmp_path / "own.ledger"
    done = validated(campaign, others, "--configs", "leader", "--ledger", str(own))
    assert done.exit_code == 0, done.output
    assert n_outcomes(own) == 12
    refused = validated(campaign, others, "--configs", "slow", "--ledger", str(own))
    assert "begin a new ledger with --ledger" in str(refused.exception)


def test_runs_done_are_counted(campaign: Scripted, others: Path, tmp_path: Path) -> None:
    """Nothing is decided here, so epsilon and candidates say nothing; how far it has come does."""
    own = tmp_path / "watched.ledger"
    done = validated(campaign, others, "--configs", "quick,slow", "--ledger", str(own))
    assert " of 24 " in done.stderr
    assert "epsilon" not in done.stderr


def test_instances_that_the_campaign_has_met_are_not_called_held_out(campaign: Scripted, tmp_path: Path) -> None:
    """They are known by their content, whatever they are called; how many is said three times over."""
    mixed = written(tmp_path / "mixed", 5)
    with LedgerReader(campaign.ledger) as reader:
        used = [sample.instance for sample in reader.sample_rows()][:3]
    for name in used:
        (mixed / f"renamed-{Path(name).name}").write_bytes((campaign.folder / name).read_bytes())
    done = validated(campaign, mixed, "--configs", "leader", "--quiet")
    assert done.exit_code == 0, done.output
    assert "the campaign has used 3 of these 8 instances" in done.stderr
    assert "The campaign had met 3 of those named" in done.stdout
    assert "8 held-out" not in done.stdout
    told = json.loads(validated(campaign, mixed, "--configs", "leader", "--json").stdout)
    assert told["n_met"] == 3


def test_generated_instances_are_known_by_the_files_that_were_kept_and_else_by_their_names(tmp_path: Path) -> None:
    """The ledger has no digest of them."""
    (tmp_path / "scenario.toml").write_text(
        """
        utility = "uniform(60)"
        [target]
        command = ["true", "{instance}"]
        [configurations]
        only = {}
        [instances]
        generator = ["echo", "{k}"]
        suffix = ".cnf"
        """,
        encoding="utf-8",
    )
    scenario = load_scenario(tmp_path / "scenario.toml")
    kept = Path(str(scenario.stream.at(0).instance.path))
    kept.parent.mkdir(parents=True)
    kept.write_text("0\n", encoding="ascii")
    given = tmp_path / "given"
    given.mkdir()
    for name, content in (("same.cnf", "0\n"), ("0.cnf", "another zero"), ("1.cnf", "one"), ("2.cnf", "two")):
        (given / name).write_text(content, encoding="ascii")
    listed = [Listed(str(path)) for path in sorted(given.iterdir())]
    stream = FiniteStream(look_at(listed, given, "here", allow_duplicates=False)[0], "given")
    samples = [SampleRow(0, "0"), SampleRow(1, "1")]
    assert used_in_tuning(samples, scenario, stream) == ["1.cnf", "same.cnf"]


def told_of(seen: tuple[float, float], *, asked: tuple[tuple[str, str], ...], leader: str) -> Validated:
    """A validation of a and b whose measured difference lies between these."""
    worth = Worth(0.5, 0.5, 0.4, 0.6)
    names = dict.fromkeys(name for _, name in asked)
    better = {name: Worth(*seen, -0.3, 0.2) for name in list(names)[1:]}
    return Validated(
        found=Validation(10, 0.1, dict.fromkeys(names, worth), better),
        asked=asked,
        recommended=leader,
        held=Certificate(0, 0.1, 0.1, 3, 0.45, 0.55),
        n_met=0,
        captime=1.0,
        ledger=Path("own.ledger"),
        stopped="instances",
    )


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        ((0.0273, 0.0273), "a beats b by 0.0273 here"),
        ((-0.0273, -0.0273), "a is behind b by 0.0273 here"),
        ((-0.03, -0.01), "a is behind b by 0.0100 to 0.0300 here"),
        ((-0.01, 0.02), "a is worth between 0.0100 less and 0.0200 more than b here"),
        ((0.0, 0.0), "a is worth as much as b here"),
    ],
)
def test_nobody_beats_anybody_by_less_than_nothing(
    seen: tuple[float, float], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Differences in words, and the leader by its name."""
    print_validated(told_of(seen, asked=(("a", "a"), ("b", "b")), leader="b"))
    shown = capsys.readouterr().out
    assert words in shown
    assert "The leader, b, was certified to be worth 0.4500 to 0.5500 where it was chosen" in shown
    assert "here it is worth between 0.1500 more and 0.1500 less" in shown


def test_first_and_leader_are_whom_they_say() -> None:
    """The leader need not stand first, nor be there at all; what is certified is about no other."""
    pair = (("a", "a"), ("b", "b"))
    told = validated_json(told_of((0.1, 0.1), asked=pair, leader="b"))
    assert (told["first"], told["leader"], told["certified"]) == (
        "a",
        "b",
        {"name": "b", "utility_low": 0.45, "utility_high": 0.55},
    )
    absent = validated_json(told_of((0.1, 0.1), asked=pair, leader="c"))
    assert (absent["first"], absent["leader"], absent["gap"]) == ("a", None, None)


def test_a_leader_that_is_the_default_is_said_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    """One row, and a sentence in place of the comparison."""
    asked = (("leader", "default"), ("default", "default"))
    print_validated(told_of((0.0, 0.0), asked=asked, leader="default"))
    assert "leader and default are one configuration: the campaign recommends default" in capsys.readouterr().out


def test_a_configuration_that_does_not_exist_is_named(campaign: Scripted, others: Path) -> None:
    """Exit code 2 with those there are, or with the one that was meant."""
    done = validated(campaign, others, "--configs", "nosuch")
    assert "there are leader, quick, steady, slow" in str(done.exception)
    done = validated(campaign, others, "--configs", "quik")
    assert "did you mean 'quick'?" in str(done.exception)


def test_a_long_list_of_names_says_that_it_goes_on() -> None:
    """Eight are enough to see the style."""
    rows = [ConfigRow(number, f"draw-{number}") for number in range(20)]
    with pytest.raises(ScenarioError, match=r"leader, draw-0, .*draw-7 and 12 more"):
        row_named("nosuch", rows, 0)


def test_a_folder_without_instances_is_the_option_s_fault(
    campaign: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scenario's line is right; what was typed is seen from the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    for typed in ("empty/", "nowhere/*.cnf"):
        said = str(validated(campaign, typed, "--configs", "leader").exception)
        assert said.startswith(f"--instances is {typed!r}")
        assert "current folder" in said
        assert "scenario.toml" not in said
    twins = tmp_path / "twins"
    twins.mkdir()
    for name in ("a", "b"):
        (twins / name).write_text("1\n1\n1\n", encoding="ascii")
    assert str(validated(campaign, "twins", "--configs", "leader").exception).startswith("--instances: 1 of 2")


def test_folders_with_odd_names_are_taken_as_they_are(
    campaign: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brackets mean something in patterns, but not in the names of folders that are there."""
    odd = written(tmp_path / "[a]" / "set [b]", 3)
    monkeypatch.chdir(odd.parent)
    done = validated(campaign, "set [b]", "--configs", "leader", "--json")
    assert json.loads(done.stdout)["n_instances"] == 3


def test_the_json_fields_are_the_documented_ones() -> None:
    """Every field has its row in docs/commands.md, in the order in which it is printed."""
    page = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")
    table = page.partition("\n## `captime validate`\n")[2].partition("| field of `--json` |")[2].partition("\n\n")[0]
    told = validated_json(told_of((0.1, 0.1), asked=(("a", "a"), ("b", "b")), leader="b"))
    assert re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE) == list(told)


VALUES = """
utility = "log-laplace(0.5, 1)"
[target]
function = "{module}:solve"
[configurations]
quick = {{ steps = 10 }}
slow = {{ steps = 20000 }}
[instances]
values = [50, 51, 52, 53, 54, 55]
sampling = "replace"
[stop]
epsilon = 0.6
"""
GENERATED = """
utility = "log-laplace(0.5, 1)"
seed = 7
[target]
command = ["grep", "-c", "{letter}", "{instance}"]
exit_codes = [0, 1]
[configurations]
first = { letter = "1" }
second = { letter = "2" }
[instances]
generator = ["echo", "{k}", "{seed}"]
[stop]
epsilon = 0.6
"""


def ran(folder: Path, scenario: str) -> Path:
    """The ledger of a short campaign."""
    (folder / "scenario.toml").write_text(scenario, encoding="utf-8")
    done = CliRunner().invoke(app, ["run", str(folder / "scenario.toml"), "--quiet", "--jobs", "1"])
    assert done.exit_code == 0, done.output
    return folder / "scenario.ledger"


def told_by(ledger: Path, *words: str) -> dict[str, Any]:
    """What the command prints as JSON."""
    done = CliRunner().invoke(app, ["validate", str(ledger), *words, "--json"])
    assert done.exit_code == 0, (done.output, done.exception)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_values_and_functions_are_validated_and_files_in_their_place_refused(tmp_path: Path) -> None:
    """A name of a file was taken for a value, every run failed, and all were worth 0.0000 with exit code 0."""
    module = f"module_{abs(hash(str(tmp_path)))}"
    (tmp_path / f"{module}.py").write_text(
        "def solve(settings, instance, seed):\n    return sum(range(instance * settings['steps'])) >= 0\n",
        encoding="utf-8",
    )
    ledger = ran(tmp_path, VALUES.format(module=module))
    told = told_by(ledger, "--values", "[60, 61, 62]")
    assert (told["n_instances"], told["n_met"]) == (3, 0)
    assert told["worth"]["quick"]["seen_low"] > 0.5
    (tmp_path / "more.json").write_text("[63, 64, 50]", encoding="utf-8")
    # No configuration is called default: the first of the list stands for it.
    told = told_by(ledger, "--values", str(tmp_path / "more.json"), "--configs", "slow,default")
    assert (list(told["worth"]), told["n_instances"]) == (["slow", "quick"], 3)
    assert told["n_met"] == 1
    (tmp_path / "deep.json").write_text("[" * 100_000, encoding="utf-8")
    with (tmp_path / "large.json").open("wb") as large:
        large.truncate(1 << 32)
    ledgers = set(tmp_path.glob("*.ledger"))
    for words, sentence in (
        (["--instances", str(tmp_path / "*.toml")], "instances of this campaign are values, such as 5"),
        (["--values", "60, 61"], "neither a file nor JSON"),
        (["--values", "[NaN]"], "NaN is no value of JSON"),
        (["--values", str(tmp_path / "deep.json")], "maximum recursion depth exceeded"),
        (["--values", str(tmp_path / "large.json")], "which cannot be read: it has 4,294,967,296 bytes"),
        (["--values", "[60]", "--delta", "1.5"], "delta is 1.5"),
        (["--values", "[60]", "--captime", "0"], "captime for every run is 0.0 s"),
        (["--values", "{}"], "expected a list with at least one value"),
        (["--generate", "3"], "but the campaign has none"),
        ([], "expected one of --instances"),
        (["--values", "[1]", "--generate", "3"], "--values and --generate say"),
    ):
        refused = CliRunner().invoke(app, ["validate", str(ledger), *words])
        assert sentence in str(refused.exception), words
        assert isinstance(refused.exception, ScenarioError)
    assert set(tmp_path.glob("*.ledger")) == ledgers, "a refused call has begun to run"
    # More values than a name of a file has letters.
    assert told_by(ledger, "--values", json.dumps(list(range(60, 160))), "--captime", "0.2s")["n_instances"] == 100
    # Values of the right form that no run answers on: the numbers are printed, and it is no success.
    silent = CliRunner().invoke(app, ["validate", str(ledger), "--values", '["a", "b"]'])
    assert isinstance(silent.exception, TargetProgramError)
    assert "none of the 2 runs has answered (0 were cut or given up, 2 failed)" in str(silent.exception)
    assert "The call was: " in str(silent.exception)


def test_further_instances_of_a_generator_are_held_out_whatever_it_listens_to(tmp_path: Path) -> None:
    """Their numbers follow those the campaign has met, and their seeds are drawn with another key."""
    ledger = ran(tmp_path, GENERATED)
    told = told_by(ledger, "--generate", "5", "--configs", "first,second")
    assert (told["n_instances"], told["n_met"], told["stopped"]) == (5, 0, "instances")
    assert n_outcomes(Path(told["ledger"])) == 10
    assert told_by(ledger, "--generate", "5", "--configs", "first,second")["ledger"] == told["ledger"]
    made = [path.read_text("ascii").split() for path in tmp_path.glob("scenario.instances/*/*")]
    with LedgerReader(ledger) as reader:
        used = len(reader.sample_rows())
    # A position that was registered when the campaign stopped may have no instance yet.
    assert 5 < len(made) <= used + 5
    assert len({number for number, _ in made}) == len({seed for _, seed in made}) == len(made)


def test_the_default_is_the_one_of_that_name_or_else_the_first() -> None:
    """So that the command of the README works for every list."""
    rows = [ConfigRow(0, "a"), ConfigRow(1, "b"), ConfigRow(2, "default")]
    assert row_named("default", rows, 1).name == "default"
    assert row_named("default", rows[:2], 1).name == "a"


def test_which_configuration_stands_for_the_default_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """Because none was asked for by name."""
    print_validated(told_of((0.0, 0.0), asked=(("leader", "b"), ("default", "a")), leader="b"))
    assert "No configuration is called default; a, the first of the list, stands for it." in capsys.readouterr().out


def test_a_function_given_as_an_object_is_validated_from_python(tmp_path: Path) -> None:
    """There is no scenario file to name; the result knows what it was asked."""
    for _ in range(2):  # the second call finds the ledger of the first
        result = configure(
            by_steps,
            range(50, 90),
            {"quick": {"steps": 10}, "slow": {"steps": 20_000}},
            utility="log-laplace(0.5, 1)",
            epsilon=0.6,
            ledger=tmp_path / "c.ledger",
            jobs=1,
            progress=False,
        )
    found = captime.validate(result, [90, 91, 92], configs=["quick", "slow"], progress=False, jobs=1)
    assert (found.n_instances, list(found.worth), list(found.better)) == (3, ["quick", "slow"], ["slow"])
    assert found.worth["quick"].seen_low > 0.5
    with pytest.raises(ScenarioError, match="validate: instances names files, but the instances"):
        captime.validate(result, "*.cnf")
    with pytest.raises(ScenarioError, match="did you mean 'quick'"):
        captime.validate(result, [1], configs=["quik"])
    with pytest.raises(ScenarioError, match="but the campaign has none"):
        captime.validate(result, 5)
    with pytest.raises(ScenarioError, match=r"delta is 0.0"):
        captime.validate(result, [1], delta=0.0, ledger=tmp_path / "never.ledger")
    assert not (tmp_path / "never.ledger").exists()
    with pytest.raises(ScenarioError, match=r"configs is 'quick' \(str\); expected a list of names"):
        captime.validate(result, [1], configs="quick")


def test_a_list_of_values_may_be_longer_than_a_name() -> None:
    """It is read as a list, and no file of that name is looked for."""
    assert values_typed(str(list(range(2_000)))) == list(range(2_000))
