"""The [space] section of a scenario: from its tables to a space, and back."""

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from captime.errors import ScenarioError
from captime.spaces.clauses import Clause, both, clause_text
from captime.spaces.formats.reading import items, number, plain, some, text_in, truth
from captime.spaces.laws import EVENLY, Beta, Law, Normal
from captime.spaces.parameters import (
    STYLES,
    Categorical,
    Choice,
    Float,
    Integer,
    Ordinal,
    Parameter,
    Style,
    integer_from,
    middle,
)
from captime.spaces.pcs_expression import read_clause, read_forbidden
from captime.spaces.proposals import USUAL_ORDER, ArrivalOrder, Proposer
from captime.spaces.space import Space
from captime.spaces.values import Passing, Settings, Value

# One table of a `[space]` section: a parameter. What else the section says is read elsewhere.

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


# A space as the dictionary of a `[space]` section: complete, JSON-able, and the same for the same space.


def section_of(space: Space) -> dict[str, object]:
    """What would stand under `[space]`; reading it gives the same space."""
    section: dict[str, object] = {parameter.name: _table(parameter) for parameter in space.parameters}
    if not section.keys().isdisjoint({*WORDS, "parameters"}):
        section = {"parameters": section}
    if space.conditions:
        section["conditions"] = [f"{name} | {clause_text(clause)}" for name, clause in space.conditions.items()]
    if space.forbidden:
        section["forbidden"] = [clause_text(clause) for clause in space.forbidden]
    if space.favourites:
        section["favourites"] = [dict(settings) for settings in space.favourites]
    return section | _style_text(space.style)


def _table(parameter: Parameter) -> dict[str, object]:
    table: dict[str, object] = {"type": parameter.kind}
    if parameter.kind == "constant":
        table["value"] = parameter.default
    elif isinstance(parameter, Choice):
        table |= _choices_text(parameter)
    else:
        table |= _range(parameter)
    if parameter.kind != "constant" and not parameter.assumed:
        table["default"] = parameter.default
    if parameter.passing is not None:
        table["pass"] = parameter.passing.template
        if parameter.passing.off:
            table["off"] = parameter.passing.off
    return table


def _choices_text(parameter: Choice) -> dict[str, object]:
    boolean = isinstance(parameter, Categorical) and parameter.kind == "bool"
    table: dict[str, object] = {} if boolean else {"choices": list(parameter.choices)}
    if parameter.weights is not None:
        weights = dict(zip(parameter.choices, parameter.weights, strict=True))
        table["weights"] = [weights[False], weights[True]] if boolean else list(parameter.weights)
    return table


def _range(parameter: Float | Integer) -> dict[str, object]:
    table: dict[str, object] = {"low": parameter.low, "high": parameter.high}
    if parameter.log:
        table["log"] = True
    match parameter.law:
        case Normal(mean, deviation):
            table |= {"prior": "normal", "mean": mean, "sd": deviation}
        case Beta(alpha, beta):
            table |= {"prior": "beta", "alpha": alpha, "beta": beta}
        case _:
            pass
    if isinstance(parameter, Float) and parameter.digits is not None:
        table["digits"] = parameter.digits
    return table


def _style_text(style: Style) -> dict[str, object]:
    usual = Style()
    section: dict[str, object] = {}
    if style.arguments != usual.arguments:
        section["arguments"] = style.arguments
    if style.true is not None:
        section["true"] = style.true
    if style.false is not None:
        section["false"] = style.false
    if style.words != usual.words:
        section["words"] = list(style.words)
    return section


# The `[space]` section of a scenario, as the dictionary that TOML makes of it; also the canonical form of any space.
#
# A table is a parameter; everything else is a word of the section, see WORDS. Reading the file it may name is left to
# the door of this family; model and draws_first are not about the space but about the search (see proposer_of).

WORDS = (
    *("file", "format", "conditions", "forbidden", "favourites", "arguments", "true", "false", "words"),
    *("model", "draws_first", "proposals"),
)


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
    parameters = base.parameters if base is not None else tuple(read_parameter(where, *each) for each in tables.items())
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
    try:
        space.default  # noqa: B018 (asked for its complaint)
    except ScenarioError as flaw:
        raise ScenarioError(f"{where}: {flaw}") from None
    favourites = tuple(
        space.completed(partial, f"{where}, favourites[{place}]")
        for place, partial in enumerate(_favourites(section, where))
    )
    return Space(space.parameters, space.conditions, space.forbidden, favourites, space.style, space.notes)


