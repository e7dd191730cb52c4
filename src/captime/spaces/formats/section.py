"""The `[space]` section of a scenario, as the dictionary that TOML makes of it; also the canonical form of any space.

A table is a parameter; everything else is a word of the section, see WORDS. Reading the file it may name is left to the
door of this family; model, draws_first and proposals are not about the space but about the search (see proposer_of).
"""

from collections.abc import Mapping
from typing import Any

from captime.errors import ScenarioError
from captime.spaces.clauses import Clause, both
from captime.spaces.formats.fields import items, plain, truth
from captime.spaces.formats.parameter_tables import read_parameter
from captime.spaces.parameters import Parameter
from captime.spaces.pcs_expression import read_clause, read_forbidden
from captime.spaces.proposals import USUAL_ORDER, ArrivalOrder, Proposer
from captime.spaces.rendering import STYLES, Style
from captime.spaces.space import Space
from captime.spaces.values import Settings

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
