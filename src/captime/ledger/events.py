"""The events of a campaign as they were told to the ledger, in order: what resuming replays."""

import sqlite3
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

from captime.ledger.chain import Row
from captime.ledger.encoding import config_of, note_of, outcome_of, request_of, sample_of, targets_of
from captime.ledger.integrity import walk
from captime.ledger.queries import start_of
from captime.ledger.rows import Added, Asked, Event, Observed, Started
from captime.ledger.schema import ASK, CONFIG, LOOK, NOTE, OUTCOME, SAMPLE, START, Table
from captime.runs import RunRequest

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
