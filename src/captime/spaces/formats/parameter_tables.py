"""One table of a `[space]` section: a parameter. What else the section says is read elsewhere."""

from collections.abc import Callable, Mapping
from typing import Any

from captime.errors import ScenarioError
from captime.spaces.formats.fields import items, number, plain, some, truth
from captime.spaces.laws import EVENLY, Beta, Law, Normal
from captime.spaces.numbers import Float, integer_from, middle
from captime.spaces.parameters import Categorical, Ordinal, Parameter
from captime.spaces.passing import Passing
from captime.spaces.values import Value

_PASSED = ("type", "default", "pass", "off")
_NUMBER = (*_PASSED, "low", "high", "log", "prior", "mean", "sd", "alpha", "beta")
_PRIORS = {"uniform": (), "normal": ("mean", "sd"), "beta": ("alpha", "beta")}
_NAMES = {"real": "float", "integer": "int", "boolean": "bool", "flag": "bool"}


def read_parameter(where: str, name: str, table: Mapping[str, Any]) -> Parameter:
    """The parameter of a table.

    Args:
        where: What to call the section in errors.
        name: The key of the table.
        table: Its fields.
    """
    where = f"{where}, {name}"
    kind = table.get("type")
    kind = _NAMES.get(str(kind), kind)
    makers: dict[str, Callable[[str, Mapping[str, Any]], Parameter]] = {
        "float": _float,
        "int": _integer,
        "categorical": _categorical,
        "ordinal": _ordinal,
        "bool": _boolean,
        "constant": _constant,
    }
    if not isinstance(kind, str) or kind not in makers:
        raise ScenarioError(f"{where}: type is {kind!r}, expected one of {', '.join(makers)}")
    if not name or name != name.strip() or "{" in name or "}" in name:
        raise ScenarioError(f"{where}: the name is empty, or has blanks around it or braces inside; change it")
    try:
        parameter = makers[kind](name, table)
        if parameter.passing is not None:
            parameter.passing.check(name, boolean=kind == "bool")
    except ScenarioError as flaw:
        raise ScenarioError(f"{where}: {flaw}") from None
    return parameter


def _float(name: str, table: Mapping[str, Any]) -> Parameter:
    _only(table, (*_NUMBER, "digits"))
    low, high, default = _ends(table)
    log = truth(table.get("log", False), "log")
    digits = table.get("digits")
    if digits is not None and (isinstance(digits, bool) or not isinstance(digits, int) or not 0 <= digits <= 15):
        raise ScenarioError(f"digits is {digits!r}, expected a whole number from 0 to 15")
    start = middle(low, high, log=log, integer=False) if default is None else default
    return Float(name, low, high, start, log, _law(table), digits, _passing(table), default is None)


def _integer(name: str, table: Mapping[str, Any]) -> Parameter:
    _only(table, _NUMBER)
    low, high, default = _ends(table)
    log, law = truth(table.get("log", False), "log"), _law(table)
    return integer_from(name, low, high, default, log=log, law=law, passing=_passing(table))


def _categorical(name: str, table: Mapping[str, Any]) -> Parameter:
    _only(table, (*_PASSED, "choices", "weights"))
    choices, default = _choices(table)
    weights = table.get("weights")
    if weights is not None:
        weights = tuple(number(weight, "weights") for weight in items(weights, "weights"))
    return Categorical.of(name, choices, default, weights, _passing(table), assumed="default" not in table)


def _ordinal(name: str, table: Mapping[str, Any]) -> Parameter:
    _only(table, (*_PASSED, "choices"))
    choices, default = _choices(table)
    return Ordinal(name, choices, default, None, _passing(table), "default" not in table)


def _boolean(name: str, table: Mapping[str, Any]) -> Parameter:
    _only(table, (*_PASSED, "weights"))
    default = truth(table.get("default", False), "default")
    weights = table.get("weights")
    if weights is not None:
        weights = tuple(number(weight, "weights") for weight in items(weights, "weights"))
    return Categorical(name, (False, True), default, weights, _passing(table), "default" not in table)


def _constant(name: str, table: Mapping[str, Any]) -> Parameter:
    _only(table, ("type", "value", "pass"))
    value = plain(table.get("value"), "value")
    return Categorical(name, (value,), value, None, _passing(table))


def _ends(table: Mapping[str, Any]) -> tuple[float, float, float | None]:
    low, high = (number(table.get(end), end) for end in ("low", "high"))
    default = table.get("default")
    return low, high, None if default is None else number(default, "default")


def _choices(table: Mapping[str, Any]) -> tuple[tuple[Value, ...], Value]:
    choices = tuple(plain(each, "choices") for each in some(table.get("choices"), "choices"))
    return choices, plain(table.get("default", choices[0]), "default")


def _law(table: Mapping[str, Any]) -> Law:
    prior = table.get("prior", "uniform")
    if not isinstance(prior, str) or prior not in _PRIORS:
        raise ScenarioError(f"prior is {prior!r}, expected one of {', '.join(_PRIORS)}")
    stray = [key for keys in _PRIORS.values() for key in keys if key in table and key not in _PRIORS[prior]]
    if stray:
        raise ScenarioError(f'{stray[0]} does not belong to prior = "{prior}"; leave it out')
    numbers = [number(table.get(key), key) for key in _PRIORS[prior]]
    if prior == "normal":
        return Normal(*numbers)
    return Beta(*numbers) if prior == "beta" else EVENLY


def _passing(table: Mapping[str, Any]) -> Passing | None:
    template, off = table.get("pass"), table.get("off", "")
    if template is None and "off" not in table:
        return None
    if not isinstance(template, str) or not isinstance(off, str):
        raise ScenarioError(f'pass is {template!r}, off is {off!r}; expected texts, as in pass = "--fast"')
    return Passing(template, off)


def _only(table: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    for key in table:
        if key not in keys:
            raise ScenarioError(f"found {key}, which a {table['type']} does not have; it has {', '.join(keys)}")
