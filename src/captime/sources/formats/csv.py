"""Tables of runs as files of rows: CSV and Parquet."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from captime.arrays import BoolArray, FloatArray
from captime.errors import MissingExtra, TableError
from captime.sources.formats.cells import (
    LONG_FORM_HINT,
    CellError,
    LongForm,
    find_roles,
    read_cell,
    read_run,
    read_status,
    text_lines,
    unused_note,
)
from captime.sources.table import MAX_CELLS, MAX_SECONDS, RuntimeTable, shown

# Runtimes in a CSV file: wide (a row per configuration, a column per instance) or long (a row per run).
#
# Commas separate, double quotes may enclose a cell, a record is one line. Which form it is, the header decides:
# columns named like a configuration, an instance and a runtime make it long.

MAX_FIELD = 1 << 20
MAX_LINE = 32 << 20
MAX_COLUMNS = 1_000_000
MAX_ROWS = 10_000_000

# What is left of a row of plain numbers after these are deleted is nothing.
_PLAIN = str.maketrans("", "", "0123456789.eE+- ,")

_Records = Iterator[tuple[int, list[str]]]


def read_csv(path: Path, timeout: float | None) -> RuntimeTable:
    """Read a wide or long CSV file."""
    records = _records(path)
    number, header = next(records, (0, []))
    if not header:
        raise TableError(f"{path.name}: the file is empty; expected a header line. Is it the right file?")
    where = f"{path.name}, line {number}"
    if len(header) == 1:
        raise TableError(
            f"{where}: found the single column {shown(header[0])}; expected a first column and instances, "
            f"separated by commas. If the file uses semicolons or tabs, convert it."
        )
    roles = find_roles(header, where)
    if roles is None:
        return _wide(path, records, header, timeout)
    return _long(path, records, header, roles, timeout)


def _records(path: Path) -> _Records:
    """Numbered lines, cut into cells; blank lines are passed over."""
    for rows, (number, line) in enumerate(text_lines(path, max_line=MAX_LINE)):
        if rows > MAX_ROWS:
            raise TableError(f"{path.name}, line {number}: more than {MAX_ROWS} lines; split the file")
        if line.strip():
            yield number, split_record(line, f"{path.name}, line {number}")


def split_record(line: str, where: str) -> list[str]:
    """Return the cells of one line, blanks around them removed; linear in the length of the line."""
    if line.count(",") >= MAX_COLUMNS:
        raise TableError(f"{where}: more than {MAX_COLUMNS} cells; expected fewer. Is it a table of runtimes?")
    cells = _split_quoted(line, where) if '"' in line else line.split(",")
    if len(line) > MAX_FIELD:
        for column, cell in enumerate(cells, start=1):
            if len(cell) > MAX_FIELD:
                raise TableError(f"{where}, column {column}: the cell is longer than {MAX_FIELD} characters")
    return [cell.strip() for cell in cells]


def _split_quoted(line: str, where: str) -> list[str]:
    cells: list[str] = []
    at = 0
    while True:
        at = _skip_blanks(line, at)
        if line.startswith('"', at):
            cell, at = _quoted_cell(line, at + 1, f"{where}, column {len(cells) + 1}")
        else:
            end = line.find(",", at)
            end = len(line) if end < 0 else end
            cell, at = line[at:end], end
            if '"' in cell:
                raise TableError(
                    f"{where}, column {len(cells) + 1}: found a double quote inside {shown(cell)}; expected "
                    f"the whole cell in quotes. Quote it, and write a quote inside as two."
                )
        cells.append(cell)
        if at >= len(line):
            return cells
        at += 1


def _skip_blanks(line: str, at: int) -> int:
    while line.startswith((" ", "\t"), at):
        at += 1
    return at


def _quoted_cell(line: str, at: int, where: str) -> tuple[str, int]:
    """Return the text up to the closing quote, and where the cell ends (at a comma or at the end of the line)."""
    parts: list[str] = []
    while True:
        end = line.find('"', at)
        if end < 0:
            raise TableError(f"{where}: the quote is not closed on its line; expected a closing double quote")
        parts.append(line[at:end])
        at = end + 1
        if not line.startswith('"', at):
            break
        parts.append('"')
        at += 1
    at = _skip_blanks(line, at)
    if at < len(line) and line[at] != ",":
        raise TableError(f"{where}: found {shown(line[at])} after the closing quote; expected a comma")
    return "".join(parts), at


def _check_width(where: str, cells: list[str], header: list[str]) -> None:
    if len(cells) != len(header):
        raise TableError(
            f"{where}: found {len(cells)} cells; expected {len(header)}, as many as the header has. "
            f"Look for a missing cell or a number with a comma in it."
        )


def _wide(path: Path, records: _Records, header: list[str], timeout: float | None) -> RuntimeTable:
    configs: list[str] = []
    rows: list[FloatArray] = []
    late_rows: dict[int, BoolArray] = {}
    for number, cells in records:
        where = f"{path.name}, line {number}"
        _check_width(where, cells, header)
        if (len(rows) + 1) * len(header) > MAX_CELLS:
            raise TableError(f"{where}: more than {MAX_CELLS} cells; split the file")
        configs.append(cells[0])
        values = _plain_numbers(cells[1:])
        if values is None:
            values, late_rows[len(rows)] = _words_and_numbers(where, cells)
        rows.append(values)
    if not rows:
        raise TableError(f"{path.name}: there is no row below the header; expected a row per configuration")
    seconds = np.array(rows)
    # From here on the array is enough, and twice the table would be much.
    rows.clear()
    capped = np.zeros(seconds.shape, dtype=np.bool_)
    for config, late in late_rows.items():
        capped[config] = late
    return RuntimeTable.build(path.stem, configs, header[1:], seconds, timeout=timeout, capped=capped)


def _plain_numbers(cells: list[str]) -> FloatArray | None:
    """The whole row at once if it holds nothing but plain numbers; None if its cells have to be read one by one."""
    joined = ",".join(cells)
    if joined.translate(_PLAIN):
        return None
    try:
        values = np.array(list(map(float, cells)))
    except ValueError:
        return None
    # Written so that infinity from an overflow, too, is looked at again.
    return values if (values <= MAX_SECONDS).all() and not np.signbit(values).any() else None


def _words_and_numbers(where: str, cells: list[str]) -> tuple[FloatArray, BoolArray]:
    values: FloatArray = np.empty(len(cells) - 1)
    late = np.zeros(len(values), dtype=np.bool_)
    for column, cell in enumerate(cells[1:]):
        try:
            values[column], late[column] = read_cell(cell)
        except CellError as flaw:
            raise TableError(f"{where}, column {column + 2}: {flaw} ({LONG_FORM_HINT})") from None
    return values, late


def _long(
    path: Path, records: _Records, header: list[str], roles: dict[str, int], timeout: float | None
) -> RuntimeTable:
    runs = LongForm(path.name)
    config, instance, runtime = roles["configuration"], roles["instance"], roles["runtime"]
    status, repetition = roles.get("status"), roles.get("repetition")
    for number, cells in records:
        where = f"{path.name}, line {number}"
        _check_width(where, cells, header)
        column = runtime if status is None else status
        try:
            if status is None:
                seconds, capped = read_cell(cells[runtime])
            else:
                ending = read_status(cells[status])
                column = runtime
                seconds, capped = read_run(cells[runtime], ending)
        except CellError as flaw:
            raise flaw.at(f"{where}, column {column + 1}") from None
        name = "" if repetition is None else cells[repetition]
        runs.add(number, cells[config], cells[instance], seconds=seconds, capped=capped, repetition=name)
    return runs.table(path.stem, timeout=timeout, notes=unused_note(header, roles))


# Runtimes in a Parquet file: wide or long, with the same meaning as in CSV. Needs the `parquet` extra.

_MAX_RUNS = 10_000_000


@dataclass(frozen=True)
class _Column:
    """One column: numbers, or distinct texts with an index; nulls are marked apart."""

    values: npt.NDArray[Any]
    null: BoolArray
    texts: list[str] | None

    def text(self, row: int) -> str:
        """Return the cell as CSV would spell it; a null is empty."""
        if self.null[row]:
            return ""
        value: float | int = self.values[row].item()
        if self.texts is not None:
            return self.texts[int(value)].strip()
        # A repetition or an instance number is often stored as a float.
        return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def read_parquet(path: Path, timeout: float | None) -> RuntimeTable:
    """Read a wide or long Parquet file; a null is an empty cell."""
    try:
        import pyarrow as pa  # noqa: PLC0415 (an optional extra is imported where it is needed)
        from pyarrow import parquet  # noqa: PLC0415 (the same)
    except ImportError:
        raise MissingExtra("reading Parquet", "parquet") from None
    try:
        with parquet.ParquetFile(path) as file:
            schema, rows = file.schema_arrow, int(file.metadata.num_rows)
        header = [str(name) for name in schema.names]
        roles = _checked_header(path, header, rows)
        plain = (field for field in schema if pa.types.is_string(field.type) or pa.types.is_large_string(field.type))
        # As dictionaries, a name that occurs a million times is held once, however the file stores it.
        with parquet.ParquetFile(path, read_dictionary=[field.name for field in plain]) as file:
            arrow = file.read().columns
    except (pa.ArrowException, OSError, ValueError) as flaw:
        raise TableError(
            f"{path.name}: it cannot be read as Parquet ({shown(str(flaw))}); expected a complete Parquet file"
        ) from None
    columns = [
        _column(pa, column, f"{path.name}, column {number} {shown(name)}")
        for number, (name, column) in enumerate(zip(header, arrow, strict=True), start=1)
    ]
    if roles is None:
        return _wide_parquet(path, header, columns, timeout)
    return _long_parquet(path, header, columns, roles, timeout)


def _checked_header(path: Path, header: list[str], rows: int) -> dict[str, int] | None:
    """Sizes are declared in the file's footer, so they are checked before anything is read."""
    if rows == 0 or len(header) < 2:
        raise TableError(
            f"{path.name}: found {rows} rows and {len(header)} columns; expected a table of runtimes. "
            f"Is it the right file?"
        )
    roles = find_roles(header, path.name)
    allowed = MAX_CELLS if roles is None else _MAX_RUNS * len(header)
    if rows * len(header) > allowed:
        raise TableError(
            f"{path.name}: found {rows} rows and {len(header)} columns; expected at most {allowed} cells. "
            f"Split the file."
        )
    return roles


