"""Values of parameters: their texts, and the words that they become on a command line."""

import math
import re
import shlex
from dataclasses import dataclass

import numpy as np

from captime.errors import ScenarioError

# Values of parameters and their texts. What a text means for one parameter is decided by the parameter, not here.

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


# How one value reaches the command line: a template of words, with the value in one of them.

VALUE = "{value}"
WORDS = "{words}"


@dataclass(frozen=True, slots=True)
class Passing:
    """The words for one parameter; words that come out empty are left out.

    Attributes:
        template: for example `--decay={value}` (one word) or `-w {value}` (two). `{words}` in the place of `{value}`
            gives a value that holds blanks as several words. A template without either, for a boolean, stands for
            true. An empty one passes nothing: the parameter only decides about others.
        off: the words for false, if the template has no place for the value; usually nothing.
    """

    template: str
    off: str = ""

    def arguments(self, value: Value, text: str) -> list[str]:
        """The words for this value, which has that text."""
        if VALUE not in self.template and WORDS not in self.template:
            return (self.template if value else self.off).split()
        if WORDS in self.template:
            return _split(self.template.replace(WORDS, text))
        # The template is cut first: blanks inside the value stay inside its word.
        return [word for part in self.template.split() if (word := part.replace(VALUE, text))]

    def check(self, name: str, *, boolean: bool) -> None:
        """Refuse a template that would say the same whatever the value is."""
        says_value = VALUE in self.template or WORDS in self.template
        if self.template and not says_value and not boolean:
            raise ScenarioError(
                f'parameter {name}: pass = "{self.template}" has no place for the value, expected {VALUE} in it, as in '
                f'"--{name}={VALUE}"; only a boolean can do without'
            )
        if self.off and (says_value or not boolean):
            raise ScenarioError(
                f'parameter {name}: off = "{self.off}" is only of use for a boolean whose pass has no {VALUE}; leave '
                "one of the two out"
            )


def _split(text: str) -> list[str]:
    """As a shell would; a text whose quotes do not close is cut at its blanks."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()
