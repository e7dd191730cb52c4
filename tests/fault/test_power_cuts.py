"""A row that was acknowledged survives a power cut, whatever the disk has made of what was not synchronised."""

from pathlib import Path
from random import Random

import pytest

from captime.errors import CaptimeError
from captime.ledger import ConfigRow, Ledger, LedgerReader, SampleRow
from captime.ledger import ownership as owners
from captime.ledger.ownership import lock_path
from captime.runs import RunOutcome, RunRequest, Status
from power_cut import Notes, recorded

RUNS = 60
CUTS = 40
MANY_CUTS = 500


def campaign(path: Path, notes: Notes, *, careless: bool = False) -> list[bytes]:
    """Runs written down one by one, and the log brought into the file now and then; what the lock file held."""
    Ledger.create(path, {}, [ConfigRow(0, "a", {})]).close()
    assert notes.in_doubt(path) == []
    notes.begin(path.parent)
    locks = [lock_path(path).read_bytes()]
    with Ledger.open(path) as ledger:
        writer = ledger._writer
        writer.connection.execute("PRAGMA wal_autocheckpoint = 20")
        if careless:
            writer.connection.execute("PRAGMA synchronous = NORMAL")
        for position in range(RUNS):
            request = RunRequest(0, position, 1.0)
            ledger.started([request], {position: SampleRow(position, str(position), "", position)})
            ledger.observed([RunOutcome(request, Status.COMPLETED, 0.5, 0.5)])
            notes.acknowledge(writer.chain.sequence)
            locks.append(lock_path(path).read_bytes())
    return locks


def rows_found(path: Path, files: dict[Path, bytes], lock: bytes, *, read_first: bool) -> int:
    """How many rows there are after the machine has come up again, each checked; the campaign can be resumed."""
    path.parent.mkdir()
    for name, content in files.items():
        path.with_name(name.name).write_bytes(content)
    lock_path(path).write_bytes(lock)
    if read_first:
        with LedgerReader(path) as reader:
            reader.check_end()
    with Ledger.open(path) as ledger:
        rows = ledger._writer.chain.sequence - 1  # its own signature is the last
        ledger.noted("continued")
    with LedgerReader(path) as reader:
        assert sum(1 for _ in reader.walk()) == reader.last_sequence
    return rows


@pytest.fixture
def noted(tmp_path: Path) -> tuple[Notes, list[bytes]]:
    """A campaign, and what it did to its files."""
    folder = tmp_path / "before"
    folder.mkdir()
    with recorded() as notes:
        locks = campaign(folder / "a.ledger", notes)
    return notes, locks


def lost_rows(notes: Notes, locks: list[bytes], folder: Path, cuts: int) -> list[str]:
    """What went wrong after power cuts at random moments, in words."""
    wrong = []
    for number in range(cuts):
        chance = Random(number)  # noqa: S311 (no secret is made here)
        moment = chance.randrange(len(notes.steps) + 1)
        rows = notes.acknowledged(moment)
        # The lock file is synchronised before the ledger is opened for writing, and never again.
        lock = chance.choice(locks[: 1 + sum(step.what == "acknowledged" for step in notes.steps[:moment])])
        try:
            files = notes.after_a_cut(moment, chance)
            found = rows_found(folder / str(number) / "a.ledger", files, lock, read_first=number % 2 == 0)
        except CaptimeError as error:
            wrong.append(f"cut {number}: {error}")
            continue
        if found < rows:
            wrong.append(f"cut {number}: {rows} rows were acknowledged, and {found} are left")
    return wrong


def test_no_acknowledged_row_is_lost(
    noted: tuple[Notes, list[bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F17, P7: after a cut at any moment every acknowledged row is there, and the campaign can be resumed."""
    monkeypatch.setattr(owners, "boot_id", lambda: "a later boot")
    assert lost_rows(*noted, tmp_path, CUTS) == []


@pytest.mark.fault
def test_no_acknowledged_row_is_lost_in_many_cuts(
    noted: tuple[Notes, list[bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same at full size."""
    monkeypatch.setattr(owners, "boot_id", lambda: "a later boot")
    assert lost_rows(*noted, tmp_path, MANY_CUTS) == []


def test_without_synchronisation_rows_would_be_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk above does forget: with `synchronous = NORMAL`, which survives a killed process, rows are lost."""
    folder = tmp_path / "before"
    folder.mkdir()
    with recorded() as notes:
        locks = campaign(folder / "a.ledger", notes, careless=True)
    monkeypatch.setattr(owners, "boot_id", lambda: "a later boot")
    assert len(lost_rows(notes, locks, tmp_path, CUTS)) > CUTS // 4


@pytest.mark.parametrize("survives", [0.0, 0.5, 1.0], ids=["nothing", "some of it", "all of it"])
def test_a_cut_while_it_is_opened_or_closed_leaves_a_ledger(
    noted: tuple[Notes, list[bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, survives: float
) -> None:
    """Then the file changes from one kind of journal to the other. If all survives, a process was killed."""
    notes, locks = noted
    monkeypatch.setattr(owners, "boot_id", lambda: "a later boot")
    last = len(notes.steps)
    for moment in [*range(30), *range(last - 20, last + 1)]:
        rows, lock = notes.acknowledged(moment), locks[0 if moment < 30 else -1]
        files = notes.after_a_cut(moment, Random(moment), survives)  # noqa: S311 (no secret is made here)
        path = tmp_path / str(moment) / "a.ledger"
        assert rows_found(path, files, lock, read_first=moment % 2 == 0) >= rows, f"after {moment} of {last} steps"
