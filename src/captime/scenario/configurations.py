"""Where configurations come from: tables of named settings, a list, or a CSV file.

This is the one place to ask. A parameter space would be another way to answer: whatever it is, what comes out is a list
of `Configuration`, in an order that never changes.
"""

import math
import re
from collections.abc import Mapping
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any, get_args

from captime.errors import ScenarioError
from captime.ledger.rows import ConfigRow
from captime.ledger.schema import Origin
from captime.procedures.pool_terms import PoolTerms
from captime.programs.protocol import Configuration, Setting
from captime.programs.template import SettingsToArguments, Template
from captime.scenario.errors import SourceLocation, shown
from captime.spaces import (
    ArrivalOrder,
    Proposer,
    Space,
    proposer_of,
    read_configspace,
    read_space_section,
    section_of,
)
from captime.spaces.formats.section import scenario_section
from captime.streams.files import read_rows

_SECTION = "configurations"
_OWN = ("command", "answer", "exit_codes")
_WHOLE = re.compile(r"[+-]?(?:0|[1-9][0-9]*)")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][+-]?[0-9]+)?")


def configurations_of(
    section: Mapping[str, Any] | list[dict[str, Any]], folder: Path, place: SourceLocation, *, nested: bool = False
) -> list[Configuration]:
    """Return the configurations that a scenario names.

    Args:
        section: `[configurations]` or `[[configurations]]`, as TOML reads it.
        folder: A CSV file is seen from here.
        place: The file, for messages.
        nested: Whether a setting may be a table, a list of anything or None: for functions, not for command lines.
    """
    if isinstance(section, list):
        found = [_listed(entry, index, place, nested=nested) for index, entry in enumerate(section)]
    elif isinstance(section.get("file"), str):
        _only_file(section, place)
        found = _from_csv(folder / section["file"], place(_SECTION, "file"))
    else:
        found = [_named(name, settings, place, nested=nested) for name, settings in section.items()]
    if not found:
        raise ScenarioError(
            f"{place(_SECTION)} names no configuration; write at least one, such as default = {{ restarts = 100 }}"
        )
    seen: set[str] = set()
    for each in found:
        if each.name in seen:
            raise ScenarioError(
                f"{place(_SECTION)}: two configurations are called {each.name!r}; give each its own name"
            )
        seen.add(each.name)
    return found


def _only_file(section: Mapping[str, Any], place: SourceLocation) -> None:
    for name in section:
        if name != "file":
            raise ScenarioError(
                f"{place(_SECTION, name)} stands beside file = {section['file']!r}; name configurations in one of the "
                "two places, not in both"
            )


def _listed(entry: dict[str, Any], index: int, place: SourceLocation, *, nested: bool) -> Configuration:
    name = entry.get("name", str(index + 1))
    if not isinstance(name, str):
        raise ScenarioError(f"{place(_SECTION, index, 'name')} is {shown(name)}; expected a text in quotes")
    settings = {key: value for key, value in entry.items() if key != "name"}
    return _made(name, settings, place, (_SECTION, index), nested=nested)


def _named(name: str, settings: Any, place: SourceLocation, *, nested: bool) -> Configuration:
    if not isinstance(settings, dict):
        near = get_close_matches(name, ["file"], n=1)
        hint = '; did you mean file = "configs.csv"?' if near else ""
        raise ScenarioError(
            f"{place(_SECTION, name)} is {shown(settings)}; expected a table of settings, such as "
            f"{name} = {{ restarts = 100 }}{hint}"
        )
    return _made(name, settings, place, (_SECTION, name), nested=nested)


