"""PCS files, old and new style, as far as they can say what the space says."""

import math
import re

from captime.spaces.clause_text import alternatives, clause_text, spread
from captime.spaces.clauses import (
    MIRRORED,
    Among,
    Both,
    Clause,
    Comparison,
    Constant,
    Either,
    Neither,
    Reading,
    both,
    either,
)
from captime.spaces.formats.losses import refuse
from captime.spaces.laws import Evenly
from captime.spaces.parameters import Choice, Float, Integer, Ordinal, Parameter
from captime.spaces.space import Space
from captime.spaces.values import text_of

_VALUE = re.compile(r"[^\s,{}\[\]|#\"'=!<>&()]+")
_NAME = re.compile(r"[A-Za-z0-9_\-@.:;\\/?!$%&*+<>]+")


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
        if not _NAME.fullmatch(each.name):
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
        case Comparison(_, sign, _):
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
        case Comparison(Constant() as left, sign, Reading() as right):
            return _strict(Comparison(right, MIRRORED[sign], left))
        case Comparison(Reading(parameter) as left, ("<=" | ">=") as sign, Constant(number)):
            if isinstance(parameter, Integer):
                beyond = math.floor(number) + 1 if sign == "<=" else math.ceil(number) - 1
                return Comparison(left, sign[0], Constant(float(beyond)))
            if isinstance(parameter, Float) and parameter.code(number) is not None:
                return either([Comparison(left, sign[0], Constant(number)), Among(parameter, (number,))])
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
