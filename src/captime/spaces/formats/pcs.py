"""PCS files, old and new style, read and written."""

import math
import re
from collections.abc import Mapping
from functools import partial

from captime.errors import ScenarioError
from captime.spaces.clauses import (
    MIRRORED,
    Among,
    Both,
    Clause,
    Constant,
    Either,
    Neither,
    Reading,
    Relation,
    alternatives,
    both,
    clause_text,
    either,
    spread,
)
from captime.spaces.formats.reading import Draft, numbered, refuse
from captime.spaces.laws import Evenly
from captime.spaces.matching import among
from captime.spaces.parameters import Categorical, Choice, Float, Integer, Ordinal, Parameter, integer_from
from captime.spaces.pcs_expression import read_clause, read_forbidden
from captime.spaces.space import Space
from captime.spaces.values import number_in, text_of

# What stands between brackets: lists of values and numbers, as all PCS dialects write them.


def enclosed(text: str, opening: str, closing: str) -> tuple[str, str]:
    """What stands between a pair of brackets at the beginning of a text, and what comes after them."""
    text = text.strip()
    if not text.startswith(opening):
        found = f"found {text[:20]!r}" if text else "the line ends"
        raise ScenarioError(f"{found}, expected {opening} ... {closing}")
    inside, found_closing, after = text[1:].partition(closing)
    if not found_closing:
        raise ScenarioError(f"found {text[:20]!r} without its {closing}, expected {opening} ... {closing}")
    return inside, after.strip()


def values_in(inside: str) -> list[str]:
    """Values with commas between them; a value in quotation marks loses them."""
    values = [_bare(value.strip()) for value in inside.split(",")]
    if "" in values:
        raise ScenarioError(f"found an empty value in {{{inside}}}, expected values with commas between them")
    return values


def _bare(value: str) -> str:
    if not value.startswith(('"', "'")):
        return value
    if len(value) < 2 or value[-1] != value[0]:
        raise ScenarioError(
            f"found {value}, whose quotation mark is not closed; expected values without commas in them"
        )
    return value[1:-1]


def numbers_in(inside: str, count: int, what: str) -> list[float]:
    """Read `count` numbers with commas between them."""
    numbers = [number_in(part.strip()) for part in inside.split(",")]
    if len(numbers) != count or None in numbers:
        raise ScenarioError(
            f"found [{inside}], expected {what} as {'numbers' if count > 1 else 'a number'} in brackets"
        )
    return [number for number in numbers if number is not None]


# Declarations of new-style PCS files (SMAC from 2.10, AClib 2); their conditions and combinations are expressions.
#
# A line has a name, one of these types, its values in braces or its range in brackets, the default in brackets, and
# for numbers perhaps [log].

TYPES = ("categorical", "ordinal", "integer", "real")


def read_new_declaration(name: str, kind: str, rest: str) -> Parameter:
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


# Declarations and clauses of old-style PCS files (ParamILS, SMAC up to 2.08).
#
# `name {v1, v2} [default]` is a choice and `name [lo, hi] [default]il` a number (i: whole numbers, l: by
# the logarithm); `child | parent in {a, b}` is a condition and `{p1=v1, p2=v2}` a forbidden combination.


def read_old_declaration(name: str, rest: str) -> Parameter:
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


def read_old_forbidden(inside: str, parameters: Mapping[str, Parameter]) -> Clause:
    """The clause of `p1=v1, p2=v2`, without the braces."""
    parts: list[Clause] = []
    for part in inside.split(","):
        name, _, value = (piece.strip() for piece in part.partition("="))
        parts.append(among(_declared(name, parameters), [value]))
    return both(parts)


def _declared(name: str, parameters: Mapping[str, Parameter]) -> Parameter:
    if name not in parameters:
        raise ScenarioError(f"found {name!r}, which no line declares; declare it, or correct the name")
    return parameters[name]


def _nothing(text: str, expected: str) -> None:
    if text.strip():
        raise ScenarioError(f"found {text.strip()!r}, expected {expected}")


# PCS files, line by line: which kind of line it is, and whether the old or the new grammar reads it.
#
# Lines of both dialects may stand in one file; every line tells by its form which it is.

_DECORATION = re.compile(r"(conditionals?|conditions|forbiddens?)\s*:?", re.IGNORECASE)
_NAME = re.compile(r"[^\s{}\[\]|,=\"'()]+")
_TYPE = re.compile(rf"\s+({'|'.join(TYPES)})\s*(?=[\[{{])", re.IGNORECASE)


