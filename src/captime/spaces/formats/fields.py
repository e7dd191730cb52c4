"""Single fields of TOML, JSON and YAML tables, checked for their kind. The caller knows the place and adds it."""

import math
from typing import Any

from captime.errors import ScenarioError
from captime.spaces.values import Value


def number(value: object, key: str) -> float:
    """A number; true and false are none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ScenarioError(f"{key} is {value!r}, expected a number")
    try:
        return float(value)
    except OverflowError:
        raise ScenarioError(f"{key} is a whole number too large to compute with, expected one below 2^53") from None


def truth(value: object, key: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise ScenarioError(f"{key} is {value!r}, expected true or false")
    return value


def plain(value: object, key: str) -> Value:
    """Anything a parameter can be set to."""
    if not isinstance(value, bool | int | float | str):
        raise ScenarioError(f"{key} is {value!r}, expected a text, a number, true or false")
    if isinstance(value, float) and not math.isfinite(value):
        raise ScenarioError(f"{key} is {value!r}, expected a finite number")
    return text(value, key) if isinstance(value, str) else value


def text(value: str, key: str) -> str:
    """A text that can be printed and stored: half a character, as JSON allows them, cannot."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ScenarioError(f"{key} is {value!r}, expected whole characters; correct the one with \\ud") from None
    return value


def items(value: object, key: str) -> list[Any]:
    """A list, perhaps an empty one."""
    if not isinstance(value, list):
        raise ScenarioError(f"{key} is {value!r}, expected a list")
    return value


def some(value: object, key: str) -> list[Any]:
    """A list with something in it."""
    if not items(value, key):
        raise ScenarioError(f"{key} is empty, expected at least one value")
    return items(value, key)
