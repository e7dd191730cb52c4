import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from captime.errors import CaptimeError, ScenarioError, TableError
from captime.sources import read_table
from captime.sources.formats import FORMATS

RUNS = {"b": [1.0, 2, 3.5], "a": (4.0, float("inf"), 900.0), "c": [0.5, 950.0, 901.0]}


def test_every_registered_format_has_an_ending_or_is_a_folder() -> None:
    """Endings are lower case and belong to one format each; only pickle is unsafe."""
    endings = [ending for member in FORMATS.values() for ending in member.suffixes]
    assert len(set(endings)) == len(endings)
    assert all(ending.startswith(".") and ending == ending.lower() for ending in endings)
    assert [name for name, member in FORMATS.items() if member.unsafe] == ["pickle"]


def test_the_ending_is_compared_without_regard_to_case(tmp_path: Path) -> None:
    """RUNS.CSV is a CSV file, and a path may be given as text."""
    (tmp_path / "RUNS.CSV").write_text("c,x\na,1\n")
    assert read_table(str(tmp_path / "RUNS.CSV")).configs == ("a",)


def test_an_unknown_ending_lists_what_can_be_read(tmp_path: Path) -> None:
    """The message names every ending and the folder."""
    (tmp_path / "t.xlsx").write_text("")
    with pytest.raises(TableError, match=r"'\.xlsx' is not known; expected \.npy, \.npz, \.csv.*ASlib"):
        read_table(tmp_path / "t.xlsx")


def test_a_missing_file_and_a_plain_folder_are_refused(tmp_path: Path) -> None:
    """Both with what was expected there."""
    with pytest.raises(TableError, match="no such file"):
        read_table(tmp_path / "no.csv")
    with pytest.raises(TableError, match=r"no description\.txt"):
        read_table(tmp_path)
    with pytest.raises(TableError, match=r"no such file|cannot be opened"):
        read_table("a\0b.csv")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """Something that is not a regular file is refused instead of opened."""
    os.mkfifo(tmp_path / "t.csv")
    with pytest.raises(TableError, match="it is a pipe"):
        read_table(tmp_path / "t.csv")


def dump(folder: Path, value: object, protocol: int = 5, name: str = "m.dump") -> Path:
    """Pickle a value into a file."""
    path = folder / name
    path.write_bytes(pickle.dumps(value, protocol=protocol))
    return path


def test_a_pickle_is_refused_until_it_is_allowed(tmp_path: Path) -> None:
    """The message says how to allow it; permission alone does not turn a CSV file into a pickle."""
    path = dump(tmp_path, RUNS)
    with pytest.raises(TableError, match="--unsafe-format pickle"):
        read_table(path)
    with pytest.raises(ScenarioError, match="expected one of: pickle"):
        read_table(path, unsafe_format="csv")
    (tmp_path / "t.csv").write_text("c,x\na,1\n")
    assert read_table(tmp_path / "t.csv", unsafe_format="pickle").configs == ("a",)


@pytest.mark.parametrize("protocol", range(6))
def test_an_allowed_pickle_of_lists_is_read(tmp_path: Path, protocol: int) -> None:
    """Every protocol; configurations sorted by name, runs cut at the declared timeout."""
    path = dump(tmp_path, RUNS, protocol, name="measurements")
    table = read_table(path, unsafe_format="pickle", timeout=900)
    assert table.configs == ("a", "b", "c")
    assert table.instances == ("i0", "i1", "i2")
    assert table.seconds.tolist() == [[4, float("inf"), 900], [1, 2, 3.5], [0.5, 900, 900]]
    assert table.limit == 900


def test_names_of_any_kind_survive_the_pipe(tmp_path: Path) -> None:
    """Command lines with quotes, other scripts, line breaks; bytes are taken as UTF-8."""
    names = ["-x 'a b' \"c\"", "größe=½", "two\nlines", "日本"]
    value: dict[str | bytes, list[float]] = {name: [1.0] for name in names}
    value[b"\xc3\xa9"] = [2.0]
    table = read_table(dump(tmp_path, value), unsafe_format="pickle")
    assert table.configs == tuple(sorted([*names, "é"]))


def test_bad_numbers_in_a_pickle_are_named_by_row_and_column(tmp_path: Path) -> None:
    """Rows count the sorted configurations."""
    with pytest.raises(TableError, match=r"'b' \(row 2\), instance 'i1' \(column 2\): found nan"):
        read_table(dump(tmp_path, {"b": [1.0, float("nan")], "a": [1.0, 2.0]}), unsafe_format="pickle")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1.0], "holds a list, not a dictionary"),
        ({}, "dictionary is empty"),
        ({"a": 1.0}, "'a' holds a float, not a list"),
        ({"a": [1.0], "b": [1.0, 2.0]}, "'b' has 2 runtimes, the first configuration has 1"),
        ({"a": []}, "not empty"),
        ({1: [1.0]}, "named by a int"),
        ({b"\xff": [1.0]}, "damaged"),
        ({"a": [1.0, None]}, "runtime 2, is a NoneType"),
        ({"a": [True]}, "runtime 1, is a bool"),
        ({"a": ["1.0"]}, "runtime 1, is a str"),
        ({"a": [10**400]}, "runtime 1, is too large"),
        ({"a": {1.0}}, "holds a set"),
        ({"a": [[1.0]]}, "runtime 1, is a list"),
        ({"a": bytearray(b"1")}, "not a list|asks for"),
    ],
)
def test_an_allowed_pickle_of_something_else_is_refused(tmp_path: Path, value: object, message: str) -> None:
    """Plain data of the wrong shape gets a message, not a traceback."""
    with pytest.raises(TableError, match=message):
        read_table(dump(tmp_path, value), unsafe_format="pickle")


@pytest.mark.parametrize("value", [{"a": np.ones(3)}, {"a": [np.float64(1.0)]}])
def test_numpy_inside_a_pickle_is_refused_with_the_way_out(tmp_path: Path, value: object) -> None:
    """Rebuilding an array needs a function call, and there are none."""
    with pytest.raises(TableError, match=r"NumPy objects.*tolist\(\)"):
        read_table(dump(tmp_path, value), unsafe_format="pickle")


def test_every_refusal_is_one_of_ours(tmp_path: Path) -> None:
    """Whatever the ending, an empty file is a CaptimeError."""
    for member in FORMATS.values():
        for ending in member.suffixes:
            path = tmp_path / f"empty{ending}"
            path.write_bytes(b"")
            with pytest.raises(CaptimeError):
                read_table(path, unsafe_format="pickle")
