"""Questions to a ledger that both its writer and its readers ask."""

import sqlite3
from pathlib import Path

from captime.errors import LedgerDamaged
from captime.ledger.chain import Row
from captime.ledger.schema import CAMPAIGN, START

_NOT_BACK = (
    "NOT EXISTS (SELECT 1 FROM outcome o WHERE o.config = s.config AND o.position = "
    "s.position AND o.attempt = s.attempt AND o.orphan = 0) AND NOT EXISTS (SELECT 1 FROM start n WHERE n.config = "
    "s.config AND n.position = s.position AND n.attempt > s.attempt)"
)
IN_FLIGHT = f"{START.select()} AS s WHERE {_NOT_BACK} ORDER BY seq"
"""Attempts that were started and never came back, those given up since left out."""


def campaign_row(connection: sqlite3.Connection, path: Path) -> Row:
    """The row that says what campaign a ledger is about."""
    found: Row | None = connection.execute(f"{CAMPAIGN.select()} ORDER BY seq LIMIT 1").fetchone()
    if found is None:
        raise LedgerDamaged(f"{path} is empty: the row that says what campaign it is about is missing")
    return found
