"""New ledgers from old ones: a backup of one that may be in use, and what can be saved of one that is damaged."""

import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from captime.errors import LedgerDamaged, ScenarioError
from captime.ledger.chain import Chain
from captime.ledger.connection import check_schema, lenient_reader, reader, writer
from captime.ledger.encoding import to_json
from captime.ledger.making import new_file
from captime.ledger.places import sync_directory
from captime.ledger.schema import NOTE
from captime.ledger.transaction import Transaction
from captime.ledger.trouble import told_in_our_words
from captime.ledger.walking import tail, walk


def backup(path: Path, target: Path) -> int:
    """A copy as of one moment, complete in one file, also while a campaign writes. Return how many rows it has.

    The last row of the copy says that it is one.
    """
    _check_target(target)
    part = target.with_name(target.name + ".part")
    with closing(reader(path)) as source, told_in_our_words(target, "copying"):
        check_schema(source, path)
        part.unlink(missing_ok=True)
        try:
            with closing(sqlite3.connect(part)) as copy:
                source.backup(copy)
            with closing(writer(part, network=True)) as copy:
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
    kept, damage = 0, ""
    with closing(lenient_reader(path)) as source, told_in_our_words(target, "saving what can be saved"):
        check_schema(source, path)
        with new_file(target) as copy:
            chain = Chain()
            try:
                for table, row in walk(source, path):
                    copy.execute(table.insert(), row)
                    chain.sequence, chain.head = row[0], row[-1]
            except LedgerDamaged as error:
                damage = str(error)
            kept = chain.sequence
            if kept == 0:
                raise LedgerDamaged(f"{path}: not even the first row can be read; nothing could be saved ({damage})")
            _note(Transaction(copy, chain), "salvaged", rows=kept, damage=damage)
    return Salvaged(kept, damage)


def _note(transaction: Transaction, kind: str, **facts: object) -> None:
    transaction.add(NOTE, (kind, to_json(facts), time.time_ns()))


def _check_target(target: Path) -> None:
    if target.exists():
        raise ScenarioError(f"{target} exists already; choose another name, nothing is ever overwritten")
