"""A ledger that is deleted, replaced or cut while it is written or before it is read: said, and nothing laundered."""

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from typer.testing import CliRunner, Result

from campaign_stand_ins import folder, ledger_in, question_on, small_table, virtual_slots
from captime.campaign import CampaignResult, RunSettings, run_campaign
from captime.campaign.journal import LedgerWatchingExecutor
from captime.cli import app
from captime.errors import LedgerDamaged, ScenarioError, StorageTrouble
from captime.evidence import Evidence
from captime.executors.protocol import Executor
from captime.executors.retry import ExecutorWrapper
from captime.ledger import Ledger, LedgerReader
from captime.ledger.connection import log_path
from captime.ledger.file_watch import backup, salvage
from captime.ledger.ownership import lock_path
from captime.procedures.protocol import Procedure
from captime.report.campaigned import campaign_json, summary_and_table
from captime.report.words import statement
from captime.runs import RunOutcome
from captime.skeptic import audit
from forgery import forge

__all__ = ["folder"]

TABLE = small_table()
Damage = Callable[[Path], None]


def after(laps: int, damage: Damage, path: Path) -> Callable[[Procedure, Evidence, Executor], None]:
    """Do the damage once, after this many laps."""
    left = iter(range(laps))

    def observe(procedure: Procedure, evidence: Evidence, executor: Executor) -> None:
        if next(left, None) is None and not hasattr(observe, "done"):
            observe.done = True  # type: ignore[attr-defined] # remembered where it is asked
            damage(path)

    return observe


def run(path: Path, damage: Damage | None = None) -> CampaignResult:
    """A campaign on the small table, with that damage in its middle."""
    observer = None if damage is None else after(40, damage, path)
    return run_campaign(question_on(TABLE), path, make_executor=virtual_slots(TABLE, 2), observer=observer)


def typed(*words: object) -> Result:
    """A line as a person would type it."""
    return CliRunner().invoke(app, [str(word) for word in words])


def unlink(path: Path) -> None:
    """`rm a.ledger`."""
    path.unlink()


def unlink_all(path: Path) -> None:
    """`rm a.ledger*`."""
    for each in path.parent.glob(path.name + "*"):
        each.unlink()


def replace_by_older(path: Path) -> None:
    """An earlier backup is put in its place: another file under the same name."""
    older = path.with_name("older")
    run_campaign(question_on(TABLE, epsilon=0.9), older, make_executor=virtual_slots(TABLE, 1))
    older.replace(path)


def overwrite(path: Path) -> None:
    """The same file with the content of another ledger, as `cp` leaves it."""
    older = path.with_name("older")
    run_campaign(question_on(TABLE, epsilon=0.9), older, make_executor=virtual_slots(TABLE, 1))
    path.write_bytes(older.read_bytes())


def unlink_log(path: Path) -> None:
    """`rm a.ledger-wal a.ledger-shm`."""
    for ending in ("-wal", "-shm"):
        path.with_name(path.name + ending).unlink()


@pytest.mark.parametrize("damage", [unlink, unlink_all, replace_by_older])
def test_a_lost_ledger_stops_the_campaign_and_its_rows_are_saved(folder: Path, damage: Damage) -> None:
    """The campaign stops at the next transaction, the certificate is shown, and the copy can be resumed from."""
    path = ledger_in(folder)
    result = run(path, damage)
    assert result.outcome.stopped == "ledger"
    assert isinstance(result.trouble, LedgerDamaged)
    assert "The certificate is valid" in str(result.trouble)
    assert result.rescued is not None
    assert str(result.rescued.path) in str(result.trouble)
    summary, table = summary_and_table(result)
    assert statement(summary)
    assert campaign_json(result, summary, table)["warnings"] == [str(result.trouble)]
    assert len(result.runs()["config"]) == int(result.outcome.runs.sum())
    found = audit(result.rescued.path)
    assert found.rows == result.rescued.rows + 1
    assert found.certified is not None
    assert found.certified.certificate == result.certificate
    path.unlink(missing_ok=True)
    with pytest.raises(ScenarioError, match="holds the rows of a campaign"):
        run(path)
    result.rescued.path.rename(path)
    assert run(path).outcome.stopped == "epsilon"