def read_pcs(text: str, file: str) -> Space:
    """The space of a PCS file of either style."""
    draft = Draft(file)
    for line, content in numbered(text):
        try:
            _read_line(draft, line, content)
        except ScenarioError as flaw:
            raise draft.flaw(line, flaw) from None
    return draft.space()


def _read_line(draft: Draft, line: int, content: str) -> None:
    if _DECORATION.fullmatch(content) or "Conditionals:" in content or "Forbidden:" in content:
        return
    if content.startswith("{"):
        _read_forbidden(draft, line, content)
        return
    found = _NAME.match(content)
    if found is None:
        raise ScenarioError(f"found {content[:30]!r}, expected the name of a parameter or a {{forbidden combination}}")
    name, rest = found.group(), content[found.end() :]
    kind = _TYPE.match(rest)
    if kind is not None:
        rest = rest[kind.end() :]
    rest = rest.strip()
    if rest.startswith("|") and not rest.startswith("||"):
        _read_condition(draft, line, name, rest[1:])
        return
    if rest.startswith(('"', "'")):
        raise ScenarioError(
            f"found {rest[:30]!r} after {name}, which looks like a switch in irace's format; if it is, use --from "
            'irace, or format = "irace" in a scenario'
        )
    if not rest.startswith(("{", "[")):
        raise ScenarioError(
            f"found {rest[:30]!r} after {name}, expected a domain in braces or brackets, one of the types "
            f"{', '.join(TYPES)} before it, or | and a condition"
        )
    # Some ParamILS files put the condition behind the declaration.
    declaration, bar, condition = rest.partition("|")
    if kind is not None:
        draft.declare(line, read_new_declaration(name, kind.group(1).lower(), declaration))
    else:
        draft.declare(line, read_old_declaration(name, declaration))
    if bar:
        _read_condition(draft, line, name, condition)


def _read_condition(draft: Draft, line: int, child: str, text: str) -> None:
    text = text.strip()
    if not text:
        raise ScenarioError(f"the condition of {child} is empty, expected something like: parent in {{a, b}}")
    read = read_condition if is_plain_condition(text) else read_clause
    draft.conditions.append((child, line, partial(read, text)))


def _read_forbidden(draft: Draft, line: int, content: str) -> None:
    inside = content[1:].strip()
    if not inside.endswith("}"):
        raise ScenarioError(f"found {content[:30]!r}, expected a }} at the end of a forbidden combination")
    inside = inside[:-1].strip()
    if not inside:
        raise ScenarioError("found {}, expected a combination such as {p1=a, p2=b}")
    read = read_old_forbidden if is_plain_forbidden(inside) else read_forbidden
    draft.forbidden.append((line, partial(read, inside)))


# PCS files, old and new style, as far as they can say what the space says.

_VALUE = re.compile(r"[^\s,{}\[\]|#\"'=!<>&()]+")
_WRITABLE_NAME = re.compile(r"[A-Za-z0-9_\-@.:;\\/?!$%&*+<>]+")


def write_pcs_new(space: Space) -> str:
    """The text of a new-style file."""
    lost = _lost_anyway(space)
    conditions = []
    for child, clause in space.conditions.items():
        # The grammar has no brackets: alternatives of conjunctions say the same.
        parts = alternatives(_strict(spread(clause)), most=64)
        if parts is None or any(not _new_leaf(leaf) for part in parts for leaf in part):
            lost.append(f"{child} | {clause_text(clause)}")
        else:
            conditions.append(f"{child} | {' || '.join(clause_text(both(part)) for part in parts)}")
    forbidden = _forbidden(space, lost, old=False)
    refuse("new-style PCS", lost)
    return _file([_new_declaration(each) for each in space.parameters], conditions, forbidden)


def write_pcs_old(space: Space) -> str:
    """The text of an old-style file."""
    lost = _lost_anyway(space)
    lost += [f"{each.name} is ordinal" for each in space.parameters if isinstance(each, Ordinal)]
    conditions = []
    for child, clause in space.conditions.items():
        parts = alternatives(clause)
        memberships = [_membership(leaf) for leaf in parts[0]] if parts is not None and len(parts) == 1 else [None]
        if None in memberships:
            lost.append(f"{child} | {clause_text(clause)}")
        else:
            conditions += [f"{child} | {membership}" for membership in memberships]
    forbidden = _forbidden(space, lost, old=True)
    refuse("old-style PCS", lost)
    return _file([_old_declaration(each) for each in space.parameters], conditions, forbidden)


def _file(declarations: list[str], conditions: list[str], forbidden: list[str]) -> str:
    parts = [declarations]
    if conditions:
        parts.append(["", "Conditionals:", *conditions])
    if forbidden:
        parts.append(["", "Forbidden:", *forbidden])
    return "\n".join(line for part in parts for line in part) + "\n"


