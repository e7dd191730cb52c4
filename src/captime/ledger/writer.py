"""Rows linked by the chain: walk and check those that are there, and write new ones in transactions."""

import contextlib
import hashlib
import os
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from itertools import groupby
from pathlib import Path
from typing import Literal, TypeAlias

from captime.errors import InvariantViolated, LedgerDamaged, LedgerInUse, ScenarioError
from captime.ledger.connection import (
    crash_point,
    damage_reported,
    errors_translated,
    has_log,
    left_open,
    sync_directory,
    writer,
)
from captime.ledger.ownership import Mark, Owner, WriteLock, read_mark
from captime.ledger.rows import (
    Added,
    Asked,
    ConfigRow,
    Event,
    Observed,
    Started,
    config_of,
    config_values,
    note_of,
    orders_of,
    outcome_of,
    request_of,
    sample_of,
    to_json,
    to_text,
)
from captime.ledger.schema import (
    APPLICATION_ID,
    ASK,
    CAMPAIGN,
    CONFIG,
    GENESIS,
    LOOK,
    NOTE,
    OUTCOME,
    OWNER,
    SAMPLE,
    START,
    TABLES,
    VERSION,
    Chain,
    Row,
    Table,
    Values,
    create_all,
    rows_of,
    start_of,
    tables_at,
    version_of,
)
from captime.runs import RunRequest

# All rows of a ledger in the order in which they were written, each checked against the chain.


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
        return f"no row is missing at its end, going by its lock file (row {mark.sequence})"
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
            yield Asked(row["seq"], row["slots"], orders_of(row))
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


# A transaction: all of it or nothing, linked to the chain, and only while the ledger is still ours.


class Transaction:
    """What a step of a transaction can do.

    Attributes:
        connection: For questions.
        version: Of the file's tables.
    """

    def __init__(self, connection: sqlite3.Connection, chain: Chain) -> None:
        self.connection = connection
        self.chain = chain
        self.version = version_of(connection)

    @property
    def next(self) -> int:
        """The number of the next row."""
        return self.chain.sequence + 1

    @property
    def head(self) -> bytes:
        """The hash of the last row."""
        return self.chain.head

    def add(self, table: Table, values: Values) -> None:
        """Write a row, with the columns that this file has: what a newer captime would say besides is left out."""
        here = table.at(self.version)
        self.connection.execute(here.insert(), self.chain.link(here, (values.get(name) for name in here.names)))


Step: TypeAlias = Callable[[Transaction], None]