def test_a_deleted_log_stops_the_campaign_and_costs_nothing(folder: Path) -> None:
    """The rows are still reachable: they are brought into the ledger, which is whole and can be resumed."""
    path = ledger_in(folder)
    result = run(path, unlink_log)
    assert (result.outcome.stopped, result.trouble, result.rescued) == ("ledger", None, None)
    assert "the same command resumes the campaign" in result.warnings[0]
    assert audit(path).head == result.head
    assert sorted(each.name for each in folder.iterdir()) == ["campaign.ledger", "campaign.ledger.lock"]
    assert run(path).outcome.stopped == "epsilon"


def empty(path: Path) -> None:
    """`: > a.ledger`."""
    path.write_bytes(b"")


def write_another(path: Path) -> None:
    """A file of another kind under the same name."""
    path.write_bytes(b"a,b,c\n" * 10_000)


@pytest.mark.parametrize("damage", [overwrite, empty, write_another])
def test_an_overwritten_ledger_is_noticed(folder: Path, damage: Damage) -> None:
    """The same file with another content: what can be saved is whole, and if nothing can, that is said."""
    result = run(ledger_in(folder), damage)
    assert result.outcome.stopped == "ledger"
    assert isinstance(result.trouble, LedgerDamaged)
    assert "overwritten" in str(result.trouble)
    assert ("could not be saved" in str(result.trouble)) == (result.rescued is None)


def test_a_ledger_that_was_only_touched_is_left_in_peace(folder: Path) -> None:
    """Another time of change and the same rows are no reason to stop."""
    result = run(ledger_in(folder), lambda path: path.touch())
    assert (result.outcome.stopped, result.trouble) == ("epsilon", None)


def test_the_log_of_another_ledger_is_not_deleted(folder: Path) -> None:
    """SQLite deletes what has the log's name when it closes; a log that was put there by another process stays."""
    path = ledger_in(folder)

    def put_another(path: Path) -> None:
        replace_by_older(path)
        log_path(path).unlink()
        log_path(path).write_bytes(b"of another ledger")

    run(path, put_another)
    assert log_path(path).read_bytes() == b"of another ledger"


def test_a_ledger_whose_folder_is_gone_is_saved_elsewhere(folder: Path) -> None:
    """`rm -r` of the folder: the copy is in the folder for temporary files."""
    (folder / "inside").mkdir()
    path = folder / "inside" / "a.ledger"
    result = run(path, lambda path: shutil.rmtree(path.parent))
    assert result.outcome.stopped == "ledger"
    assert result.rescued is not None
    assert result.rescued.path.parent == Path(tempfile.gettempdir())
    assert audit(result.rescued.path).rows == result.rescued.rows + 1
    result.rescued.path.unlink()


@pytest.mark.parametrize("order", ["arrival", "fixed"])
def test_a_full_disk_ends_with_the_certificate(
    folder: Path, monkeypatch: pytest.MonkeyPatch, order: Literal["arrival", "fixed"]
) -> None:
    """What was written before is enough for it; the trouble says whose turn it is."""
    written = Ledger.observed
    calls = iter(range(40))

    def observed(self: Ledger, *told: object) -> None:
        if next(calls, None) is None:
            raise StorageTrouble("the disk is full")
        written(self, *told)  # type: ignore[arg-type] # handed on as it came

    monkeypatch.setattr(Ledger, "observed", observed)
    path, question, manner = ledger_in(folder), question_on(TABLE), RunSettings(order=order)
    result = run_campaign(question, path, manner, make_executor=virtual_slots(TABLE, 2))
    assert result.outcome.stopped == "ledger"
    assert str(result.trouble) == "the disk is full"
    assert statement(summary_and_table(result)[0])
    with LedgerReader(path) as reader:
        newest = reader.last_certificate()
    assert newest is not None
    assert newest.certificate == result.certificate
    monkeypatch.undo()
    assert run_campaign(question, path, manner, make_executor=virtual_slots(TABLE, 2)).trouble is None


class Slow(ExecutorWrapper):
    """An executor that has nothing to tell, and a clock that moves when it waits."""

    def __init__(self, inner: Executor) -> None:
        super().__init__(inner)
        self.time = 0.0

    @property
    def now(self) -> float:
        """See the protocol."""
        return self.time

    def collect(self, timeout: float | None = None) -> list[RunOutcome]:
        """Wait in vain."""
        assert timeout is not None
        self.time += timeout
        return []


def test_waiting_for_a_long_run_looks_at_the_ledger_now_and_then() -> None:
    """A run of hours does not keep a lost ledger from being noticed within seconds; timeouts are kept."""
    slow = Slow(virtual_slots(TABLE, 1)(question_on(TABLE).program, ""))
    looks = iter([False, False, True])
    assert LedgerWatchingExecutor(slow, lambda: next(looks)).collect() == []
    assert slow.time == 3.0
    assert LedgerWatchingExecutor(slow, lambda: False).collect(2.5) == []
    assert slow.time == 5.5


