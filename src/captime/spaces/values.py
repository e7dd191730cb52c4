"""Values of parameters and their texts. What a text means for one parameter is decided by the parameter, not here."""

import math
import re

import numpy as np

from captime.errors import ScenarioError

# What a parameter can be set to. Booleans are values of their own: a program may want `--flag` or nothing for them.
Value = bool | int | float | str
# One configuration: the active parameters and what they are set to.
Settings = dict[str, Value]

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
# Whole numbers are kept in floating-point columns too; beyond this they would not survive.
LARGEST_INTEGER = 2**53


def text_of(value: Value) -> str:
    """A value as a program reads it: whole numbers as such, floats so that they read back to the last bit.

    Floats have no exponent unless they are very small or very large: not every program understands one.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if value == 0.0 or 1e-15 <= abs(value) < 1e16:
            return np.format_float_positional(value, trim="0")
        return repr(value)
    return str(value)


def number_in(text: str) -> float | None:
    """The finite number a text is, or None."""
    if _NUMBER.fullmatch(text) is None:
        return None
    number = float(text)
    return number if math.isfinite(number) else None


def whole(number: float) -> int:
    """A number that must be whole, as an int."""
    if not number.is_integer() or abs(number) > LARGEST_INTEGER:
        raise ScenarioError(
            f"found {number!r}, expected a whole number of at most 2^53 in size; make it one, or the parameter real"
        )
    return int(number)


def same(one: Value, other: Value) -> bool:
    """Equal in value and in kind: neither 1 and true nor 1 and "1" are the same."""
    return one == other and isinstance(one, bool) is isinstance(other, bool)
