"""The one writer of a ledger: intent before launch, outcome before decision, each written through to the disk.

What is written is never changed. One process writes: a ledger that was carried across a fork is refused, and every
transaction first makes sure that no other process has taken the ledger over.
"""

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from os import PathLike
from pathlib import Path
from typing import Self

from captime.certificate import Certificate, Orders
from captime.errors import InvariantViolated, LedgerDamaged
from captime.ledger.connection import (
    BUSY_SECONDS,
    Closing,
    check_filesystem,
    check_is_ledger_file,
    check_schema,
    check_writable,
    damage_reported,
    errors_translated,
    reader,
    writer,
)
from captime.ledger.file_watch import FileWatch, Rescued, WalMonitor, rescue
from captime.ledger.ownership import Mark, WriteLock, check_owner
from captime.ledger.rows import (
    ConfigRow,
    Event,
    SampleRow,
    ask_values,
    certificate_values,
    config_of,
    config_values,
    look_values,
    note_values,
    outcome_values,
    request_of,
    sample_of,
    sample_values,
    start_values,
    to_bytes,
    to_json,
)
from captime.ledger.schema import (
    ASK,
    CERTIFICATE,
    CONFIG,
    LOOK,
    NOTE,
    OUTCOME,
    OWNER,
    SAMPLE,
    START,
    Row,
    Values,
    campaign_row,
    in_flight,
    rows_of,
)
from captime.ledger.writer import (
    RowWriter,
    Step,
    Transaction,
    check_end,
    check_numbers,
    events,
    is_log_missing,
    last_owner,
    make_ledger,
    tail,
)
from captime.runs import RunOutcome, RunRequest

_NEWEST = "WHERE config = ? AND position = ? ORDER BY attempt DESC LIMIT 1"
_CAME_BACK = "SELECT 1 FROM outcome WHERE config = ? AND position = ? AND attempt = ? AND orphan = 0"


