"""A trace as a file: JSON lines, CSV or Parquet, chosen by the suffix; the same columns in all of them."""

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from captime.errors import MissingExtra, ScenarioError
from captime.trace import COLUMNS, Trace


def check_trace_path(path: Path) -> None:
    """Refuse a suffix that names no trace format, before anything is run."""
    if path.suffix not in _WRITERS:
        raise ScenarioError(f"the trace file {path} should end in {', '.join(_WRITERS)}; the suffix chooses the format")
    if path.suffix == ".parquet":
        _pyarrow()


def write_trace(trace: Trace, configs: Sequence[str], path: Path) -> None:
    """Write the story, one row per decision, raised captime or elimination, with the configuration's name beside."""
    check_trace_path(path)
    try:
        _WRITERS[path.suffix](trace, configs, path)
    except OSError as error:
        raise ScenarioError(f"the trace file {path} cannot be written: {error.strerror or error}") from error


def _write_json_lines(trace: Trace, configs: Sequence[str], path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for row in trace.rows():
            config = int(str(row["config"]))
            file.write(json.dumps({**row, "config_name": configs[config]}) + "\n")


def _write_csv(trace: Trace, configs: Sequence[str], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*COLUMNS, "config_name"])
        for row in trace.rows():
            writer.writerow([*(row[name] for name in COLUMNS), configs[int(str(row["config"]))]])


def _write_parquet(trace: Trace, configs: Sequence[str], path: Path) -> None:
    pa, parquet = _pyarrow()
    rows = [{**row, "config_name": configs[int(str(row["config"]))]} for row in trace.rows()]
    kinds = dict.fromkeys(COLUMNS, pa.float64()) | {
        "kind": pa.string(),
        "round": pa.int64(),
        "config": pa.int64(),
        "candidates": pa.int64(),
        "runs": pa.int64(),
        "config_name": pa.string(),
    }
    parquet.write_table(pa.Table.from_pylist(rows, schema=pa.schema(kinds)), path)


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa  # noqa: PLC0415 (optional)
        from pyarrow import parquet  # noqa: PLC0415 (optional)
    except ImportError:
        raise MissingExtra("writing Parquet", "parquet") from None
    return pa, parquet


_WRITERS: dict[str, Callable[[Trace, Sequence[str], Path], None]] = {
    ".jsonl": _write_json_lines,
    ".csv": _write_csv,
    ".parquet": _write_parquet,
}
