"""Runtimes in a Parquet file: wide or long, with the same meaning as in CSV. Needs the `parquet` extra."""

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
    unused_note,
)
from captime.sources.table import MAX_CELLS, RuntimeTable, shown

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
        return _wide(path, header, columns, timeout)
    return _long(path, header, columns, roles, timeout)


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


def _wide(path: Path, header: list[str], columns: list[_Column], timeout: float | None) -> RuntimeTable:
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


def _long(
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
