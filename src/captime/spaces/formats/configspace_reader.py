"""ConfigSpace's JSON and YAML files (format 0.4), from the dictionary in them to a space.

Read here and not by ConfigSpace, so that errors name the place in the file and values keep their kind and digits.
"""

from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from captime.errors import ScenarioError
from captime.spaces.clauses import Among, Clause, both, either
from captime.spaces.formats.fields import items, number, plain, some, text
from captime.spaces.laws import EVENLY, Beta, Law, Normal
from captime.spaces.matching import Written, compared, value_of
from captime.spaces.numbers import Float, integer_from, middle
from captime.spaces.parameters import Categorical, Ordinal, Parameter
from captime.spaces.passing import Passing
from captime.spaces.space import Space
from captime.spaces.values import Value, text_of

_SIGNS = {"EQ": "==", "NEQ": "!=", "LT": "<", "GT": ">", "LE": "<=", "GE": ">="}
_DEEPEST = 40

P = ParamSpec("P")
R = TypeVar("R")


def read_configspace(document: object, file: str) -> Space:
    """The space of a whole document."""
    if not isinstance(document, Mapping) or not isinstance(document.get("hyperparameters"), list):
        raise ScenarioError(
            f"{file}: found no list called hyperparameters at the top, expected a file written by ConfigSpace's "
            "to_json or to_yaml"
        )
    parameters: dict[str, Parameter] = {}
    for place, item in enumerate(document["hyperparameters"]):
        parameter = _at(f"{file}, hyperparameters[{place}]", _parameter, item)
        if parameter.name in parameters:
            raise ScenarioError(f"{file}, hyperparameters[{place}]: {parameter.name} is declared twice; remove one")
        parameters[parameter.name] = parameter
    conditions: dict[str, Clause] = {}
    for place, item in enumerate(_perhaps(document, "conditions", file)):
        where = f"{file}, conditions[{place}]"
        child = _at(where, _text, item, "child")
        if child not in parameters:
            raise ScenarioError(f"{where}: the child {child} is no hyperparameter of this file; correct it")
        clause = _at(where, _condition, item, parameters, 0)
        conditions[child] = both([conditions[child], clause]) if child in conditions else clause
    forbidden = tuple(
        _at(f"{file}, forbiddens[{place}]", _forbidden, item, parameters, 0)
        for place, item in enumerate(_perhaps(document, "forbiddens", file))
    )
    try:
        space = Space(tuple(parameters.values()), conditions, forbidden)
        space.default  # noqa: B018 (asked for its complaint)
    except ScenarioError as flaw:
        raise ScenarioError(f"{file}: {flaw}") from None
    return space


def _perhaps(document: Mapping[str, Any], key: str, file: str) -> list[Any]:
    """A list that may be missing."""
    return [] if document.get(key) is None else _at(file, items, document[key], key)


def _at(where: str, read: Callable[P, R], *arguments: P.args, **words: P.kwargs) -> R:
    """What `read` makes of its arguments; its errors get a place."""
    try:
        return read(*arguments, **words)
    except ScenarioError as flaw:
        raise ScenarioError(f"{where}: {flaw}") from None


# ---------------------------------------------------------------- hyperparameters


def _parameter(item: object) -> Parameter:
    name, kind = _text(item, "name"), _text(item, "type")
    table: Mapping[str, Any] = item if isinstance(item, Mapping) else {}
    if table.get("q") is not None:
        raise ScenarioError(f"{name} has q, the step of a quantised number, which ConfigSpace dropped too; remove it")
    default = table.get("default_value", table.get("default"))
    passing = _passing(table)
    if kind == "constant":
        value = plain(table.get("value"), "value")
        return Categorical.of(name, (value,), value, None, passing)
    if kind == "categorical":
        choices = _values(table, "choices")
        weights = table.get("weights", table.get("probabilities"))
        shares = None if weights is None else tuple(number(each, "weights") for each in items(weights, "weights"))
        start = choices[0] if default is None else plain(default, "default_value")
        return Categorical.of(name, choices, start, shares, passing, assumed=default is None)
    if kind == "ordinal":
        choices = _values(table, "sequence")
        start = choices[0] if default is None else plain(default, "default_value")
        return Ordinal(name, choices, start, None, passing, default is None)
    return _numeric(name, kind, table, default, passing)


