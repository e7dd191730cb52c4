"""A CSV file of settings: a row for each configuration, a column for each setting.

A column `name` names the configurations. Columns that begin with a dot are irace's own and no settings, and so is a
first column without a name, which R writes. An empty cell, or NA, is a setting that is not there.
"""

import csv
import io
from pathlib import Path

from captime.errors import ScenarioError
from captime.files import read_limited
from captime.programs.protocol import Setting
from captime.scenario.configurations import read_cell
from captime.tuners.protocol import Incumbent, TunerResult

_LARGEST = 1 << 26
_NAME = "name"
NOT_SET = ("", "NA", "<NA>", None)
"""Cells that stand for a setting which is not there."""


def recognises(path: Path, start: bytes) -> bool:
    """Tell a table by its ending."""
    del start  # text is text
    return path.suffix.lower() in (".csv", ".tsv", ".txt")


def setting_of(cell: str) -> Setting:
    """Return a cell as the value it looks like; R writes its booleans in capital letters."""
    return {"TRUE": True, "FALSE": False}.get(cell, read_cell(cell))


def read(path: Path, top: int | None, study: str | None) -> TunerResult:  # noqa: ARG001 (a table is one study)
    """Read all rows, or the first few of them."""
    try:
        text = read_limited(path, _LARGEST).decode("utf-8-sig")
    except OSError as error:
        raise ScenarioError(f"{path} cannot be read ({error.strerror}); expected a CSV file of settings") from None
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{path} is no text in UTF-8 ({error.reason}); expected a CSV file of settings") from None
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    lines = list(csv.reader(io.StringIO(text), delimiter=delimiter))
    header = lines[0] if lines else []
    columns = [name.strip() for name in header]
    settings = [name for name in columns if _is_setting(name)]
    rows = [line for line in lines[1:] if any(cell.strip() for cell in line)]
    if not settings or not rows:
        raise ScenarioError(
            f"{path}: the table has {len(settings)} columns of settings and {len(rows)} rows, expected at least one of "
            "each: a header line with the names of the settings, and a row for each configuration"
        )
    if len(set(settings)) < len(settings):
        twice = next(name for name in settings if settings.count(name) > 1)
        raise ScenarioError(f"{path}: two columns are called {twice!r}; remove one of them")
    incumbents = []
    for number, row in enumerate(rows, start=1):
        if len(row) > len(columns):
            raise ScenarioError(
                f"{path}: row {number} has {len(row)} cells, but the header has {len(columns)} columns; put cells with "
                "a comma in them into quotation marks"
            )
        cells = {name: cell.strip() for name, cell in zip(columns, row, strict=False)}
        found = {name: setting_of(cells[name]) for name in settings if cells.get(name) not in NOT_SET}
        incumbents.append(Incumbent(found, f"row {number}", cells.get(_NAME, "")))
    return TunerResult("csv", path, incumbents if top is None else incumbents[:top])


def _is_setting(column: str) -> bool:
    return bool(column) and column != _NAME and not column.startswith(".")
