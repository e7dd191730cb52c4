"""New ledgers from old ones: a backup of one that may be in use, and what can be saved of one that is damaged."""

import os
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from captime.errors import LedgerDamaged, ScenarioError
from captime.ledger.connection import check_schema, errors_translated, lenient_reader, reader, sync_directory, writer
from captime.ledger.ownership import Mark, read_mark
from captime.ledger.reading import LedgerReader
from captime.ledger.rows import note_values, to_json
from captime.ledger.schema import CAMPAIGN, NOTE, Chain
from captime.ledger.writer import Transaction, is_log_missing, missing_rows, new_file, tail, walk

# File systems allow 255 bytes; SQLite's and our own endings have to fit too.
_LONGEST_NAME = 255 - len(".part-journal")


def backup(path: Path, target: Path) -> int:
    """Copy a ledger as of one moment into one file, also while a campaign writes. Return how many rows the copy has.

    The last row of the copy says that it is one. A ledger whose rows are changed, or whose newest rows are missing, is
    refused: its copy would look as if it were whole.
    """
    _check_target(target)
    part = target.with_name(target.name + ".part")
    with closing(LedgerReader(path)) as whole:
        whole.check_end()
    with closing(reader(path)) as source, errors_translated(target, "copying"):
        check_schema(source, path)
        part.unlink(missing_ok=True)
        try:
            with closing(sqlite3.connect(part)) as copy:
                source.backup(copy)
            with closing(writer(part, network=True)) as copy:
                for _ in walk(copy, path):
                    pass
                sequence, head = tail(copy)
                copy.execute("BEGIN IMMEDIATE")
                _note(Transaction(copy, Chain(sequence, head)), "copied", rows=sequence, head=head.hex())
                copy.execute("COMMIT")
            part.rename(target)
            sync_directory(target.parent)
        finally:
            part.unlink(missing_ok=True)
    return sequence


@dataclass(frozen=True, slots=True)
class Salvaged:
    """What could be saved.

    Attributes:
        rows: How many rows, from the first on.
        damage: Why it ends there; empty if nothing was wrong.
    """

    rows: int
    damage: str


def salvage(path: Path, target: Path) -> Salvaged:
    """Copy the rows before the first damage into a new ledger: what it was at an earlier moment, and as valid.

    The old file is only read. The last row of the new one says what happened.
    """
    _check_target(target)
    try:
        return _salvaged(path, target, read_mark(path))
    except LedgerDamaged as error:
        raise LedgerDamaged(
            f"{error.found}. Nothing of it could be saved", "Continue with a backup if there is one"
        ) from error


def _salvaged(path: Path, target: Path, mark: Mark | None) -> Salvaged:
    with closing(lenient_reader(path)) as source, errors_translated(path, "saving what can be saved"):
        log_missing = is_log_missing(path)
        version = check_schema(source, path)
        with errors_translated(target, "saving what can be saved"), new_file(target, version) as copy:
            chain, campaign, damage = Chain(), "", ""
            try:
                for table, row in walk(source, path):
                    campaign = str(row["id"]) if table is CAMPAIGN else campaign
                    copy.execute(table.at(version).insert(), tuple(row))
                    chain.sequence, chain.head = row["seq"], row["hash"]
                damage = missing_rows(source, path, campaign, mark, log_missing=log_missing)
            except LedgerDamaged as error:
                damage = error.found
            if chain.sequence == 0:
                raise LedgerDamaged(f"{path}: not even the first row can be read ({damage})")
            kept = chain.sequence
            _note(Transaction(copy, chain), "salvaged", rows=kept, damage=damage)
    return Salvaged(kept, damage)


def _note(transaction: Transaction, kind: str, **facts: object) -> None:
    transaction.add(NOTE, note_values(kind, to_json(facts), time.time_ns()))


def _check_target(target: Path) -> None:
    """Refuse a name that is taken, or under which no file can be."""
    # The second one is the longest name that is needed on the way.
    for name in (target, target.with_name(target.name + ".part-journal")):
        try:
            os.stat(name)  # noqa: PTH116 (later Pythons' exists() hides the errors that matter here)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise ScenarioError(
                f"the new ledger {target} cannot be written ({error.strerror or error}); expected a name of at most "
                f"{_LONGEST_NAME} bytes in a folder that exists; choose another one"
            ) from error
        if name == target:
            raise ScenarioError(f"{target} exists already; choose another name, nothing is ever overwritten")
