"""Reading a scenario: a TOML file, or a dictionary like the one TOML makes of it."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from captime.errors import ScenarioError
from captime.scenario.complaints import Place, refused
from captime.scenario.models import Wishes
from captime.scenario.scenario import Scenario

# A scenario is written by a person; what is longer than this is something else.
_LARGEST = 4 << 20


def load_scenario(path: str | PathLike[str]) -> Scenario:
    """Read a scenario file; whatever is wrong is named with file, line and field.

    Args:
        path: The file.
    """
    file = Path(path)
    try:
        raw = file.read_bytes()
    except OSError as error:
        hint = "name the file itself" if file.is_dir() else "`captime init` writes one to begin with"
        raise ScenarioError(f"{path}: the scenario cannot be read ({error.strerror}); {hint}") from None
    if len(raw) > _LARGEST:
        raise ScenarioError(f"{path} has {len(raw):,} bytes; expected a scenario of a few lines. Is it the right file?")
    try:
        text = raw.decode("utf-8-sig")
        document = tomllib.loads(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ScenarioError(f"{path} is no TOML file: {error}; `captime init` writes one to look at") from None
    return _checked(document, file.absolute().parent, Place(str(path), text), file.stem)


def scenario_of(
    document: Mapping[str, Any],
    folder: str | PathLike[str] = ".",
    *,
    function: Callable[..., Any] | None = None,
    values: Sequence[Any] | None = None,
    stem: str = "scenario",
    name: str = "scenario",
) -> Scenario:
    """A scenario without a file, for library calls.

    Args:
        document: As TOML would read it.
        folder: Relative names are seen from here.
        function: A Python function as target.
        values: Python objects as instances.
        stem: Files that belong to it are named after this.
        name: How messages call it.
    """
    filled = dict(document)
    if function is not None:
        filled.setdefault("target", {})
    if values is not None:
        filled.setdefault("instances", {})
    place = Place(name)
    return _checked(filled, Path(folder).absolute(), place, stem, function=function, values=values)


def _checked(document: Mapping[str, Any], folder: Path, place: Place, stem: str, **given: Any) -> Scenario:
    try:
        wishes = Wishes.model_validate(document)
    except ValidationError as error:
        raise refused(error, Wishes, place) from None
    return Scenario(wishes, folder, place, stem, **given)
