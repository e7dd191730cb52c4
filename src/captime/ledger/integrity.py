"""All rows of a ledger in the order in which they were written, each checked against the chain."""

import sqlite3
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

from captime.errors import LedgerDamaged
from captime.ledger.connection import damage_reported, has_log, left_open
from captime.ledger.ownership import Mark, read_mark
from captime.ledger.rows import (
    Added,
    Asked,
    Event,
    Observed,
    Started,
    config_of,
    note_of,
    outcome_of,
    request_of,
    sample_of,
    targets_of,
)
from captime.ledger.schema import (
    ASK,
    CONFIG,
    GENESIS,
    LOOK,
    NOTE,
    OUTCOME,
    SAMPLE,
    START,
    TABLES,
    Chain,
    Row,
    Table,
    rows_of,
    start_of,
    tables_at,
    version_of,
)
from captime.runs import RunRequest


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


# The events of a campaign as they were told to the ledger, in order: what resuming replays.

_Key: TypeAlias = tuple[int, int, int]
# Which tables a call writes to; their rows carry the number of its first row.
_CALLS = {table.name for table in (SAMPLE, START, LOOK, OUTCOME, CONFIG)}


def events(connection: sqlite3.Connection, path: Path) -> Iterator[Event]:
    """Asked, Started, Observed, Added and Noted, exactly as they were told; the chain is checked on the way."""
    under_way: dict[_Key, RunRequest] = {}
    for _, group in groupby(walk(connection, path), key=_call):
        rows = list(group)
        table, row = rows[0]
        if table in (SAMPLE, START):
            yield _started(rows, under_way)
        elif table in (OUTCOME, LOOK):
            yield _observed(rows, under_way, connection)
        elif table is ASK:
            yield Asked(row["seq"], row["slots"], targets_of(row))
        elif table is NOTE:
            yield note_of(row)
        elif table is CONFIG and row["call"] != 1:
            yield Added(row["seq"], tuple(config_of(each) for _, each in rows))


def _call(entry: tuple[Table, Row]) -> int:
    table, row = entry
    return int(row["call"] if table.name in _CALLS else row["seq"])


def _started(rows: list[tuple[Table, Row]], under_way: dict[_Key, RunRequest]) -> Started:
    requests = tuple(request_of(row) for table, row in rows if table is START)
    for request in requests:
        under_way[request.config, request.instance, request.attempt] = request
    samples = tuple(sample_of(row) for table, row in rows if table is SAMPLE)
    return Started(rows[0][1]["seq"], requests, samples)


def _observed(
    rows: list[tuple[Table, Row]], under_way: dict[_Key, RunRequest], connection: sqlite3.Connection
) -> Observed:
    outcomes, seen, ended = [], [], []
    for table, row in rows:
        key: _Key = (row["config"], row["position"], row["attempt"])
        request = under_way.get(key)
        if request is None:
            # It has come back before: an orphan, which is rare.
            request = request_of(start_of(connection, key))
        if table is OUTCOME:
            outcomes.append(outcome_of(row, request))
            ended.append(key)
        else:
            seen.append((request, row["seconds"]))
    for key in ended:
        under_way.pop(key, None)
    return Observed(rows[0][1]["seq"], tuple(outcomes), tuple(seen))
