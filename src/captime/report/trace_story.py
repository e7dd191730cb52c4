"""A story from a trace file, as `captime simulate --trace` writes it: decisions and incidents, but no runs."""

import csv
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from captime.errors import MissingExtra, ScenarioError
from captime.files import check_limited, open_limited
from captime.report.story import ProgressCurve, Story
from captime.trace import BOOK_COLUMNS, COLUMNS, Trace


def check_trace_path(path: Path) -> None:
    """Refuse a suffix that names no trace format, before anything is run."""
    if path.suffix not in _WRITERS:
        raise ScenarioError(f"the trace file {path} should end in {', '.join(_WRITERS)}; the suffix chooses the format")
    if path.suffix == ".parquet":
        _pyarrow()


def write_trace(trace: Trace, configs: Sequence[str], path: Path) -> None:
    """Write one row per decision, raised captime, elimination or purpose of CPU time, with the configuration's name."""
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
        writer.writerow([*COLUMNS, *BOOK_COLUMNS, "config_name"])
        for row in trace.rows():
            writer.writerow([*(row[name] for name in (*COLUMNS, *BOOK_COLUMNS)), configs[int(str(row["config"]))]])


def _write_parquet(trace: Trace, configs: Sequence[str], path: Path) -> None:
    pa, parquet = _pyarrow()
    rows = [{**row, "config_name": configs[int(str(row["config"]))]} for row in trace.rows()]
    kinds = dict.fromkeys((*COLUMNS, *BOOK_COLUMNS), pa.float64()) | {
        "kind": pa.string(),
        "round": pa.int64(),
        "config": pa.int64(),
        "candidates": pa.int64(),
        "runs": pa.int64(),
        "purpose": pa.string(),
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


_LARGEST_LINE = 1 << 20
# Traces of a million decisions have a fifth of this.
_LARGEST = 1 << 30


def is_trace(path: Path) -> bool:
    """Whether the suffix is that of a trace."""
    return path.suffix in _READERS


def read_trace_story(path: Path) -> Story:
    """The story of a simulation.

    Raises:
        ScenarioError: the file cannot be read, or is not a trace.
    """
    try:
        rows = list(_READERS[path.suffix](path))
    except OSError as error:
        raise ScenarioError(f"the trace {path} cannot be read: {error.strerror or error}; check the name") from error
    except (ValueError, csv.Error) as error:
        raise _not_a_trace(path, str(error)) from None
    if not rows:
        raise _not_a_trace(path, "it is empty")
    names: dict[int, str] = {}
    for number, row in enumerate(rows, start=1):
        missing = [name for name in (*COLUMNS, "config_name") if name not in row]
        if missing:
            raise _not_a_trace(path, f"row {number} has no column {missing[0]}")
        names[_number(path, number, row, "config", int)] = str(row["config_name"])
    return Story(
        path=path,
        names=[names.get(config, f"configuration {config}") for config in range(max(names) + 1)],
        progress=_progress(path, rows),
        certificate=None,
        rounds=sum(row["kind"] == "decision" for row in rows),
        spending={
            str(row["purpose"]): _number(path, number, row, "cpu_seconds", float)
            for number, row in enumerate(rows, start=1)
            if row["kind"] == "spent" and "purpose" in row
        },
    )


def _progress(path: Path, rows: list[Mapping[str, Any]]) -> ProgressCurve:
    numbered = list(enumerate(rows, start=1))
    decisions = [(number, row) for number, row in numbered if row["kind"] == "decision"]
    gone: dict[float, list[int]] = {}
    raised = []
    for number, row in numbered:
        seconds, config = _number(path, number, row, "seconds", float), _number(path, number, row, "config", int)
        if row["kind"] == "eliminated":
            gone.setdefault(seconds, []).append(config)
        elif row["kind"] == "captime":
            raised.append((seconds, config, _number(path, number, row, "captime", float)))

    def column(name: str, kind: Callable[[Any], float]) -> list[float]:
        return [_number(path, number, row, name, kind) for number, row in decisions]

    return ProgressCurve(
        seconds=np.array(column("seconds", float)),
        epsilon=np.array(column("epsilon", float)),
        gamma=np.full(len(decisions), np.nan),
        config=np.array(column("config", int), dtype=np.int64),
        candidates=np.array(column("candidates", int), dtype=np.int64),
        out=[(seconds, tuple(configs)) for seconds, configs in sorted(gone.items())],
        raised=raised,
    )


def _number(path: Path, number: int, row: Mapping[str, Any], name: str, kind: Callable[[Any], Any]) -> Any:
    try:
        value = kind(row[name])
    except (TypeError, ValueError):
        raise _not_a_trace(path, f"row {number}: its {name} is {row[name]!r}, expected a number") from None
    if isinstance(value, float) and math.isnan(value):
        raise _not_a_trace(path, f"row {number}: its {name} is not a number")
    return value


def _not_a_trace(path: Path, why: str) -> ScenarioError:
    return ScenarioError(
        f"{path} is not a trace: {why}. Traces are written by `captime simulate --trace`; a ledger is a file of its own"
    )


def _opened(path: Path) -> TextIO:
    return TextIOWrapper(open_limited(path, _LARGEST), encoding="utf-8", newline="")


def _read_json_lines(path: Path) -> Iterable[Mapping[str, Any]]:
    with _opened(path) as file:
        # One character more than allowed, so that a line without an end is noticed before it is read whole.
        while line := file.readline(_LARGEST_LINE + 1):
            if len(line) > _LARGEST_LINE:
                raise ValueError("a line is longer than any trace's")
            row = json.loads(line)
            if not isinstance(row, dict):
                raise ValueError(  # noqa: TRY004 (the file is wrong, not the type of an argument)
                    f"a line holds {type(row).__name__}, expected an object"
                )
            yield row


def _read_csv(path: Path) -> Iterable[Mapping[str, Any]]:
    with _opened(path) as file:
        yield from csv.DictReader(iter(lambda: file.readline(_LARGEST_LINE), ""))


def _read_parquet(path: Path) -> Iterable[Mapping[str, Any]]:
    try:
        from pyarrow import ArrowInvalid, parquet  # noqa: PLC0415 (optional)
    except ImportError:
        raise MissingExtra("reading Parquet", "parquet") from None
    check_limited(path, _LARGEST)
    try:
        rows: list[Mapping[str, Any]] = parquet.read_table(path).to_pylist()
    except ArrowInvalid as error:
        raise ValueError(str(error)) from None
    return rows


_READERS: dict[str, Callable[[Path], Iterable[Mapping[str, Any]]]] = {
    ".jsonl": _read_json_lines,
    ".csv": _read_csv,
    ".parquet": _read_parquet,
}
