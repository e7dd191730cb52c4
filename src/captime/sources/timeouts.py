"""Which timeout a table of recorded runtimes has: never more than its records can carry.

Declared by the user, declared by the file, implied by runs marked as timed out, or guessed from a largest
runtime that several runs share. The user may shorten what is known, and cannot extend it.
"""

from collections.abc import Callable, Sequence

import numpy as np

from captime.arrays import BoolArray, FloatArray
from captime.errors import ScenarioError, TableError
from captime.sources.locations import first_place, where


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