class Ledger(Closing):
    """The file that remembers a campaign, open for writing. Make one with `create` or `open`.

    Attributes:
        path: Where it is.
        campaign_id: A name that no other campaign has.
        scenario: What was asked, as it was written when the campaign began.
        scenario_hash: SHA-256 of that.
        configs: The configurations so far.
        warnings: What the user should know about its file.
        lost: What has happened to its file while it was open, in one clause; "" as long as it is where it was.
    """

    def __init__(self, path: Path, row_writer: RowWriter, campaign: Row, configs: list[ConfigRow]) -> None:
        self.path = path
        self.campaign_id: str = campaign["id"]
        self.scenario: dict[str, object] = json.loads(campaign["scenario"])
        self.scenario_hash: str = campaign["scenario_hash"]
        self.configs = configs
        self.warnings: list[str] = []
        self._writer = row_writer
        self.lost = ""
        self._rescued = False
        self._log = WalMonitor(path)
        self._file = FileWatch(path)
        self._waiting: list[Step] = []
        self._closed = False

    @classmethod
    def create(
        cls,
        path: str | PathLike[str],
        scenario: Mapping[str, object],
        configs: Sequence[ConfigRow],
        *,
        network: bool = False,
    ) -> Self:
        """Begin a campaign.

        Args:
            path: Where the ledger is to be; nothing may be there.
            scenario: What is asked: anything that JSON can say.
            configs: The configurations, numbered 0, 1, 2, …
            network: Whether the file is on a network file system.
        """
        place = Path(path)
        check_writable(place)
        check_filesystem(place, network=network)
        lock = WriteLock(place)
        try:
            make_ledger(place, scenario, configs)
            return cls._opened(place, lock, take_over=False, network=network, patience=BUSY_SECONDS)
        except BaseException:
            lock.release()
            raise

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        take_over: bool = False,
        network: bool = False,
        patience: float = BUSY_SECONDS,
    ) -> Self:
        """Resume a campaign; `replay` then tells what has happened so far.

        Args:
            path: Where the ledger is.
            take_over: Resume although a process on another machine did not close it.
            network: Whether the file is on a network file system.
            patience: How many seconds to wait for a process that keeps the file locked.
        """
        place = Path(path)
        check_is_ledger_file(place)
        check_writable(place)
        check_filesystem(place, network=network)
        lock = WriteLock(place)
        try:
            return cls._opened(place, lock, take_over=take_over, network=network, patience=patience)
        except BaseException:
            lock.release()
            raise

    @classmethod
    def _opened(cls, path: Path, lock: WriteLock, *, take_over: bool, network: bool, patience: float) -> Self:
        campaign = _looked_at(path, lock, patience)
        with errors_translated(path, "opening it"):
            connection = writer(path, network=network, patience=patience)
            try:
                row_writer = RowWriter(path, connection, lock, campaign["id"])
                last = last_owner(connection)
                if last is not None and not _closed_since(row_writer, last[2]):
                    check_owner(path, last[1], lock.owner, take_over=take_over)
                configs = [config_of(row) for row in rows_of(connection, CONFIG, "ORDER BY config")]
                _sign(row_writer, lock, 1 if last is None else last[0] + 1)
            except BaseException:
                connection.close()
                raise
        return cls(path, row_writer, campaign, configs)

    @property
    def head(self) -> str:
        """Hash of the last row written, in hexadecimal digits."""
        return self._writer.chain.head.hex()

    @property
    def epoch(self) -> int:
        """How many times the ledger has been opened for writing."""
        return self._writer.epoch

    # ------------------------------------------------------------------ what happens

    def asked(self, slots: int, orders: Orders) -> None:
        """The procedure was asked; this rides in the next transaction, which is before anything is started."""
        values = ask_values(slots, orders, time.time_ns())
        self._waiting.append(lambda transaction: transaction.add(ASK, values))

    def started(self, requests: Sequence[RunRequest], elements: Mapping[int, SampleRow]) -> None:
        """These runs are about to be started: on the disk when this returns.

        Args:
            requests: What will be submitted, in that order.
            elements: What is on their stream positions; needed for positions without any earlier run.
        """
        if not requests:
            return
        at_ns = time.time_ns()

        def intend(transaction: Transaction) -> None:
            call = transaction.next
            for position in dict.fromkeys(request.instance for request in requests):
                _register(transaction, position, elements.get(position), call)
            for request in requests:
                transaction.add(START, start_values(request, self.epoch, at_ns, call))

        self._write("writing down what is to be started", intend, point="intent")

    def observed(self, outcomes: Sequence[RunOutcome], seen: Sequence[tuple[RunRequest, float]] = ()) -> None:
        """This became known: on the disk when this returns, so that decisions may be drawn from it.

        The outcome of an attempt that was given up, or has come back already, is kept as an orphan and never counts.

        Args:
            outcomes: What came back.
            seen: Runs seen unfinished, with the CPU seconds they had behind them.
        """
        if not outcomes and not seen:
            return
        at_ns = time.time_ns()

        def record(transaction: Transaction) -> None:
            call = transaction.next
            for outcome in outcomes:
                orphan = _is_orphan(transaction, outcome.request)
                transaction.add(OUTCOME, outcome_values(outcome, orphan=orphan, at_ns=at_ns, call=call))
            for request, seconds in seen:
                transaction.add(LOOK, look_values(request, seconds, call))

        self._write("writing down what came back", record, point="row")

    def added(self, configs: Sequence[ConfigRow]) -> None:
        """These configurations join; numbered on from those there are."""
        if not configs:
            return
        check_numbers(configs, len(self.configs))

        def add(transaction: Transaction) -> None:
            call = transaction.next
            for config in configs:
                transaction.add(CONFIG, config_values(config, call))

        self._write("writing down new configurations", add, point="config")
        self.configs.extend(configs)

    def certified(
        self, certificate: Certificate, rounds: int, cpu_seconds: float, wall_seconds: float, candidates: int
    ) -> None:
        """A better certificate is held; this rides in the next transaction. It is written with the head it rests on."""
        progress, at_ns = (rounds, cpu_seconds, wall_seconds, candidates), time.time_ns()
        self._waiting.append(
            lambda transaction: transaction.add(
                CERTIFICATE, certificate_values(certificate, progress, transaction.head, at_ns)
            )
        )

    def noted(self, kind: str, **facts: object) -> None:
        """Something worth remembering; this rides in the next transaction."""
        values = note_values(kind, to_json(facts), time.time_ns())
        self._waiting.append(lambda transaction: transaction.add(NOTE, values))

    def flush(self) -> None:
        """Write what waits for the next transaction."""
        if self._waiting:
            self._write("writing down what has happened", point="note")

    def _write(self, doing: str, *steps: Step, point: str) -> None:
        if self.is_lost() and self._file.overwritten:
            raise LedgerDamaged(self.lost)
        waiting = len(self._waiting)
        self._writer.write(doing, (*self._waiting, *steps), point)
        del self._waiting[:waiting]
        self._file.wrote()
        warning = self._log.look()
        if warning:
            self.warnings.append(warning)
            self.noted("warning", about=warning)

    # ------------------------------------------------------------------ whether it is still there

    def is_lost(self) -> bool:
        """Look whether the file under the ledger's name is still the one that is open; `lost` then says what is not.

        Called before every transaction; what is written afterwards can still be saved by `rescue`.
        """
        if not self.lost:
            self.lost = self._file.look(self._writer.chain)
        return bool(self.lost)

    def looked_lost(self) -> bool:
        """Do as `is_lost`, but look at the file only about once a second; for loops."""
        return self.is_lost() if self._file.is_due() else bool(self.lost)

    def rescue(self) -> Rescued | None:
        """Save all rows through the open file into a new one beside it; nothing more is written to the lost one.

        None if no whole copy could be made, or if none is needed: where only the write-ahead log lost its name, all
        rows can be brought into the file.
        """
        self._writer.check_process()
        if self._file.log_only and self._writer.checkpoint("TRUNCATE"):
            return None
        saved = rescue(self._writer.connection, self.path, self.lost)
        self._rescued = saved is not None
        return saved

    # ------------------------------------------------------------------ what has happened

    def in_flight(self) -> list[RunRequest]:
        """Attempts that were started and never came back, in order of starting; those given up since are left out."""
        self._writer.check_process()
        with errors_translated(self.path, "looking for what was under way"):
            return [request_of(row) for row in in_flight(self._writer.connection)]

    def replay(self) -> Iterator[Event]:
        """Return what the ledger was told, in order, exactly as it was told; every row is checked on the way."""
        self._writer.check_process()
        return events(self._writer.connection, self.path)

    # ------------------------------------------------------------------ the end

    def close(self) -> None:
        """Write what waits, and close the file in good order. Closing twice is no mistake."""
        if self._closed:
            return
        self._writer.check_process()
        self._closed = True
        try:
            # The mark in the lock file must not run ahead of the copy that takes the ledger's place.
            if not self._rescued:
                self.noted("closed")
                self.flush()
        finally:
            with self._file.sparing_others():
                self._writer.close()


