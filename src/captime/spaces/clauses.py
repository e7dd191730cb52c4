"""Conditions and forbidden combinations as trees, and what they say about many configurations at once.

A configuration is a column per parameter: the number itself, or the place of a choice in its list; not a number where
the parameter is inactive. About an inactive parameter nothing is true and nothing is false: a clause is then
undecided unless the rest of it decides (as in R; ConfigSpace does the same, but since its version 1 it takes "is not"
for true where the parent is inactive). No text is read here.
"""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from captime.arrays import BoolArray, FloatArray
from captime.spaces.parameters import Choice, Parameter, numeric_choices
from captime.spaces.values import Value, text_of

Columns = Mapping[str, FloatArray]
# Surely true, surely false; neither: undecided.
Truth = tuple[BoolArray, BoolArray]

SIGNS: dict[str, Callable[[FloatArray, FloatArray], BoolArray]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
MIRRORED = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}

_STEPS: dict[str, Callable[..., FloatArray]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "%": np.mod,
    "min": lambda *terms: np.minimum.reduce(terms),
    "max": lambda *terms: np.maximum.reduce(terms),
    "abs": np.abs,
    "round": np.rint,
    "floor": np.floor,
    "ceiling": np.ceil,
    "trunc": np.trunc,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
}
# How many arguments each function takes; the signs of arithmetic take two.
ARITY = {name: (2, 99) if name in ("min", "max") else (1, 1) for name in list(_STEPS)[5:]}
ARITHMETIC = ("+", "-", "*", "/", "%")


class Term(Protocol):
    """Something that has a number for each configuration."""

    def numbers(self, columns: Columns, /) -> FloatArray:
        """The numbers; not a number where they depend on an inactive parameter."""
        ...


class Clause(Protocol):
    """Something that is true, false or undecided for each configuration."""

    def truth(self, columns: Columns, /) -> Truth:
        """Where it is surely true, and where it is surely false."""
        ...


@dataclass(frozen=True, slots=True)
class Reading:
    """The number a parameter is set to; of a choice, the number its value is."""

    parameter: Parameter

    def numbers(self, columns: Columns, /) -> FloatArray:
        """See the protocol."""
        column = columns[self.parameter.name]
        if not isinstance(self.parameter, Choice):
            return column
        meant = np.array(numeric_choices(self.parameter))
        active = ~np.isnan(column)
        numbers = np.full(column.shape, np.nan)
        numbers[active] = meant[column[active].astype(np.int64)]
        return numbers


@dataclass(frozen=True, slots=True)
class Constant:
    """A number."""

    number: float

    def numbers(self, columns: Columns, /) -> FloatArray:  # noqa: ARG002 (the same for all)
        """See the protocol."""
        return np.array([self.number])


@dataclass(frozen=True, slots=True)
class Operation:
    """Arithmetic, or one of the functions in ARITY."""

    name: str
    terms: tuple[Term, ...]

    def numbers(self, columns: Columns, /) -> FloatArray:
        """See the protocol."""
        with np.errstate(all="ignore"):  # a division by zero is undecided, not a warning
            return np.asarray(_STEPS[self.name](*(term.numbers(columns) for term in self.terms)))


@dataclass(frozen=True, slots=True)
class Among:
    """The parameter is set to one of these values."""

    parameter: Parameter
    values: tuple[Value, ...]

    def truth(self, columns: Columns, /) -> Truth:
        """See the protocol."""
        column = columns[self.parameter.name]
        yes = np.zeros(column.shape, dtype=np.bool_)
        for value in self.values:
            yes |= column == self.parameter.code(value)
        return yes, ~yes & ~np.isnan(column)


@dataclass(frozen=True, slots=True)
class Relation:
    """Two numbers and a sign between them."""

    left: Term
    sign: str
    right: Term

    def truth(self, columns: Columns, /) -> Truth:
        """See the protocol."""
        left, right = np.broadcast_arrays(self.left.numbers(columns), self.right.numbers(columns))
        known = ~(np.isnan(left) | np.isnan(right))
        yes = SIGNS[self.sign](left, right) & known
        return yes, known & ~yes


@dataclass(frozen=True, slots=True)
class Both:
    """All of the parts are true."""

    parts: tuple[Clause, ...]

    def truth(self, columns: Columns, /) -> Truth:
        """See the protocol."""
        yes, no = zip(*(part.truth(columns) for part in self.parts), strict=True)
        return np.logical_and.reduce(np.broadcast_arrays(*yes)), np.logical_or.reduce(np.broadcast_arrays(*no))


@dataclass(frozen=True, slots=True)
class Either:
    """At least one of the parts is true."""

    parts: tuple[Clause, ...]

    def truth(self, columns: Columns, /) -> Truth:
        """See the protocol."""
        yes, no = zip(*(part.truth(columns) for part in self.parts), strict=True)
        return np.logical_or.reduce(np.broadcast_arrays(*yes)), np.logical_and.reduce(np.broadcast_arrays(*no))


