"""The table of recorded runtimes: one value, checked when it is made.

Rules of this room: an illegal table cannot exist, and a table never claims to know more than was recorded.
A run at or above the table's timeout is known only as "at least that long"; a run that crashed or ran out
of memory never finishes. How files are read is not known here.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.errors import ScenarioError, TableError

# Places in a table and values in a message, said the same way by every reader.

# Large tables are looked through in pieces of this many cells, so that what a test makes of them stays small.
_CELLS_AT_A_TIME = 1 << 17


def shown(text: object, width: int = 80) -> str:
    r"""Return a value for a message: quoted, control characters escaped, never longer than a line.

    >>> shown("a\tb")
    "'a\\tb'"
    """
    if isinstance(text, str) and len(text) > width:
        return repr(text[:width]) + f"… ({len(text)} characters)"
    return repr(text)


def pieces(size: int) -> Iterator[slice]:
    """Return slices that together cover `size` cells."""
    return (slice(start, start + _CELLS_AT_A_TIME) for start in range(0, size, _CELLS_AT_A_TIME))


def first_place(test: Callable[..., BoolArray], *tables: npt.NDArray[Any]) -> tuple[int, int] | None:
    """Return the first (configuration, instance) that a test finds, row by row as in the files, or None.

    Args:
        test: Takes a piece of each table, flattened, and marks the cells it is looking for.
        tables: Arrays of one shape, configurations x instances.
    """
    flat = [table.ravel() for table in tables]
    for piece in pieces(flat[0].size):
        found = test(*(cells[piece] for cells in flat))
        first = int(np.argmax(found))
        if found[first]:
            config, instance = divmod(piece.start + first, tables[0].shape[1])
            return config, instance
    return None


def where(name: str, configs: Sequence[str], instances: Sequence[str], place: tuple[int, int]) -> str:
    """Names and numbers of a place; counted from 1, rows are configurations as in the files."""
    config, instance = place
    return (
        f"{name}: configuration {shown(configs[config])} (row {config + 1}), "
        f"instance {shown(instances[instance])} (column {instance + 1})"
    )


# Which timeout a table of recorded runtimes has: never more than its records can carry.
#
# Declared by the user, declared by the file, implied by runs marked as timed out, or guessed from a largest runtime
# that several runs share. The user may shorten what is known, and cannot extend it.


def settle_limit(
    name: str,
    configs: Sequence[str],
    instances: Sequence[str],
    seconds: FloatArray,
    *,
    capped: BoolArray | None,
    timeout: float | None,
    recorded_limit: float | None,
    notes: list[str],
) -> float:
    """Return the timeout of a table in seconds, infinity for none; a guess adds a note that says how to overrule it.

    The arguments are those of `RuntimeTable.build`.
    """
    if timeout is not None and not timeout > 0:
        raise ScenarioError(f"timeout: found {timeout}; expected seconds above 0, or inf if the table has no timeout")
    if recorded_limit is not None and not recorded_limit > 0:
        raise TableError(f"{name}: its own timeout is {recorded_limit}; expected seconds above 0, or inf for none")
    if recorded_limit is not None and np.isfinite(recorded_limit):
        return _declared_by_file(name, seconds, capped, timeout, recorded_limit)
    if capped is not None and capped.any():
        _check_capped(seconds, capped, timeout, lambda place: where(name, configs, instances, place))
        return _implied(name, seconds, capped, timeout, notes)
    if timeout is not None:
        return timeout
    return np.inf if recorded_limit is not None else _shared_largest(seconds, notes)


def _declared_by_file(
    name: str, seconds: FloatArray, capped: BoolArray | None, timeout: float | None, recorded: float
) -> float:
    stopped = capped is not None and bool(capped.any())
    late = first_place(lambda run: np.isfinite(run) & (run >= recorded), seconds)
    if timeout is not None and late is None and not stopped:
        return timeout
    return _at_most(name, timeout, recorded, "the table's own timeout")


def _check_capped(
    seconds: FloatArray,
    capped: BoolArray,
    timeout: float | None,
    place: Callable[[tuple[int, int]], str],
) -> None:
    """A run that timed out must say after how long, or the user must."""
    untimed = first_place(lambda run, late: late & np.isinf(run), seconds, capped)
    if untimed is not None and (timeout is None or np.isinf(timeout)):
        raise TableError(
            f"{place(untimed)}: the run timed out, but nothing says after how long; expected the timeout it "
            f"was given. Declare it with timeout=."
        )
    empty = first_place(lambda run, late: late & (run == 0), seconds, capped)
    if empty is not None:
        raise TableError(
            f"{place(empty)}: the run timed out after 0 s, which says nothing; expected the time it was "
            f"given. Leave the runtime empty and declare timeout=."
        )


def _implied(name: str, seconds: FloatArray, capped: BoolArray, timeout: float | None, notes: list[str]) -> float:
    """No longer than the runs that timed out were seen to run."""
    shortest = float(np.min(seconds, where=capped, initial=np.inf))
    if timeout is not None and np.isinf(shortest):
        return timeout
    if timeout is None:
        notes.append(
            f"timeout {shortest:g} s: the shortest time recorded for a run that timed out; if these times "
            f"are penalised (PAR10), declare the real one with timeout="
        )
    return _at_most(name, timeout, shortest, "the shortest time recorded for a run that timed out")


def _shared_largest(seconds: FloatArray, notes: list[str]) -> float:
    """Return the largest runtime, if several runs share it.

    Coarse but always valid: a run that took t seconds took at least t seconds.
    """
    largest = float(np.max(seconds, where=np.isfinite(seconds), initial=0.0))
    if largest == 0 or np.count_nonzero(seconds == largest) < 2:
        return np.inf
    notes.append(
        f"timeout {largest:g} s: no timeout is declared, and several runs share this largest runtime; "
        f"declare another with timeout=, or timeout=inf if there was none"
    )
    return largest


def _at_most(name: str, wish: float | None, known: float, what: str) -> float:
    if wish is None:
        return known
    if wish > known:
        raise TableError(
            f"{name}: timeout={wish:g} was declared, but {what} is {known:g} s and nothing is known beyond "
            f"it; expected at most {known:g}. Declare a smaller timeout, or none."
        )
    return wish


# About 30,000 years: a larger number is a wrong unit or a stand-in for "never", and would poison every sum.
MAX_SECONDS = 1e12
# 1.6 GB of runtimes. Readers refuse a file that declares more before they allocate anything.
MAX_CELLS = 200_000_000
# Command lines serve as names, so names may be long; they may not be files.
MAX_NAME = 10_000


@dataclass(frozen=True, eq=False)
class RuntimeTable:
    """Recorded runtimes of every configuration on every instance, in seconds.

    Attributes:
        name: What to call the table in reports.
        configs: The configurations' names, all different.
        instances: The names of the columns of `seconds`, all different.
        seconds: Shape (configurations, instances), C-contiguous: configuration-major, because replay reads a
            configuration's prefix at a time. Infinity: never finishes. Exactly `limit`: at least that long.
        limit: The timeout of the table; infinity if it has none. No finite runtime is above it.
        groups: For each column, the index of the distinct instance it belongs to: repetitions share one.
        notes: What a reader of the results should know about how the table was understood.
    """

    name: str
    configs: tuple[str, ...]
    instances: tuple[str, ...]
    seconds: FloatArray
    limit: float
    groups: IntArray
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if _flaw(self.name):
            raise TableError(f"the table's name {shown(self.name)} {_flaw(self.name)}; give it another name")
        _check_names(self.name, "configuration", self.configs)
        _check_names(self.name, "instance", self.instances)
        _check_shape(self)
        _check_values(self.name, self.configs, self.instances, self.seconds)
        if not self.limit > 0:
            raise TableError(f"{self.name}: the timeout is {self.limit}; expected a number above 0, or infinity")
        place = first_place(_later_than(self.limit), self.seconds)
        if place is not None:
            raise TableError(
                f"{where(self.name, self.configs, self.instances, place)}: {self.seconds[place]} s is above "
                f"the timeout of {self.limit:g} s; expected at most that. RuntimeTable.build cuts it."
            )
        # A shared array that is edited later would make every result drawn from it unexplainable.
        for field in ("seconds", "groups"):
            view = getattr(self, field).view()
            view.flags.writeable = False
            object.__setattr__(self, field, view)

    @classmethod
    def build(
        cls,
        name: str,
        configs: Iterable[str],
        instances: Iterable[str],
        seconds: FloatArray,
        *,
        timeout: float | None = None,
        recorded_limit: float | None = None,
        capped: BoolArray | None = None,
        groups: IntArray | None = None,
        notes: Iterable[str] = (),
    ) -> "RuntimeTable":
        """Make a table from what a file says, and settle its timeout.

        Args:
            name: What to call the table.
            configs: Names of the rows of `seconds`.
            instances: Names of the columns of `seconds`.
            seconds: Shape (configurations, instances); infinity for a run that never finished.
            timeout: What the user declares; wins wherever the records leave a choice. Infinity: none.
            recorded_limit: The timeout the file itself declares. Nothing beyond it was observed.
            capped: Runs recorded as timed out, shaped like `seconds`, which says how long they were seen to
                run, or infinity where no time was recorded.
            groups: See the attribute; left out, every column is an instance of its own.
            notes: Remarks of the reader.
        """
        names, columns = tuple(configs), tuple(instances)
        values = np.ascontiguousarray(seconds, dtype=np.float64)
        # A slip in shape or names is reported before anything is computed from it.
        _check_names(name, "configuration", names)
        _check_names(name, "instance", columns)
        for given in (values, values if capped is None else capped):
            if given.shape != (len(names), len(columns)):
                raise TableError(_shape_message(name, given.shape, len(names), len(columns)))
        _check_values(name, names, columns, values)
        remarks = list(notes)
        limit = settle_limit(
            name,
            names,
            columns,
            values,
            capped=capped,
            timeout=timeout,
            recorded_limit=recorded_limit,
            notes=remarks,
        )
        values = _cut(values, limit, capped, shared=np.may_share_memory(values, seconds))
        own = np.arange(len(columns), dtype=np.int64) if groups is None else np.asarray(groups, dtype=np.int64)
        return cls(name, names, columns, values, limit, own, tuple(remarks))

    @property
    def n_configs(self) -> int:
        """How many configurations there are."""
        return len(self.configs)

    @property
    def n_instances(self) -> int:
        """How many columns there are: instances, or (instance, repetition) pairs if runs were repeated."""
        return len(self.instances)

    @property
    def n_groups(self) -> int:
        """How many distinct instances there are."""
        return int(self.groups.max()) + 1

    @property
    def censored(self) -> float:
        """The share of runs known only as "at least the timeout"."""
        if np.isinf(self.limit):
            return 0.0
        return np.count_nonzero(self.seconds == self.limit) / self.seconds.size

    @property
    def never_finished(self) -> float:
        """The share of runs that never finish: crashes, memouts and the like."""
        return np.count_nonzero(np.isinf(self.seconds)) / self.seconds.size

    def summary(self) -> tuple[str, ...]:
        """Return the table in a few lines of plain text."""
        repeated = f" ({self.n_groups} distinct, repeated)" if self.n_groups < self.n_instances else ""
        timeout = f"timeout {self.limit:g} s" if np.isfinite(self.limit) else "no timeout"
        return (
            f"{self.name}: {self.n_configs} configurations, {self.n_instances} instances{repeated}",
            f"{timeout}; {self.censored:.1%} of the runs reached it, {self.never_finished:.1%} never finish",
            *(f"note: {note}" for note in self.notes),
        )


def _shape_message(name: str, shape: tuple[int, ...], n_configs: int, n_instances: int) -> str:
    return (
        f"{name}: the runtimes have shape {shape}; expected ({n_configs}, {n_instances}), "
        f"one row per configuration and one column per instance. Check the lists of names."
    )


def _check_names(table: str, kind: str, names: tuple[str, ...]) -> None:
    if not names:
        raise TableError(f"{table}: there is no {kind}; expected at least one. Is the file complete?")
    seen: dict[str, int] = {}
    for number, name in enumerate(names, start=1):
        flaw = _flaw(name)
        if flaw:
            raise TableError(f"{table}: {kind} {number} is named {shown(name)}, which {flaw}. Give it another name.")
        first = seen.setdefault(name, number)
        if first != number:
            raise TableError(
                f"{table}: the {kind} name {shown(name)} occurs twice, as number {first} and as number "
                f"{number}; expected different names. Rename one of them."
            )


def _flaw(name: str) -> str:
    """Return what is wrong with a name, or nothing."""
    if not name.strip():
        return "is blank"
    if len(name) > MAX_NAME:
        return f"is longer than {MAX_NAME} characters"
    if "\0" in name:
        return "contains a NUL character"
    try:
        name.encode()
    except UnicodeEncodeError:
        return "is not valid Unicode text"
    return ""


def _check_shape(table: RuntimeTable) -> None:
    expected = (len(table.configs), len(table.instances))
    if table.seconds.shape != expected:
        raise TableError(_shape_message(table.name, table.seconds.shape, *expected))
    if table.seconds.dtype != np.float64 or not table.seconds.flags.c_contiguous:
        raise TableError(f"{table.name}: runtimes must be C-contiguous float64; RuntimeTable.build converts them")
    groups = table.groups
    whole = groups.shape == (len(table.instances),) and groups.dtype == np.int64 and groups.min() >= 0
    if not whole or not np.array_equal(np.unique(groups), np.arange(groups.max() + 1)):
        raise TableError(
            f"{table.name}: groups must give each of the {len(table.instances)} columns the number of its "
            f"distinct instance: 0, 1, 2, … without gaps, 64-bit. Leave them out if nothing was repeated."
        )


def _check_values(name: str, configs: Sequence[str], instances: Sequence[str], seconds: FloatArray) -> None:
    """NaN, negative and absurd runtimes are refused; infinity means the run never finishes."""
    tests: tuple[tuple[Callable[[FloatArray], BoolArray], str], ...] = (
        (np.isnan, "a number of seconds; write inf for a run that never finished"),
        (lambda run: run < 0, "a number of seconds that is not negative"),
        (_later_than(MAX_SECONDS), f"at most {MAX_SECONDS:g} seconds; is the unit right?"),
    )
    for test, expected in tests:
        place = first_place(test, seconds)
        if place is not None:
            raise TableError(f"{where(name, configs, instances, place)}: found {seconds[place]}; expected {expected}")


def _later_than(limit: float) -> Callable[[FloatArray], BoolArray]:
    """Marks runs that finished, but after the limit."""
    return lambda run: (run > limit) & (run < np.inf)


def _cut(values: FloatArray, limit: float, capped: BoolArray | None, *, shared: bool) -> FloatArray:
    """Runs that finished too late or were stopped become exactly the limit.

    Args:
        values: Runtimes as recorded.
        limit: The timeout of the table.
        capped: Runs that were stopped.
        shared: Whether the caller holds these values too, so that a change is made in a copy.
    """
    late = _later_than(limit)
    stopped = capped is not None and bool(capped.any())
    if not stopped and first_place(late, values) is None:
        return values
    cut = np.empty_like(values) if shared else values
    before, after = values.ravel(), cut.ravel()
    marks = None if capped is None else capped.ravel()
    for piece in pieces(values.size):
        over = late(before[piece])
        if marks is not None:
            over |= marks[piece]
        after[piece] = np.where(over, limit, before[piece])
    return cut