def _numeric(name: str, kind: str, table: Mapping[str, Any], default: object, passing: Passing | None) -> Parameter:
    prior, _, sort = kind.partition("_")
    if prior not in ("uniform", "normal", "beta") or sort not in ("float", "int"):
        raise ScenarioError(
            f"{name} has the type {kind!r}, expected uniform_float, uniform_int, normal_float, normal_int, beta_float, "
            "beta_int, categorical, ordinal or constant"
        )
    low, high, log = (
        number(table.get("lower"), "lower"),
        number(table.get("upper"), "upper"),
        bool(table.get("log", False)),
    )
    law: Law = EVENLY
    if prior == "normal":
        law = Normal(number(table.get("mu"), "mu"), number(table.get("sigma"), "sigma"))
    if prior == "beta":
        law = Beta(number(table.get("alpha"), "alpha"), number(table.get("beta"), "beta"))
    start = None if default is None else number(default, "default_value")
    if sort == "int":
        return integer_from(name, low, high, start, log=log, law=law, passing=passing)
    value = middle(low, high, log=log, integer=False) if start is None else start
    return Float(name, low, high, value, log, law, None, passing, start is None)


def _passing(table: Mapping[str, Any]) -> Passing | None:
    """How the value is passed, if captime wrote it into the field that ConfigSpace leaves to its users."""
    meta = table.get("meta")
    ours = meta.get("captime") if isinstance(meta, Mapping) else None
    if not isinstance(ours, Mapping) or not isinstance(ours.get("pass"), str):
        return None
    return Passing(ours["pass"], str(ours.get("off", "")))


# ---------------------------------------------------------------- clauses


def _condition(item: object, parameters: Mapping[str, Parameter], depth: int) -> Clause:
    kind = _text(item, "type")
    table: Mapping[str, Any] = item if isinstance(item, Mapping) else {}
    if kind in ("AND", "OR"):
        inner = [_condition(each, parameters, _deeper(depth)) for each in some(table.get("conditions"), "conditions")]
        return both(inner) if kind == "AND" else either(inner)
    parent = _named(table, "parent", parameters)
    if kind == "IN":
        return _among(parent, table)
    if kind not in ("EQ", "NEQ", "LT", "GT"):
        raise ScenarioError(f"found the type {kind!r}, expected EQ, NEQ, LT, GT, IN, AND or OR")
    return compared(parent, _SIGNS[kind], Written(text_of(plain(table.get("value"), "value"))))


def _forbidden(item: object, parameters: Mapping[str, Parameter], depth: int) -> Clause:
    kind = _text(item, "type")
    table: Mapping[str, Any] = item if isinstance(item, Mapping) else {}
    if kind in ("AND", "OR"):
        inner = [_forbidden(each, parameters, _deeper(depth)) for each in some(table.get("clauses"), "clauses")]
        return both(inner) if kind == "AND" else either(inner)
    if kind == "RELATION":
        kind = f"RELATION_{_text(table, 'lambda')}"
    family, _, sign = kind.rpartition("_")
    if family == "RELATION" and sign in _SIGNS:
        return compared(_named(table, "left", parameters), _SIGNS[sign], _named(table, "right", parameters))
    if kind not in ("EQUALS", "IN") and not (family == "CLAUSE" and sign in _SIGNS):
        raise ScenarioError(
            f"found the type {kind!r}, expected EQUALS, IN, AND, OR, CLAUSE_LT/LE/GT/GE or RELATION_LT/LE/EQ/GT/GE"
        )
    parameter = _named(table, "name", parameters)
    if kind == "IN":
        return _among(parameter, table)
    value = text_of(plain(table.get("value"), "value"))
    return compared(parameter, "==" if kind == "EQUALS" else _SIGNS[sign], Written(value))


def _among(parameter: Parameter, table: Mapping[str, Any]) -> Clause:
    return Among(parameter, tuple(value_of(parameter, text_of(value)) for value in _values(table, "values")))


def _deeper(depth: int) -> int:
    if depth >= _DEEPEST:
        raise ScenarioError(f"more than {_DEEPEST} conjunctions inside each other; flatten them")
    return depth + 1


# ---------------------------------------------------------------- pieces


def _text(item: object, key: str) -> str:
    value = item.get(key) if isinstance(item, Mapping) else None
    if not isinstance(value, str) or not value:
        raise ScenarioError(f"{key} is {value!r}, expected a text")
    return text(value, key)


def _values(table: Mapping[str, Any], key: str) -> tuple[Value, ...]:
    return tuple(plain(value, key) for value in some(table.get(key), key))


def _named(table: Mapping[str, Any], key: str, parameters: Mapping[str, Parameter]) -> Parameter:
    name = _text(table, key)
    if name not in parameters:
        raise ScenarioError(f"{key} is {name}, which is no hyperparameter of this file; correct it")
    return parameters[name]
