"""Options of a procedure, from text: the constructor's signature is the schema."""

import inspect
import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from captime.certificate import Population
from captime.errors import CaptimeError, ScenarioError
from captime.procedures.fixed_set import FixedSetRace
from captime.procedures.problem import Problem
from captime.procedures.protocol import Procedure
from captime.procedures.set_pool import FixedSetPool
from captime.utilities.formula import parse_duration

ON_A_SET: dict[str, Any] = {"pool": FixedSetPool, "race": FixedSetRace}
"""Procedures by name where the claim is about exactly the instances of a set."""


def build_procedure(
    name: str, register: Mapping[str, Any], problem: Problem, options: Mapping[str, object]
) -> Procedure:
    """The procedure of that name with these options; text values are read as the signature says.

    Args:
        name: Its name in the register.
        register: Who is a member.
        problem: The question.
        options: Keyword options, as values or as text from a command line.
    """
    if name not in register:
        raise ScenarioError(f"there is no procedure {name!r}; there are {', '.join(sorted(register))}")
    maker = register[name]
    if problem.population is Population.THESE:
        if name not in ON_A_SET:
            raise ScenarioError(
                f"procedure {name} makes no claim about exactly these instances; use population = 'drawn', or one of "
                f"{', '.join(sorted(ON_A_SET))}"
            )
        maker = ON_A_SET[name]
    procedure: Procedure = maker(problem, **read_options(name, maker, options))
    return procedure


def read_options(name: str, maker: Any, options: Mapping[str, object]) -> dict[str, object]:
    """The options as the maker's signature wants them; unknown ones are refused with the known ones."""
    known = option_types(maker)
    for option in options:
        if option not in known:
            allowed = ", ".join(known) or "none at all"
            raise ScenarioError(f"procedure {name} has no option {option!r}; it takes {allowed}")
    return {option: _read(f"option {option} of {name}", value, known[option]) for option, value in options.items()}


def option_types(maker: Any) -> dict[str, Any]:
    """Names and types of a maker's keyword options."""
    target = maker.__init__ if inspect.isclass(maker) else maker
    hints = get_type_hints(target)
    return {
        parameter.name: hints[parameter.name]
        for parameter in inspect.signature(target).parameters.values()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }


def _read(where: str, value: object, kind: Any) -> object:
    """Text becomes what the signature wants; anything else is passed on as it is."""
    if not isinstance(value, str):
        return value
    if get_origin(kind) in (Union, types.UnionType):
        kind = next(part for part in get_args(kind) if part is not type(None))
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise ScenarioError(f"{where} is {value!r}; it can be {', '.join(map(str, get_args(kind)))}")
        return value
    try:
        return _CONVERTERS[kind](value)
    except (ValueError, CaptimeError) as error:
        expected = {int: "a whole number", float: "a number, or a time such as 5min", bool: "true or false"}[kind]
        raise ScenarioError(f"{where} is {value!r}; it has to be {expected}") from error


def _truth(text: str) -> bool:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if text.lower() not in words:
        raise ValueError(text)
    return words[text.lower()]


_CONVERTERS: dict[Any, Any] = {int: int, float: parse_duration, bool: _truth, str: str}
