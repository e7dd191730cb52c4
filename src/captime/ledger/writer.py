"""A transaction: all of it or nothing, linked to the chain, and only while the ledger is still ours."""

import contextlib
import hashlib
import os
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Literal, TypeAlias

from captime.errors import InvariantViolated, LedgerInUse, ScenarioError
from captime.ledger.connection import errors_translated, reached, sync_directory, writer
from captime.ledger.integrity import tail
from captime.ledger.ownership import Mark, Owner, WriteLock
from captime.ledger.rows import ConfigRow, config_values, to_json, to_text
from captime.ledger.schema import (
    APPLICATION_ID,
    CAMPAIGN,
    CONFIG,
    OWNER,
    VERSION,
    Chain,
    Row,
    Table,
    Values,
    create_all,
    rows_of,
    version_of,
)


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
                reached(f"{point}-inserted", "before")
                for step in steps:
                    step(transaction)
                reached(f"{point}-inserted")
                reached(f"{point}-committed", "before")
                self.connection.execute("COMMIT")
                reached(f"{point}-committed")
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
        reached("checkpoint", "before")
        busy, in_log, moved = self.connection.execute(f"PRAGMA wal_checkpoint({manner})").fetchone()
        reached("checkpoint")
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
        reached("ledger-created", "before")
        with new_file(path) as connection:
            transaction = Transaction(connection, Chain())
            transaction.add(CAMPAIGN, campaign)
            for config in configs:
                transaction.add(CONFIG, config_values(config, 1))
        reached("ledger-created")


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
