"""From what was written in a comparison to a clause about parameters: which word is a value, and of which kind.

Both languages of expressions (PCS's and R's) come here with operands as they were read; texts are compared with the
values of the parameter on the other side, and a value it does not have is an error: it would never come true.
"""

from dataclasses import dataclass

import numpy as np

from captime.arrays import BoolArray
from captime.errors import ScenarioError
from captime.spaces.clauses import (
    MIRRORED,
    SIGNS,
    Among,
    Certain,
    Clause,
    Constant,
    Neither,
    Reading,
    Relation,
    Term,
    both,
    either,
)
from captime.spaces.parameters import Categorical, Choice, Float, Ordinal, Parameter, listed, numeric_choices
from captime.spaces.values import Value, number_in, text_of


@dataclass(frozen=True, slots=True)
class Written:
    """A value as it was written: a bare word or number, or a text in quotation marks."""

    text: str
    quoted: bool = False


# One side of a comparison: a parameter, a value, or arithmetic over numbers.
Operand = Parameter | Written | Term


def compared(left: Operand, sign: str, right: Operand, *, ranked: bool = True) -> Clause:
    """The clause for `left sign right`.

    Args:
        left: One side.
        sign: One of ==, !=, <, >, <=, >=.
        right: The other side.
        ranked: Whether an ordinal parameter is compared by rank (PCS) rather than as a text (R, which is refused).
    """
    if isinstance(left, Written) and not isinstance(right, Written):
        return compared(right, MIRRORED[sign], left, ranked=ranked)
    if isinstance(left, Categorical | Ordinal) and isinstance(right, Written):
        return _choice_against(left, sign, right.text, ranked=ranked)
    if isinstance(left, Parameter) and isinstance(right, Written) and sign in ("==", "!="):
        clause = Among(left, (value_of(left, right.text),))
        return clause if sign == "==" else Neither(clause)
    texts = [each for each in (left, right) if isinstance(each, Categorical | Ordinal)]
    if len(texts) == 2 and None in map(numeric_choices, texts):
        return _texts_compared(texts[0], sign, texts[1])
    one, other = term(left), term(right)
    if isinstance(one, Constant) and isinstance(other, Constant):
        return Certain(bool(SIGNS[sign](one.numbers({}), other.numbers({}))[0]))
    if isinstance(one, Constant):
        one, sign, other = other, MIRRORED[sign], one
    if isinstance(one, Reading) and isinstance(one.parameter, Categorical | Ordinal) and isinstance(other, Constant):
        # Said by its values: written as a comparison it would be read as one of ranks.
        return _fitting(one.parameter, SIGNS[sign](np.array(numeric_choices(one.parameter)), other.numbers({})))
    return Relation(one, sign, other)


def among(parameter: Parameter, written: list[str]) -> Clause:
    """The clause for `parameter in {written}`."""
    return Among(parameter, tuple(dict.fromkeys(value_of(parameter, text) for text in written)))


def _choice_against(parameter: Categorical | Ordinal, sign: str, text: str, *, ranked: bool) -> Clause:
    if sign in ("==", "!="):
        clause = Among(parameter, (value_of(parameter, text),))
        return clause if sign == "==" else Neither(clause)
    if not isinstance(parameter, Ordinal) or not ranked:
        raise ScenarioError(
            f"found {parameter.name} {sign} {text}, but {parameter.name} has no order here: it is "
            f"{parameter.kind}; expected a number or an ordinal parameter. List the values instead"
        )
    limit = parameter.code(value_of(parameter, text))
    return _fitting(
        parameter, SIGNS[sign](np.arange(parameter.size, dtype=np.float64), np.array([limit], dtype=np.float64))
    )


def _texts_compared(left: Categorical | Ordinal, sign: str, right: Categorical | Ordinal) -> Clause:
    if sign not in ("==", "!="):
        raise ScenarioError(
            f"found {left.name} {sign} {right.name}, but their values are not all numbers; expected == or !="
        )
    return _alike(left, right) if sign == "==" else _different(left, right)


def _alike(left: Categorical | Ordinal, right: Categorical | Ordinal) -> Clause:
    """The clause that both are set to the same text."""
    there = {text_of(value): value for value in right.choices}
    pairs = [(value, there[text_of(value)]) for value in left.choices if text_of(value) in there]
    if not pairs:
        return Certain(answer=False)
    return either([both([Among(left, (one,)), Among(right, (other,))]) for one, other in pairs])


def _different(left: Categorical | Ordinal, right: Categorical | Ordinal) -> Clause:
    """The clause that both are set, and to different texts."""
    parts: list[Clause] = []
    for value in left.choices:
        others = tuple(each for each in right.choices if text_of(each) != text_of(value))
        if others:
            parts.append(both([Among(left, (value,)), Among(right, others)]))
    return either(parts) if parts else Certain(answer=False)


def _fitting(parameter: Categorical | Ordinal, fits: BoolArray) -> Clause:
    """The clause that the parameter is set to one of the choices marked."""
    values = tuple(choice for choice, fit in zip(parameter.choices, fits.tolist(), strict=True) if fit)
    return Among(parameter, values) if values else Certain(answer=False)


def value_of(parameter: Parameter, text: str) -> Value:
    """The value of a parameter that a text stands for."""
    if isinstance(parameter, Choice):
        code = parameter.code(text)
        if code is None:
            code = _same_number(parameter, text)
        if code is None:
            raise ScenarioError(
                f"found the value {text!r} for {parameter.name}, expected one of its own: {listed(parameter.choices)}"
            )
        return parameter.value(code)
    number = number_in(text)
    if number is None or parameter.code(number) is None:
        kind = "number" if isinstance(parameter, Float) else "whole number"
        raise ScenarioError(
            f"found the value {text!r} for {parameter.name}, expected a {kind} from {text_of(parameter.low)} to "
            f"{text_of(parameter.high)}"
        )
    return parameter.value(number)


def _same_number(parameter: Choice, text: str) -> float | None:
    """Where a list of numbers holds this one, written differently: 1.0 for 1."""
    number, numbers = number_in(text), numeric_choices(parameter)
    return float(numbers.index(number)) if numbers is not None and number in numbers else None


def term(operand: Operand) -> Term:
    """An operand as a number."""
    if isinstance(operand, Written):
        number = None if operand.quoted else number_in(operand.text)
        if number is None:
            raise ScenarioError(
                f"found {operand.text!r}, expected a number or the name of a parameter; is it declared, and spelt so?"
            )
        return Constant(number)
    if isinstance(operand, Choice) and numeric_choices(operand) is None:
        raise ScenarioError(
            f"{operand.name} is used as a number, but its values are not numbers ({listed(operand.choices)}); "
            "compare it with one of them instead"
        )
    return Reading(operand) if isinstance(operand, Parameter) else operand
