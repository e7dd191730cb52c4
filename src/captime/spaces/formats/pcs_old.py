"""Declarations and clauses of old-style PCS files (ParamILS, SMAC up to 2.08).

name {v1, v2} [default]         categorical
name [lo, hi] [default]il       real; i: whole numbers, l: by the logarithm
child | parent in {a, b}        condition
{p1=v1, p2=v2}                  forbidden combination
"""

from collections.abc import Mapping

from captime.errors import ScenarioError
from captime.spaces.clauses import Clause, both
from captime.spaces.formats.brackets import enclosed, numbers_in, values_in
from captime.spaces.matching import among
from captime.spaces.numbers import Float, integer_from
from captime.spaces.parameters import Categorical, Parameter


def read_declaration(name: str, rest: str) -> Parameter:
    """The parameter of that name; `rest` begins with the bracket of its domain."""
    if rest.startswith("{"):
        inside, after = enclosed(rest, "{", "}")
        default, after = enclosed(after, "[", "]")
        _nothing(after, "the end of the line")
        choices = values_in(inside)
        return Categorical(name, tuple(choices), values_in(default)[0])
    inside, after = enclosed(rest, "[", "]")
    low, high = numbers_in(inside, 2, "the two ends of the range")
    default, after = enclosed(after, "[", "]")
    (start,) = numbers_in(default, 1, "the default value")
    flags = "".join(after.split())
    if flags not in ("", "i", "l", "il", "li"):
        raise ScenarioError(f"found {after.strip()!r}, expected i, l, il or the end of the line after the default")
    if "i" in flags:
        return integer_from(name, low, high, start, log="l" in flags)
    return Float(name, low, high, start, log="l" in flags)


def is_plain_condition(text: str) -> bool:
    """Whether a condition has the old form, `parent in {values}` and nothing else."""
    words = text.split(maxsplit=2)
    return (
        len(words) >= 2
        and (words[1] == "in" or words[1].startswith("in{"))
        and text.endswith("}")
        and text.count("{") == 1
        and text.count("}") == 1
    )


def read_condition(text: str, parameters: Mapping[str, Parameter]) -> Clause:
    """The clause of `parent in {values}`; the values may be written with any signs."""
    name = text.split(maxsplit=1)[0]
    inside, after = enclosed(text[text.index("{") :], "{", "}")
    _nothing(after, "the end of the line")
    return among(_declared(name, parameters), values_in(inside))


def is_plain_forbidden(inside: str) -> bool:
    """Whether a forbidden combination has the old form, equalities with commas between them."""
    return all(part.count("=") == 1 and not set("<>!|&\"'{(") & set(part) for part in inside.split(","))


def read_forbidden(inside: str, parameters: Mapping[str, Parameter]) -> Clause:
    """The clause of `p1=v1, p2=v2`, without the braces."""
    parts: list[Clause] = []
    for part in inside.split(","):
        name, _, value = (piece.strip() for piece in part.partition("="))
        parts.append(among(_declared(name, parameters), [value]))
    return both(parts)


def _declared(name: str, parameters: Mapping[str, Parameter]) -> Parameter:
    if name not in parameters:
        raise ScenarioError(f"found {name!r}, which no line declares; is it spelt so?")
    return parameters[name]


def _nothing(text: str, expected: str) -> None:
    if text.strip():
        raise ScenarioError(f"found {text.strip()!r}, expected {expected}")
