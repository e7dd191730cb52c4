"""Conditions and forbidden combinations as trees, and what they say about many configurations at once.

A configuration is a column per parameter: the number itself, or the place of a choice in its list; not a number where
the parameter is inactive. About an inactive parameter nothing is true and nothing is false: a clause is then
undecided unless the rest of it decides (as in R; ConfigSpace does the same, but since its version 1 it takes "is not"
for true where the parent is inactive). No text is read here.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from captime.arrays import BoolArray, FloatArray
from captime.spaces.parameters import Choice, Parameter, numeric_choices
from captime.spaces.values import Value

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
class Comparison:
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
        case Comparison(left, _, right):
            return parents(left) | parents(right)
        case Both(parts) | Either(parts) | Operation(_, parts):
            return {name for part in parts for name in parents(part)}
        case Neither(part):
            return parents(part)
        case _:
            return set()
