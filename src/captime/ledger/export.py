"""One line per outcome with everything beside it: what leaves a ledger for other tools."""

import math
import sqlite3
from collections.abc import Iterator

from captime.ledger.encoding import to_text
from captime.ledger.queries import known_columns, version_of
from captime.ledger.schema import CONFIG, OUTCOME, SAMPLE, START

# Name in the file, expression. Configurations c, samples p, intents s, outcomes o.
_COLUMNS: tuple[tuple[str, str], ...] = (
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
COLUMNS: tuple[str, ...] = tuple(name for name, _ in _COLUMNS)
"""What there is, in the order of the values."""

_TABLES = {"c": CONFIG, "p": SAMPLE, "s": START, "o": OUTCOME}
_JOINED = (
    "FROM outcome o JOIN start s USING (config, position, attempt) JOIN sample p ON p.position = o.position "
    "JOIN config c ON c.config = o.config ORDER BY o.seq"
)
_CAPTIME = COLUMNS.index("captime")


def flat_rows(connection: sqlite3.Connection) -> Iterator[tuple[int | float | str | None, ...]]:
    """Yield every outcome, orphans included, in the order in which they came; bytes as text, unknown ones escaped.

    What the file has no column for is None.
    """
    version = version_of(connection)
    columns = ", ".join(known_columns(expression, version, _TABLES) for _, expression in _COLUMNS)
    for row in connection.execute(f"SELECT {columns} {_JOINED}"):
        values = [to_text(value) if isinstance(value, bytes) else value for value in row]
        if values[_CAPTIME] is None:
            values[_CAPTIME] = math.inf
        yield tuple(values)