@dataclass(frozen=True, slots=True)
class Neither:
    """The part is false."""

    part: Clause

    def truth(self, columns: Columns, /) -> Truth:
        """See the protocol."""
        yes, no = self.part.truth(columns)
        return no, yes


@dataclass(frozen=True, slots=True)
class Certain:
    """True or false whatever the configuration: TRUE and FALSE in R."""

    answer: bool

    def truth(self, columns: Columns, /) -> Truth:  # noqa: ARG002 (the same for all)
        """See the protocol."""
        return np.array([self.answer]), np.array([not self.answer])


def both(parts: list[Clause]) -> Clause:
    """The conjunction of one or more parts, flattened."""
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, Both) else (part,))]
    return flat[0] if len(flat) == 1 else Both(tuple(flat))


def either(parts: list[Clause]) -> Clause:
    """The disjunction of one or more parts, flattened."""
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, Either) else (part,))]
    return flat[0] if len(flat) == 1 else Either(tuple(flat))


def parents(clause: Clause | Term) -> set[str]:
    """The names of the parameters it speaks about."""
    match clause:
        case Among(parameter, _) | Reading(parameter):
            return {parameter.name}
        case Relation(left, _, right):
            return parents(left) | parents(right)
        case Both(parts) | Either(parts) | Operation(_, parts):
            return {name for part in parts for name in parents(part)}
        case Neither(part):
            return parents(part)
        case _:
            return set()


# Clauses as text, in the language of new-style PCS files, so that they read back as what they were.

_PLAIN = re.compile(r"[\w.:@$;?\\/*+%-]+")
_NEVER = "0 > 1"
_ALWAYS = "0 < 1"


def clause_text(clause: Clause) -> str:
    """The clause as text; brackets only where they are needed."""
    match clause:
        case Among(parameter, (value,)):
            return f"{parameter.name} == {value_text(value)}"
        case Among(parameter, values):
            return f"{parameter.name} in {{{', '.join(value_text(value) for value in values)}}}"
        case Neither(Among(parameter, (value,))):
            return f"{parameter.name} != {value_text(value)}"
        case Relation(left, sign, right):
            return f"{_term_text(left)} {sign} {_term_text(right)}"
        case Both(parts):
            return " && ".join(_bracketed(part, isinstance(part, Either)) for part in parts)
        case Either(parts):
            return " || ".join(clause_text(part) for part in parts)
        case Neither(part):
            return f"!({clause_text(part)})"
        case _:
            return _ALWAYS if isinstance(clause, Certain) and clause.answer else _NEVER


def _bracketed(clause: Clause, needed: bool) -> str:
    return f"({clause_text(clause)})" if needed else clause_text(clause)


def _term_text(term: Term) -> str:
    match term:
        case Reading(parameter):
            return parameter.name
        case Constant(number):
            return text_of(int(number) if number.is_integer() else number)
        case Operation(name, (left, right)) if name in ARITHMETIC:
            return f"({_term_text(left)} {name} {_term_text(right)})"
        case Operation(name, terms):
            return f"{name}({', '.join(_term_text(each) for each in terms)})"
        case _:
            return ""


def value_text(value: Value) -> str:
    """A value, in quotation marks if it would be taken for something else."""
    text = text_of(value)
    plain = _PLAIN.fullmatch(text) and text != "in"
    if isinstance(value, str) and not plain:
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return text


def spread(clause: Clause) -> Clause:
    """The same clause with negations only at its leaves, as `!=` or as the opposite sign."""
    match clause:
        case Both(parts):
            return both([spread(part) for part in parts])
        case Either(parts):
            return either([spread(part) for part in parts])
        case Neither(Neither(part)):
            return spread(part)
        case Neither(Both(parts)):
            return either([spread(Neither(part)) for part in parts])
        case Neither(Either(parts)):
            return both([spread(Neither(part)) for part in parts])
        case Neither(Among(parameter, values)) if len(values) > 1:
            return both([Neither(Among(parameter, (value,))) for value in values])
        case Neither(Relation(left, sign, right)):
            return Relation(left, OPPOSITE[sign], right)
        case Neither(Certain(answer)):
            return Certain(not answer)
        case _:
            return clause


def alternatives(clause: Clause, most: int = 256) -> list[list[Clause]] | None:
    """Conjunctions of leaves of which at least one must be true; None if there would be more than `most`."""
    match spread(clause):
        case Either(parts):
            lists = [alternatives(part, most) for part in parts]
            found = [each for part in lists if part is not None for each in part]
            return found if None not in lists and len(found) <= most else None
        case Both(parts):
            product: list[list[Clause]] = [[]]
            for part in parts:
                others = alternatives(part, most)
                if others is None or len(product) * len(others) > most:
                    return None
                product = [one + other for one in product for other in others]
            return product
        case leaf:
            return [[leaf]]
