"""Spaces as ConfigSpace's dictionary (format 0.4), and as its own objects."""

from typing import TYPE_CHECKING, Any

from captime.errors import MissingExtra, ScenarioError
from captime.spaces.clause_text import clause_text, spread
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
)
from captime.spaces.formats.losses import refuse
from captime.spaces.laws import Beta, Normal
from captime.spaces.parameters import Choice, Float, Integer, Ordinal, Parameter
from captime.spaces.space import Space
from captime.spaces.values import Value

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace

_NAMES = {"==": "EQ", "!=": "NEQ", "<": "LT", ">": "GT", "<=": "LE", ">=": "GE"}


def write_configspace(space: Space, name: str | None = None) -> dict[str, Any]:
    """The dictionary of a file; refuses what ConfigSpace cannot say."""
    lost = [
        f"{each.name} is rounded to {each.digits} digits"
        for each in space.parameters
        if isinstance(each, Float) and each.digits is not None
    ]
    conditions, forbidden = [], []
    for child, clause in space.conditions.items():
        try:
            conditions.append(_condition(child, spread(clause)))
        except _Unspeakable:
            lost.append(f"{child} | {clause_text(clause)}")
    for clause in space.forbidden:
        try:
            forbidden.append(_forbidden(spread(clause)))
        except _Unspeakable:
            lost.append(f"forbidden: {clause_text(clause)}")
    refuse("ConfigSpace", lost)
    return {
        "name": name,
        "hyperparameters": [_parameter(parameter) for parameter in space.parameters],
        "conditions": conditions,
        "forbiddens": forbidden,
        "python_module_version": "1.2.0",
        "format_version": 0.4,
    }


def as_configspace(space: Space) -> "ConfigurationSpace":
    """Return the space as an object of ConfigSpace, for other tools of the field."""
    try:
        from ConfigSpace import ConfigurationSpace  # noqa: PLC0415 (optional: reading and writing files needs none)
    except ImportError:
        raise MissingExtra("an object of ConfigSpace", "configspace") from None

    try:
        return ConfigurationSpace.from_serialized_dict(write_configspace(space))
    except (ValueError, TypeError, KeyError) as flaw:
        raise ScenarioError(
            f"ConfigSpace does not accept this space ({flaw}); its rules are narrower than ours. Change what it names"
        ) from flaw


# ---------------------------------------------------------------- hyperparameters


def _parameter(parameter: Parameter) -> dict[str, Any]:
    item: dict[str, Any] = {"name": parameter.name}
    if parameter.size == 1:
        item |= {"type": "constant", "value": parameter.default}
    elif isinstance(parameter, Choice):
        item |= _choice(parameter) | {"default_value": parameter.default}
    else:
        item |= _range(parameter) | {"default_value": parameter.default, "log": parameter.log}
    item["meta"] = None
    if parameter.passing is not None:
        item["meta"] = {"captime": {"pass": parameter.passing.template, "off": parameter.passing.off}}
    return item


def _choice(parameter: Choice) -> dict[str, Any]:
    if isinstance(parameter, Ordinal):
        return {"type": "ordinal", "sequence": list(parameter.choices)}
    weights = None if parameter.weights is None else list(parameter.weights)
    return {"type": "categorical", "choices": list(parameter.choices), "weights": weights}


def _range(parameter: Float | Integer) -> dict[str, Any]:
    kind = "int" if isinstance(parameter, Integer) else "float"
    ends = {"lower": parameter.low, "upper": parameter.high}
    match parameter.law:
        case Normal(mean, deviation):
            return {"type": f"normal_{kind}", "mu": mean, "sigma": deviation, **ends}
        case Beta(alpha, beta):
            return {"type": f"beta_{kind}", "alpha": alpha, "beta": beta, **ends}
        case _:
            return {"type": f"uniform_{kind}", **ends}


# ---------------------------------------------------------------- clauses


class _Unspeakable(Exception):  # noqa: N818 (never leaves this file)
    """There are no words for this clause."""


def _condition(child: str, clause: Clause) -> dict[str, Any]:
    """A clause as a condition; `<=` and `>=` are made of two."""
    match clause:
        case Both(parts) | Either(parts):
            kind = "AND" if isinstance(clause, Both) else "OR"
            return {"type": kind, "child": child, "conditions": [_condition(child, part) for part in parts]}
        case Among(parameter, (value,)):
            return {"type": "EQ", "child": child, "parent": parameter.name, "value": value}
        case Among(parameter, values):
            return {"type": "IN", "child": child, "parent": parameter.name, "values": list(values)}
        case Neither(Among(parameter, (value,))):
            # Not NEQ: ConfigSpace takes that for true where the parent is inactive.
            leaf: dict[str, Any] = {"child": child, "parent": parameter.name}
            if isinstance(parameter, Choice) and parameter.size > 1:
                others = [choice for choice in parameter.choices if choice != value]
                return {"type": "IN", **leaf, "values": others}
            beside = [{"type": kind, **leaf, "value": value} for kind in ("LT", "GT")]
            return {"type": "OR", "child": child, "conditions": beside}
        case Comparison():
            parameter, sign, value = _against_a_number(clause)
            leaf = {"child": child, "parent": parameter.name, "value": value}
            if parameter.code(value) is None:
                raise _Unspeakable  # ConfigSpace only compares with values the parent can have
            if sign in ("<=", ">="):
                two = [{"type": _NAMES[sign[0]], **leaf}, {"type": "EQ", **leaf}]
                return {"type": "OR", "child": child, "conditions": two}
            return {"type": _NAMES[sign], **leaf}
        case _:
            raise _Unspeakable


def _forbidden(clause: Clause) -> dict[str, Any]:
    match clause:
        case Both(parts) | Either(parts):
            return {
                "type": "AND" if isinstance(clause, Both) else "OR",
                "clauses": [_forbidden(part) for part in parts],
            }
        case Among(parameter, (value,)):
            return {"type": "EQUALS", "name": parameter.name, "value": value}
        case Among(parameter, values):
            return {"type": "IN", "name": parameter.name, "values": list(values)}
        case Neither(Among(parameter, (value,))) if isinstance(parameter, Choice):
            others = [choice for choice in parameter.choices if choice != value]
            return {"type": "IN", "name": parameter.name, "values": others}
        case Comparison(Reading(left), sign, Reading(right)) if sign != "!=" and not _texts(left, right):
            return {"type": f"RELATION_{_NAMES[sign]}", "left": left.name, "right": right.name}
        case Comparison():
            parameter, sign, value = _against_a_number(clause)
            if sign in ("==", "!=") or parameter.code(value) is None:
                raise _Unspeakable
            return {"type": f"CLAUSE_{_NAMES[sign]}", "name": parameter.name, "value": value}
        case _:
            raise _Unspeakable


def _against_a_number(clause: Comparison) -> tuple[Float | Integer, str, Value]:
    """A comparison of a number parameter with a number, the parameter first."""
    left, sign, right = clause.left, clause.sign, clause.right
    if isinstance(left, Constant):
        left, sign, right = right, MIRRORED[sign], left
    if isinstance(left, Reading) and isinstance(right, Constant) and isinstance(left.parameter, Float | Integer):
        number = right.number
        whole = isinstance(left.parameter, Integer) and number.is_integer()
        return left.parameter, sign, int(number) if whole else number
    raise _Unspeakable


def _texts(*parameters: Parameter) -> bool:
    """Whether one of them holds numbers as texts, which ConfigSpace would compare letter by letter."""
    return any(isinstance(value, str) for each in parameters if isinstance(each, Choice) for value in each.choices)
