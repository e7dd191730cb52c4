"""The tables of a ledger, the hash chain over their rows, and the questions that writer and readers both ask."""

import hashlib
import json
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, get_args

from captime.certificate import Mode, Population
from captime.errors import LedgerDamaged
from captime.runs import Status

# The tables of a ledger: what columns there are, what may stand in them, and that nothing is ever changed.
#
# Every row of every table has a sequence number of its own, 1, 2, 3, … across all tables, and a hash (see `row_hash`).
# Times are integer nanoseconds. Seconds that decisions are drawn from are doubles, as exact as they were; "no
# captime" is NULL, because infinity prints differently everywhere. Whatever a stranger's program or file system can
# put bytes into is a BLOB. `call` is the number of the first row that was written by the same call.

Origin = Literal["listed", "default", "favourite", "random", "model"]
"""How a configuration came into a campaign."""
APPLICATION_ID = 0x63617074
"""Bytes 68 to 71 of the file: "capt"."""
VERSION = 2
"""Version of these tables; a file has its own in SQLite's `user_version`. It grows with every column or table that is
added, and with every new member of an enumeration that a column holds. (The constraints of an older file do not know
that member: it needs new rules of deciding, too, so that such a file is not resumed.)

A file keeps the version it was made with: it is read, checked and written with the columns of that version, which is
also what its hashes cover, so nothing ever has to be migrated. A column that is added is NULL where nothing is known,
and carries the version it came with (`since`). Only a file of a newer version than this is refused.
"""

_LARGEST = "1.7976931348623157e308"
_SECONDS = f"REAL NOT NULL CHECK ({{0}} BETWEEN 0.0 AND {_LARGEST})"
_COUNT = "INTEGER NOT NULL CHECK ({0} >= 0)"


def _one_of(values: Iterable[str]) -> str:
    """Return the condition that a column holds one of these words."""
    return "{0} IN (" + ", ".join(f"'{value}'" for value in values) + ")"


