"""Scenario files: the `[space]` section read from TOML, and a space written as one."""

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from captime.errors import ScenarioError
from captime.spaces.formats.canonical import section_of
from captime.spaces.formats.lines import text_in
from captime.spaces.space import Space

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