def _made(
    name: str, entry: Mapping[str, Any], place: SourceLocation, field: tuple[str | int, ...], *, nested: bool
) -> Configuration:
    command, answer, codes = (entry.get(key) for key in _OWN)
    if command is not None and not (_is_list_of(command, str) and command):
        raise ScenarioError(
            f"{place(*field, 'command')} is {shown(command)}; expected a list of texts, one per argument"
        )
    if answer is not None and not isinstance(answer, str):
        raise ScenarioError(f"{place(*field, 'answer')} is {shown(answer)}; expected a regular expression in quotes")
    if codes is not None and not (_is_list_of(codes, int) and codes):
        raise ScenarioError(f"{place(*field, 'exit_codes')} is {shown(codes)}; expected a list of whole numbers")
    setting = _any_setting if nested else _setting
    settings = {key: setting(value, place, (*field, key)) for key, value in entry.items() if key not in _OWN}
    return Configuration(
        name=name,
        settings=settings,
        command=None if command is None else tuple(command),
        answer=answer,
        exit_codes=None if codes is None else tuple(codes),
    )


def _setting(value: Any, place: SourceLocation, field: tuple[str | int, ...]) -> Setting:
    plain = isinstance(value, str | int | bool) or (isinstance(value, float) and math.isfinite(value))
    if plain or _is_list_of(value, str):
        checked: Setting = value
        return checked
    raise ScenarioError(
        f"{place(*field)} is {shown(value)}; expected a text, a finite number, true or false, or a list of texts, "
        "which are words of the command line"
    )


def _any_setting(value: Any, place: SourceLocation, field: tuple[str | int, ...]) -> Any:
    """Return a setting of a function as it is; what no ledger can record is refused."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise ScenarioError(f"{place(*field)} has the key {shown(key)}; expected texts as keys")
            _any_setting(inner, place, (*field, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            _any_setting(inner, place, (*field, number))
    elif not (
        value is None or isinstance(value, str | int | bool) or (isinstance(value, float) and math.isfinite(value))
    ):
        raise ScenarioError(
            f"{place(*field)} is {shown(value)} ({type(value).__name__}); expected a text, a finite number, True, "
            "False, None, an array of NumPy, or lists and dicts of these. Give anything else a name, and let the "
            "function look it up"
        )
    return value


def _is_list_of(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(each, kind) and not isinstance(each, bool) for each in value)


def _from_csv(path: Path, where: str) -> list[Configuration]:
    """A row per configuration: a column `name`, and one per setting; an empty cell is a setting that is not there."""
    rows = read_rows(path, where)
    if not rows:
        raise ScenarioError(f"{where}: {str(path)!r} holds no configuration; write a header line and a row for each")
    return [
        Configuration(
            name=row.get("name") or str(number),
            settings={key: read_cell(cell) for key, cell in row.items() if key != "name" and cell},
        )
        for number, row in enumerate(rows, start=1)
    ]


def read_cell(cell: str) -> Setting:
    """Return a cell as the value it looks like: a number, true or false, or a text.

    >>> [read_cell(cell) for cell in ("7", "0.5", "1e-3", "true", "007", "a b")]
    [7, 0.5, 0.001, True, '007', 'a b']
    """
    if _WHOLE.fullmatch(cell):
        return int(cell)
    if _DECIMAL.fullmatch(cell) and math.isfinite(float(cell)):
        return float(cell)
    return {"true": True, "false": False}.get(cell, cell)


# From `[space]` to the pool of a campaign: the configurations of the start, and the proposer of the others.

_SPACE = "space"


SpaceLike = Mapping[str, Any] | str | PathLike[str] | Space
"""A space as Python gives it: the `[space]` section, a file, the space itself, or ConfigSpace's object (a mapping)."""


def section_for(space: SpaceLike, folder: str | PathLike[str]) -> dict[str, Any]:
    """Return what would stand under `[space]`; a file is seen from the folder."""
    if isinstance(space, Space):
        return section_of(space)
    serialized = getattr(space, "to_serialized_dict", None)
    if serialized is not None:  # An object of ConfigSpace.
        return section_of(read_configspace(serialized(), "space"))
    if isinstance(space, Mapping):
        return dict(space)
    path = Path(folder).absolute() / space
    # A scenario also says how its space is searched; other files know parameters only.
    return scenario_section(path) if path.suffix.lower() == ".toml" else {"file": str(path)}


