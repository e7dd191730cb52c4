"""Times as people write them: `90s`, `5min`, `2h` in, `1 min`, `2.5 h` out."""

import difflib
import math
import re

from captime.errors import UtilityError

# Divisors, not fractions, below one second: 100 / 1000 is the double nearest to 0.1, 100 * 0.001 need not be.
_MULTIPLES = {"s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_DIVISORS = {"ms": 1e3, "us": 1e6, "µs": 1e6, "μs": 1e6}
_PRINTED = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))

NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
UNIT = re.compile(r"[A-Za-zµμ]+")


class Duration(float):
    """A number of seconds that was written with a unit, so it can only stand for a time."""

    __slots__ = ()


def in_seconds(number: float, unit: str) -> float:
    """Return a number with a unit, in seconds; an unknown unit is refused.

    >>> in_seconds(5, "min")
    300.0
    """
    word = unit.lower()
    if word in _MULTIPLES:
        return number * _MULTIPLES[word]
    if word in _DIVISORS:
        return number / _DIVISORS[word]
    known = ["us", "ms", "s", "min", "h", "d"]
    # A lone m could be a minute, a month or a thousandth: asking is cheaper than guessing.
    near = ["min"] if word.startswith("m") else difflib.get_close_matches(word, known, n=1, cutoff=0.0)
    raise UtilityError(f"{unit!r} is not a unit of time, expected one of {', '.join(known)}; did you mean {near[0]}?")


def parse_duration(text: str, what: str = "the time") -> float:
    """Seconds from `90`, `90s`, `1.5 min`, `2h`; what is negative, infinite or something else is refused.

    Args:
        text: what the user wrote.
        what: what the time is, for the message.

    >>> parse_duration("1.5 min")
    90.0
    """
    stripped = text.strip()
    number = NUMBER.match(stripped)
    unit = stripped[number.end() :].strip() if number else ""
    if number is None or (unit and not UNIT.fullmatch(unit)):
        raise UtilityError(
            f"{what} is {text!r}, expected a number with or without a unit, like 90, 90s, 5min, 2h, 100ms or 1d"
        )
    try:
        seconds = in_seconds(float(number.group()), unit or "s")
    except UtilityError as error:
        raise UtilityError(f"{what} is {text!r}: {error}") from None
    if not 0.0 <= seconds < math.inf:
        raise UtilityError(f"{what} is {text!r}, expected a finite time of 0 or more")
    return seconds


def duration_text(seconds: float) -> str:
    """Return a time for people, in the largest unit that makes it at least 1, with three digits or so.

    >>> duration_text(9000)
    '2.5 h'
    """
    if math.isinf(seconds):
        return "never"
    if seconds == 0.0:
        return "0 s"
    # A little slack, so that 59.9999 s is printed as 1 min and not as 60 s.
    size, unit = next((each for each in _PRINTED if seconds >= each[0] * 0.9995), _PRINTED[-1])
    amount = seconds / size
    digits = f"{amount:.3g}" if amount < 1000.0 else f"{amount:,.0f}"
    if "e" in digits or amount >= 1e9:
        digits = f"{amount:.2e}"
    return f"{digits} {unit}"


def rounded_time(seconds: float) -> float:
    """Return a time with no more digits than a guess deserves: halves, whole numbers or fives of its unit."""
    unit = next((size for size in (86400.0, 3600.0, 60.0, 1.0) if seconds >= size), 1.0)
    amount = seconds / unit
    step = 0.5 if amount < 3.0 else 1.0 if amount < 20.0 else 5.0
    return max(step, round(amount / step) * step) * unit