def proposer_of(
    space: Space, section: Mapping[str, object], seed: int, where: str, order: ArrivalOrder = USUAL_ORDER
) -> Proposer:
    """Who joins the pool next, as the section's model, draws_first and proposals say.

    Args:
        space: The space of the section.
        section: What stands under `[space]`.
        seed: The scenario's.
        where: What to call the section in errors.
        order: In which order draws and proposals come, where the section does not say.
    """
    return Proposer(
        space,
        seed,
        model=truth(section.get("model", True), f"{where}: model"),
        draws_first=_count(section, "draws_first", order.draws_first, 0, where),
        proposals=_count(section, "proposals", order.proposals, 1, where),
    )


def _count(section: Mapping[str, object], word: str, usual: int, least: int, where: str) -> int:
    """Return the whole number that a word of the section names."""
    found = section.get(word, usual)
    # A table is a parameter of that name.
    if isinstance(found, Mapping):
        return usual
    if isinstance(found, bool) or not isinstance(found, int) or found < least:
        raise ScenarioError(f"{where}: {word} is {found!r}, expected a whole number of at least {least}")
    return found


def _tables(section: Mapping[str, object]) -> dict[str, Mapping[str, Any]]:
    """The tables of parameters; one called `parameters` may hold them all, for programs whose names are words here."""
    tables = {name: value for name, value in section.items() if isinstance(value, Mapping)}
    inner = tables.get("parameters", {})
    if inner and all(isinstance(value, Mapping) for value in inner.values()):
        del tables["parameters"]
        return {**tables, **inner}
    return tables


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
    favourites = _list(section, where, "favourites")
    for each in favourites:
        if not isinstance(each, Mapping):
            raise ScenarioError(
                f"{where}, favourites: found {each!r}, expected tables, as in favourites = [{{ level = 3 }}]"
            )
    return [{name: plain(value, f"{where}, favourites: {name}") for name, value in each.items()} for each in favourites]


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


def _list(section: Mapping[str, object], where: str, key: str) -> list[Any]:
    return items(section.get(key, []), f"{where}: {key}")


def _texts(section: Mapping[str, object], where: str, key: str) -> list[str]:
    texts = _list(section, where, key)
    if not all(isinstance(text, str) for text in texts):
        raise ScenarioError(f"{where}: {key} is {texts!r}, expected a list of texts")
    return texts


# Scenario files: the `[space]` section read from TOML, and a space written as one.

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def section_in(text: str, file: str) -> Mapping[str, object]:
    """What stands under `[space]` in the text of a TOML file."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as flaw:
        raise ScenarioError(f"{file}: {flaw}; this is no TOML. Correct the line it names") from None
    except (ValueError, RecursionError) as flaw:
        raise ScenarioError(f"{file}: this TOML cannot be read ({flaw}); expected a scenario") from None
    section = document.get("space")
    if not isinstance(section, Mapping):
        raise ScenarioError(f"{file}: there is no [space] section, expected one with parameters or with file = ...")
    return section


def scenario_section(path: Path) -> dict[str, object]:
    """The same of a file, for readers in another folder: a file that the section names is seen from here."""
    section = dict(section_in(text_in(path), path.name))
    # A parameter may be called `file`, too: then it is a table.
    if isinstance(section.get("file"), str):
        section["file"] = str(path.absolute().parent / str(section["file"]))
    return section


def write_toml(space: Space) -> str:
    """The text of a `[space]` section."""
    section = section_of(space)
    lines = ["[space]"]
    words = {name: value for name, value in section.items() if not isinstance(value, dict)}
    lines += [f"{name} = {_toml(value)}" for name, value in words.items() if not isinstance(value, list)]
    for name, value in words.items():
        if isinstance(value, list):
            lines += [f"{name} = [", *(f"    {_toml(each)}," for each in value), "]"]
    tables = {name: value for name, value in section.items() if isinstance(value, dict)}
    if (
        "parameters" in tables
        and len(tables) == 1
        and all(isinstance(each, dict) for each in tables["parameters"].values())
    ):
        lines += ["", "[space.parameters]"]
        tables = tables["parameters"]
    return "\n".join([*lines, *(f"{_key(name)} = {_toml(table)}" for name, table in tables.items())]) + "\n"


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON's texts are TOML's, but for the one control character that JSON leaves as it is.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return f"[{', '.join(_toml(each) for each in value)}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(name)} = {_toml(each)}' for name, each in value.items())} }}"
    return repr(value)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _toml(name)