def _looked_at(path: Path, lock: WriteLock, patience: float) -> Row:
    """Return the campaign of a ledger that is whole at its end; from now on its lock file remembers that end.

    Only then may the file be told that it is in use: a process that finds it so, and without a log, asks the lock file.
    """
    check_is_ledger_file(path)
    log_missing = is_log_missing(path)
    with closing(reader(path, patience)) as connection, errors_translated(path, "looking at it"):
        check_schema(connection, path)
        campaign = campaign_row(connection, path)
        check_end(connection, path, campaign["id"], log_missing=log_missing)
        with damage_reported(path):
            sequence, head = tail(connection)
    lock.mark(Mark(campaign["id"], sequence, head.hex()), lasting=True)
    return campaign


def _sign(row_writer: RowWriter, lock: WriteLock, epoch: int) -> None:
    """Write ourselves in as the owner, and have the file itself say that it is in use."""
    owner = lock.owner
    values: Values = {
        "epoch": epoch,
        "host": to_bytes(owner.host),
        "boot": owner.boot,
        "pid": owner.pid,
        "process_start": owner.process_start,
        "at_ns": owner.since_ns,
    }
    row_writer.write("signing it", [lambda transaction: transaction.add(OWNER, values)], "owner")
    row_writer.epoch = epoch
    row_writer.checkpoint("PASSIVE")


def _closed_since(row_writer: RowWriter, sequence: int) -> bool:
    found = row_writer.connection.execute(
        "SELECT 1 FROM note WHERE seq > ? AND kind = 'closed'", (sequence,)
    ).fetchone()
    return found is not None


def _register(transaction: Transaction, position: int, element: SampleRow | None, call: int) -> None:
    """Write down what is on a position when it is first run on; afterwards it has to stay the same."""
    found = rows_of(transaction.connection, SAMPLE, "WHERE position = ?", (position,), transaction.version).fetchone()
    if found is None:
        if element is None or element.position != position:
            raise InvariantViolated(f"a run on position {position} was to be started, and its instance is not known")
        transaction.add(SAMPLE, sample_values(element, call))
    elif element is not None and sample_of(found) != element:
        raise InvariantViolated(f"position {position} held {sample_of(found)}, and now it is said to hold {element}")


def _is_orphan(transaction: Transaction, request: RunRequest) -> bool:
    """Return whether this attempt is not the one that counts: a newer one was started, or it has come back before."""
    run = (request.config, request.instance)
    row = rows_of(transaction.connection, START, _NEWEST, run, transaction.version).fetchone()
    newest = None if row is None else request_of(row)
    if newest is None or newest.attempt < request.attempt:
        raise InvariantViolated(f"{request} came back, but was never written down as started")
    if newest.attempt > request.attempt:
        return True
    if newest.captime != request.captime and not math.isnan(request.captime):
        raise InvariantViolated(f"{request} came back, but was started with a captime of {newest.captime!r}")
    key = (request.config, request.instance, request.attempt)
    return transaction.connection.execute(_CAME_BACK, key).fetchone() is not None
