"""Questions to a ledger that both its writer and its readers ask. Rows come with their columns by name."""

import re
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

from captime.errors import LedgerDamaged
from captime.ledger.chain import Row, Value
from captime.ledger.schema import CAMPAIGN, START, Table

_IN_FLIGHT = (
    "AS s WHERE NOT EXISTS (SELECT 1 FROM outcome o WHERE o.config = s.config AND o.position = "
    "s.position AND o.attempt = s.attempt AND o.orphan = 0) AND NOT EXISTS (SELECT 1 FROM start n WHERE n.config = "
    "s.config AND n.position = s.position AND n.attempt > s.attempt) ORDER BY seq"
)


def version_of(connection: sqlite3.Connection) -> int:
    """Return the version of the tables of a file; see `schema.VERSION`."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def rows_of(
    connection: sqlite3.Connection,
    table: Table,
    rest: str = "",
    values: Sequence[Value] = (),
    version: int | None = None,
) -> sqlite3.Cursor:
    """Return the rows of a table, each with the columns that this file has.

    Args:
        connection: To the ledger.
        table: Which.
        rest: Conditions and order, in SQL.
        values: For the question marks in it.
        version: Of the file's tables, where it is known already.
    """
    here = table.at(version_of(connection) if version is None else version)
    cursor = connection.cursor()
    cursor.row_factory = sqlite3.Row
    return cursor.execute(f"{here.select()} {rest}", values)


def start_of(connection: sqlite3.Connection, run: tuple[int, int, int]) -> Row:
    """Return the intent of a run: configuration, position and attempt."""
    found: Row = rows_of(connection, START, "WHERE (config, position, attempt) = (?, ?, ?)", run).fetchone()
    return found


def in_flight(connection: sqlite3.Connection) -> list[Row]:
    """Return the attempts that were started and never came back, those given up since left out."""
    return rows_of(connection, START, _IN_FLIGHT).fetchall()


def known_columns(expression: str, version: int, tables: Mapping[str, Table]) -> str:
    """Return an expression in which columns that a file of that version does not have are NULL.

    Args:
        expression: In SQL; columns stand behind the name of their table, as in `o.status`.
        version: Of the file.
        tables: By the names that are used in the expression.

    >>> from captime.ledger.schema import NOTE, Column
    >>> from dataclasses import replace
    >>> later = replace(NOTE, columns=(*NOTE.columns, Column("who", "TEXT", since=2)))
    >>> known_columns("ifnull(n.who, n.kind)", 1, {"n": later}), known_columns("n.who", 2, {"n": later})
    ('ifnull(NULL, n.kind)', 'n.who')
    """

    def known(found: re.Match[str]) -> str:
        columns = ("seq", "hash", *tables[found[1]].at(version).names)
        return found[0] if found[2] in columns else "NULL"

    return re.sub(rf"\b({'|'.join(tables)})\.(\w+)", known, expression)


def campaign_row(connection: sqlite3.Connection, path: Path) -> Row:
    """Return the row that says what campaign a ledger is about."""
    found: Row | None = rows_of(connection, CAMPAIGN, "ORDER BY seq LIMIT 1").fetchone()
    if found is None:
        raise LedgerDamaged(f"{path} is empty: the row that says what campaign it is about is missing")
    return found
