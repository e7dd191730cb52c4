"""A reader that does not end lets the log grow; it is named, and when it is gone the log is small again."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from captime.ledger import ConfigRow, Ledger, LedgerReader
from captime.ledger.connection import log_path
from captime.ledger.file_watch import WalMonitor

READS_ON = """
import sqlite3, sys
connection = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True, isolation_level=None)
connection.execute("BEGIN")
connection.execute("SELECT count(*) FROM note").fetchone()
print("reading", flush=True)
sys.stdin.read()
"""
ALLOWED = 1 << 20


@contextmanager
def reader_of(path: Path) -> Iterator[int]:
    """A process with an open transaction, by its number."""
    process = subprocess.Popen(
        [sys.executable, "-c", READS_ON, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "reading\n"
        yield process.pid
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """One whose log may have a megabyte, and no more without readers."""
    monkeypatch.setattr("captime.ledger.connection._LOG_KEPT_BYTES", ALLOWED)
    monkeypatch.setattr("captime.ledger.store.WalMonitor", lambda path: WalMonitor(path, ALLOWED))
    monkeypatch.setattr("captime.ledger.connection._CHECKPOINT_PAGES", 100)
    with Ledger.create(tmp_path / "a.ledger", {}, [ConfigRow(0, "a", {})]) as made:
        yield made


def scribble(ledger: Ledger, rows: int) -> None:
    """Write this many rows, each of which takes 20 to 40 kB of the log."""
    for _ in range(rows):
        ledger.noted("scribble", text="x" * 20_000)
        ledger.flush()


def warnings_in(path: Path) -> list[object]:
    """Those that are on record."""
    with LedgerReader(path) as reader:
        return [note.facts["about"] for note in reader.events() if note.kind == "warning"]


def test_without_readers_the_log_stays_small(ledger: Ledger) -> None:
    """However much is written."""
    scribble(ledger, 200)
    assert ledger.warnings == []
    assert log_path(ledger.path).stat().st_size <= ALLOWED


def test_the_reader_that_keeps_the_log_is_named(ledger: Ledger) -> None:
    """F15: once when it is too large, and again when it has doubled; the writer is not disturbed."""
    with reader_of(ledger.path) as pid:
        scribble(ledger, 50)
        assert len(ledger.warnings) == 1
        assert f"process {pid} (python" in ledger.warnings[0]
        scribble(ledger, 60)
        assert len(ledger.warnings) == 2
    ledger.flush()
    assert warnings_in(ledger.path) == ledger.warnings


def test_when_the_reader_is_gone_the_log_is_small_again(ledger: Ledger) -> None:
    """It is cut to what is kept anyway when it begins anew."""
    with reader_of(ledger.path):
        scribble(ledger, 150)
        assert log_path(ledger.path).stat().st_size > 2 * ALLOWED
    scribble(ledger, 150)
    assert log_path(ledger.path).stat().st_size <= ALLOWED


def test_a_ledger_without_a_log_has_nothing_to_be_watched(tmp_path: Path) -> None:
    """On network file systems, for instance."""
    assert WalMonitor(tmp_path / "a.ledger").look() == ""