def _column(pa: Any, column: Any, where: str) -> _Column:
    flat = column.combine_chunks()
    if isinstance(flat, pa.ChunkedArray):  # older versions keep a single chunk wrapped
        flat = flat.chunk(0)
    null = np.asarray(flat.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)
    kind = flat.type
    if pa.types.is_dictionary(kind) and (
        pa.types.is_string(kind.value_type) or pa.types.is_large_string(kind.value_type)
    ):
        index = flat.indices.fill_null(0).to_numpy(zero_copy_only=False)
        return _Column(index, null, [text or "" for text in flat.dictionary.to_pylist()])
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _Column(flat.fill_null(0).to_numpy(zero_copy_only=False), null, None)
    raise TableError(f"{where}: found the type {kind}; expected text, integers or floats. Convert the column.")


def _wide_parquet(path: Path, header: list[str], columns: list[_Column], timeout: float | None) -> RuntimeTable:
    n_configs = len(columns[0].null)
    seconds: FloatArray = np.empty((n_configs, len(columns) - 1))
    capped = np.zeros(seconds.shape, dtype=np.bool_)
    for instance, column in enumerate(columns[1:]):
        where = f"{path.name}, column {instance + 2} {shown(header[instance + 1])}"
        if column.null.any():
            number = int(np.argmax(column.null)) + 1
            raise TableError(f"{where}, row {number}: the cell is empty; expected seconds, or inf")
        if column.texts is None:
            seconds[:, instance] = column.values
            continue
        for config in range(n_configs):
            try:
                seconds[config, instance], capped[config, instance] = read_cell(column.text(config))
            except CellError as flaw:
                raise TableError(f"{where}, row {config + 1}: {flaw} ({LONG_FORM_HINT})") from None
    configs = [columns[0].text(config) for config in range(n_configs)]
    return RuntimeTable.build(path.stem, configs, header[1:], seconds, timeout=timeout, capped=capped)


def _long_parquet(
    path: Path, header: list[str], columns: list[_Column], roles: dict[str, int], timeout: float | None
) -> RuntimeTable:
    runs = LongForm(path.name, place="row")
    config, instance, runtime = (columns[roles[role]] for role in ("configuration", "instance", "runtime"))
    status = columns[roles["status"]] if "status" in roles else None
    repetition = columns[roles["repetition"]] if "repetition" in roles else None
    for row in range(len(runtime.null)):
        role = "runtime" if status is None else "status"
        try:
            if status is None:
                seconds, capped = read_cell(runtime.text(row))
            else:
                ending = read_status(status.text(row))
                role = "runtime"
                seconds, capped = read_run(runtime.text(row), ending)
        except CellError as flaw:
            column = roles[role]
            raise flaw.at(f"{path.name}, column {column + 1} {shown(header[column])}, row {row + 1}") from None
        name = "" if repetition is None else repetition.text(row)
        runs.add(row + 1, config.text(row), instance.text(row), seconds=seconds, capped=capped, repetition=name)
    return runs.table(path.stem, timeout=timeout, notes=unused_note(header, roles))
