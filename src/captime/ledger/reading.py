"""Reading a ledger, also while a campaign writes to it: nothing here can change, block or slow it.

Runs come as columns, NumPy arrays of equal length, not as objects: there may be a million of them. A caller that
follows a campaign remembers `last_sequence` and next time asks for what came after it.
"""

import json
import math
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from captime.ledger.connection import (
    Closing,
    check_is_ledger_file,
    check_schema,
    damage_reported,
    errors_translated,
    left_open,
    reader,
)
from captime.ledger.ownership import Owner, read_mark
from captime.ledger.rows import (
    Certified,
    ConfigRow,
    Event,
    Noted,
    SampleRow,
    certified_of,
    config_of,
    note_of,
    outcome_of,
    request_of,
    sample_of,
    to_text,
)
from captime.ledger.schema import (
    CERTIFICATE,
    CONFIG,
    NOTE,
    OUTCOME,
    SAMPLE,
    START,
    Row,
    Table,
    campaign_row,
    in_flight,
    known_columns,
    rows_of,
    start_of,
    version_of,
)
from captime.ledger.writer import check_end, events, is_log_missing, last_owner, missing_rows, tail, walk
from captime.runs import Meaning, RunOutcome, RunRequest, Status, Verdict

_Value = TypeVar("_Value")
Columns: TypeAlias = dict[str, NDArray[Any]]

STATUSES: tuple[Status, ...] = tuple(Status)
"""What the numbers in the column `status` stand for."""
VERDICTS: tuple[Verdict, ...] = tuple(Verdict)
"""What the numbers in the column `verdict` stand for; -1 is none."""


def which_mean(status: NDArray[Any], wanted: Callable[[Meaning], bool]) -> NDArray[np.bool_]:
    """Return which numbers of the column `status` stand for one that means this."""
    return np.isin(status, [code for code, each in enumerate(STATUSES) if wanted(each.meaning)])


def _codes(column: str, values: tuple[str, ...], otherwise: int) -> str:
    cases = " ".join(f"WHEN '{value}' THEN {code}" for code, value in enumerate(values))
    return f"CASE {column} {cases} ELSE {otherwise} END"


# Name, expression, type. A time that was not measured is -1.
_OUTCOME_COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("sequence", "o.seq", "i8"),
    ("config", "o.config", "i8"),
    ("position", "o.position", "i8"),
    ("attempt", "o.attempt", "i8"),
    ("captime", "s.captime", "f8"),
    ("status", _codes("o.status", tuple(status.value for status in STATUSES), -1), "i1"),
    ("verdict", _codes("o.verdict", tuple(verdict.value for verdict in VERDICTS), -1), "i1"),
    ("runtime", "o.runtime", "f8"),
    ("cost", "o.cost", "f8"),
    ("orphan", "o.orphan", "?"),
    ("cpu_ns", "ifnull(o.cpu_ns, -1)", "i8"),
    ("wall_ns", "ifnull(o.wall_ns, -1)", "i8"),
    ("peak_memory", "ifnull(o.peak_memory, -1)", "i8"),
    ("queue_wait_ns", "ifnull(o.queue_wait_ns, -1)", "i8"),
    ("slot", "ifnull(o.slot, -1)", "i8"),
    ("started_ns", "s.at_ns", "i8"),
    ("at_ns", "o.at_ns", "i8"),
)
_SAMPLE_COLUMNS = (("sequence", "o.seq", "i8"), ("position", "o.position", "i8"), ("seed", "o.seed", "i8"))
_JOINED = "outcome o JOIN start s USING (config, position, attempt)"


# Steps of SQLite's machine between two looks at the clock: about a millisecond.
_STEPS = 10_000

_UnderWay: TypeAlias = dict[tuple[int, int], tuple[RunRequest, int]]


def _with_started(under_way: _UnderWay, rows: list[Row]) -> _UnderWay:
    """Return the attempts under way with these, which replace older ones of the same runs."""
    for row in rows:
        request = request_of(row)
        under_way.pop((request.config, request.instance), None)
        under_way[request.config, request.instance] = (request, row["at_ns"])
    return under_way


