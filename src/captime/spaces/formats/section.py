"""The `[space]` section of a scenario, as the dictionary that TOML makes of it; also the canonical form of any space.

A table is a parameter; everything else is a word of the section, see WORDS. Reading the file it may name is left to the
door of this family; model and draws_first are not about the space but about the search (see proposer_of).
"""

from collections.abc import Callable, Mapping
from typing import Any

from captime.errors import ScenarioError
from captime.spaces.clauses import Clause, both
from captime.spaces.laws import EVENLY, Beta, Law, Normal
from captime.spaces.numbers import Float, integer_from, middle
from captime.spaces.parameters import Categorical, Ordinal, Parameter
from captime.spaces.passing import Passing
from captime.spaces.pcs_expression import read_clause, read_forbidden
from captime.spaces.proposals import DRAWS_FIRST, Proposer
from captime.spaces.rendering import STYLES, Style
from captime.spaces.space import Space
from captime.spaces.values import Settings, Value

WORDS = (
    *("file", "format", "conditions", "forbidden", "favourites", "arguments", "true", "false", "words"),
    *("model", "draws_first"),
)
_PASSED = ("type", "default", "pass", "off")
_NUMBER = (*_PASSED, "low", "high", "log", "prior", "mean", "sd", "alpha", "beta")
_PRIORS = {"uniform": (), "normal": ("mean", "sd"), "beta": ("alpha", "beta")}
_NAMES = {"real": "float", "integer": "int", "boolean": "bool", "flag": "bool"}


def read_section(section: Mapping[str, object], where: str, base: Space | None = None) -> Space:
    """The space of a section.

    Args:
        section: What stands under `[space]`.
        where: What to call it in errors, such as "scenario.toml, [space]".
        base: The space of the file that the section names, if it names one.
    """
    tables = _tables(section)
    unknown = [name for name, value in section.items() if not isinstance(value, Mapping) and name not in WORDS]
    if unknown:
        raise ScenarioError(
            f"{where}: found {unknown[0]} = {section[unknown[0]]!r}, expected a parameter such as {unknown[0]} = "
            f'{{ type = "int", low = 1, high = 8, default = 2 }}, or one of the words {", ".join(WORDS)}'
        )
    if base is not None and tables:
        raise ScenarioError(
            f"{where}: names a file and declares {next(iter(tables))} as well; expected one or the other. Move the "
            "declaration into the file, or leave the file out"
        )
    parameters = base.parameters if base is not None else tuple(_parameter(where, *each) for each in tables.items())
    if not parameters:
        raise ScenarioError(f"{where}: no parameters, expected some tables such as x = {{ type = ... }}, or a file")
    named = {parameter.name: parameter for parameter in parameters}
    space = Space(
        parameters,
        _conditions(section, where, named, dict(base.conditions) if base is not None else {}),
        (base.forbidden if base is not None else ()) + _forbidden(section, where, named),
        style=_style(section, where, base.style if base is not None else Style()),
        notes=base.notes if base is not None else (),
    )
    favourites = tuple(
        space.completed(partial, f"{where}, favourites[{place}]")
        for place, partial in enumerate(_favourites(section, where))
    )
    return Space(space.parameters, space.conditions, space.forbidden, favourites, space.style, space.notes)


def proposer_of(space: Space, section: Mapping[str, object], seed: int, where: str) -> Proposer:
    """Who joins the pool next, as the section's model and draws_first say.

    Args:
        space: The space of the section.
        section: What stands under `[space]`.
        seed: The scenario's.
        where: What to call the section in errors.
    """
    model, first = section.get("model", True), section.get("draws_first", DRAWS_FIRST)
    if not isinstance(model, bool):
        raise ScenarioError(f"{where}: model is {model!r}, expected true or false")
    if isinstance(first, bool) or not isinstance(first, int) or first < 0:
        raise ScenarioError(f"{where}: draws_first is {first!r}, expected a whole number of at least 0")
    return Proposer(space, seed, model=model, draws_first=first)


def _tables(section: Mapping[str, object]) -> dict[str, Mapping[str, Any]]:
    """The tables of parameters; one called `parameters` may hold them all, for programs whose names are words here."""
    tables = {name: value for name, value in section.items() if isinstance(value, Mapping)}
    inner = tables.get("parameters", {})
    if inner and all(isinstance(value, Mapping) for value in inner.values()):
        del tables["parameters"]
        return {**tables, **inner}
    return tables


