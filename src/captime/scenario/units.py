"""Times and sizes as people write them in a scenario: `10m` is ten minutes, `2GB` are two billion bytes."""

import math
import re
from datetime import datetime, time
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from captime.errors import UtilityError
from captime.utilities.durations import parse_duration

_MINUTES = re.compile(r"(.*[0-9.])\s*m")
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]*)?)\s*([A-Za-z]*)")
# Limits are signed numbers of 64 bits to the system.
_MOST_BYTES = 2**63 - 1
_UNITS = {
    "": 1,
    "b": 1,
    **{f"{letter}b": 1000**power for power, letter in enumerate("kmgt", start=1)},
    **{f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", start=1)},
}


def seconds_of(value: Any) -> float:
    """Seconds from a number or a text; `m` means minutes here, because nothing shorter or longer could be meant.

    >>> seconds_of("10m"), seconds_of("90s"), seconds_of(2)
    (600.0, 90.0, 2.0)
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise PydanticCustomError("duration", "expected a time such as 90s, 10m, 2h or 1d, or a number of seconds")
    if not isinstance(value, str):
        if not 0 <= value < math.inf:
            raise PydanticCustomError("duration", "expected a finite number of seconds, 0 or more")
        try:
            return float(value)
        except OverflowError:
            raise PydanticCustomError("duration", "expected a number of seconds that is not astronomical") from None
    value = value.strip()
    minutes = _MINUTES.fullmatch(value)
    try:
        return parse_duration(f"{minutes.group(1)}min" if minutes else value, "it")
    except UtilityError as error:
        problem = str(error).removeprefix(f"it is {value!r}").lstrip(",: ")
        raise PydanticCustomError("duration", "{problem}", {"problem": problem}) from None


def bytes_of(value: Any) -> int:
    """Bytes from a number or a text.

    >>> bytes_of("2GB"), bytes_of("1 KiB"), bytes_of(5)
    (2000000000, 1024, 5)
    """
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST_BYTES:
        return value
    found = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None or found.group(2).lower() not in _UNITS:
        raise PydanticCustomError("size", "expected a size such as 500MB, 2GB or 4GiB, or a number of bytes")
    size = float(found.group(1)) * _UNITS[found.group(2).lower()]
    if size > _MOST_BYTES:
        raise PydanticCustomError("size", "expected a size that a machine can have, such as 500MB, 2GB or 4GiB")
    return max(1, int(size))


def time_of_day(value: Any) -> time | datetime:
    """Return a moment: `18:30`, or a date and time as TOML knows them."""
    if isinstance(value, time | datetime):
        return value
    try:
        return time.fromisoformat(value)
    except (TypeError, ValueError):
        raise PydanticCustomError("moment", "expected a time of day such as '18:30'") from None


_TIME = {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": "^\\s*[0-9.]"}]}
_BYTES = {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": "^\\s*[0-9.]"}]}
_DAY = {"anyOf": [{"type": "string"}, {"type": "object"}]}
"""What editors are told; TOML's own times reach them as texts, or as objects."""

Duration = Annotated[float, BeforeValidator(seconds_of), WithJsonSchema(_TIME)]
Size = Annotated[int, BeforeValidator(bytes_of), WithJsonSchema(_BYTES)]
Moment = Annotated[time | datetime, BeforeValidator(time_of_day), WithJsonSchema(_DAY)]