class LedgerReader(Closing):
    """A ledger, open for reading only.

    Args:
        path: Where it is.
        query_seconds: Give up what takes longer than this in one `snapshot`; for windows that must never be in the way.

    Attributes:
        path: Where it is.
        campaign_id: A name that no other campaign has.
        scenario: What was asked.
        scenario_hash: SHA-256 of that.
        captime_version: Version of captime that made it.
        missing: Which of its newest rows were on record and are not in the file any more; "" for none.
    """

    def __init__(self, path: str | PathLike[str], *, query_seconds: float | None = None) -> None:
        self.path = Path(path)
        check_is_ledger_file(self.path)
        self._log_missing = is_log_missing(self.path)
        # Read before anything else: a campaign that keeps writing moves the mark, never behind what is read later.
        mark = read_mark(self.path)
        self._connection = reader(self.path)
        self._seconds, self._until = query_seconds, math.inf
        if query_seconds is not None:
            # SQLite asks after every few thousand steps whether to continue; anything but 0 ends the query.
            self._connection.set_progress_handler(lambda: int(time.monotonic() > self._until), _STEPS)
        try:
            check_schema(self._connection, self.path)
            with errors_translated(self.path, "reading its first row"):
                campaign = campaign_row(self._connection, self.path)
            self.campaign_id: str = campaign["id"]
            self.captime_version: str = campaign["captime_version"]
            self.scenario_hash: str = campaign["scenario_hash"]
            with damage_reported(self.path):
                self.scenario: dict[str, object] = dict(json.loads(campaign["scenario"]))
            with errors_translated(self.path, "looking at its last rows"):
                self.missing = missing_rows(
                    self._connection, self.path, self.campaign_id, mark, log_missing=self._log_missing
                )
        except BaseException:
            self._connection.close()
            raise
        self._under_way: _UnderWay | None = None
        self._followed = 0

    # ------------------------------------------------------------------ how far it is

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Whatever is read in here is read as of one moment."""
        if self._connection.in_transaction:
            yield
            return
        self._until = math.inf if self._seconds is None else time.monotonic() + self._seconds
        with errors_translated(self.path, "reading it"):
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                self._until = math.inf
                self._connection.rollback()

    @property
    def last_sequence(self) -> int:
        """Number of the last row."""
        return self._tail()[0]

    @property
    def head(self) -> str:
        """Hash of the last row, in hexadecimal digits."""
        return self._tail()[1].hex()

    def _tail(self) -> tuple[int, bytes]:
        with self.snapshot(), damage_reported(self.path):
            return tail(self._connection)

    @property
    def owner(self) -> Owner | None:
        """The process that wrote to it last."""
        with self.snapshot(), damage_reported(self.path):
            last = last_owner(self._connection)
        return None if last is None else last[1]

    @property
    def in_use(self) -> bool:
        """Whether it has been opened for writing and not been closed since; its owner may be dead all the same."""
        return left_open(self.path)

    # ------------------------------------------------------------------ what is in it

    @property
    def configs(self) -> list[ConfigRow]:
        """The configurations so far, by index."""
        return self._read(config_of, CONFIG, "ORDER BY config")

    def samples(self, since: int = 0) -> Columns:
        """Stream positions: `sequence`, `position`, `seed` and, as an array of objects, `instance`."""
        columns = self._columns(_SAMPLE_COLUMNS, "sample o", {"o": SAMPLE}, since)
        names = [sample.instance for sample in self.sample_rows(since)]
        columns["instance"] = np.array(names, dtype=np.object_)
        return columns

    def sample_rows(self, since: int = 0) -> list[SampleRow]:
        """Stream positions one by one, in the order in which they were first run on."""
        return self._read(sample_of, SAMPLE, "WHERE seq > ? ORDER BY seq", since)

    def outcomes(self, since: int = 0, limit: int = -1) -> Columns:
        """Return what came back after row `since`, orphans included (`orphan`), in the order in which it did.

        Not more than `limit` of it, if that is not negative.

        Columns: `sequence`, `config`, `position`, `attempt`, `captime` (infinite for none), `status` and `verdict`
        (numbers into `STATUSES` and `VERDICTS`, -1 for none), `runtime`, `cost` (seconds), `orphan`, `cpu_ns`,
        `wall_ns`, `peak_memory`, `queue_wait_ns`, `slot` (-1 if not measured), `started_ns`, `at_ns`.
        """
        columns = self._columns(_OUTCOME_COLUMNS, _JOINED, {"o": OUTCOME, "s": START}, since, limit)
        # NULL stands for no captime, and comes out as "not a number".
        columns["captime"][np.isnan(columns["captime"])] = np.inf
        return columns

    def counts(self) -> dict[tuple[Status, Verdict | None], tuple[int, float]]:
        """How many outcomes of each status and verdict, and their CPU seconds; orphans are left out of the counts."""
        # Row after row: the index of what counts would fetch the same rows in an order that suits no disk.
        question = (
            "SELECT status, verdict, count(*), total(cost) FROM outcome NOT INDEXED WHERE orphan = 0 "
            "GROUP BY status, verdict"
        )
        with self.snapshot(), damage_reported(self.path):
            return {
                (Status(status), None if verdict is None else Verdict(verdict)): (count, cost)
                for status, verdict, count, cost in self._connection.execute(question)
            }

    def orphans(self) -> tuple[int, float]:
        """Return how many outcomes do not count, and the CPU seconds they cost."""
        with self.snapshot():
            count, cost = self._connection.execute(
                "SELECT count(*), total(cost) FROM outcome NOT INDEXED WHERE orphan = 1"
            ).fetchone()
        return count, cost

    def flags(self) -> dict[str, int]:
        """Return how many outcomes that count carry each warning."""
        question = "SELECT flags, count(*) FROM outcome WHERE orphan = 0 AND flags <> '' GROUP BY flags"
        with self.snapshot():
            found = self._connection.execute(question).fetchall()
        counts: dict[str, int] = {}
        for flags, count in found:
            for flag in flags.split():
                counts[flag] = counts.get(flag, 0) + count
        return counts

    def newest(self, limit: int, status: Status | None = None) -> list[RunOutcome]:
        """The last outcomes that count, newest first, with all that was measured; of one status, if one is given."""
        wanted = "" if status is None else f"AND status = '{status.value}'"
        rest = f"WHERE orphan = 0 {wanted} ORDER BY seq DESC LIMIT ?"
        with self.snapshot():
            rows = self._rows(OUTCOME, rest, limit)
            runs = [(row["config"], row["position"], row["attempt"]) for row in rows]
            requests = [request_of(start_of(self._connection, run)) for run in runs]
        return [outcome_of(row, request) for row, request in zip(rows, requests, strict=True)]

    def certificates(self, since: int = 0) -> list[Certified]:
        """Return the certificates after row `since`, oldest first."""
        return self._read(certified_of, CERTIFICATE, "WHERE seq > ? ORDER BY seq", since)

    def last_certificate(self) -> Certified | None:
        """Return the newest certificate; None before the first."""
        newest = self._read(certified_of, CERTIFICATE, "ORDER BY seq DESC LIMIT 1")
        return newest[0] if newest else None

    def last_certificate_row(self) -> int:
        """Number of the newest certificate's row; 0 before the first."""
        with self.snapshot():
            return int(self._connection.execute("SELECT ifnull(max(seq), 0) FROM certificate").fetchone()[0])

    def events(self, since: int = 0) -> list[Noted]:
        """Return what was noted after row `since`, oldest first."""
        return self._read(note_of, NOTE, "WHERE seq > ? ORDER BY seq", since)

    def clock(self) -> float:
        """Return the wall-clock seconds of all calls together, by the newest certificate or the last regular end.

        What a call took after its last certificate is lost if it was cut off.
        """
        newest = self.last_certificate()
        ends = [event.facts.get("wall_seconds") for event in self.events() if event.kind == "stopped"]
        told = [float(end) for end in ends[-1:] if isinstance(end, int | float)]
        return max([0.0 if newest is None else newest.wall_seconds, *told])

    def in_flight(self) -> list[tuple[RunRequest, int]]:
        """Attempts under way, oldest first, each with the moment it was written down, in nanoseconds since 1970."""
        with self.snapshot(), damage_reported(self.path):
            if self._under_way is None:
                self._under_way = _with_started({}, in_flight(self._connection))
            else:
                _with_started(self._under_way, self._rows(START, "WHERE seq > ? ORDER BY seq", self._followed))
                ended = self._connection.execute(
                    "SELECT config, position, attempt FROM outcome WHERE seq > ? AND orphan = 0", (self._followed,)
                )
                for config, position, attempt in ended:
                    if (under_way := self._under_way.get((config, position))) and under_way[0].attempt == attempt:
                        del self._under_way[config, position]
            self._followed = self.last_sequence
            return list(self._under_way.values())

    def flat(self) -> Iterator[tuple[int | float | str | None, ...]]:
        """Return every outcome with everything beside it, for other tools; `FLAT_COLUMNS` says what is what."""
        return flat_rows(self._connection)

    def replay(self) -> Iterator[Event]:
        """What the ledger was told, in order; every row is checked on the way. As of one moment inside `snapshot`."""
        return events(self._connection, self.path)

    # ------------------------------------------------------------------ whether it is whole

    def walk(self) -> Iterator[tuple[Table, Row]]:
        """Return every row as it is stored, each checked against the chain; see `writer.walk`."""
        return walk(self._connection, self.path)

    def check_end(self) -> str:
        """Refuse a ledger whose newest rows are missing; otherwise say how it is known that none are."""
        with self.snapshot():
            return check_end(self._connection, self.path, self.campaign_id, log_missing=self._log_missing)

    # ------------------------------------------------------------------ questions

    def _read(self, of: Callable[[Row], _Value], table: Table, rest: str, *values: int) -> list[_Value]:
        with damage_reported(self.path):
            return [of(row) for row in self._rows(table, rest, *values)]

    def _rows(self, table: Table, rest: str, *values: int) -> list[Row]:
        with self.snapshot():
            return rows_of(self._connection, table, rest, values).fetchall()

    def _columns(
        self,
        columns: tuple[tuple[str, str, str], ...],
        source: str,
        tables: Mapping[str, Table],
        since: int,
        limit: int = -1,
    ) -> Columns:
        kinds, version = np.dtype([(name, kind) for name, _, kind in columns]), version_of(self._connection)
        expressions = ", ".join(known_columns(expression, version, tables) for _, expression, _ in columns)
        question = f"SELECT {expressions} FROM {source} WHERE o.seq > ? ORDER BY o.seq LIMIT ?"  # noqa: S608 (words of this page)
        with self.snapshot(), damage_reported(self.path):
            table = np.fromiter(self._connection.execute(question, (since, limit)), dtype=kinds)
        return {name: np.ascontiguousarray(table[name]) for name in kinds.names or ()}

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()


