"""The hash chain: each row's hash covers its own content and the hash of the row before, whatever table it is in.

A row is written as a JSON array `[table, sequence, column, column, …]` without spaces: integers as they are, doubles as
the shortest number that reads back the same, text escaped to ASCII, bytes as text with one character per byte, NULL as
null. Its hash is SHA-256 of the hash before (32 bytes) and that array. The first row follows 32 zero bytes.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from captime.ledger.schema import Table

Value: TypeAlias = int | float | str | bytes | None
Row: TypeAlias = sqlite3.Row
"""A row as SQLite gives it, with its columns by name: `seq`, the table's own columns, `hash`."""
Values: TypeAlias = Mapping[str, Value]
"""A table's own columns by name; what is left out is NULL."""

GENESIS = bytes(32)
"""What the first row follows."""

_encode = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), check_circular=False, allow_nan=False).encode


def row_hash(before: bytes, table: Table, sequence: int, values: Sequence[Value]) -> bytes:
    """Return the hash of a row that follows the hash `before`."""
    told: list[object] = [table.name, sequence, *values]
    for place in table.blobs:
        content = values[place]
        if content is not None:
            told[place + 2] = content.decode("latin-1") if isinstance(content, bytes) else repr(content)
    return hashlib.sha256(before + _encode(told).encode()).digest()


class Chain:
    """The end of a chain that grows.

    Attributes:
        sequence: Number of the last row; 0 before the first.
        head: Its hash.
    """

    __slots__ = ("head", "sequence")

    def __init__(self, sequence: int = 0, head: bytes = GENESIS) -> None:
        self.sequence = sequence
        self.head = head

    def link(self, table: Table, values: Iterable[Value]) -> tuple[Value, ...]:
        """Return the next row, complete with its number and its hash; the chain ends there now.

        Args:
            table: As it is in the file (see `Table.at`).
            values: Of its columns, in their order.
        """
        content = tuple(values)
        self.sequence += 1
        self.head = row_hash(self.head, table, self.sequence, content)
        return (self.sequence, *content, self.head)

    def follows(self, table: Table, row: Row) -> bool:
        """Return whether this is the next row, unchanged; if so, the chain ends there now.

        Args:
            table: As it is in the file (see `Table.at`).
            row: All of its columns, in their order.
        """
        try:
            expected = row_hash(self.head, table, self.sequence + 1, [row[name] for name in table.names])
        except (TypeError, ValueError):
            # A damaged page may hold a value of any kind in any column; none of those was ever written.
            return False
        if row["seq"] != self.sequence + 1 or row["hash"] != expected:
            return False
        self.sequence += 1
        self.head = expected
        return True
