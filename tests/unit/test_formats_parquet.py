import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from captime.errors import MissingExtra, TableError
from captime.sources import RuntimeTable, read_table

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
INF = float("inf")


def read(folder: Path, columns: dict[str, Any], timeout: float | None = None) -> RuntimeTable:
    """Write columns as Parquet and read them as a table."""
    pq.write_table(pa.table(columns), folder / "runs.parquet")
    return read_table(folder / "runs.parquet", timeout=timeout)


def test_wide_parquet_means_what_wide_csv_means(tmp_path: Path) -> None:
    """First column names, then a column per instance; numbers or words."""
    table = read(
        tmp_path,
        {"c": ["a", "b"], "x": [1, 2], "y": [0.5, INF], "z": ["timeout", "7"], "w": ["crash", "3"]},
        timeout=9,
    )
    assert table.configs == ("a", "b")
    assert table.instances == ("x", "y", "z", "w")
    assert table.seconds.tolist() == [[1, 0.5, 9, INF], [2, INF, 7, 3]]


def test_long_parquet_means_what_long_csv_means(tmp_path: Path) -> None:
    """Columns by name, nulls as empty cells, statuses, repetitions stored as numbers."""
    table = read(
        tmp_path,
        {
            "solver": ["a", "b", "a", "b"],
            "instance": [11, 11, 11, 11],
            "repetition": [1.0, 1.0, 2.0, 2.0],
            "runtime": [1.0, None, 3.0, 50.0],
            "status": ["ok", "memout", "ok", "timeout"],
            "host": ["h"] * 4,
        },
    )
    assert table.instances == ("11 [repetition 1]", "11 [repetition 2]")
    assert table.groups.tolist() == [0, 0]
    assert table.seconds.tolist() == [[1, 3], [INF, 50]]
    assert table.limit == 50
    assert table.notes[0] == "columns not used: 'host'"


def test_dictionaries_and_large_strings_are_text(tmp_path: Path) -> None:
    """What pandas and polars write for repeated names is read as names."""
    config = pa.array(["a", "b"]).dictionary_encode()
    instance = pa.array(["x", "x"], type=pa.large_string())
    table = read(tmp_path, {"config": config, "instance": instance, "time": pa.array([1, 2], type=pa.float32())})
    assert table.configs == ("a", "b")
    assert table.seconds.tolist() == [[1], [2]]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"c": ["a"]}, "1 columns"),
        ({"c": pa.array([], pa.string()), "x": pa.array([], pa.float64())}, "0 rows"),
        ({"c": ["a", "b"], "x": [1.0, None]}, "column 2 'x', row 2: the cell is empty"),
        ({"c": ["a", "b"], "x": ["1", "1_0"]}, "column 2 'x', row 2: found '1_0'"),
        ({"c": ["a", "b"], "x": [1.0, float("nan")]}, r"\(row 2\), instance 'x' \(column 1\): found nan"),
        ({"c": ["a", "b"], "x": [1.0, -1.0]}, r"\(row 2\), instance 'x' \(column 1\): found -1"),
        ({"c": ["a", None], "x": [1.0, 2.0]}, "configuration 2 is named ''"),
        ({"c": ["a"], "x": [True]}, "found the type bool"),
        ({"c": ["a"], "x": [[1.0]]}, "found the type list"),
        ({"config": ["a", "a"], "instance": ["x", "x"], "time": [1, 2]}, "row 2: .*on row 1"),
        ({"config": ["a", "b"], "instance": ["x", "y"], "time": [1, 2]}, "is missing"),
        ({"config": ["a"], "instance": ["x"], "time": [float("nan")]}, "column 3 'time', row 1: found 'nan'"),
        ({"config": ["a"], "instance": ["x"], "time": [1], "status": ["?"]}, "column 4 'status', row 1"),
    ],
)
def test_a_broken_parquet_table_is_refused_with_its_place(
    tmp_path: Path, columns: dict[str, Any], message: str
) -> None:
    """Column by number and name, row by number."""
    with pytest.raises(TableError, match=message):
        read(tmp_path, columns)


def test_bytes_that_are_no_parquet_are_refused(tmp_path: Path) -> None:
    """Random bytes and a file cut in two."""
    path = tmp_path / "t.pq"
    path.write_bytes(b"PAR1 nonsense PAR1")
    with pytest.raises(TableError, match="Parquet"):
        read_table(path)
    pq.write_table(pa.table({"c": ["a"], "x": [1.0]}), path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(TableError, match="Parquet"):
        read_table(path)


def test_a_tiny_file_that_declares_a_huge_table_is_refused(tmp_path: Path) -> None:
    """The size in the footer is looked at before anything is read."""
    rows = 20_000_000
    zeros = pa.array(np.zeros(rows, dtype=np.int8)).dictionary_encode()
    pq.write_table(pa.table({"config": zeros, "instance": zeros, "time": zeros}), tmp_path / "t.parquet")
    with pytest.raises(TableError, match=f"found {rows} rows"):
        read_table(tmp_path / "t.parquet")


def test_without_the_extra_the_message_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pyarrow is optional, and imported only here."""
    (tmp_path / "t.parquet").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"captime\[parquet\]"):
        read_table(tmp_path / "t.parquet")