class Column(NamedTuple):
    """A column of a table.

    Attributes:
        name: What it is called.
        kind: Its SQL type and constraints, `{0}` standing for the name.
        since: The version of the tables it came with; one that came later may be NULL.
    """

    name: str
    kind: str
    since: int = 1


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        name: What it is called.
        columns: Its own columns; sequence number and hash are common to all tables.
        rules: Constraints over several columns.
        indices: Further SQL.
        since: The version of the tables it came with.
    """

    name: str
    columns: tuple[Column, ...]
    rules: tuple[str, ...] = ()
    indices: tuple[str, ...] = ()
    since: int = 1

    def at(self, version: int) -> "Table":
        """Return the table as it is in a file of that version."""
        if version >= self._newest:
            return self
        return replace(self, columns=tuple(column for column in self.columns if column.since <= version))

    @cached_property
    def _newest(self) -> int:
        return max(column.since for column in self.columns)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of its own columns."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def blobs(self) -> tuple[int, ...]:
        """Which of its own columns hold bytes."""
        return tuple(place for place, column in enumerate(self.columns) if column.kind.startswith("BLOB"))

    def sql(self) -> str:
        """Return the statements that make it, with its triggers."""
        parts = ["seq INTEGER PRIMARY KEY CHECK (seq >= 1)"]
        parts += [f"{column.name} {column.kind.format(column.name)}" for column in self.columns]
        parts += ["hash BLOB NOT NULL CHECK (length(hash) = 32)", *self.rules]
        body = ",\n    ".join(parts)
        guards = "\n".join(
            f"CREATE TRIGGER {self.name}_no_{verb.lower()} BEFORE {verb} ON {self.name} "
            f"BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END;"
            for verb in ("UPDATE", "DELETE")
        )
        return "\n".join((f"CREATE TABLE {self.name} (\n    {body}\n) STRICT;", guards, *self.indices))

    def insert(self) -> str:
        """Return the statement that adds a row."""
        return self._insert

    def select(self) -> str:
        """Return the statement that reads rows in order; further conditions may be added."""
        return self._select

    @cached_property
    def _insert(self) -> str:
        names = ("seq", *self.names, "hash")
        return f"INSERT INTO {self.name} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"  # noqa: S608 (names from this page)

    @cached_property
    def _select(self) -> str:
        return f"SELECT {', '.join(('seq', *self.names, 'hash'))} FROM {self.name}"  # noqa: S608 (names from this page)


_RUN = (Column("config", _COUNT), Column("position", _COUNT), Column("attempt", _COUNT))
_AT = Column("at_ns", "INTEGER NOT NULL")
_CALL = Column("call", "INTEGER NOT NULL CHECK ({0} BETWEEN 1 AND seq)")

CAMPAIGN = Table(
    "campaign",
    (
        Column("id", "TEXT NOT NULL"),
        Column("captime_version", "TEXT NOT NULL"),
        Column("schema_version", "INTEGER NOT NULL"),
        Column("scenario", "TEXT NOT NULL"),
        Column("scenario_hash", "TEXT NOT NULL CHECK (length({0}) = 64)"),
        _AT,
    ),
)
OWNER = Table(
    "owner",
    (
        Column("epoch", "INTEGER NOT NULL UNIQUE CHECK ({0} >= 1)"),
        Column("host", "BLOB NOT NULL"),
        Column("boot", "TEXT NOT NULL"),
        Column("pid", "INTEGER NOT NULL"),
        Column("process_start", "TEXT NOT NULL"),
        _AT,
    ),
)
CONFIG = Table(
    "config",
    (
        Column("config", "INTEGER NOT NULL UNIQUE CHECK ({0} >= 0)"),
        Column("name", "BLOB NOT NULL"),
        Column("settings", "TEXT NOT NULL"),
        Column("origin", f"TEXT NOT NULL CHECK ({_one_of(get_args(Origin))})"),
        _CALL,
    ),
)
SAMPLE = Table(
    "sample",
    (
        Column("position", "INTEGER NOT NULL UNIQUE CHECK ({0} >= 0)"),
        Column("instance", "BLOB NOT NULL"),
        Column("digest", "TEXT NOT NULL"),
        Column("seed", "INTEGER NOT NULL"),
        _CALL,
    ),
)
ASK = Table(
    "ask",
    (
        Column("slots", "INTEGER NOT NULL"),
        Column("configs", "BLOB NOT NULL"),
        Column("n", "BLOB NOT NULL"),
        Column("level", "BLOB NOT NULL"),
        Column("first", "BLOB"),
        _AT,
    ),
)
START = Table(
    "start",
    (
        *_RUN,
        Column("captime", f"REAL CHECK ({{0}} IS NULL OR {{0}} BETWEEN 0.0 AND {_LARGEST})"),
        Column("epoch", "INTEGER NOT NULL"),
        _AT,
        _CALL,
    ),
    ("UNIQUE (config, position, attempt)",),
)
LOOK = Table(
    "look",
    ((*_RUN, Column("seconds", _SECONDS), _CALL)),
    ("FOREIGN KEY (config, position, attempt) REFERENCES start (config, position, attempt)",),
)
OUTCOME = Table(
    "outcome",
    (
        *_RUN,
        Column("status", f"TEXT NOT NULL CHECK ({_one_of(status.value for status in Status)})"),
        Column("runtime", _SECONDS),
        Column("cost", _SECONDS),
        Column("orphan", "INTEGER NOT NULL CHECK ({0} IN (0, 1))"),
        Column("verdict", "TEXT"),
        Column("detail", "BLOB NOT NULL"),
        Column("cpu_ns", "INTEGER"),
        Column("wall_ns", "INTEGER"),
        Column("exit_code", "INTEGER"),
        Column("signal", "INTEGER"),
        Column("peak_memory", "INTEGER"),
        Column("answer", "BLOB"),
        Column("reported", "REAL"),
        Column("queue_wait_ns", "INTEGER"),
        Column("switches", "INTEGER"),
        Column("leftovers", "INTEGER"),
        Column("output_bytes", "INTEGER"),
        Column("stdout_tail", "BLOB"),
        Column("stderr_tail", "BLOB"),
        Column("host", "BLOB"),
        Column("slot", "INTEGER"),
        Column("flags", "TEXT"),
        _AT,
        _CALL,
    ),
    ("FOREIGN KEY (config, position, attempt) REFERENCES start (config, position, attempt)",),
    (
        "CREATE UNIQUE INDEX outcome_counts_once ON outcome (config, position, attempt) WHERE orphan = 0;",
        (
            "CREATE VIEW run AS SELECT o.seq AS seq, o.config AS config, c.name AS name, o.position AS position, "
            "s.instance AS instance, s.seed AS seed, o.attempt AS attempt, t.captime AS captime, o.status AS status, "
            "o.verdict AS verdict, o.runtime AS runtime, o.cost AS cost, o.cpu_ns AS cpu_ns, o.wall_ns AS wall_ns, "
            "o.exit_code AS exit_code, o.signal AS signal, o.answer AS answer, o.at_ns AS at_ns "
            "FROM outcome o JOIN start t USING (config, position, attempt) JOIN sample s ON s.position = o.position "
            "JOIN config c ON c.config = o.config WHERE o.orphan = 0;"
        ),
    ),
)
CERTIFICATE = Table(
    "certificate",
    (
        Column("config", _COUNT),
        Column("epsilon", "REAL NOT NULL CHECK ({0} BETWEEN 0.0 AND 1.0)"),
        Column("delta", "REAL NOT NULL CHECK ({0} BETWEEN 0.0 AND 1.0)"),
        Column("n_configs", "INTEGER NOT NULL CHECK ({0} >= 1)"),
        Column("utility_low", "REAL NOT NULL"),
        Column("utility_high", "REAL NOT NULL"),
        Column("gamma", "REAL"),
        Column("challenger", "INTEGER"),
        Column("mode", f"TEXT NOT NULL CHECK ({_one_of(get_args(Mode))})"),
        Column("shares", "TEXT NOT NULL"),
        Column("rounds", _COUNT),
        Column("cpu_seconds", _SECONDS),
        Column("wall_seconds", _SECONDS),
        Column("candidates", _COUNT),
        Column("head", "BLOB NOT NULL CHECK (length({0}) = 32)"),
        _AT,
        Column("population", f"TEXT CHECK ({_one_of(Population)})", since=2),
        Column("instances", "INTEGER CHECK ({0} >= 1)", since=2),
        Column("instances_run", "INTEGER CHECK ({0} >= 0)", since=2),
        Column("other", "TEXT", since=2),
    ),
)
NOTE = Table(
    "note",
    (Column("kind", "TEXT NOT NULL"), Column("facts", "TEXT NOT NULL"), _AT),
)

TABLES: tuple[Table, ...] = (CAMPAIGN, OWNER, CONFIG, SAMPLE, ASK, START, LOOK, OUTCOME, CERTIFICATE, NOTE)
"""All of them, in the order in which they refer to each other."""


def tables_at(version: int) -> tuple[Table, ...]:
    """Return the tables of a file of that version, with the columns it has."""
    return tuple(table.at(version) for table in TABLES if table.since <= version)


def create_all(version: int) -> str:
    """Return the statements that make an empty ledger."""
    return "\n".join(table.sql() for table in tables_at(version))


# The hash chain: each row's hash covers its own content and the hash of the row before, whatever table it is in.
#
# A row is written as a JSON array `[table, sequence, column, column, …]` without spaces: integers as they are,
# doubles as the shortest number that reads back the same, text escaped to ASCII, bytes as text with one character per
# byte, NULL as null. Its hash is SHA-256 of the hash before (32 bytes) and that array. The first row follows 32 zero
# bytes.

Value: TypeAlias = int | float | str | bytes | None
Row: TypeAlias = sqlite3.Row
"""A row as SQLite gives it, with its columns by name: `seq`, the table's own columns, `hash`."""
Values: TypeAlias = Mapping[str, Value]
"""A table's own columns by name; what is left out is NULL."""

