"""Keep the file of a ledger safe: copy it while in use, save what a damaged one holds, watch it while it is written."""

import contextlib
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from captime.errors import LedgerDamaged, LedgerError, ScenarioError
from captime.ledger.connection import (
    check_schema,
    errors_translated,
    lenient_reader,
    log_path,
    reader,
    sync_directory,
    writer,
)
from captime.ledger.ownership import Mark, read_mark
from captime.ledger.reading import LedgerReader
from captime.ledger.rows import note_values, to_json
from captime.ledger.schema import CAMPAIGN, NOTE, Chain
from captime.ledger.writer import Transaction, is_log_missing, missing_rows, new_file, tail, walk

# New ledgers from old ones: a backup of one that may be in use, and what can be saved of one that is damaged.

# File systems allow 255 bytes; SQLite's and our own endings have to fit too.
_LONGEST_NAME = 255 - len(".part-journal")


def backup(path: Path, target: Path) -> int:
    """Copy a ledger as of one moment into one file, also while a campaign writes. Return how many rows the copy has.

    The last row of the copy says that it is one. A ledger whose rows are changed, or whose newest rows are missing, is
    refused: its copy would look as if it were whole.
    """
    _check_target(target)
    with closing(LedgerReader(path)) as whole:
        whole.check_end()
    with closing(reader(path)) as source, errors_translated(target, "copying"):
        check_schema(source, path)
        return _copied(source, path, target, "copied")


def _copied(connection: sqlite3.Connection, path: Path, target: Path, kind: str, **facts: object) -> int:
    """Copy all rows that a connection reaches into a new file; return how many. Its last row says what it is.

    Args:
        connection: To the ledger.
        path: Of the ledger, for messages about its rows.
        target: The new file; it appears whole or not at all.
        kind: Of the note that is its last row.
        **facts: Further ones for that note.
    """
    part = target.with_name(target.name + ".part")
    try:
        part.unlink(missing_ok=True)
        with closing(sqlite3.connect(part)) as copy:
            connection.backup(copy)
        with closing(writer(part, network=True)) as copy:
            for _ in walk(copy, path):
                pass
            rows, head = tail(copy)
            copy.execute("BEGIN IMMEDIATE")
            _note(Transaction(copy, Chain(rows, head)), kind, rows=rows, head=head.hex(), **facts)
            copy.execute("COMMIT")
        part.rename(target)
        sync_directory(target.parent)
    finally:
        part.unlink(missing_ok=True)
    return rows


@dataclass(frozen=True, slots=True)
class Salvaged:
    """What could be saved.

    Attributes:
        rows: How many rows, from the first on.
        damage: Why it ends there; empty if nothing was wrong.
    """

    rows: int
    damage: str


def salvage(path: Path, target: Path) -> Salvaged:
    """Copy the rows before the first damage into a new ledger: what it was at an earlier moment, and as valid.

    The old file is only read. The last row of the new one says what happened.
    """
    _check_target(target)
    try:
        return _salvaged(path, target, read_mark(path))
    except LedgerDamaged as error:
        raise LedgerDamaged(
            f"{error.found}. Nothing of it could be saved", "Continue with a backup if there is one"
        ) from error


def _salvaged(path: Path, target: Path, mark: Mark | None) -> Salvaged:
    with closing(lenient_reader(path)) as source, errors_translated(path, "saving what can be saved"):
        log_missing = is_log_missing(path)
        version = check_schema(source, path)
        with errors_translated(target, "saving what can be saved"), new_file(target, version) as copy:
            chain, campaign, damage = Chain(), "", ""
            try:
                for table, row in walk(source, path):
                    campaign = str(row["id"]) if table is CAMPAIGN else campaign
                    copy.execute(table.at(version).insert(), tuple(row))
                    chain.sequence, chain.head = row["seq"], row["hash"]
                damage = missing_rows(source, path, campaign, mark, log_missing=log_missing)
            except LedgerDamaged as error:
                damage = error.found
            if chain.sequence == 0:
                raise LedgerDamaged(f"{path}: not even the first row can be read ({damage})")
            kept = chain.sequence
            _note(Transaction(copy, chain), "salvaged", rows=kept, damage=damage)
    return Salvaged(kept, damage)