def proposer_for(
    section: Mapping[str, Any], seed: int, place: SourceLocation, folder: Path, order: ArrivalOrder
) -> Proposer:
    """Return the proposer of a space's configurations, by index.

    Args:
        section: `[space]`, as TOML reads it.
        seed: The scenario's.
        place: The file, for messages.
        folder: A file of the space is seen from here.
        order: In which order draws and proposals come, where the section does not say.
    """
    where = place(_SPACE)
    return proposer_of(read_space_section(section, where, folder), section, seed, where, order)


def name_of(proposer: Proposer, index: int) -> str:
    """Return what people call the configuration of that index."""
    origin = proposer.origin(index)
    return origin if index == 0 else f"{origin}-{index}"


def listed_of(proposer: Proposer) -> tuple[Configuration, ...]:
    """Return the configurations of the start: the default, and the user's favourites."""
    return tuple(
        Configuration(name_of(proposer, index), dict(proposer.propose(index)), origin=proposer.origin(index))
        for index in range(proposer.n_listed)
    )


def space_as_begun(proposer: Proposer, n_listed: int | None) -> Proposer:
    """The same as it was when a campaign was begun with this many listed ones; those after them were added later."""
    if n_listed is None or n_listed >= proposer.n_listed:
        return proposer
    favourites = [proposer.propose(index) for index in range(1, n_listed)]
    return Proposer(
        proposer.space,
        proposer.seed,
        model=proposer.model,
        draws_first=proposer.draws_first,
        proposals=proposer.proposals,
        listed=favourites,
    )


def check_command(command: list[str] | None, space: Space, place: SourceLocation) -> None:
    """Refuse a command that names a parameter which is not always there."""
    if command is None:
        return
    for name in sorted(Template(command, place("target", "command")).names & space.conditions.keys()):
        raise ScenarioError(
            f"{place('target', 'command')} says {{{name}}}, but that parameter is not active in every configuration; "
            "write {settings} in its place, which passes those that are"
        )


def canonical(proposer: Proposer) -> dict[str, Any]:
    """Return the space and the order in which configurations come from it, in words that JSON knows."""
    # Ledgers that name no number of proposals were begun when there was one for each draw.
    several = {"proposals": proposer.proposals} if proposer.proposals > 1 else {}
    return {**section_of(proposer.space), "model": proposer.model, "draws_first": proposer.draws_first, **several}


def order_on_record(ledger: Mapping[str, object]) -> ArrivalOrder | None:
    """Return the order in which draws and proposals come in a ledger; None if it is not about a space.

    Args:
        ledger: What the ledger says about its question.
    """
    space = ledger.get("space")
    if not isinstance(space, Mapping):
        return None
    return ArrivalOrder(int(space["draws_first"]), int(space.get("proposals", 1)))


def pool_terms_of(proposer: Proposer) -> PoolTerms:
    """Return the order of arrivals, as procedures have to know it; the proposer keeps to it."""
    return PoolTerms(
        proposer.n_listed, model=proposer.model, draws_first=proposer.draws_first, proposals=proposer.proposals
    )


def words_of(space: Space) -> SettingsToArguments:
    """Return how the settings of a space are written where a command says `{settings}`."""

    def words(settings: Mapping[str, Setting]) -> list[str]:
        # A space knows no lists of words, and neither do its configurations.
        return space.arguments({name: value for name, value in settings.items() if not isinstance(value, list)})

    return words


def row_of(index: int, configuration: Configuration) -> ConfigRow:
    """As a ledger remembers it."""
    origin = next(origin for origin in get_args(Origin) if origin == configuration.origin)
    settings = {key: value for key, value in configuration.describe().items() if key != "name"}
    return ConfigRow(index, configuration.name, settings, origin)
