from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from captime.errors import TableError
from captime.sources import RuntimeTable, read_table
from captime.sources.formats import write_npz

INF = float("inf")
MATRIX = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, INF]])


@pytest.mark.parametrize("dtype", ["<f8", ">f8", "<f4", "<i4", "u1"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_rows_are_configurations(tmp_path: Path, dtype: str, order: Any) -> None:
    """Any plain number type and memory order; names are made up."""
    matrix = np.arange(6).reshape(2, 3)
    np.save(tmp_path / "t.npy", np.asarray(matrix.astype(dtype), order=order))
    table = read_table(tmp_path / "t.npy")
    assert table.configs == ("c0", "c1")
    assert table.instances == ("i0", "i1", "i2")
    assert np.array_equal(table.seconds, matrix)
    assert table.seconds.dtype == np.float64
    assert table.seconds.flags.c_contiguous


def test_npy_infinity_is_a_run_that_never_finishes(tmp_path: Path) -> None:
    """It does not count as the largest runtime."""
    np.save(tmp_path / "t.npy", MATRIX)
    table = read_table(tmp_path / "t.npy")
    assert table.limit == INF
    assert table.never_finished == pytest.approx(1 / 6)


@pytest.mark.parametrize("bad", [float("nan"), -0.5])
def test_npy_bad_values_are_named_by_row_and_column(tmp_path: Path, bad: float) -> None:
    """Row and column of the file, counted from 1."""
    matrix = MATRIX.copy()
    matrix[1, 2] = bad
    np.save(tmp_path / "t.npy", matrix)
    with pytest.raises(TableError, match=r"\(row 2\).*\(column 3\): found"):
        read_table(tmp_path / "t.npy")


def test_npz_takes_names_timeout_and_statuses(tmp_path: Path) -> None:
    """All optional arrays together; the time of a run that never finished does not matter."""
    np.savez(
        tmp_path / "t.npz",
        runtimes=np.array([[1.0, 77.0, 2.0], [99.0, np.nan, 50.0]]),
        configs=["a", "b"],
        instances=np.array([b"x", b"y", b"z"]),
        timeout=10,
        statuses=[["ok", "timeout", "SAT"], ["crash", "memout", "ok"]],
        extra=[1],
    )
    table = read_table(tmp_path / "t.npz")
    assert (table.configs, table.instances, table.limit) == (("a", "b"), ("x", "y", "z"), 10.0)
    assert table.seconds.tolist() == [[1, 10, 2], [INF, INF, 10]]
    assert table.notes == ("arrays not used: 'extra'",)


def test_npz_needs_only_the_runtimes(tmp_path: Path) -> None:
    """Names are made up as for npy, and compressed archives are read too."""
    np.savez_compressed(tmp_path / "t.npz", seconds=MATRIX)
    table = read_table(tmp_path / "t.npz")
    assert table.configs == ("c0", "c1")
    assert np.array_equal(table.seconds, MATRIX)


def test_npz_statuses_as_bytes_mean_the_same(tmp_path: Path) -> None:
    """Words stored as bytes are words; a stopped run without a time takes the declared timeout."""
    words = np.array([[b"ok", b"timeout"]])
    np.savez(tmp_path / "t.npz", seconds=np.array([[1.0, np.nan]]), statuses=words)
    assert read_table(tmp_path / "t.npz", timeout=5).seconds.tolist() == [[1.0, 5.0]]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"other": MATRIX}, "found the arrays 'other'; expected seconds"),
        ({"seconds": MATRIX, "runtimes": MATRIX}, "both seconds and runtimes"),
        ({"seconds": MATRIX, "limit": 1.0, "timeout": 2.0}, "both limit and timeout"),
        ({"seconds": MATRIX[0]}, r"shape \(3,\)"),
        ({"seconds": np.ones((2, 0))}, r"shape \(2, 0\)"),
        ({"seconds": MATRIX, "configs": ["a"]}, "expected"),
        ({"seconds": MATRIX, "configs": ["a", "a"]}, "occurs twice"),
        ({"seconds": MATRIX, "configs": [["a", "b"]]}, "list of names"),
        ({"seconds": MATRIX, "configs": [1, 2]}, "expected text"),
        ({"seconds": MATRIX, "configs": np.array([b"\xff", b"b"])}, "not valid text"),
        ({"seconds": MATRIX, "limit": [1.0, 2.0]}, "one number of seconds"),
        ({"seconds": MATRIX, "limit": float("nan")}, "one number of seconds"),
        ({"seconds": MATRIX, "limit": 0.0}, "own timeout is 0"),
        ({"seconds": MATRIX, "name": ["a", "b"]}, "found 2 texts"),
        ({"seconds": MATRIX, "groups": [0, 0]}, "groups"),
        ({"seconds": MATRIX, "statuses": ["ok"]}, "found shape"),
        (
            {"seconds": MATRIX, "statuses": [["ok"] * 3, ["ok", "eh", "ok"]]},
            "row 2, column 2: found the status 'eh'",
        ),
        ({"seconds": MATRIX, "statuses": [["ok"] * 3] * 2}, "row 2, column 3: the status says finished"),
        ({"seconds": MATRIX.astype(object)}, "unpickled"),
        ({"seconds": MATRIX, "configs": np.array(["a", None], dtype=object)}, "unpickled"),
        ({"seconds": MATRIX > 1}, "expected numbers"),
        ({"seconds": MATRIX.astype(complex)}, "expected numbers"),
    ],
)
def test_a_broken_npz_is_refused(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    """The message names the array."""
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(TableError, match=message):
        read_table(tmp_path / "t.npz")


def test_npz_timeout_may_be_shortened_but_not_extended(tmp_path: Path) -> None:
    """A stored limit is a record of what was observed."""
    np.savez(tmp_path / "t.npz", seconds=np.array([[1.0, 10.0]]), limit=10)
    assert read_table(tmp_path / "t.npz", timeout=5).limit == 5
    with pytest.raises(TableError, match="nothing is known beyond"):
        read_table(tmp_path / "t.npz", timeout=11)


NAMES = st.lists(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8).filter(
        str.strip
    ),
    min_size=1,
    max_size=4,
    unique=True,
)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), configs=NAMES, instances=NAMES, limit=st.sampled_from([10.0, 0.1, INF]))
def test_write_npz_round_trips_exactly(
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    configs: list[str],
    instances: list[str],
    limit: float,
) -> None:
    """Every field comes back as it was, bit by bit."""
    values = st.one_of(st.floats(0, min(limit, 1e12)), st.just(INF))
    flat = data.draw(st.lists(values, min_size=len(configs) * len(instances), max_size=len(configs) * len(instances)))
    seconds = np.array(flat).reshape(len(configs), len(instances))
    groups = np.zeros(len(instances), dtype=np.int64)
    table = RuntimeTable("näme", tuple(configs), tuple(instances), seconds, limit, groups, ("one", "zwei"))
    path = tmp_path_factory.mktemp("npz") / "t.npz"
    write_npz(table, path)
    again = read_table(path)
    for field in ("name", "configs", "instances", "limit", "notes"):
        assert getattr(again, field) == getattr(table, field)
    assert again.seconds.tobytes() == table.seconds.tobytes()
    assert again.groups.tolist() == table.groups.tolist()


def test_write_npz_of_a_table_without_notes_round_trips(tmp_path: Path) -> None:
    """An empty list of notes is stored as an empty array."""
    table = RuntimeTable.build("t", ["a"], ["x"], np.array([[1.0]]))
    write_npz(table, tmp_path / "t.npz")
    assert read_table(tmp_path / "t.npz").notes == ()
