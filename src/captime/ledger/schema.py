"""The tables of a ledger: what columns there are, what may stand in them, and that nothing is ever changed.

Every row of every table has a sequence number of its own, 1, 2, 3, … across all tables, and a hash (see `chain`). Times
are integer nanoseconds. Seconds that decisions are drawn from are doubles, as exact as they were; "no captime" is NULL,
because infinity prints differently everywhere. Whatever a stranger's program or file system can put bytes into is a
BLOB. `call` is the number of the first row that was written by the same call.
"""

from dataclasses import dataclass

APPLICATION_ID = 0x63617074
"""Bytes 68 to 71 of the file: "capt"."""
VERSION = 1
"""Version of these tables. A newer one is refused; an older one is brought up to date by `migrations`."""

_LARGEST = "1.7976931348623157e308"
_SECONDS = f"REAL NOT NULL CHECK ({{0}} BETWEEN 0.0 AND {_LARGEST})"
_COUNT = "INTEGER NOT NULL CHECK ({0} >= 0)"


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        name: What it is called.
        columns: Its own columns with their SQL types, `{0}` standing for the column's name; sequence number and hash
            are common to all tables.
        rules: Constraints over several columns.
        indices: Further SQL.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    rules: tuple[str, ...] = ()
    indices: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its own columns."""
        return tuple(name for name, _ in self.columns)

    @property
    def blobs(self) -> tuple[int, ...]:
        """Which of its own columns hold bytes."""
        return tuple(place for place, (_, kind) in enumerate(self.columns) if kind.startswith("BLOB"))

    def sql(self) -> str:
        """The statements that make it, with its triggers."""
        parts = ["seq INTEGER PRIMARY KEY CHECK (seq >= 1)"]
        parts += [f"{name} {kind.format(name)}" for name, kind in self.columns]
        parts += ["hash BLOB NOT NULL CHECK (length(hash) = 32)", *self.rules]
        body = ",\n    ".join(parts)
        guards = "\n".join(
            f"CREATE TRIGGER {self.name}_no_{verb.lower()} BEFORE {verb} ON {self.name} "
            f"BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END;"
            for verb in ("UPDATE", "DELETE")
        )
        return "\n".join((f"CREATE TABLE {self.name} (\n    {body}\n) STRICT;", guards, *self.indices))

    def insert(self) -> str:
        """The statement that adds a row."""
        names = ("seq", *self.names, "hash")
        return f"INSERT INTO {self.name} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"  # noqa: S608 (names from this page)

    def select(self) -> str:
        """The statement that reads rows in order; further conditions may be added."""
        return f"SELECT {', '.join(('seq', *self.names, 'hash'))} FROM {self.name}"  # noqa: S608 (names from this page)


_RUN = (("config", _COUNT), ("position", _COUNT), ("attempt", _COUNT))
_AT = ("at_ns", "INTEGER NOT NULL")
_CALL = ("call", "INTEGER NOT NULL CHECK ({0} BETWEEN 1 AND seq)")
_STATUSES = "'completed', 'capped', 'failed', 'lost', 'abandoned'"

CAMPAIGN = Table(
    "campaign",
    (
        ("id", "TEXT NOT NULL"),
        ("captime_version", "TEXT NOT NULL"),
        ("schema_version", "INTEGER NOT NULL"),
        ("scenario", "TEXT NOT NULL"),
        ("scenario_hash", "TEXT NOT NULL CHECK (length({0}) = 64)"),
        _AT,
    ),
)
OWNER = Table(
    "owner",
    (
        ("epoch", "INTEGER NOT NULL UNIQUE CHECK ({0} >= 1)"),
        ("host", "BLOB NOT NULL"),
        ("boot", "TEXT NOT NULL"),
        ("pid", "INTEGER NOT NULL"),
        ("process_start", "TEXT NOT NULL"),
        _AT,
    ),
)
CONFIG = Table(
    "config",
    (
        ("config", "INTEGER NOT NULL UNIQUE CHECK ({0} >= 0)"),
        ("name", "BLOB NOT NULL"),
        ("settings", "TEXT NOT NULL"),
        ("origin", "TEXT NOT NULL CHECK ({0} IN ('listed', 'default', 'favourite', 'random', 'model'))"),
        _CALL,
    ),
)
SAMPLE = Table(
    "sample",
    (
        ("position", "INTEGER NOT NULL UNIQUE CHECK ({0} >= 0)"),
        ("instance", "BLOB NOT NULL"),
        ("digest", "TEXT NOT NULL"),
        ("seed", "INTEGER NOT NULL"),
        _CALL,
    ),
)
ASK = Table(
    "ask",
    (
        ("slots", "INTEGER NOT NULL"),
        ("configs", "BLOB NOT NULL"),
        ("n", "BLOB NOT NULL"),
        ("level", "BLOB NOT NULL"),
        ("first", "BLOB"),
        _AT,
    ),
)
START = Table(
    "start",
    (
        *_RUN,
        ("captime", f"REAL CHECK ({{0}} IS NULL OR {{0}} BETWEEN 0.0 AND {_LARGEST})"),
        ("epoch", "INTEGER NOT NULL"),
        _AT,
        _CALL,
    ),
    ("UNIQUE (config, position, attempt)",),
)
LOOK = Table(
    "look",
    ((*_RUN, ("seconds", _SECONDS), _CALL)),
    ("FOREIGN KEY (config, position, attempt) REFERENCES start (config, position, attempt)",),
)
OUTCOME = Table(
    "outcome",
    (
        *_RUN,
        ("status", f"TEXT NOT NULL CHECK ({{0}} IN ({_STATUSES}))"),
        ("runtime", _SECONDS),
        ("cost", _SECONDS),
        ("orphan", "INTEGER NOT NULL CHECK ({0} IN (0, 1))"),
        ("verdict", "TEXT"),
        ("detail", "BLOB NOT NULL"),
        ("cpu_ns", "INTEGER"),
        ("wall_ns", "INTEGER"),
        ("exit_code", "INTEGER"),
        ("signal", "INTEGER"),
        ("peak_memory", "INTEGER"),
        ("answer", "BLOB"),
        ("reported", "REAL"),
        ("queue_wait_ns", "INTEGER"),
        ("switches", "INTEGER"),
        ("leftovers", "INTEGER"),
        ("output_bytes", "INTEGER"),
        ("stdout_tail", "BLOB"),
        ("stderr_tail", "BLOB"),
        ("host", "BLOB"),
        ("slot", "INTEGER"),
        ("flags", "TEXT"),
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
        ("config", _COUNT),
        ("epsilon", "REAL NOT NULL CHECK ({0} BETWEEN 0.0 AND 1.0)"),
        ("delta", "REAL NOT NULL CHECK ({0} BETWEEN 0.0 AND 1.0)"),
        ("n_configs", "INTEGER NOT NULL CHECK ({0} >= 1)"),
        ("utility_low", "REAL NOT NULL"),
        ("utility_high", "REAL NOT NULL"),
        ("gamma", "REAL"),
        ("challenger", "INTEGER"),
        ("mode", "TEXT NOT NULL CHECK ({0} IN ('selection', 'simultaneous', 'nothing'))"),
        ("shares", "TEXT NOT NULL"),
        ("rounds", _COUNT),
        ("cpu_seconds", _SECONDS),
        ("wall_seconds", _SECONDS),
        ("candidates", _COUNT),
        ("head", "BLOB NOT NULL CHECK (length({0}) = 32)"),
        _AT,
    ),
)
NOTE = Table(
    "note",
    (("kind", "TEXT NOT NULL"), ("facts", "TEXT NOT NULL"), _AT),
)

TABLES: tuple[Table, ...] = (CAMPAIGN, OWNER, CONFIG, SAMPLE, ASK, START, LOOK, OUTCOME, CERTIFICATE, NOTE)
"""All of them, in the order in which they refer to each other."""


def create_all() -> str:
    """The statements that make an empty ledger."""
    return "\n".join(table.sql() for table in TABLES)