GENESIS = bytes(32)
"""What the first row follows."""

_encode = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), check_circular=False, allow_nan=False).encode


def row_hash(before: bytes, table: Table, sequence: int, values: Sequence[Value]) -> bytes:
    """Return the hash of a row that follows the hash `before`."""
    told: list[object] = [table.name, sequence, *values]
    for place in table.blobs:
        content = values[place]
        if content is not None:
            told[place + 2] = content.decode("latin-1") if isinstance(content, bytes) else repr(content)
    return hashlib.sha256(before + _encode(told).encode()).digest()


class Chain:
    """The end of a chain that grows.

    Attributes:
        sequence: Number of the last row; 0 before the first.
        head: Its hash.
    """

    __slots__ = ("head", "sequence")

    def __init__(self, sequence: int = 0, head: bytes = GENESIS) -> None:
        self.sequence = sequence
        self.head = head

    def link(self, table: Table, values: Iterable[Value]) -> tuple[Value, ...]:
        """Return the next row, complete with its number and its hash; the chain ends there now.

        Args:
            table: As it is in the file (see `Table.at`).
            values: Of its columns, in their order.
        """
        content = tuple(values)
        self.sequence += 1
        self.head = row_hash(self.head, table, self.sequence, content)
        return (self.sequence, *content, self.head)

    def follows(self, table: Table, row: Row) -> bool:
        """Return whether this is the next row, unchanged; if so, the chain ends there now.

        Args:
            table: As it is in the file (see `Table.at`).
            row: All of its columns, in their order.
        """
        try:
            expected = row_hash(self.head, table, self.sequence + 1, [row[name] for name in table.names])
        except (TypeError, ValueError):
            # A damaged page may hold a value of any kind in any column; none of those was ever written.
            return False
        if row["seq"] != self.sequence + 1 or row["hash"] != expected:
            return False
        self.sequence += 1
        self.head = expected
        return True


# Questions to a ledger that both its writer and its readers ask. Rows come with their columns by name.

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
