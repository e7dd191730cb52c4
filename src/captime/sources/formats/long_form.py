"""Runs recorded one per line, in any order, put together into a table with every pair exactly once."""

from array import array
from collections.abc import Sequence

import numpy as np

from captime.arrays import IntArray
from captime.errors import TableError
from captime.sources.locations import shown
from captime.sources.table import RuntimeTable

# How the columns of the long form may be called, in any case.
ROLES: dict[str, tuple[str, ...]] = {
    "configuration": ("configuration", "config", "algorithm", "solver"),
    "instance": ("instance", "instance_id"),
    "runtime": ("runtime", "time", "seconds"),
    "status": ("status", "runstatus"),
    "repetition": ("repetition",),
}
REQUIRED = ("configuration", "instance", "runtime")
LONG_FORM_HINT = "the long form needs columns named configuration, instance and runtime"


def find_roles(header: Sequence[str], where: str) -> dict[str, int] | None:
    """Return which column plays which part, or None if this is not the header of a long form."""
    words = [name.strip().lower() for name in header]
    found = {role: [n for n, word in enumerate(words) if word in known] for role, known in ROLES.items()}
    if not all(found[role] for role in REQUIRED):
        return None
    for role, columns in found.items():
        if len(columns) > 1:
            first, second = columns[:2]
            raise TableError(
                f"{where}, columns {first + 1} and {second + 1}: {shown(header[first])} and "
                f"{shown(header[second])} both name the {role}; expected one such column. Rename the other."
            )
    return {role: columns[0] for role, columns in found.items() if columns}


def unused_note(header: Sequence[str], roles: dict[str, int]) -> list[str]:
    """Return a note that names the unused columns, if there are any."""
    rest = [shown(name) for column, name in enumerate(header) if column not in roles.values()]
    if not rest:
        return []
    more = f" and {len(rest) - 5} more" if len(rest) > 5 else ""
    return [f"columns not used: {', '.join(rest[:5])}{more}"]


class LongForm:
    """Collects runs and makes them a table; memory grows with the runs, never with the product of names."""

    def __init__(self, name: str, place: str = "line") -> None:
        """Start empty.

        Args:
            name: The file's name, for messages.
            place: What the numbers given to `add` count.
        """
        self._name = name
        self._place = place
        self._configs: dict[str, int] = {}
        self._instances: dict[str, int] = {}
        self._columns: dict[tuple[int, str], int] = {}
        self._config, self._column, self._line = array("q"), array("q"), array("q")
        self._seconds, self._capped = array("d"), bytearray()

    def __len__(self) -> int:
        return len(self._line)

    def add(self, line: int, config: str, instance: str, *, seconds: float, capped: bool, repetition: str = "") -> None:
        """Book one run, found at `line`."""
        for kind, name in (("configuration", config), ("instance", instance)):
            if not name:
                raise TableError(
                    f"{self._name}, {self._place} {line}: the {kind} has no name; expected one. Fill it in."
                )
        group = self._instances.setdefault(instance, len(self._instances))
        self._column.append(self._columns.setdefault((group, repetition), len(self._columns)))
        self._config.append(self._configs.setdefault(config, len(self._configs)))
        self._line.append(line)
        self._seconds.append(seconds)
        self._capped.append(capped)

    def table(
        self,
        name: str,
        *,
        timeout: float | None,
        recorded_limit: float | None = None,
        notes: Sequence[str] = (),
    ) -> RuntimeTable:
        """Return the table, in order of first appearance; every pair must have been run exactly once."""
        if not len(self):
            raise TableError(f"{self._name}: there is no run; expected at least one. Is the file complete?")
        column = np.frombuffer(self._column, dtype=np.int64)
        cell = np.frombuffer(self._config, dtype=np.int64) * len(self._columns) + column
        order = np.argsort(cell, kind="stable")
        cell = cell[order]
        self._check_once(cell, order)
        self._check_complete(cell)
        shape = (len(self._configs), len(self._columns))
        capped = np.frombuffer(bytes(self._capped), dtype=np.bool_)[order].reshape(shape)
        return RuntimeTable.build(
            name,
            self._configs,
            self._column_names(),
            np.frombuffer(self._seconds)[order].reshape(shape),
            timeout=timeout,
            recorded_limit=recorded_limit,
            capped=capped,
            groups=np.array([group for group, _ in self._columns], dtype=np.int64),
            notes=notes,
        )

    def _column_names(self) -> list[str]:
        instances = list(self._instances)
        repeated = np.bincount([group for group, _ in self._columns]) > 1
        return [
            f"{instances[group]} [repetition {repetition}]" if repeated[group] else instances[group]
            for group, repetition in self._columns
        ]

    def _pair(self, cell: int) -> str:
        config, column = divmod(cell, len(self._columns))
        names = shown(list(self._configs)[config]), shown(self._column_names()[column])
        return f"configuration {names[0]} on instance {names[1]}"

    def _check_once(self, cells: IntArray, order: IntArray) -> None:
        again = np.flatnonzero(cells[1:] == cells[:-1]) + 1
        if not len(again):
            return
        # The earliest line that repeats something, and the line it repeats.
        second = again[np.argmin(order[again])]
        line, first = self._line[int(order[second])], self._line[int(order[second - 1])]
        raise TableError(
            f"{self._name}, {self._place} {line}: {self._pair(int(cells[second]))} was there before, on "
            f"{self._place} {first}; expected each pair once. Remove one, or add a column named repetition."
        )

    def _check_complete(self, cells: IntArray) -> None:
        total = len(self._columns) * len(self._configs)
        if len(cells) == total:
            return
        gaps = np.flatnonzero(cells != np.arange(len(cells)))
        first = int(gaps[0]) if len(gaps) else len(cells)
        raise TableError(
            f"{self._name}: {self._pair(first)} is missing ({total - len(cells)} of {total} pairs are); "
            f"expected every pair once. Add the runs, or leave out the configuration or the instance "
            f"altogether."
        )
