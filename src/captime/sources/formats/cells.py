"""What readers of tables share: lines of text, cells that are numbers or names, and tables with one run per line."""

import enum
import math
import re
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from captime.arrays import IntArray
from captime.errors import TableError
from captime.files import open_limited
from captime.sources.table import MAX_SECONDS, RuntimeTable, shown

# Text files line by line, with the limits that keep a hostile file from becoming a large one in memory.

LARGEST = 8 << 30
"""No table has more bytes than this: the largest number of cells as text has a few gigabytes."""
_BOM = b"\xef\xbb\xbf"


def text_lines(path: Path, *, max_line: int) -> Iterator[tuple[int, str]]:
    """Yield the lines of a UTF-8 file, numbered from 1, without their line ends (LF or CRLF, also mixed).

    A byte order mark at the start is skipped. NUL characters, lone carriage returns, bytes that are not
    UTF-8 and lines of more than `max_line` bytes are refused with their place.
    """
    with open_limited(path, LARGEST) as stream:
        number = 0
        # One byte more than allowed, so that a line without an end is noticed before it is read whole.
        while raw := stream.readline(max_line + 3):
            number += 1
            if number == 1:
                raw = raw.removeprefix(_BOM)
            raw = raw.removesuffix(b"\n").removesuffix(b"\r")
            here = f"{path.name}, line {number}"
            if len(raw) > max_line:
                raise TableError(
                    f"{here}: the line is longer than {max_line} bytes; expected shorter lines. "
                    f"Is it a text file with line ends?"
                )
            _check_bytes(raw, here)
            try:
                yield number, raw.decode()
            except UnicodeDecodeError as flaw:
                raise TableError(
                    f"{here}, byte {flaw.start + 1}: found a byte that is not UTF-8; expected UTF-8 text. "
                    f"Convert the file."
                ) from None


def _check_bytes(raw: bytes, here: str) -> None:
    if b"\0" in raw:
        raise TableError(
            f"{here}, byte {raw.index(0) + 1}: found a NUL character; expected plain text. "
            f"If the file is UTF-16, save it as UTF-8."
        )
    if b"\r" in raw:
        raise TableError(
            f"{here}, byte {raw.index(13) + 1}: found a carriage return without a line feed; expected lines "
            f"that end in LF or CRLF. Convert the line ends."
        )


# What one recorded run says: a number of seconds, a status word, or both.


class Ending(enum.Enum):
    """How a run ended, as far as its worth is concerned."""

    FINISHED = "finished"
    TIMED_OUT = "timed out"
    NEVER = "never finishes"


# Words are compared without regard to case. A word that is not here is refused: guessing would change
# results.
STATUSES: dict[str, Ending] = {
    **dict.fromkeys(("ok", "success", "solved", "sat", "unsat"), Ending.FINISHED),
    **dict.fromkeys(("timeout", "capped"), Ending.TIMED_OUT),
    **dict.fromkeys(
        ("memout", "crash", "other", "not_applicable", "failed", "wrong"),
        Ending.NEVER,
    ),
}

# No two neighbouring repetitions can match the same character, so a mismatch is found in linear time.
# Python's own float() is too generous for data: it takes 1_000, nan and digits of other scripts.
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INFINITE = frozenset({"inf", "+inf", "infinity", "+infinity"})
_UNKNOWN = frozenset({"", "?"})


class CellError(ValueError):
    """What is wrong with one cell; the reader adds where."""

    def at(self, place: str) -> TableError:
        """Return the same complaint with its place, for the user."""
        return TableError(f"{place}: {self}")


def read_number(text: str) -> float:
    """Seconds from a cell: a plain decimal number, or `inf` for a run that never finishes."""
    text = text.strip()
    if text.lower() in _INFINITE:
        return math.inf
    if text in _UNKNOWN:
        raise CellError("the cell is empty; expected seconds, or inf for a run that never finished")
    if not _DECIMAL.fullmatch(text):
        raise CellError(
            f"found {shown(text)}; expected seconds as a plain decimal number without thousands separators "
            f"or units, or inf, timeout, crash, memout"
        )
    return checked_number(float(text))


def checked_number(seconds: float) -> float:
    """Return the same number if it can be a runtime; infinity is not one here."""
    if math.isnan(seconds):
        raise CellError("found nan; expected seconds, or inf for a run that never finished")
    if math.copysign(1.0, seconds) < 0:
        raise CellError(f"found {seconds:g}; expected a number of seconds that is not negative")
    if seconds > MAX_SECONDS:
        raise CellError(f"the number is above {MAX_SECONDS:g}; expected seconds. Is the unit right?")
    return seconds


def read_status(word: str) -> Ending:
    """Return the ending a status word stands for."""
    try:
        return STATUSES[word.strip().lower()]
    except KeyError:
        raise CellError(f"found the status {shown(word)}; expected one of {', '.join(STATUSES)}") from None


def read_cell(text: str) -> tuple[float, bool]:
    """Return a cell of a wide table: (seconds, timed out). A status word may stand in for the number."""
    ending = STATUSES.get(text.strip().lower())
    if ending is None or ending is Ending.FINISHED:
        return read_number(text), False
    return math.inf, ending is Ending.TIMED_OUT


def read_run(runtime: str, ending: Ending) -> tuple[float, bool]:
    """Return a run with a status: (seconds, timed out). Infinity with a timeout means that no time was recorded.

    The time of a run that never finishes is ignored, but it has to be a time.
    """
    if ending is not Ending.FINISHED and runtime.strip() in _UNKNOWN:
        return math.inf, ending is Ending.TIMED_OUT
    seconds = read_number(runtime)
    if ending is Ending.FINISHED and math.isinf(seconds):
        raise CellError("the run is said to have finished, but its runtime is inf; expected seconds")
    return (math.inf if ending is Ending.NEVER else seconds), ending is Ending.TIMED_OUT


# Runs recorded one per line, in any order, put together into a table with every pair exactly once.

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
