"""What a parameter can be: a register of the four kinds, and questions that all of them answer."""

from captime.spaces.choices import Categorical, Choice, Ordinal
from captime.spaces.numbers import Float, Integer
from captime.spaces.values import number_in, text_of

Parameter = Float | Integer | Categorical | Ordinal

__all__ = ["Categorical", "Choice", "Float", "Integer", "Ordinal", "Parameter", "numeric_choices"]


def numeric_choices(parameter: Choice) -> list[float] | None:
    """The values of a choice as numbers, if all of them are numbers, also if they were written as texts."""
    numbers = [number_in(text_of(choice)) for choice in parameter.choices]
    return [number for number in numbers if number is not None] if None not in numbers else None