# ---------------------------------------------------------------- parameters


def _parameter(where: str, name: str, table: Mapping[str, Any]) -> Parameter:
    where = f"{where}, {name}"
    kind = table.get("type")
    kind = _NAMES.get(str(kind), kind)
    makers: dict[str, Callable[[str, str, Mapping[str, Any]], Parameter]] = {
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
        parameter = makers[kind](where, name, table)
    except ScenarioError as flaw:
        raise flaw if str(flaw).startswith(where) else ScenarioError(f"{where}: {flaw}") from None
    if parameter.passing is not None:
        parameter.passing.check(name, boolean=kind == "bool")
    return parameter


def _float(where: str, name: str, table: Mapping[str, Any]) -> Parameter:
    _only(where, table, (*_NUMBER, "digits"))
    low, high, default = _ends(where, table)
    log = _bool(where, table, "log")
    digits = table.get("digits")
    if digits is not None and (isinstance(digits, bool) or not isinstance(digits, int) or not 0 <= digits <= 15):
        raise ScenarioError(f"{where}: digits is {digits!r}, expected a whole number from 0 to 15")
    start = middle(low, high, log=log, integer=False) if default is None else default
    return Float(name, low, high, start, log, _law(where, table), digits, _passing(where, table), default is None)


def _integer(where: str, name: str, table: Mapping[str, Any]) -> Parameter:
    _only(where, table, _NUMBER)
    low, high, default = _ends(where, table)
    log, law = _bool(where, table, "log"), _law(where, table)
    return integer_from(name, low, high, default, log=log, law=law, passing=_passing(where, table))


def _categorical(where: str, name: str, table: Mapping[str, Any]) -> Parameter:
    _only(where, table, (*_PASSED, "choices", "weights"))
    choices, default = _choices(where, table)
    weights = table.get("weights")
    if weights is not None:
        weights = tuple(_number(where, "weights", weight) for weight in _list(where, "weights", weights))
    return Categorical.of(name, choices, default, weights, _passing(where, table), assumed="default" not in table)


def _ordinal(where: str, name: str, table: Mapping[str, Any]) -> Parameter:
    _only(where, table, (*_PASSED, "choices"))
    choices, default = _choices(where, table)
    return Ordinal(name, choices, default, None, _passing(where, table), "default" not in table)


def _boolean(where: str, name: str, table: Mapping[str, Any]) -> Parameter:
    _only(where, table, (*_PASSED, "weights"))
    default = _bool(where, table, "default")
    weights = table.get("weights")
    if weights is not None:
        weights = tuple(_number(where, "weights", weight) for weight in _list(where, "weights", weights))
    return Categorical(name, (False, True), default, weights, _passing(where, table), "default" not in table)


def _constant(where: str, name: str, table: Mapping[str, Any]) -> Parameter:
    _only(where, table, ("type", "value", "pass"))
    value = _value(where, "value", table.get("value"))
    return Categorical(name, (value,), value, None, _passing(where, table))


def _ends(where: str, table: Mapping[str, Any]) -> tuple[float, float, float | None]:
    low, high = (_number(where, end, table.get(end)) for end in ("low", "high"))
    default = table.get("default")
    return low, high, None if default is None else _number(where, "default", default)


def _choices(where: str, table: Mapping[str, Any]) -> tuple[tuple[Value, ...], Value]:
    choices = tuple(_value(where, "choices", each) for each in _list(where, "choices", table.get("choices")))
    if not choices:
        raise ScenarioError(f"{where}: choices is empty, expected at least one value")
    return choices, _value(where, "default", table.get("default", choices[0]))


def _law(where: str, table: Mapping[str, Any]) -> Law:
    prior = table.get("prior", "uniform")
    if not isinstance(prior, str) or prior not in _PRIORS:
        raise ScenarioError(f"{where}: prior is {prior!r}, expected one of {', '.join(_PRIORS)}")
    stray = [key for keys in _PRIORS.values() for key in keys if key in table and key not in _PRIORS[prior]]
    if stray:
        raise ScenarioError(f'{where}: {stray[0]} does not belong to prior = "{prior}"; leave it out')
    numbers = [_number(where, key, table.get(key)) for key in _PRIORS[prior]]
    if prior == "normal":
        return Normal(*numbers)
    return Beta(*numbers) if prior == "beta" else EVENLY


def _passing(where: str, table: Mapping[str, Any]) -> Passing | None:
    template, off = table.get("pass"), table.get("off", "")
    if template is None and "off" not in table:
        return None
    if not isinstance(template, str) or not isinstance(off, str):
        raise ScenarioError(f'{where}: pass is {template!r}, off is {off!r}; expected texts, as in pass = "--fast"')
    return Passing(template, off)


# ---------------------------------------------------------------- the words of the section


def _conditions(
    section: Mapping[str, object], where: str, named: Mapping[str, Parameter], conditions: dict[str, Clause]
) -> dict[str, Clause]:
    for place, text in enumerate(_texts(section, where, "conditions")):
        here = f"{where}, conditions[{place}]"
        child, bar, expression = (part.strip() for part in text.partition("|"))
        if not bar or child not in named:
            raise ScenarioError(
                f"{here}: found {text!r}, expected the name of a declared parameter, a | and an expression, as in "
                '"window | strategy == 5"'
            )
        try:
            clause = read_clause(expression, named)
        except ScenarioError as flaw:
            raise ScenarioError(f"{here}: {flaw}") from None
        conditions[child] = both([conditions[child], clause]) if child in conditions else clause
    return conditions


def _forbidden(section: Mapping[str, object], where: str, named: Mapping[str, Parameter]) -> tuple[Clause, ...]:
    clauses = []
    for place, text in enumerate(_texts(section, where, "forbidden")):
        bare = text.strip()
        if bare.startswith("{") and bare.endswith("}"):
            bare = bare[1:-1]
        try:
            clauses.append(read_forbidden(bare, named))
        except ScenarioError as flaw:
            raise ScenarioError(f"{where}, forbidden[{place}]: {flaw}") from None
    return tuple(clauses)


def _favourites(section: Mapping[str, object], where: str) -> list[Settings]:
    favourites = _list(where, "favourites", section.get("favourites", []))
    for each in favourites:
        if not isinstance(each, Mapping):
            raise ScenarioError(
                f"{where}, favourites: found {each!r}, expected tables, as in favourites = [{{ level = 3 }}]"
            )
    return [{name: _value(where, f"favourites, {name}", value) for name, value in each.items()} for each in favourites]


def _style(section: Mapping[str, object], where: str, base: Style) -> Style:
    texts: dict[str, str | None] = {"arguments": base.arguments, "true": base.true, "false": base.false}
    for key in texts:
        if key in section:
            text = section[key]
            if not isinstance(text, str):
                raise ScenarioError(f"{where}: {key} is {text!r}, expected a text such as --{{name}}={{value}}")
            texts[key] = text
    words = section.get("words", list(base.words))
    if not isinstance(words, list) or [type(word) for word in words] != [str, str]:
        raise ScenarioError(f'{where}: words is {words!r}, expected what true and false are called, as ["yes", "no"]')
    arguments = str(texts["arguments"])
    try:
        return Style(STYLES.get(arguments, arguments), texts["true"], texts["false"], (words[0], words[1]))
    except ScenarioError as flaw:
        raise ScenarioError(f"{where}: {flaw}") from None


# ---------------------------------------------------------------- pieces


def _only(where: str, table: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    for key in table:
        if key not in keys:
            raise ScenarioError(
                f"{where}: found {key}, which a {table['type']} does not have; it has {', '.join(keys)}"
            )


def _number(where: str, key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ScenarioError(f"{where}: {key} is {value!r}, expected a number")
    return float(value)


def _bool(where: str, table: Mapping[str, Any], key: str) -> bool:
    value = table.get(key, False)
    if not isinstance(value, bool):
        raise ScenarioError(f"{where}: {key} is {value!r}, expected true or false")
    return value


def _value(where: str, key: str, value: object) -> Value:
    if not isinstance(value, bool | int | float | str):
        raise ScenarioError(f"{where}: {key} is {value!r}, expected a text, a number, true or false")
    return value


def _list(where: str, key: str, value: object) -> list[Any]:
    if not isinstance(value, list):
        raise ScenarioError(f"{where}: {key} is {value!r}, expected a list")
    return value


def _texts(section: Mapping[str, object], where: str, key: str) -> list[str]:
    texts = _list(where, key, section.get(key, []))
    if not all(isinstance(text, str) for text in texts):
        raise ScenarioError(f"{where}: {key} is {texts!r}, expected a list of texts")
    return texts
