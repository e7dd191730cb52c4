"""The file that records every run: one writer, any number of readers, nothing is ever changed.

`store` writes, `reading` reads, `file_watch` makes new files from old ones; the rest is what these are made of.
"""

from captime.ledger.reading import LedgerReader
from captime.ledger.rows import Added, Asked, Certified, ConfigRow, Event, Noted, Observed, SampleRow, Started
from captime.ledger.store import Ledger

__all__ = [
    "Added",
    "Asked",
    "Certified",
    "ConfigRow",
    "Event",
    "Ledger",
    "LedgerReader",
    "Noted",
    "Observed",
    "SampleRow",
    "Started",
]
