"""What SQLite complains about, in our words: whose turn is it to act?"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from captime.errors import InvariantViolated, LedgerDamaged, LedgerError, LedgerLocked, StorageTrouble

_STORAGE = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "the disk reports an error",
    sqlite3.SQLITE_READONLY: "it cannot be written to",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_BUSY: "another process keeps it locked",
    sqlite3.SQLITE_LOCKED: "another process keeps it locked",
    sqlite3.SQLITE_PERM: "permission was denied",
    sqlite3.SQLITE_AUTH: "permission was denied",
    sqlite3.SQLITE_NOMEM: "there is not enough memory",
    sqlite3.SQLITE_PROTOCOL: "its locks do not work on this file system",
    sqlite3.SQLITE_INTERRUPT: "it took longer than was allowed",
    sqlite3.SQLITE_NOLFS: "it is too large for this file system",
}
_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_SCHEMA, sqlite3.SQLITE_ERROR}


def salvage_advice(path: Path) -> str:
    """Return what to do about a damaged ledger."""
    return f"Keep the file as it is; `captime salvage {path} -o NEW` copies what is still whole"


def translated_error(error: sqlite3.Error, path: Path, doing: str) -> LedgerError | InvariantViolated:
    """Return the error of ours that says the same."""
    # Complaints of Python's own module carry no code.
    extended = getattr(error, "sqlite_errorcode", None)
    code = None if extended is None else extended & 0xFF
    where = f"ledger {path}: while {doing}"
    if code in _STORAGE:
        kind = LedgerLocked if code in _LOCKED else StorageTrouble
        return kind(
            f"{where}, {_STORAGE[code]} ({error}). Nothing false was written; make room or let go of the file, then "
            "run the same command again"
        )
    # Without a code: text that is not text. SQLite hands out whatever stands in a damaged page.
    if code in _DAMAGE or (code is None and isinstance(error, sqlite3.OperationalError)):
        return LedgerDamaged(
            f"{where}, SQLite found that the file is damaged or not a ledger ({error})", salvage_advice(path)
        )
    return InvariantViolated(f"{where}: {error}")


@contextmanager
def damage_reported(path: Path) -> Iterator[None]:
    """Rows are read in here as what they were written as; a damaged page may hold anything else."""
    try:
        yield
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
        raise LedgerDamaged(
            f"{path}: a row cannot be read as what it was written as ({error})", salvage_advice(path)
        ) from error


@contextmanager
def errors_translated(path: Path, doing: str) -> Iterator[None]:
    """Whatever SQLite or the file system complains about in here comes out as an error of ours."""
    try:
        yield
    except sqlite3.Error as error:
        raise translated_error(error, path, doing) from error
    except UnicodeDecodeError as error:
        # Python cannot even read the complaint, because it quotes a damaged page.
        raise LedgerDamaged(
            f"ledger {path}: while {doing}, text was found that is none; the file is damaged", salvage_advice(path)
        ) from error
    except OSError as error:
        raise StorageTrouble(
            f"ledger {path}: while {doing}, the system said: {error.strerror or error}. Nothing false was written; put "
            "it right, then run the same command again"
        ) from error
