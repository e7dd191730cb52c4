"""A new ledger, in one piece or not at all: made under another name, and given its own when it is whole."""

import contextlib
import hashlib
import sqlite3
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path

from captime.errors import ScenarioError
from captime.ledger.chain import Chain, Values
from captime.ledger.connection import writer
from captime.ledger.crash_points import reached
from captime.ledger.encoding import config_values, to_json
from captime.ledger.filesystem import sync_directory
from captime.ledger.rows import ConfigRow
from captime.ledger.schema import APPLICATION_ID, CAMPAIGN, CONFIG, VERSION, create_all
from captime.ledger.sqlite_errors import errors_translated
from captime.ledger.writer import Transaction


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
