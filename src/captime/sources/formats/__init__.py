"""The family of file formats: this door is the register.

A member is a function `(path, timeout) -> RuntimeTable`. It refuses what it does not understand with a
`TableError` that names the place; it never executes anything it reads.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from captime.errors import ScenarioError, TableError
from captime.files import check_limited
from captime.sources.formats.aslib import DESCRIPTION, RUNS, read_aslib
from captime.sources.formats.cells import LARGEST
from captime.sources.formats.csv import read_csv, read_parquet
from captime.sources.formats.npz import read_npy, read_npz, read_pickle, write_npz
from captime.sources.table import RuntimeTable, shown

__all__ = ["FORMATS", "TableFormat", "read_table", "write_npz"]


@dataclass(frozen=True)
class TableFormat:
    """One way to store recorded runtimes.

    Attributes:
        read: The reader.
        suffixes: Endings of file names, in lower case; none for a folder.
        about: The format in a few words, for listings.
        unsafe: Read only if the user allows it by name.
    """

    read: Callable[[Path, float | None], RuntimeTable]
    suffixes: tuple[str, ...]
    about: str
    unsafe: bool = False


FORMATS: dict[str, TableFormat] = {
    "npy": TableFormat(read_npy, (".npy",), "array of seconds, configurations x instances"),
    "npz": TableFormat(read_npz, (".npz",), "arrays seconds, configs, instances, limit, statuses"),
    "csv": TableFormat(read_csv, (".csv",), "wide (a row per configuration) or long (a row per run)"),
    "parquet": TableFormat(read_parquet, (".parquet", ".pq"), "like csv, wide or long"),
    "aslib": TableFormat(read_aslib, (), f"scenario folder with {DESCRIPTION} and {RUNS}"),
    "pickle": TableFormat(
        read_pickle,
        (".pickle", ".pkl", ".p", ".dump"),
        "dictionary from configuration to list of seconds",
        unsafe=True,
    ),
}


def read_table(path: str | Path, *, timeout: float | None = None, unsafe_format: str | None = None) -> RuntimeTable:
    """Read recorded runtimes; the format follows from the name, a folder is an ASlib scenario.

    Args:
        path: A file or a folder.
        timeout: The table's timeout in seconds, if the file does not say it or should be cut earlier;
            infinity if there was none. It can never be later than what was observed.
        unsafe_format: Allows a format that is refused by default (`pickle`), also for a file of unknown
            ending.
    """
    place = Path(path)
    if unsafe_format is not None and not (unsafe_format in FORMATS and FORMATS[unsafe_format].unsafe):
        known = ", ".join(name for name, member in FORMATS.items() if member.unsafe)
        raise ScenarioError(f"unsafe format: found {shown(unsafe_format)}; expected one of: {known}")
    try:
        if place.is_dir():
            return read_aslib(place, timeout)
        if place.name in {DESCRIPTION, RUNS} and place.is_file():
            return read_aslib(place.parent, timeout)
        try:
            check_limited(place, LARGEST)
        except (FileNotFoundError, NotADirectoryError):
            raise TableError(f"{shown(str(place))}: there is no such file; expected a table. Check the path.") from None
        name = _format_of(place, unsafe_format)
        if FORMATS[name].unsafe and unsafe_format != name:
            raise TableError(
                f"{place.name}: {name} files can be made to harm and are refused; expected one of the other "
                f"formats. If you trust where it comes from, allow it with --unsafe-format {name}."
            )
        return FORMATS[name].read(place, timeout)
    except (OSError, ValueError) as flaw:
        # ValueError: a path with a NUL character. Readers raise TableError for everything they find inside.
        why = getattr(flaw, "strerror", None) or flaw
        raise TableError(f"{shown(str(place))}: it cannot be opened ({why}); expected a readable file") from None


def _format_of(path: Path, unsafe_format: str | None) -> str:
    suffix = path.suffix.lower()
    for name, member in FORMATS.items():
        if suffix in member.suffixes:
            return name
    if unsafe_format is not None:
        return unsafe_format
    endings = ", ".join(ending for member in FORMATS.values() for ending in member.suffixes)
    raise TableError(
        f"{path.name}: the ending {shown(suffix)} is not known; expected {endings}, or the folder of an "
        f"ASlib scenario. Rename or convert the file."
    )