def _note(transaction: Transaction, kind: str, **facts: object) -> None:
    transaction.add(NOTE, note_values(kind, to_json(facts), time.time_ns()))


def _check_target(target: Path) -> None:
    """Refuse a name that is taken, or under which no file can be."""
    # The second one is the longest name that is needed on the way.
    for name in (target, target.with_name(target.name + ".part-journal")):
        try:
            os.stat(name)  # noqa: PTH116 (later Pythons' exists() hides the errors that matter here)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise ScenarioError(
                f"the new ledger {target} cannot be written ({error.strerror or error}); expected a name of at most "
                f"{_LONGEST_NAME} bytes in a folder that exists; choose another one"
            ) from error
        if name == target:
            raise ScenarioError(f"{target} exists already; choose another name, nothing is ever overwritten")


# Watch the file under a ledger's name while a campaign writes to it, and save what is left when it is gone.
#
# The writer holds its files open, so deleting or replacing them raises no error: SQLite keeps writing to files that
# have no name any more. `FileWatch` compares names with open files; `rescue` copies all rows through the open
# connection.

_BETWEEN_LOOKS = 1.0
# Device and number of a file; or its size and when it was changed, which tell when to look closer.
_Facts: TypeAlias = tuple[int, int]


class FileWatch:
    """Tells whether the files under a ledger's name are still the ones that are open.

    Args:
        path: The ledger, just opened for writing: its write-ahead log exists, if it has one.

    Attributes:
        log_only: Whether nothing but the write-ahead log was found to be lost.
        overwritten: Whether the file that is open was found to hold something else.
    """

    def __init__(self, path: Path) -> None:
        self.log_only = self.overwritten = False
        self._path = path
        self._log = log_path(path)
        self._file = _file_at(path)
        self._log_file = _file_at(self._log)
        self._content: _Facts | None = None
        self._due = 0.0
        self.wrote()

    def wrote(self) -> None:
        """Remember the file as it is after a transaction of ours."""
        self._content = _content_at(self._path)

    def is_due(self) -> bool:
        """Return True about once a second."""
        now = time.monotonic()
        if now < self._due:
            return False
        self._due = now + _BETWEEN_LOOKS
        return True

    def look(self, chain: Chain) -> str:
        """Return what has happened to the files in one clause; "" if nothing has.

        Args:
            chain: Where the ledger ends.
        """
        file = _file_at(self._path)
        if file is None:
            return f"{self._path} was deleted or moved while it was being written"
        if file != self._file:
            return f"{self._path} was replaced by another file while it was being written"
        self.log_only = self._log_file is not None and _file_at(self._log) != self._log_file
        if self.log_only:
            return f"{self._log}, which holds the newest rows, was deleted or replaced while it was being written"
        content = _content_at(self._path)
        if content != self._content:
            return self._look_closer(chain, content)
        return ""

    def _look_closer(self, chain: Chain, content: _Facts | None) -> str:
        """Look closer at a file that another process wrote: a tool that changed nothing of it, or a copy over it."""
        try:
            with closing(reader(self._path)) as connection:
                connection.execute("BEGIN")
                for _ in walk(connection, self._path):
                    pass
                whole = tail(connection) == (chain.sequence, chain.head)
        except (LedgerDamaged, ScenarioError):
            whole = False
        except LedgerError:
            # Locked, or no memory for it: nothing is known yet, and the next look is as good.
            return ""
        self.overwritten = not whole
        if self.overwritten:
            return f"{self._path} was overwritten with other content while it was being written"
        self._content = content
        return ""

    @contextmanager
    def sparing_others(self) -> Iterator[None]:
        """Keep a log that is not ours: SQLite deletes whatever has the log's name when it closes the ledger."""
        foreign = _file_at(self._log)
        if foreign is None or foreign == self._log_file:
            yield
            return
        kept = self._log.with_name(f"{self._log.name}.kept-{os.getpid()}")
        with contextlib.suppress(OSError):
            os.link(self._log, kept)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                if self._log.exists():
                    kept.unlink()
                else:
                    kept.rename(self._log)


