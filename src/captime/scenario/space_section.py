"""From `[space]` to the pool of a campaign: the configurations of the start, and the proposer of the others."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, get_args

from captime.errors import ScenarioError
from captime.ledger.rows import ConfigRow, Origin
from captime.procedures.pool_terms import PoolTerms
from captime.programs.arguments import SettingsToArguments
from captime.programs.configurations import Configuration, Setting
from captime.programs.template import Template
from captime.scenario.errors import SourceLocation
from captime.spaces import Proposer, Space, proposer_of, read_space_section, section_of
from captime.spaces.formats.toml import scenario_section

_SECTION = "space"


SpaceLike = Mapping[str, Any] | str | PathLike[str] | Space
"""A space as Python gives it: the `[space]` section, a file, or the space itself."""


def section_for(space: SpaceLike, folder: str | PathLike[str]) -> dict[str, Any]:
    """Return what would stand under `[space]`; a file is seen from the folder."""
    if isinstance(space, Space):
        return section_of(space)
    if isinstance(space, Mapping):
        return dict(space)
    path = Path(folder).absolute() / space
    # A scenario also says how its space is searched; other files know parameters only.
    return scenario_section(path) if path.suffix.lower() == ".toml" else {"file": str(path)}


def proposer_for(section: Mapping[str, Any], seed: int, place: SourceLocation, folder: Path) -> Proposer:
    """Return the proposer of a space's configurations, by index.

    Args:
        section: `[space]`, as TOML reads it.
        seed: The scenario's.
        place: The file, for messages.
        folder: A file of the space is seen from here.
    """
    where = place(_SECTION)
    return proposer_of(read_space_section(section, where, folder), section, seed, where)


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


def as_begun(proposer: Proposer, n_listed: int | None) -> Proposer:
    """The same as it was when a campaign was begun with this many listed ones; those after them were added later."""
    if n_listed is None or n_listed >= proposer.n_listed:
        return proposer
    favourites = [proposer.propose(index) for index in range(1, n_listed)]
    return Proposer(
        proposer.space, proposer.seed, model=proposer.model, draws_first=proposer.draws_first, listed=favourites
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
    return {**section_of(proposer.space), "model": proposer.model, "draws_first": proposer.draws_first}


def pool_terms_of(proposer: Proposer) -> PoolTerms:
    """Return the order of arrivals, as procedures have to know it; the proposer keeps to it."""
    return PoolTerms(proposer.n_listed, model=proposer.model, draws_first=proposer.draws_first)


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