# One line per outcome with everything beside it: what leaves a ledger for other tools.

# Name in the file, expression. Configurations c, samples p, intents s, outcomes o.
_FLAT_COLUMNS: tuple[tuple[str, str], ...] = (
    ("sequence", "o.seq"),
    ("config", "o.config"),
    ("config_name", "c.name"),
    ("position", "o.position"),
    ("instance", "p.instance"),
    ("seed", "p.seed"),
    ("attempt", "o.attempt"),
    ("captime", "s.captime"),
    ("status", "o.status"),
    ("verdict", "o.verdict"),
    ("runtime", "o.runtime"),
    ("cost", "o.cost"),
    ("orphan", "o.orphan"),
    ("cpu_ns", "o.cpu_ns"),
    ("wall_ns", "o.wall_ns"),
    ("exit_code", "o.exit_code"),
    ("signal", "o.signal"),
    ("peak_memory", "o.peak_memory"),
    ("answer", "o.answer"),
    ("reported", "o.reported"),
    ("queue_wait_ns", "o.queue_wait_ns"),
    ("switches", "o.switches"),
    ("leftovers", "o.leftovers"),
    ("output_bytes", "o.output_bytes"),
    ("host", "o.host"),
    ("slot", "o.slot"),
    ("flags", "o.flags"),
    ("detail", "o.detail"),
    ("started_ns", "s.at_ns"),
    ("ended_ns", "o.at_ns"),
)
FLAT_COLUMNS: tuple[str, ...] = tuple(name for name, _ in _FLAT_COLUMNS)
"""What there is, in the order of the values."""

_TABLES = {"c": CONFIG, "p": SAMPLE, "s": START, "o": OUTCOME}
_EVERYTHING_JOINED = (
    "FROM outcome o JOIN start s USING (config, position, attempt) JOIN sample p ON p.position = o.position "
    "JOIN config c ON c.config = o.config ORDER BY o.seq"
)
_CAPTIME = FLAT_COLUMNS.index("captime")


def flat_rows(connection: sqlite3.Connection) -> Iterator[tuple[int | float | str | None, ...]]:
    """Yield every outcome, orphans included, in the order in which they came; bytes as text, unknown ones escaped.

    What the file has no column for is None.
    """
    version = version_of(connection)
    columns = ", ".join(known_columns(expression, version, _TABLES) for _, expression in _FLAT_COLUMNS)
    for row in connection.execute(f"SELECT {columns} {_EVERYTHING_JOINED}"):
        values = [to_text(value) if isinstance(value, bytes) else value for value in row]
        if values[_CAPTIME] is None:
            values[_CAPTIME] = math.inf
        yield tuple(values)
