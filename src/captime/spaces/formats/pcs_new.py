"""Declarations of new-style PCS files (SMAC from 2.10, AClib 2); their conditions and combinations are expressions.

name categorical {v1, v2} [default]
name ordinal     {v1, v2} [default]
name integer     [lo, hi] [default] [log]
name real        [lo, hi] [default] [log]
"""

from captime.errors import ScenarioError
from captime.spaces.formats.brackets import enclosed, numbers_in, values_in
from captime.spaces.numbers import Float, integer_from
from captime.spaces.parameters import Categorical, Ordinal, Parameter

TYPES = ("categorical", "ordinal", "integer", "real")


def read_declaration(name: str, kind: str, rest: str) -> Parameter:
    """The parameter of that name and type; `rest` begins with the bracket of its domain."""
    if kind in ("categorical", "ordinal"):
        inside, after = enclosed(rest, "{", "}")
        default, after = enclosed(after, "[", "]")
        if after:
            raise ScenarioError(f"found {after!r}, expected the end of the line after the default")
        maker = Ordinal if kind == "ordinal" else Categorical
        return maker(name, tuple(values_in(inside)), values_in(default)[0])
    inside, after = enclosed(rest, "[", "]")
    low, high = numbers_in(inside, 2, "the two ends of the range")
    default, after = enclosed(after, "[", "]")
    (start,) = numbers_in(default, 1, "the default value")
    if after.strip("[] ").lower() not in ("", "log"):
        raise ScenarioError(f"found {after!r}, expected log or the end of the line after the default")
    log = bool(after.strip("[] "))
    return integer_from(name, low, high, start, log=log) if kind == "integer" else Float(name, low, high, start, log)
