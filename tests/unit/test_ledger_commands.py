import csv
import json
import re
import shutil
import sqlite3
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from captime.certificate import Certificate
from captime.cli import COMMANDS, app, function_of
from captime.errors import LedgerDamaged
from captime.ledger import ConfigRow, Ledger, SampleRow
from captime.ledger.reading import FLAT_COLUMNS
from captime.runs import Measurement, RunOutcome, RunRequest, Status, Verdict
from forgery import forge
from written_ledgers import runtimes, written

# The scenario of a virtual campaign has no target, and its runs were not measured.
_VIRTUAL = ("--trust", "scenario")


def typed(*words: object) -> Result:
    """A line as a person would type it."""
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small certified campaign."""
    path = tmp_path_factory.mktemp("commands") / "a.ledger"
    written(path, runtimes(1, 3, 1.0), epsilon=0.2)
    return path


@pytest.fixture
def strange(tmp_path: Path) -> Path:
    """A campaign under way, with names that would like to be something else."""
    path = tmp_path / "strange.ledger"
    ledger = Ledger.create(path, {"goal": 0.1}, [ConfigRow(0, "\x1b[31mred"), ConfigRow(1, "=SUM(A1:A9)")])
    runs = [RunRequest(0, 0, 2.0), RunRequest(1, 0, 2.0)]
    ledger.started(runs, {0: SampleRow(0, "\udcff\x07.cnf", "", 5)})
    measured = Measurement(1, 2, exit_code=10, answer=b"@\xfe")
    ledger.observed([RunOutcome(runs[1], Status.COMPLETED, 0.5, 0.5, "-x", Verdict.ANSWERED, measured)])
    ledger.noted("warning", what="\x1b]0;title\x07")
    ledger.flush()
    ledger._writer.close()  # under way, as far as the rows tell
    return path


def test_verify_tells_what_was_checked(recorded: Path, tmp_path: Path) -> None:
    """0 and an account; 5 and the reason; 3 if it cannot be told; the same as JSON."""
    confirmed = typed("verify", recorded, *_VIRTUAL)
    assert confirmed.exit_code == 0
    assert "Confirmed" in confirmed.stdout
    told = json.loads(typed("verify", recorded, "--json", *_VIRTUAL).stdout)
    assert (told["verdict"], told["problem"], told["certificate"]["config_name"][0]) == ("confirmed", None, "c")
    forged = Path(shutil.copyfile(recorded, tmp_path / "forged.ledger"))
    forge(forged, "UPDATE certificate SET epsilon = 0.01")
    refuted = typed("verify", forged, "--json")
    assert refuted.exit_code == 5
    assert json.loads(refuted.stdout)["verdict"] == "refuted"
    assert isinstance(typed("verify", forged).exception, LedgerDamaged)
    other = tmp_path / "other.ledger"
    written(other, runtimes(1, 3, 1.0), procedure="coup", epsilon=0.8, budget=50.0)
    unknown = typed("verify", other)
    assert unknown.exit_code == 3
    assert "could NOT be verified" in unknown.stdout


def test_status_shows_what_is_certified_and_what_is_under_way(recorded: Path, strange: Path) -> None:
    """For people without control characters, for programs as one object."""
    shown = typed("status", recorded).stdout
    assert "With probability at least 90 %" in shown
    assert "the ledger is closed" in shown
    told = json.loads(typed("status", recorded, "--json").stdout)
    assert (told["state"], told["goal"], told["in_flight"]) == ("closed", 0.2, [])
    assert told["runs"] == sum(told["statuses"].values()) > 20
    assert told["certificate"]["epsilon"] <= 0.2
    result = typed("status", strange)
    assert result.exit_code == 0
    assert "Nothing is certified yet" in result.stdout
    assert "\x1b" not in result.stdout
    assert "\x07" not in result.stdout
    told = json.loads(typed("status", strange, "--json").stdout)
    assert [run["config"] for run in told["in_flight"]] == ["\x1b[31mred"]
    assert told["verdicts"] == {"answered": 1}
    assert told["events"][-1]["kind"] == "warning"


@pytest.mark.parametrize(("length", "expected"), [(None, True), (9000, True), (9, False), (3, False)])
def test_time_left_is_guessed_only_while_it_runs_and_instances_are_left(
    tmp_path: Path, length: int | None, expected: bool
) -> None:
    """Once all instances were met nothing more is coming, and a closed ledger gets nowhere at any pace."""
    path = tmp_path / "slow.ledger"
    facts = {"goal": 0.01, "length": length}
    with Ledger.create(path, facts, [ConfigRow(0, "a"), ConfigRow(1, "b")]) as ledger:
        runs = [RunRequest(0, position, 2.0) for position in range(3)]
        ledger.started(runs, {position: SampleRow(position, f"{position}.cnf") for position in range(3)})
        for minute, epsilon in enumerate((0.8, 0.6, 0.4, 0.3), start=1):
            ledger.certified(Certificate(0, epsilon, 0.1, 2, 0.2, 0.9), minute, 60.0 * minute, 60.0 * minute, 2)
        ledger.flush()
        assert ("at this pace" in typed("status", path).stdout) == expected
        # Nine instances do not give 0.01 if the first three have given 0.3.
        assert ("(about 0.17 at best" in typed("status", path).stdout) == (length == 9)
    assert "at this pace" not in typed("status", path).stdout


def test_export_writes_every_run_with_everything_beside_it(strange: Path, tmp_path: Path) -> None:
    """CSV keeps bytes as they are; for spreadsheets, nothing begins a formula."""
    plain, safe = tmp_path / "runs.csv", tmp_path / "safe.csv"
    assert typed("export", strange, "-o", plain).exit_code == 0
    assert b"\xff\x07.cnf" in plain.read_bytes()
    with plain.open(encoding="utf-8", errors="surrogateescape", newline="") as file:
        (row,) = csv.DictReader(file)
    assert tuple(row) == FLAT_COLUMNS
    assert (row["config_name"], row["answer"], row["detail"], row["captime"]) == ("=SUM(A1:A9)", "@\udcfe", "-x", "2.0")
    assert typed("export", strange, "-o", safe, "--for-spreadsheet").exit_code == 0
    with safe.open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["config_name"], row["detail"]) == ("'=SUM(A1:A9)", "'-x")
    assert not any(value.startswith(("=", "+", "-", "@")) for value in row.values())
    assert typed("export", strange, "-o", tmp_path / "runs.xls").exit_code != 0
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".csv", ".csv", ".ledger", ".lock"]


def test_export_to_parquet_has_typed_columns(recorded: Path, strange: Path, tmp_path: Path) -> None:
    """Numbers are numbers, missing ones are null, and infinity is infinity."""
    parquet = pytest.importorskip("pyarrow.parquet")
    target = tmp_path / "runs.parquet"
    for ledger in (recorded, strange):
        assert typed("export", ledger, "-o", target).exit_code == 0
        table = parquet.read_table(target)
        connection = sqlite3.connect(ledger)
        assert table.num_rows == connection.execute("SELECT count(*) FROM outcome").fetchone()[0]
        connection.close()
        assert str(table.schema.field("runtime").type) == "double"
        assert str(table.schema.field("position").type) == "int64"


def test_backup_and_salvage_make_ledgers_that_pass(recorded: Path, tmp_path: Path) -> None:
    """A copy is confirmed like the original; what is saved of a damaged one is as long as it was whole."""
    copy, saved = tmp_path / "copy.ledger", tmp_path / "saved.ledger"
    assert typed("backup", recorded, "-o", copy).exit_code == 0
    assert typed("verify", copy, *_VIRTUAL).exit_code == 0
    forge(copy, "UPDATE outcome SET cost = cost + 1 WHERE seq = (SELECT max(seq) FROM outcome)", rechain=False)
    result = typed("salvage", copy, "-o", saved)
    assert result.exit_code == 0
    assert "It ends there because" in result.stdout
    assert typed("verify", saved).exit_code in (0, 3)
    assert typed("backup", recorded, "-o", saved).exit_code != 0


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_square_brackets_in_help_are_shown(name: str) -> None:
    """`the [space] section` is no markup; every bracketed word of a docstring or of an option's help is printed."""
    command: Any = function_of(name)
    parameters = signature(command).parameters.values()
    written = "\n".join([command.__doc__, *(info.help or "" for each in parameters for info in infos(each.annotation))])
    shown = " ".join(typed(name, "--help").stdout.replace("│", " ").split())
    for word in re.findall(r"\[[a-z][^\]]*\]", written):
        assert word in shown


def infos(annotation: Any) -> list[Any]:
    """What typer is told about a parameter."""
    return [each for each in getattr(annotation, "__metadata__", ()) if hasattr(each, "help")]
