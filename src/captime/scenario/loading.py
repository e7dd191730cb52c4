"""Reading a scenario: a TOML file, or a dictionary like the one TOML makes of it."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from errno import EFBIG, EINVAL
from os import PathLike
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from captime.errors import ScenarioError
from captime.files import read_limited
from captime.scenario.errors import SourceLocation, refused
from captime.scenario.models import ScenarioModel
from captime.scenario.scenario import Scenario

# A scenario is written by a person; what is longer than this is something else.
_LARGEST = 4 << 20
# TOML itself promises 64; seeds may be longer.
_MOST_BITS = 128


def load_scenario(path: str | PathLike[str]) -> Scenario:
    """Read a scenario file; whatever is wrong is named with file, line and field.

    Args:
        path: The file.
    """
    file = Path(path)
    try:
        raw = read_limited(file, _LARGEST)
    except OSError as error:
        hint = "name the file itself" if error.errno in (EINVAL, EFBIG) else "`captime init` writes one to begin with"
        raise ScenarioError(
            f"{path}: the scenario cannot be read ({error.strerror}); expected a TOML file of a few lines, {hint}"
        ) from None
    except ValueError as error:
        raise ScenarioError(f"{path!r} is no name of a file ({error}); name the scenario") from None
    try:
        text = raw.decode("utf-8-sig")
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # Bytes that are no text, text that is no TOML, numbers with more digits than Python reads.
        raise ScenarioError(f"{path} is no TOML file: {error}; `captime init` writes one to look at") from None
    return _checked(document, file.absolute().parent, SourceLocation(str(path), text), file.stem)


def scenario_of(
    document: Mapping[str, Any],
    folder: str | PathLike[str] = ".",
    *,
    function: Callable[..., Any] | None = None,
    values: Sequence[Any] | None = None,
    originals: Mapping[str, Mapping[str, Any]] | None = None,
    stem: str = "scenario",
    name: str = "scenario",
) -> Scenario:
    """Return a scenario without a file, for library calls.

    Args:
        document: As TOML would read it.
        folder: Relative names are seen from here.
        function: A Python function as target.
        values: Python objects as instances.
        originals: Settings as a function is to be called with them, by the name of the configuration.
        stem: Files that belong to it are named after this.
        name: How messages call it.
    """
    filled = dict(document)
    if function is not None:
        filled.setdefault("target", {})
    if values is not None:
        filled.setdefault("instances", {})
    place = SourceLocation(name)
    given = {"function": function, "values": values, "originals": originals or {}}
    return _checked(filled, Path(folder).absolute(), place, stem, **given)


def _checked(document: Mapping[str, Any], folder: Path, place: SourceLocation, stem: str, **given: Any) -> Scenario:
    _check_numbers(document, (), place)
    try:
        wishes = ScenarioModel.model_validate(document)
    except ValidationError as error:
        raise refused(error, ScenarioModel, place) from None
    return Scenario(wishes, folder, place, stem, **given)


def _check_numbers(value: object, field: tuple[str | int, ...], place: SourceLocation) -> None:
    """Refuse whole numbers that no field can mean, wherever they stand: many have no double, some cannot be printed."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            _check_numbers(each, (*field, str(name)), place)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            _check_numbers(each, (*field, number), place)
    elif isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise ScenarioError(
            f"{place(*field)} is a whole number of {value.bit_length():,} bits; expected at most {_MOST_BITS}. Write a "
            "smaller one, or a text in quotes"
        )
