"""What one recorded run says: a number of seconds, a status word, or both."""

import enum
import math
import re

from captime.errors import TableError
from captime.sources.locations import shown
from captime.sources.table import MAX_SECONDS


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