def _lost_anyway(space: Space) -> list[str]:
    """What neither style can say."""
    lost = []
    for each in space.parameters:
        if not _WRITABLE_NAME.fullmatch(each.name):
            lost.append(f"the name {each.name!r}")
        if isinstance(each, Choice):
            if each.weights is not None:
                lost.append(f"{each.name} has weights")
            if any(not _VALUE.fullmatch(text_of(choice)) for choice in each.choices):
                lost.append(f"{each.name} has values with blanks or brackets in them")
        else:
            if not isinstance(each.law, Evenly):
                lost.append(f"{each.name} has a prior")
            if isinstance(each, Float) and each.digits is not None:
                lost.append(f"{each.name} is rounded to {each.digits} digits")
    return lost


# ---------------------------------------------------------------- declarations


def _braces(parameter: Choice) -> str:
    return f"{{{', '.join(text_of(choice) for choice in parameter.choices)}}} [{text_of(parameter.default)}]"


def _brackets(parameter: Float | Integer) -> str:
    return f"[{text_of(parameter.low)}, {text_of(parameter.high)}] [{text_of(parameter.default)}]"


def _new_declaration(parameter: Parameter) -> str:
    if isinstance(parameter, Choice):
        kind = "ordinal" if isinstance(parameter, Ordinal) else "categorical"
        return f"{parameter.name} {kind} {_braces(parameter)}"
    kind = "integer" if isinstance(parameter, Integer) else "real"
    return f"{parameter.name} {kind} {_brackets(parameter)}{' log' if parameter.log else ''}"


def _old_declaration(parameter: Parameter) -> str:
    if isinstance(parameter, Choice):
        return f"{parameter.name} {_braces(parameter)}"
    flags = ("i" if isinstance(parameter, Integer) else "") + ("l" if parameter.log else "")
    return f"{parameter.name} {_brackets(parameter)}{flags}"


# ---------------------------------------------------------------- clauses


def _new_leaf(leaf: Clause) -> bool:
    """Whether the published grammar has words for it; `<=` and `>=` are not among them."""
    match leaf:
        case Among():
            return True
        case Neither(Among(_, (_,))):
            return True
        case Relation(_, sign, _):
            return sign in ("<", ">")
        case _:
            return False


def _strict(clause: Clause) -> Clause:
    """The same without <= and >= between a number and a constant: the published grammar lacks them."""
    match clause:
        case Both(parts):
            return both([_strict(part) for part in parts])
        case Either(parts):
            return either([_strict(part) for part in parts])
        case Relation(Constant() as left, sign, Reading() as right):
            return _strict(Relation(right, MIRRORED[sign], left))
        case Relation(Reading(parameter) as left, ("<=" | ">=") as sign, Constant(number)):
            if isinstance(parameter, Integer):
                beyond = math.floor(number) + 1 if sign == "<=" else math.ceil(number) - 1
                return Relation(left, sign[0], Constant(float(beyond)))
            if isinstance(parameter, Float) and parameter.code(number) is not None:
                return either([Relation(left, sign[0], Constant(number)), Among(parameter, (number,))])
            return clause
        case _:
            return clause


def _membership(leaf: Clause) -> str | None:
    """`parent in {values}`, if the leaf can be said so: also a != of a parameter with finitely many values."""
    match leaf:
        case Among(parameter, values):
            pass
        case Neither(Among(parameter, (value,))) if isinstance(parameter, Choice):
            values = tuple(choice for choice in parameter.choices if choice != value)
        case _:
            return None
    return f"{parameter.name} in {{{', '.join(text_of(each) for each in values)}}}"


def _forbidden(space: Space, lost: list[str], *, old: bool) -> list[str]:
    lines = []
    for clause in space.forbidden:
        combinations = alternatives(clause)
        if combinations is None:
            lost.append(f"forbidden: {clause_text(clause)}")
            continue
        for leaves in combinations:
            equalities = _equalities(leaves)
            if equalities is not None:
                lines += equalities
            elif old:
                lost.append(f"forbidden: {clause_text(both(leaves))}")
            else:
                lines.append(f"{{{clause_text(both(leaves))}}}")
    return lines


def _equalities(leaves: list[Clause]) -> list[str] | None:
    """Lines of equalities that forbid the same; None if there are none, or too many."""
    lines: list[list[str]] = [[]]
    for leaf in leaves:
        match leaf:
            case Among(parameter, values) if len(lines) * len(values) <= 64:
                lines = [[*line, f"{parameter.name}={text_of(each)}"] for line in lines for each in values]
            case _:
                return None
    return [f"{{{', '.join(line)}}}" for line in lines]