# ---------------------------------------------------------------------- readers


@pytest.fixture
def without_log(folder: Path) -> Path:
    """What a killed campaign leaves when its -wal and -shm are deleted: an old state, and a lock file that knows."""
    path = ledger_in(folder)
    kept = folder / "kept"
    kept.mkdir()

    def copy(path: Path) -> None:
        for ending in ("", ".lock"):
            shutil.copyfile(path.with_name(path.name + ending), kept / ("a.ledger" + ending))

    run(path, copy)
    return kept / "a.ledger"


def test_every_reader_says_that_rows_are_missing(without_log: Path) -> None:
    """status, export, report, best and dashboard show what there is with a warning; verify and backup refuse."""
    words = "the ledger has had"
    with LedgerReader(without_log) as reader:
        assert words in reader.missing
    status = typed("status", without_log)
    assert status.exit_code == 0
    assert words in status.stderr
    assert words in json.loads(typed("status", without_log, "--json").stdout)["missing"]
    exported = typed("export", without_log, "-o", without_log.with_name("runs.csv"))
    assert words in exported.stderr
    page = without_log.with_name("page.html")
    report = typed("report", without_log, "-o", page)
    assert words in report.stderr
    assert words in page.read_text()
    assert words in typed("best", without_log).stderr
    for command in (("verify", without_log), ("backup", without_log, "-o", without_log.with_name("copy.ledger"))):
        refused = typed(*command)
        assert isinstance(refused.exception, LedgerDamaged)
        assert words in str(refused.exception)
    assert not without_log.with_name("copy.ledger").exists()


def test_a_copy_without_log_and_lock_is_told_too(without_log: Path) -> None:
    """The file itself says that it was in use."""
    lock_path(without_log).unlink()
    assert "copy without its -wal" in typed("status", without_log).stderr
    with pytest.raises(LedgerDamaged, match="copy without its -wal"):
        backup(without_log, without_log.with_name("copy.ledger"))


def test_a_whole_ledger_is_read_without_a_word(folder: Path) -> None:
    """Also while a campaign writes to it: readers that look again and again are never told that rows are missing."""
    path, told = ledger_in(folder), []

    def look(procedure: Procedure, evidence: Evidence, executor: Executor) -> None:
        with LedgerReader(path) as reader:
            told.append(reader.missing)

    run_campaign(question_on(TABLE), path, make_executor=virtual_slots(TABLE, 2), observer=look)
    assert len(told) > 20
    assert set(told) == {""}
    assert typed("status", path).stderr == ""


def test_a_backup_of_changed_rows_is_refused(folder: Path) -> None:
    """A copy that ends well would look as if it were whole."""
    path, copy = ledger_in(folder), folder / "copy.ledger"
    run(path)
    forge(path, "UPDATE outcome SET cost = cost + 1 WHERE seq = (SELECT min(seq) FROM outcome)", rechain=False)
    with pytest.raises(LedgerDamaged, match="was changed"):
        backup(path, copy)
    assert not list(folder.glob("copy*"))


def test_salvage_says_what_is_missing_and_never_advises_salvage(without_log: Path, folder: Path) -> None:
    """Rows that are not in the file are named; at every cut, what is said is not what was just done."""
    found = salvage(without_log, folder / "saved.ledger")
    assert "the ledger has had" in found.damage
    content, said = ledger_in(folder).read_bytes(), []
    for length in range(0, len(content), max(512, len(content) // 40)):
        cut = folder / "cut.ledger"
        cut.write_bytes(content[:length])
        target = folder / f"saved-{length}.ledger"
        try:
            said.append(salvage(cut, target).damage)
            with LedgerReader(target) as reader:
                said.append(str(reader.events()[-1].facts))
        except LedgerDamaged as error:
            said.append(str(error))
    assert len(said) > 20
    assert not [each for each in said if "captime salvage" in each]


@pytest.mark.parametrize("name", ["a" * 255, "a" * 300, "a" * 250])
def test_a_backup_to_a_name_that_is_too_long_is_refused_in_words(folder: Path, name: str) -> None:
    """Also if only the name on the way is too long."""
    path = ledger_in(folder)
    run(path)
    for command in ("backup", "salvage"):
        refused = typed(command, path, "-o", folder / name)
        assert isinstance(refused.exception, ScenarioError)
        assert "File name too long" in str(refused.exception)
