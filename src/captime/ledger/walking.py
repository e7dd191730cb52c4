"""All rows of a ledger in the order in which they were written, each checked against the chain."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from captime.errors import LedgerDamaged
from captime.ledger.chain import GENESIS, Chain, Row
from captime.ledger.ownership import Mark, read_mark
from captime.ledger.schema import TABLES, Table
from captime.ledger.trouble import translated


def walk(connection: sqlite3.Connection, path: Path) -> Iterator[tuple[Table, Row]]:
    """Every row with its table, from the first to the last; stops with `LedgerDamaged` at the first that is not right.

    Args:
        connection: Inside a transaction, if somebody may be writing meanwhile.
        path: For messages.
    """
    chain = Chain()
    try:
        heads: dict[int, tuple[Table, Row, sqlite3.Cursor]] = {}
        for table in TABLES:
            _advance(heads, table, connection.execute(f"{table.select()} ORDER BY seq"))
        while heads:
            found = heads.pop(chain.sequence + 1, None)
            if found is None:
                raise _broken(path, chain.sequence + 1, f"is missing, although there is a row {min(heads)}")
            table, row, cursor = found
            if not chain.follows(table, row):
                raise _broken(path, row[0], f"of table {table.name} was changed: its hash does not fit")
            yield table, row
            _advance(heads, table, cursor)
    except sqlite3.Error as error:
        raise _broken(path, chain.sequence + 1, f"cannot be read ({translated(error, path, 'reading it')})") from error


def _advance(heads: dict[int, tuple[Table, Row, sqlite3.Cursor]], table: Table, cursor: sqlite3.Cursor) -> None:
    row = next(cursor, None)
    if row is not None:
        # Two rows with one number: the one that is not in its place will be missed or will not fit.
        heads[row[0]] = (table, row, cursor)


def _broken(path: Path, sequence: int, what: str) -> LedgerDamaged:
    return LedgerDamaged(
        f"{path}: row {sequence} {what}. Rows before it are whole; `captime salvage {path} -o NEW` copies them"
    )


def tail(connection: sqlite3.Connection) -> tuple[int, bytes]:
    """Number and hash of the last row; 0 and zeros if there is none. Looks at ends only."""
    last, where = 0, None
    for table in TABLES:
        found = connection.execute(f"SELECT max(seq) FROM {table.name}").fetchone()[0]  # noqa: S608 (names of ours)
        if found is not None and found > last:
            last, where = found, table
    return last, GENESIS if where is None else hash_of(connection, last) or GENESIS


def hash_of(connection: sqlite3.Connection, sequence: int) -> bytes | None:
    """The hash written beside a row, whatever table it is in; None if there is no such row."""
    for table in TABLES:
        row = connection.execute(f"SELECT hash FROM {table.name} WHERE seq = ?", (sequence,)).fetchone()  # noqa: S608 (names of ours)
        if row is not None:
            return bytes(row[0])
    return None


def check_mark(connection: sqlite3.Connection, path: Path, campaign: str) -> Mark | None:
    """Refuse a ledger that ends before the place its lock file remembers. Return that place, if there is one."""
    mark = read_mark(path)
    if mark is None or mark.campaign != campaign:
        return None
    found = hash_of(connection, mark.sequence)
    if found is None or found.hex() != mark.head:
        last, _ = tail(connection)
        what = "is missing" if found is None else "is another one"
        raise LedgerDamaged(
            f"{path}: row {mark.sequence} {what}: the ledger has had {mark.sequence} rows with the head {mark.head}, "
            f"and now it ends with row {last}. Was its -wal file deleted, or an older copy put in its place? Bring "
            "them back; or, if that copy is what you want, delete the .lock file beside it"
        )
    return mark
