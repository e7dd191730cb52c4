"""All rows of a ledger in the order in which they were written, each checked against the chain."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from captime.errors import LedgerDamaged
from captime.ledger.chain import GENESIS, Chain, Row
from captime.ledger.connection import has_log, left_open
from captime.ledger.ownership import Mark, read_mark
from captime.ledger.queries import rows_of, version_of
from captime.ledger.schema import TABLES, Table, tables_at
from captime.ledger.sqlite_errors import damage_reported


def walk(connection: sqlite3.Connection, path: Path) -> Iterator[tuple[Table, Row]]:
    """Every row with its table, from the first to the last; stops with `LedgerDamaged` at the first that is not right.

    A row has the columns of the file's version, and those are what its hash covers.

    Args:
        connection: Inside a transaction, if a writer may be at work meanwhile.
        path: For messages.
    """
    chain = Chain()
    try:
        heads: _Heads = {}
        version = version_of(connection)
        here = {table.name: table for table in tables_at(version)}
        for table in TABLES:
            if table.name in here:
                _advance(heads, table, rows_of(connection, table, "ORDER BY seq"))
        while heads:
            found = heads.pop(chain.sequence + 1, None)
            if found is None:
                raise _broken(path, chain.sequence + 1, f"is missing, although there is a row {min(heads)}")
            table, row, cursor = found
            if not chain.follows(here[table.name], row):
                raise _broken(path, row["seq"], f"of table {table.name} was changed: its hash does not fit")
            yield table, row
            _advance(heads, table, cursor)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise _broken(path, chain.sequence + 1, f"cannot be read ({error})") from error


_Heads: TypeAlias = dict[int, tuple[Table, Row, sqlite3.Cursor]]


def _advance(heads: _Heads, table: Table, cursor: sqlite3.Cursor) -> None:
    row = next(cursor, None)
    if row is not None:
        # Two rows with one number: the one that is not in its place will be missed or will not fit.
        heads[row["seq"]] = (table, row, cursor)


def _broken(path: Path, sequence: int, what: str) -> LedgerDamaged:
    return LedgerDamaged(
        f"{path}: row {sequence} {what}", f"Rows before it are whole; `captime salvage {path} -o NEW` copies them"
    )


def tail(connection: sqlite3.Connection) -> tuple[int, bytes]:
    """Number and hash of the last row; 0 and zeros if there is none. Looks at ends only."""
    tables = tables_at(version_of(connection))
    ends = [connection.execute(f"SELECT max(seq) FROM {table.name}").fetchone()[0] for table in tables]  # noqa: S608 (names of ours)
    last = max((end for end in ends if end is not None), default=0)
    return last, hash_of(connection, last) or GENESIS


def hash_of(connection: sqlite3.Connection, sequence: int) -> bytes | None:
    """Return the hash written beside a row, whatever table it is in; None if there is no such row."""
    for table in tables_at(version_of(connection)):
        row = connection.execute(f"SELECT hash FROM {table.name} WHERE seq = ?", (sequence,)).fetchone()  # noqa: S608 (names of ours)
        if row is not None:
            return bytes(row[0])
    return None


def check_end(connection: sqlite3.Connection, path: Path, campaign: str, *, log_missing: bool) -> str:
    """Refuse a ledger whose newest rows are missing; otherwise say how it is known that none are.

    Args:
        connection: To the ledger.
        path: Where it is.
        campaign: Which campaign it is about.
        log_missing: What `is_log_missing` said before the ledger was opened.
    """
    mark = read_mark(path)
    missing = missing_rows(connection, path, campaign, mark, log_missing=log_missing)
    if missing and mark is not None and mark.campaign == campaign:
        raise LedgerDamaged(
            missing, "Bring them back; or, if that copy is what you want, delete the .lock file beside it"
        )
    if missing:
        raise LedgerDamaged(
            missing,
            f"Copy ledgers with `captime backup`; `captime salvage {path} -o NEW` makes a ledger of the rows that are "
            "here",
        )
    if mark is not None and mark.campaign == campaign:
        return f"it goes at least as far as its lock file remembers (row {mark.sequence})"
    return "its write-ahead log is beside it" if left_open(path) else "it was closed in good order"


def missing_rows(
    connection: sqlite3.Connection, path: Path, campaign: str, mark: Mark | None, *, log_missing: bool
) -> str:
    """Return what shows that the ledger's newest rows are missing; "" if nothing does.

    Args:
        connection: To the ledger.
        path: Where it is.
        campaign: Which campaign it is about.
        mark: What its lock file says; read before this connection read anything, so that it is not newer.
        log_missing: What `is_log_missing` said before the ledger was opened.
    """
    if mark is not None and mark.campaign == campaign:
        return _behind_mark(connection, path, mark)
    if log_missing:
        return (
            f"{path} was not closed, and what was not in the file yet is not beside it: it is a copy without its -wal "
            "file, or that file was deleted"
        )
    return ""


def is_log_missing(path: Path) -> bool:
    """Return whether the file says that it is in use, and there is no log beside it."""
    return left_open(path) and not has_log(path)


def _behind_mark(connection: sqlite3.Connection, path: Path, mark: Mark) -> str:
    with damage_reported(path):
        found = hash_of(connection, mark.sequence)
        last, _ = tail(connection)
    if found is not None and found.hex() == mark.head:
        return ""
    what = "is missing" if found is None else "is another one"
    return (
        f"{path}: row {mark.sequence} {what}: the ledger has had {mark.sequence} rows with the head {mark.head}, "
        f"and now it ends with row {last}: its -wal file was deleted, or an older copy was put in its place"
    )