class RowWriter:
    """The one connection that writes, with the end of the chain and the right to extend it.

    Args:
        path: The ledger.
        connection: Made by `connection.writer`.
        lock: The right to write.
        campaign: Which campaign it is about.

    Attributes:
        path: The ledger.
        connection: For questions.
        chain: Where the ledger ends.
        epoch: How many owners there have been; 0 before we have written ourselves in.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: WriteLock, campaign: str) -> None:
        self.path = path
        self.connection = connection
        self.epoch = 0
        self._lock = lock
        self._campaign = campaign
        self._process = os.getpid()
        self._in_step = False
        self.chain = Chain(*tail(connection))

    def check_process(self) -> None:
        """A connection that was carried across a fork would ruin the file."""
        if self._process != os.getpid():
            raise InvariantViolated(
                f"ledger {self.path} was opened by process {self._process} and is used by its child {os.getpid()}"
            )

    def write(self, doing: str, steps: Sequence[Step], point: str) -> None:
        """Take these steps in one transaction; when this returns, they are on the disk.

        Args:
            doing: What for, in words.
            steps: What to write.
            point: Name of the crash points, before it is committed and after.
        """
        self.check_process()
        with errors_translated(self.path, doing):
            self._begin()
            try:
                # Whatever goes wrong from here on: where the chain ends is unknown until it is read again.
                chain, self._in_step = Chain(self.chain.sequence, self.chain.head), True
                transaction = Transaction(self.connection, chain)
                crash_point(f"{point}-inserted", "before")
                for step in steps:
                    step(transaction)
                crash_point(f"{point}-inserted")
                crash_point(f"{point}-committed", "before")
                self.connection.execute("COMMIT")
                crash_point(f"{point}-committed")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self.connection.rollback()
                raise
        self.chain, self._in_step = chain, False
        self._lock.mark(Mark(self._campaign, chain.sequence, chain.head.hex()))

    def _begin(self) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        if self._in_step:
            self.chain, self._in_step = Chain(*tail(self.connection)), False
        if self.epoch and (newest := last_owner(self.connection)) and newest[0] != self.epoch:
            self.connection.rollback()
            raise LedgerInUse(f"{self.path} was taken over by {newest[1]}; this process must not write to it any more")

    def checkpoint(self, manner: Literal["PASSIVE", "TRUNCATE"]) -> bool:
        """Bring what is in the write-ahead log into the file, as far as readers let us; return whether all of it is.

        Args:
            manner: PASSIVE does not wait; TRUNCATE waits for readers a while, and leaves an empty log.
        """
        crash_point("checkpoint", "before")
        busy, in_log, moved = self.connection.execute(f"PRAGMA wal_checkpoint({manner})").fetchone()
        crash_point("checkpoint")
        return not busy and in_log == moved

    def close(self) -> None:
        """Close the file in good order: one file, nothing beside it. With readers about, the log stays."""
        try:
            with contextlib.suppress(sqlite3.Error):
                self.checkpoint("TRUNCATE")
                self.connection.execute("PRAGMA journal_mode = DELETE").fetchone()
            self.connection.close()
        finally:
            self._lock.release()


def last_owner(connection: sqlite3.Connection) -> tuple[int, Owner, int] | None:
    """Epoch, identity and row number of the newest owner; None if there never was one."""
    row: Row | None = rows_of(connection, OWNER, "ORDER BY seq DESC LIMIT 1").fetchone()
    if row is None:
        return None
    owner = Owner(to_text(row["host"]), row["boot"], row["pid"], row["process_start"], row["at_ns"])
    return row["epoch"], owner, row["seq"]


# A new ledger, in one piece or not at all: made under another name, and given its own when it is whole.


def make_ledger(path: Path, scenario: Mapping[str, object], configs: Sequence[ConfigRow]) -> None:
    """A ledger with a scenario and its first configurations, and nothing else.

    Args:
        path: Where; there must be nothing yet. The caller holds the lock.
        scenario: What is asked, as far as JSON can say it.
        configs: Numbered 0, 1, 2, …
    """
    if path.exists():
        raise ScenarioError(f"{path} exists already; continue with it, or choose another name")
    check_numbers(configs, 0)
    text = to_json(scenario)
    made_by = metadata.version("captime")
    campaign: Values = {
        "id": uuid.uuid4().hex,
        "captime_version": made_by,
        "schema_version": VERSION,
        "scenario": text,
        "scenario_hash": hashlib.sha256(text.encode()).hexdigest(),
        "at_ns": time.time_ns(),
    }
    with errors_translated(path, "making it"):
        crash_point("ledger-created", "before")
        with new_file(path) as connection:
            transaction = Transaction(connection, Chain())
            transaction.add(CAMPAIGN, campaign)
            for config in configs:
                transaction.add(CONFIG, config_values(config, 1))
        crash_point("ledger-created")


@contextlib.contextmanager
def new_file(path: Path, version: int | None = None) -> Iterator[sqlite3.Connection]:
    """Yield an empty ledger under a temporary name, inside a transaction; it gets its name when everything went well.

    Args:
        path: Its name.
        version: Of its tables; the newest, unless rows of an older file are to be put into it.
    """
    version = VERSION if version is None else version
    part = path.with_name(path.name + ".part")
    for old in (part, part.with_name(part.name + "-journal")):
        old.unlink(missing_ok=True)
    connection = writer(part, network=True, new=True)
    try:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {version}")
        connection.executescript(f"BEGIN IMMEDIATE;\n{create_all(version)}")
        yield connection
        connection.execute("COMMIT")
        connection.close()
        part.rename(path)
    except BaseException:
        connection.close()
        part.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def check_numbers(configs: Sequence[ConfigRow], first: int) -> None:
    """Configurations are numbered without gaps, in the order in which they come."""
    found = [config.index for config in configs]
    if found != list(range(first, first + len(configs))):
        raise ScenarioError(f"configurations are numbered {found}; expected {first}, {first + 1}, … without gaps")