@dataclass(frozen=True, slots=True)
class Rescued:
    """A copy of a ledger that has lost its name.

    Attributes:
        path: Where the copy is.
        rows: How many rows of the ledger it has.
    """

    path: Path
    rows: int


def rescued_name(path: Path) -> Path:
    """Return where what is left of a ledger is saved."""
    return path.with_name(f"{path.stem}.rescued{path.suffix}")


def rescue(connection: sqlite3.Connection, path: Path, why: str) -> Rescued | None:
    """Copy all rows that an open connection still reaches into a new ledger; its last row says what happened.

    Args:
        connection: To the ledger whose file is gone or was replaced.
        path: The name it had. The copy is put beside it, or into the folder for temporary files.
        why: What happened to the file, in words.

    Returns:
        None if no whole copy could be made.
    """
    for folder in (path.parent, Path(tempfile.gettempdir())):
        target = _free_name(folder / rescued_name(path).name)
        try:
            with errors_translated(target, "saving what is left"):
                return Rescued(target, _copied(connection, target, target, "rescued", because=why))
        except LedgerError:
            continue
    return None


def _free_name(path: Path) -> Path:
    """Return the name, or the first one with a number that is free."""
    tried, number = path, 1
    while tried.exists():
        number += 1
        tried = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return tried


def _stat(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116 (after every transaction)
    except OSError:
        return None


def _file_at(path: Path) -> _Facts | None:
    found = _stat(path)
    return None if found is None else (found.st_dev, found.st_ino)


def _content_at(path: Path) -> _Facts | None:
    found = _stat(path)
    return None if found is None else (found.st_size, found.st_mtime_ns)


# Warn when a long-lived reader prevents WAL truncation, and name its process.
#
# SQLite brings the log into the file and begins it anew whenever no reader needs it. A reader that does not end (a
# shell with an open transaction, a stopped process) needs it for ever, and it grows with every run. Nothing is lost
# by that but space.

LOG_BYTES = 64 << 20
"""How large the log may become before a warning is given, in bytes."""


class WalMonitor:
    """Looks at the size of the log, and speaks up when it is too large, and each time it has doubled since.

    Args:
        path: The ledger.
        allowed: How many bytes the log may have without a warning.
    """

    def __init__(self, path: Path, allowed: int = LOG_BYTES) -> None:
        self._path = path
        self._log = log_path(path)
        self._allowed = allowed

    def look(self) -> str:
        """Return what there is to say; "" for nothing."""
        found = _stat(self._log)
        size = 0 if found is None else found.st_size
        if size <= self._allowed:
            return ""
        self._allowed = 2 * size
        return (
            f"{self._log.name} has grown to {size / 1e6:,.0f} MB, because {_readers(self._path)} still reads an old "
            "state of the ledger. Nothing is lost, but the file grows until that ends"
        )


def _readers(path: Path) -> str:
    """Return which other processes have the ledger open, in words."""
    found = [f"process {pid} ({_name(pid)})" for pid in _processes() if pid != os.getpid() and _has_open(pid, path)]
    return " or ".join(found) or "another process"


def _processes() -> list[int]:
    try:
        return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 (names only)
    except OSError:
        return []


def _has_open(pid: int, path: Path) -> bool:
    """False also where we may not look."""
    try:
        opened = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False
    return any(_is_same(each, path) for each in opened)


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False  # closed in the meantime


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "gone by now"
