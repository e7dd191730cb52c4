"""The family of file formats for parameter spaces: this door knows who is a member and tells them apart.

Members are a pair of functions: from the text of a file to a space, and from a space to text. A format that has no
writer is read only.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from captime.errors import ScenarioError
from captime.spaces.formats.configspace import (
    as_configspace,
    read_configspace,
    write_configspace,
    yaml_document,
    yaml_text,
)
from captime.spaces.formats.irace import read_irace
from captime.spaces.formats.pcs import read_pcs, write_pcs_new, write_pcs_old
from captime.spaces.formats.reading import numbered, text_in
from captime.spaces.formats.section import read_section, section_in, section_of, write_toml
from captime.spaces.space import Space

__all__ = [
    "FORMATS",
    "as_configspace",
    "read_configspace",
    "read_space",
    "read_space_section",
    "section_of",
    "write_space",
]


@dataclass(frozen=True, slots=True)
class Format:
    """A way to write a space down.

    Attributes:
        about: one line for people.
        endings: names of files that are taken for it.
        read: from the text and the name of the file to the space; None for scenario files, which may name another file.
        write: from the space to text; None if it is only read.
    """

    about: str
    endings: tuple[str, ...]
    read: Callable[[str, str], Space] | None
    write: Callable[[Space], str] | None


def _read_json(text: str, file: str) -> Space:
    try:
        document = json.loads(text)
    except json.JSONDecodeError as flaw:
        raise ScenarioError(f"{file}, line {flaw.lineno}: this is no JSON ({flaw.msg}); correct the line") from None
    except ValueError as flaw:  # a whole number of thousands of digits
        raise ScenarioError(f"{file}: this JSON cannot be read ({flaw}); expected what ConfigSpace writes") from None
    except RecursionError:
        raise ScenarioError(f"{file}: this JSON is nested too deeply; expected what ConfigSpace writes") from None
    return read_configspace(document, file)


FORMATS: dict[str, Format] = {
    "toml": Format("the [space] section of a scenario", (".toml",), None, write_toml),
    "json": Format(
        "ConfigSpace's JSON",
        (".json",),
        _read_json,
        lambda space: json.dumps(write_configspace(space), indent=2) + "\n",
    ),
    "yaml": Format(
        "ConfigSpace's YAML",
        (".yaml", ".yml"),
        lambda text, file: read_configspace(yaml_document(text, file), file),
        lambda space: yaml_text(write_configspace(space)),
    ),
    "pcs": Format("PCS, new style (SMAC from 2.10, AClib 2)", (".pcs", ".pcs_new"), read_pcs, write_pcs_new),
    "pcs-old": Format("PCS, old style (ParamILS, older SMAC)", (".pcs_old",), read_pcs, write_pcs_old),
    "irace": Format("irace's parameters.txt", (".txt",), read_irace, None),
}


def read_space(path: Path, format_name: str | None = None) -> Space:
    """The space in a file.

    Args:
        path: The file.
        format_name: One of FORMATS; left out, the name of the file tells, and its content where the name does not.
    """
    text = text_in(path)
    name = format_name or _format_of(path, text)
    if name not in FORMATS:
        raise ScenarioError(f"{path.name}: the format {name!r} is unknown, expected one of {', '.join(FORMATS)}")
    read = FORMATS[name].read
    if read is not None:
        return read(text, path.name)
    return read_space_section(section_in(text, path.name), f"{path.name}, [space]", path.parent)


def read_space_section(section: Mapping[str, object], where: str, folder: Path) -> Space:
    """The space of a scenario's `[space]` section, with the file it may name.

    Args:
        section: What stands under `[space]`.
        where: What to call it in errors.
        folder: Where the scenario lies; the file is looked for from there.
    """
    file, format_name = section.get("file"), section.get("format")
    # A parameter may be called `file`, too: then it is a table.
    if file is None or isinstance(file, Mapping):
        return read_section(section, where)
    if not isinstance(file, str) or not isinstance(format_name, str | None):
        raise ScenarioError(f"{where}: file is {file!r}, format is {format_name!r}; expected texts")
    path = folder / file
    if path.suffix == ".toml" and format_name in (None, "toml"):
        raise ScenarioError(
            f"{where}: the file {file} is a TOML file, expected one of another format; copy its section"
        )
    return read_section(section, where, read_space(path, format_name))


def write_space(space: Space, format_name: str) -> str:
    """The text of a file of that format; refused if the format cannot say what the space says."""
    write = FORMATS[format_name].write if format_name in FORMATS else None
    if write is None:
        able = ", ".join(name for name, each in FORMATS.items() if each.write is not None)
        raise ScenarioError(f"spaces cannot be written as {format_name!r}, expected one of {able}")
    return write(space)


def _format_of(path: Path, text: str) -> str:
    """By the end of the file's name; a .txt or an unknown one by whether its first line looks like irace's."""
    for name, each in FORMATS.items():
        if path.suffix.lower() in each.endings and name != "irace":
            return name
    first = next((content for _, content in numbered(text)), "")
    return "irace" if '"' in first or "'" in first else "pcs"
