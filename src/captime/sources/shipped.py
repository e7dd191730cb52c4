"""Measured tables that come with captime, by name; each with a datasheet beside it."""

from pathlib import Path

from captime.errors import ScenarioError
from captime.sources import RuntimeTable, read_table

FOLDER = Path(__file__).parents[1] / "data"


def shipped_tables() -> dict[str, Path]:
    """Names and places."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.npz"))}


def datasheet(name: str) -> Path:
    """The page that says how the table of that name was measured."""
    return path_of(name).with_suffix(".md")


def path_of(name: str) -> Path:
    """Where the table of that name lies.

    Raises:
        ScenarioError: there is no such table.
    """
    known = shipped_tables()
    if name not in known:
        there = f"there are {', '.join(known)}" if known else "none are shipped with this copy"
        raise ScenarioError(f"there is no table {name!r}; {there}")
    return known[name]


def table_at(data: str, *, timeout: float | None = None, unsafe_format: str | None = None) -> RuntimeTable:
    """A shipped table by name, or the one at that path: a file, or an ASlib scenario folder.

    Args:
        data: Name or path.
        timeout: The table's own timeout in seconds, where the file does not say it.
        unsafe_format: Name of a format that is only read on request, such as `pickle`.
    """
    known = shipped_tables()
    return read_table(known.get(data, Path(data)), timeout=timeout, unsafe_format=unsafe_format)
