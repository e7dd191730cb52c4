import bz2
import contextlib
import gzip
import io
import lzma
import pickle
import sys
import tempfile
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from captime.errors import CaptimeError, TableError
from captime.sources import read_table
from captime.sources.formats import aslib, csv, npz
from captime.sources.formats.aslib import read_arff, split_values
from captime.sources.formats.cells import CellError, read_number
from captime.sources.formats.csv import split_record

MIB = 1 << 20

# ---------------------------------------------------------------- cells

BAD_CELLS = [
    *("nan", "NaN", "-nan", "-1", "-0", "-0.0", "-1e-300", "-inf", "-Infinity", "1e400", "1e13", "9" * 400),
    *(
        '"1,000"',
        "1_000",
        "1 000",
        "1'000",
        '"1.000,5"',
        "1\u00a0000",
        "12s",
        "12 s",
        "5%",
        "$5",
        "0x10",
        "1d5",
    ),
    *("1e", "1e+", "e5", ".", "+", "++1", "1.2.3", "1..2", "1/2", "1:30", "1f", "1L", "1j"),
    *("", " ", '""', "?", "None", "null", "NA", "N/A", "#N/A", "abc", "True", "ok", "sat", "infinite", "∞"),
    *("½", "١٢", "１２", "1\u200b", "=1+1", "@x", "'5'", "[5]", "{5}", "\x1b[31m5", "timeout 5", "crash!"),
]


def test_there_are_enough_bad_cells() -> None:
    """The list of hostile cells has at least forty different members."""
    assert len(set(BAD_CELLS)) == len(BAD_CELLS) >= 40


@pytest.mark.parametrize("cell", BAD_CELLS)
def test_a_bad_cell_of_a_wide_csv_is_refused_at_its_place(tmp_path: Path, cell: str) -> None:
    """Line 3, column 3, and nothing else is blamed."""
    path = tmp_path / "t.csv"
    path.write_text(f"c,x,y,z\na,1,2,3\nb,4,{cell},6\nc,7,8,9\n", encoding="utf-8")
    with pytest.raises(TableError, match=r"^t\.csv, line 3, column 3: ") as caught:
        read_table(path)
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("cell", BAD_CELLS)
def test_a_bad_cell_of_a_long_csv_is_refused_at_its_place(tmp_path: Path, cell: str) -> None:
    """Line 4, column 2."""
    path = tmp_path / "t.csv"
    path.write_text(f"config,time,instance\na,1,x\nb,2,x\na,{cell},y\nb,4,y\n", encoding="utf-8")
    with pytest.raises(TableError, match=r"^t\.csv, line 4, column 2: "):
        read_table(path)


def test_messages_stay_short_however_long_the_cell(tmp_path: Path) -> None:
    """A megabyte of text is not repeated in the complaint about it."""
    path = tmp_path / "t.csv"
    path.write_text(f"c,x\na,{'y' * (MIB - 10)}\n")
    with pytest.raises(TableError, match="line 2, column 2") as caught:
        read_table(path)
    assert len(str(caught.value)) < 500


# ---------------------------------------------------------------- pickles


def op(name: str) -> bytes:
    """An opcode of the pickle machine by name."""
    value: bytes = getattr(pickle, name)
    return value


def short_text(text: str) -> bytes:
    """A text of up to 255 bytes, as protocol 4 writes it."""
    return op("SHORT_BINUNICODE") + bytes([len(text)]) + text.encode()


class Caller:
    """Pickles into a call of a function."""

    def __init__(self, function: Callable[..., object], *arguments: object) -> None:
        self._call = function, arguments

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self._call


def living_payloads(marker: Path) -> dict[str, bytes]:
    """Pickles that would create the marker file if anything in them were called."""
    path = str(marker)
    touch = f"__import__('pathlib').Path({path!r}).touch()"
    global_eval = b"cbuiltins\neval\n"
    text = b"V" + touch.encode() + b"\n"
    binary = op("BINUNICODE") + len(touch).to_bytes(4, "little") + touch.encode()
    stack_global = short_text("builtins") + short_text("eval") + op("STACK_GLOBAL")
    as_list = op("EMPTY_DICT") + short_text("a") + op("EMPTY_LIST")
    call = global_eval + b"(" + text + b"tR"
    return {
        "global reduce": call + b".",
        "os system": b"cos\nsystem\n(Vtouch '" + path.encode() + b"'\ntR.",
        "inst": b"(" + text + b"ibuiltins\neval\n.",
        "obj": b"(" + global_eval + text + b"o.",
        "stack global": b"\x80\x04" + stack_global + binary + op("TUPLE1") + b"R.",
        "getattr chain": b"cpathlib\nPath\n(V" + path.encode() + b"\ntR(cbuiltins\ngetattr\n(cpathlib\nPath\nVtouch\n"
        b"tRcpathlib\nPath\n(V" + path.encode() + b"\ntRtR.",
        "newobj": b"\x80\x02cio\nFileIO\n(V"
        + path.encode()
        + b"\nVw\nt\x81cio\nFileIO\n(V"
        + path.encode()
        + b"\nVw\ntR.",
        "newobj_ex": b"\x80\x04"
        + short_text("io")
        + short_text("FileIO")
        + op("STACK_GLOBAL")
        + b")}"
        + b"\x92"
        + global_eval
        + b"("
        + text
        + b"tR.",
        "in a value": b"\x80\x04" + as_list + call + b"as.",
        "in a key": b"\x80\x04}" + call + b"]s.",
        "before the data": b"\x80\x04" + call + b"0" + as_list + b"G?\xf0\x00\x00\x00\x00\x00\x00as.",
        "build": b"\x80\x02ctypes\nSimpleNamespace\n)\x81}Vx\n" + call + b"sb.",
        "protocol 0": pickle.dumps(Caller(eval, touch), 0),
        "protocol 5": pickle.dumps({"a": [Caller(eval, touch)]}, 5),
        "exec": pickle.dumps(Caller(exec, touch), 4),
        "open": pickle.dumps(Caller(open, path, "w"), 4),
        "nested loads": pickle.dumps(Caller(pickle.loads, pickle.dumps(Caller(eval, touch)))),
    }


def still_payloads() -> dict[str, bytes]:
    """Pickles that ask for things data never needs, are damaged, or are far larger than they look."""
    return {
        "ext1": b"\x80\x02\x82\x01.",
        "ext2": b"\x80\x02\x83\x01\x01.",
        "ext4": b"\x80\x02\x84\x01\x01\x01\x01.",
        "persistent id": b"Psomewhere\n.",
        "binary persistent id": b"\x80\x02K\x01Q.",
        "next buffer": b"\x80\x05\x97.",
        "read-only buffer": b"\x80\x05]\x98.",
        "reduce of a list": b"](tR.",
        "reduce of a text": b"Veval\n(tR.",
        "build on a dictionary": b"}}V__class__\nVx\nsb.",
        "build on a list": b"]}V__setstate__\nVx\nsb.",
        "memo bomb": b"\x80\x02}r\xff\xff\xff\x7f.",
        "text memo bomb": b"}p2147483646\n.",
        "huge text": b"\x80\x04\x8d" + (1 << 40).to_bytes(8, "little") + b"x.",
        "huge bytes": b"\x80\x04\x8e" + (1 << 62).to_bytes(8, "little") + b"x.",
        "huge bytearray": b"\x80\x05\x96" + (1 << 40).to_bytes(8, "little") + b"x.",
        "huge integer": b"\x80\x02\x8b\xff\xff\xff\x7fx.",
        "huge frame": b"\x80\x04\x95" + (1 << 62).to_bytes(8, "little") + b"}.",
        "long decimal": b"}Va\n]I" + b"9" * 100_000 + b"\nas.",
        "deep nesting": b"]" * 200_000 + b"a" * 199_999 + b".",
        "deep tuples": b")" + b"\x85" * 200_000 + b".",
        "unfolding": b"\x80\x02]("
        + b"G?\xf0\x00\x00\x00\x00\x00\x00" * 1000
        + b"eq\x000}("
        + b"".join(b"M" + n.to_bytes(2, "little") + b"h\x00" for n in range(5000))
        + b"u.",
        "unfolding names": b"\x80\x02]("
        + b"K\x01" * 1000
        + b"eq\x000}("
        + b"".join(b"X\x04\x00\x00\x00%04dh\x00" % n for n in range(5000))
        + b"u.",
        "contains itself": b"}q\x00Va\nh\x00s.",
        "list of itself": b"}Va\n]q\x00h\x00as.",
        "complex": pickle.dumps({"a": [1j]}),
        "set": pickle.dumps({"a": {1.0}}),
        "range": pickle.dumps({"a": range(3)}),
        "path": pickle.dumps({"a": Path("x")}),
        "bytes of a pickle": pickle.dumps({"a": pickle.dumps([1.0])}),
        "trailing": pickle.dumps({"a": [1.0]}) + b"x",
        "cut off": pickle.dumps({"a": [1.0]})[:-2],
        "stack underflow": b"a.",
        "mark only": b"(.",
        "future protocol": b"\x80\xff}.",
        "empty": b"",
        "noise": bytes(range(256)),
        "gzip bomb": gzip.compress(bytes(20 * MIB)),
        "gzip": gzip.compress(pickle.dumps({"a": [1.0]})),
        "bz2": bz2.compress(pickle.dumps({"a": [1.0]})),
        "xz": lzma.compress(pickle.dumps({"a": [1.0]})),
    }


LIVING = sorted(living_payloads(Path("x")))
STILL = sorted(still_payloads())


def test_there_are_enough_payloads() -> None:
    """At least twenty-five pickles are tried."""
    assert len(LIVING) + len(STILL) >= 25


@pytest.mark.parametrize("name", LIVING)
def test_a_malicious_pickle_is_refused_and_nothing_happens(tmp_path: Path, name: str) -> None:
    """Even when pickles are allowed: a TableError, and no trace of a call."""
    marker = tmp_path / "marker"
    path = tmp_path / "t.pickle"
    path.write_bytes(living_payloads(marker)[name])
    with pytest.raises(TableError, match="refused"):
        read_table(path, unsafe_format="pickle")
    assert sorted(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["global reduce", "os system", "inst", "obj", "stack global", "protocol 5", "open"])
def test_the_payloads_are_alive(tmp_path: Path, name: str) -> None:
    """Teeth: Python's own reader would have been taken in."""
    marker = tmp_path / "marker"
    result = pickle.loads(living_payloads(marker)[name])
    if isinstance(result, io.IOBase):
        result.close()
    assert marker.exists()


@pytest.mark.parametrize("name", STILL)
def test_a_strange_pickle_is_refused(tmp_path: Path, name: str) -> None:
    """Damaged, oversized or exotic: a TableError in every case."""
    path = tmp_path / "t.pickle"
    path.write_bytes(still_payloads()[name])
    with pytest.raises(TableError, match=r"refused|compressed|stopped"):
        read_table(path, unsafe_format="pickle")


@pytest.mark.parametrize("name", ["memo bomb", "huge bytearray"])
def test_a_bomb_meets_the_memory_limit_of_the_child(tmp_path: Path, name: str) -> None:
    """The child gives up at two gibibytes; this process never sees the data."""
    path = tmp_path / "t.pickle"
    path.write_bytes(still_payloads()[name])
    with pytest.raises(TableError, match="needs more than 2147483648 bytes"):
        read_table(path, unsafe_format="pickle")


def test_a_list_that_unfolds_is_refused_before_it_does(tmp_path: Path) -> None:
    """Five million runtimes in a file of a few kilobytes are not written out."""
    path = tmp_path / "t.pickle"
    path.write_bytes(still_payloads()["unfolding names"])
    with pytest.raises(TableError, match="more than it has bytes"):
        read_table(path, unsafe_format="pickle")


# ---------------------------------------------------------------- NumPy files


def npy_file(header: str, data: bytes = b"", version: int = 1, length: int | None = None) -> bytes:
    """A .npy file with a header of our choice."""
    raw = header.encode("latin-1")
    declared = (len(raw) if length is None else length).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + declared + raw + data


GOOD = "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2), }"

CRAFTED: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "does not start like"),
    "text": (b"1,2,3\n4,5,6\n", "does not start like"),
    "magic only": (b"\x93NUMPY", "does not start like"),
    "version 3": (npy_file(GOOD, bytes(16), version=3), "version 3"),
    "version 0": (npy_file(GOOD, bytes(16), version=0), "version 0"),
    "cut in the header": (npy_file(GOOD)[:40], "inside its header"),
    "header of 4 GiB": (npy_file(GOOD, version=2, length=0xFFFFFFFF), "4294967295 bytes"),
    "header of 60 KB": (npy_file("[" * 60_000), "60000 bytes"),
    "deep header": (npy_file("[" * 4000), "expected descr"),
    "call in the header": (npy_file("__import__('os').getcwd()"), "expected descr"),
    "list as header": (npy_file("[1]"), "expected descr"),
    "unhashable key": (npy_file("{[]: 1}"), "expected descr"),
    "missing key": (npy_file("{'descr': '<f8', 'shape': (1, 2)}"), "expected descr"),
    "extra key": (npy_file(GOOD.replace("}", "'x': 1}")), "expected descr"),
    "objects": (npy_file(GOOD.replace("<f8", "|O"), pickle.dumps([1.0, 2.0])), "unpickled"),
    "structured": (npy_file(GOOD.replace("'<f8'", "[('a', '<f8')]"), bytes(16)), "expected numbers"),
    "structured by comma": (npy_file(GOOD.replace("<f8", "<f8,<f8"), bytes(32)), "expected numbers"),
    "strings": (npy_file(GOOD.replace("<f8", "<U4"), bytes(32)), "expected numbers"),
    "dates": (npy_file(GOOD.replace("<f8", "<M8[s]"), bytes(16)), "expected numbers"),
    "booleans": (npy_file(GOOD.replace("<f8", "|b1"), bytes(2)), "expected numbers"),
    "void": (npy_file(GOOD.replace("<f8", "|V8"), bytes(16)), "expected numbers"),
    "no such float": (npy_file(GOOD.replace("<f8", "<f3"), bytes(6)), "expected numbers"),
    "128 bits": (npy_file(GOOD.replace("<f8", "<f16"), bytes(32)), "expected numbers"),
    "type as number": (npy_file(GOOD.replace("'<f8'", "8"), bytes(16)), "expected numbers"),
    "order as number": (npy_file(GOOD.replace("False", "0"), bytes(16)), "fortran_order"),
    "negative shape": (npy_file(GOOD.replace("(1, 2)", "(-1, 2)"), bytes(16)), "expected a tuple of sizes"),
    "two negatives": (npy_file(GOOD.replace("(1, 2)", "(-1, -2)"), bytes(16)), "expected a tuple of sizes"),
    "shape as list": (npy_file(GOOD.replace("(1, 2)", "[1, 2]"), bytes(16)), "expected a tuple of sizes"),
    "shape of floats": (npy_file(GOOD.replace("(1, 2)", "(1.0, 2)"), bytes(16)), "expected a tuple of sizes"),
    "shape of booleans": (
        npy_file(GOOD.replace("(1, 2)", "(True, 2)"), bytes(16)),
        "expected a tuple of sizes",
    ),
    "huge shape": (
        npy_file(GOOD.replace("(1, 2)", "(99999999999, 2)"), bytes(16)),
        "expected a tuple of sizes",
    ),
    "overflowing shape": (
        npy_file(GOOD.replace("(1, 2)", "(1 , 2" + "0" * 60 + ")"), bytes(16)),
        "expected a tuple",
    ),
    "large shape": (npy_file(GOOD.replace("(1, 2)", "(100000000, 2)"), bytes(16)), "declares an array"),
    "nothing times much": (npy_file(GOOD.replace("(1, 2)", "(0, 100000000)")), "not empty"),
    "one dimension": (npy_file(GOOD.replace("(1, 2)", "(2,)"), bytes(16)), "two dimensions"),
    "three dimensions": (npy_file(GOOD.replace("(1, 2)", "(1, 1, 2)"), bytes(16)), "3 dimensions"),
    "forty dimensions": (npy_file(GOOD.replace("(1, 2)", "(" + "1, " * 40 + ")"), bytes(8)), "40 dimensions"),
    "too little data": (npy_file(GOOD, bytes(15)), "16 bytes, but 15 follow"),
    "too much data": (npy_file(GOOD, bytes(17)), "16 bytes, but 17 follow"),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_npy_header_is_refused(tmp_path: Path, name: str) -> None:
    """Everything the header declares is checked before an array is made."""
    raw, message = CRAFTED[name]
    path = tmp_path / "t.npy"
    path.write_bytes(raw)
    with pytest.raises(TableError, match=message):
        read_table(path)


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    """A zip archive in memory."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return stream.getvalue()


def test_crafted_archives_are_refused(tmp_path: Path) -> None:
    """Object arrays, foreign packing, doubled names, damaged data, and no archive at all."""
    good = npy_file(GOOD, np.ones(2).tobytes())
    path = tmp_path / "t.npz"
    path.write_bytes(zipped({"seconds.npy": good}))
    assert read_table(path, timeout=9).n_instances == 2
    stored = zipped({"seconds.npy": good})
    for raw, message in (
        (b"PK", "cannot be unpacked"),
        (zipped({}), "found the arrays nothing"),
        (zipped({"seconds": good, "seconds.npy": good}), "occurs twice"),
        (zipped({"seconds.npy": CRAFTED["objects"][0]}), "unpickled"),
        (zipped({"seconds.npy": good}, zipfile.ZIP_LZMA), "packed in a way"),
        (stored.replace(np.ones(1).tobytes(), np.zeros(1).tobytes(), 1), "cannot be unpacked"),
        (zipped({"../seconds.npy": good}), r"expected seconds"),
    ):
        path.write_bytes(raw)
        with pytest.raises(TableError, match=message):
            read_table(path)


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A high ratio is suspicious once the result is large; declared sizes are added up beforehand."""
    monkeypatch.setattr(npz, "_UNSUSPICIOUS", MIB)
    cells = MIB
    raw = npy_file(GOOD.replace("(1, 2)", f"(1, {cells})"), bytes(8 * cells))
    path = tmp_path / "t.npz"
    path.write_bytes(zipped({"seconds.npy": raw}, zipfile.ZIP_DEFLATED))
    with pytest.raises(TableError, match="would unpack to"):
        read_table(path)


# ---------------------------------------------------------------- ARFF


def steps(action: Callable[[], object]) -> int:
    """How many lines of Python an action executes, whether or not it ends in a refusal."""
    count = 0

    def trace(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    except (CaptimeError, CellError):
        pass
    finally:
        sys.settrace(before)
    return count


ARFF_LINES: dict[str, Callable[[int], str]] = {
    "nominal quotes": lambda n: "{" + "',"[:2] * n,
    "commas": lambda n: "'," + "," * n,
    "open quote": lambda n: "'" + "a" * n,
    "backslashes": lambda n: "'" + "\\" * n,
    "escaped quotes": lambda n: "'" + "\\'" * n,
    "quoted values": lambda n: "'a'," * n,
    "blanks": lambda n: "'a'" + " " * n + ",",
    "quote far away": lambda n: "'" + "\\a" * n + "'",
}


@pytest.mark.parametrize("name", ARFF_LINES)
def test_arff_lines_are_split_in_linear_time(name: str) -> None:
    """Twice the length takes about twice the steps; a quadratic reader would take four times as many."""
    make = ARFF_LINES[name]
    small = steps(lambda: split_values(make(2000), "here"))
    large = steps(lambda: split_values(make(4000), "here"))
    assert large <= 2.2 * small + 50


QUOTED_CSV: dict[str, Callable[[int], str]] = {
    "doubled quotes": lambda n: '"' * (2 * n),
    "odd quotes": lambda n: '"' * (2 * n + 1),
    "quoted cells": lambda n: '"a",' * n,
    "blanks": lambda n: '"a"' + " " * n,
    "commas": lambda n: '"",' + "," * n,
}


@pytest.mark.parametrize("name", QUOTED_CSV)
def test_csv_lines_are_split_in_linear_time(name: str) -> None:
    """The same claim for quoted CSV."""
    make = QUOTED_CSV[name]
    small = steps(lambda: split_record(make(2000), "here"))
    large = steps(lambda: split_record(make(4000), "here"))
    assert large <= 2.2 * small + 50


def test_a_megabyte_of_digits_is_a_number_or_refused() -> None:
    """Numbers are matched without backtracking, so length alone does no harm."""
    assert read_number("0" * MIB + "1") == 1.0
    for text in ("1" * MIB, "1" * MIB + "x", "." * MIB, "1e" * (MIB // 2), "1." + "1" * MIB + "e"):
        with pytest.raises(CellError):
            read_number(text)


HEAD = (
    "@relation r\n@attribute instance_id string\n@attribute repetition numeric\n@attribute algorithm string\n"
    "@attribute runtime numeric\n@attribute runstatus {ok,timeout}\n@data\n"
)
SCENARIO = "performance_measures: runtime\nperformance_type: runtime\nalgorithm_cutoff_time: 100\n"


def arff_folder(folder: Path, runs: bytes, description: bytes = SCENARIO.encode()) -> Path:
    """A scenario with raw bytes in its files."""
    (folder / "description.txt").write_bytes(description)
    (folder / "algorithm_runs.arff").write_bytes(runs)
    return folder


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        (b"", "no line @data"),
        (b"@data\n", "no @attribute"),
        (b"x,1,a,1,ok\n", "line 1: found 'x,1,a,1,ok' before @data"),
        (
            b"@relation r\n@attribute a {" + b"',"[:2] * 50_000 + b"\n",
            "line 2: the set of values is not closed",
        ),
        (b"@relation r\n@attribute a {" + b"',"[:2] * 50_001 + b"}\n", "line 2"),
        (b"@attribute\n", "line 1: found '@attribute'"),
        (b"@attribute a\n", "line 1: found '@attribute a'"),
        (b"@attribute 'a numeric\n", "line 1: the quote"),
        (b"@attribute a date\n", "line 1: found the type 'date'"),
        (b"@attribute a numeric\n@attribute a string\n", "line 2: the attribute 'a' occurs twice"),
        (b"".join(b"@attribute a%d numeric\n" % n for n in range(10_001)), "line 10001: more than 10000"),
        (HEAD.encode() + b"'x,1,a,1,ok\n", "line 8, value 1: the quote ' is not closed"),
        (HEAD.encode() + b'x,1,"a,1,ok\n', 'line 8, value 3: the quote " is not closed'),
        (HEAD.encode() + b"x,1,'a'b,1,ok\n", "line 8, value 3: found 'b' after the closing quote"),
        (HEAD.encode() + b"x,1,a\0,1,ok\n", "line 8, byte 6: found a NUL"),
        (HEAD.encode() + b"x,1,\xff,1,ok\n", "line 8, byte 5: found a byte that is not UTF-8"),
        (HEAD.encode() + b"x,1,a,1,ok\ry,1,a,1,ok\n", "line 8, byte 11: found a carriage return"),
        (HEAD.encode() + b"x" * (MIB + 1), "line 8: the line is longer"),
        (HEAD.encode() + b"," * 100_000 + b"\n", "line 8: found 100001 values; expected 5"),
        (HEAD.encode("utf-16"), "line 1, byte"),
    ],
)
def test_malicious_arff_is_refused_with_its_line(tmp_path: Path, runs: bytes, message: str) -> None:
    """Endless sets, a flood of attributes, open quotes, NUL, odd line ends and encodings."""
    with pytest.raises(TableError, match=message):
        read_table(arff_folder(tmp_path, runs))


def test_arff_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    """Some editors leave one; it does no harm. Mixed line ends occur in published scenarios."""
    runs = b"\xef\xbb\xbf" + HEAD.replace("\n", "\r\n", 3).encode() + b"x,1,a,1,ok\r\n"
    assert read_table(arff_folder(tmp_path, runs)).configs == ("a",)


def test_arff_cells_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit counts cells, and names the line that passes it."""
    monkeypatch.setattr(aslib, "MAX_CELLS", 10)
    runs = HEAD.encode() + b"x,1,a,1,ok\ny,1,a,1,ok\nz,1,a,1,ok\n"
    with pytest.raises(TableError, match="line 10: more than 10 cells"):
        read_table(arff_folder(tmp_path, runs))


# ---------------------------------------------------------------- CSV


def peak_of(action: Callable[[], object]) -> int:
    """Bytes allocated at the worst moment."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def diagonal(n: int) -> bytes:
    """A long form whose names multiply to far more cells than it has lines."""
    return b"config,instance,time\n" + b"".join(b"c%d,i%d,1\n" % (k, k) for k in range(n))


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"c,x\n" + b"," * (2 * MIB), "line 2: more than 1000000 cells"),
        (b"," * (33 * MIB), "line 1: the line is longer"),
        (b"a" * (33 * MIB), "line 1: the line is longer"),
        (b"c,x\na," + b"1" * (MIB + 1), "line 2, column 2: the cell is longer"),
        (b'c,x\na,"' + b'""' * (MIB + 1) + b'"\n', "line 2, column 2: the cell is longer"),
        (b'c,x\na,"' + b"\n" * 100_000, "line 2, column 2: the quote is not closed"),
        (b"c,x\na,1\0\n", "line 2, byte 4: found a NUL"),
        (b"c,x\na,\xff\n", "line 2, byte 3: found a byte that is not UTF-8"),
        (b"c,x\ra,1\r", "line 1, byte 4: found a carriage return"),
        ("c,x\na,1\n".encode("utf-16"), "line 1, byte"),
        (diagonal(30_000), "'c0' on instance 'i1' is missing .899970000 of 900000000"),
    ],
)
def test_a_csv_bomb_is_refused_in_little_memory(tmp_path: Path, raw: bytes, message: str) -> None:
    """Lines, cells and products of names are limited; the peak stays below 200 MB."""
    path = tmp_path / "t.csv"
    path.write_bytes(raw)

    def read() -> None:
        with pytest.raises(TableError, match=message):
            read_table(path)

    assert peak_of(read) < 200_000_000


def test_csv_rows_and_cells_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the line that passes the limit."""
    path = tmp_path / "t.csv"
    path.write_bytes(b"c,x\n" + b"".join(b"c%d,1\n" % n for n in range(20)))
    monkeypatch.setattr(csv, "MAX_CELLS", 10)
    with pytest.raises(TableError, match="line 7: more than 10 cells"):
        read_table(path)
    monkeypatch.setattr(csv, "MAX_ROWS", 3)
    with pytest.raises(TableError, match="line 5: more than 3 lines"):
        read_table(path)


# ---------------------------------------------------------------- any bytes at all


def read_or_refuse(name: str, raw: bytes) -> None:
    """Reading either gives a table or one of our errors; anything else is a failure."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(raw)
        with contextlib.suppress(CaptimeError):
            table = read_table(path)
            assert not np.isnan(table.seconds).any()
            assert (table.seconds >= 0).all()


CSV_PIECES = st.lists(
    st.sampled_from(
        [
            *"c,x1\n",
            "\r\n",
            "config,instance,runtime,status\n",
            "a,x,1,ok\n",
            '"',
            " ",
            "inf",
            "timeout",
            "-",
            "é",
            "\0",
        ]
    ),
    max_size=30,
).map(lambda pieces: "".join(pieces).encode())


@settings(max_examples=300, deadline=None)
@given(raw=st.binary(max_size=200) | CSV_PIECES)
@example(raw=b"\xef\xbb\xbf")
@example(raw=b'"')
def test_any_bytes_as_csv_are_read_or_refused(raw: bytes) -> None:
    """No traceback of another kind, whatever the file holds."""
    read_or_refuse("t.csv", raw)


ARFF_PIECES = st.lists(
    st.sampled_from(
        [HEAD, "x,1,a,1,ok\n", "@data\n", "@attribute ", "{", "}", "'", '"', "\\", ",", "?", "%", "\n", "a"]
    ),
    max_size=20,
).map(lambda pieces: "".join(pieces).encode())
DESCRIPTION_PIECES = st.lists(
    st.sampled_from([*SCENARIO.splitlines(keepends=True), "- ", "maximize:", " ", "[", "]", "'", "#", ":", "\n", "0"]),
    max_size=15,
).map(lambda pieces: "".join(pieces).encode())


@settings(max_examples=300, deadline=None)
@given(runs=st.binary(max_size=200) | ARFF_PIECES, description=st.just(SCENARIO.encode()) | DESCRIPTION_PIECES)
def test_any_bytes_as_arff_are_read_or_refused(runs: bytes, description: bytes) -> None:
    """The data file and the description alike."""
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(CaptimeError):
        read_table(arff_folder(Path(folder), runs, description))


def mutated(raw: bytes) -> st.SearchStrategy[bytes]:
    """A valid file with a few bytes changed, or cut off."""

    def change(edits: list[tuple[int, int]], end: int) -> bytes:
        changed = bytearray(raw)
        for place, value in edits:
            changed[place] = value
        return bytes(changed[:end])

    edit = st.tuples(st.integers(0, len(raw) - 1), st.integers(0, 255))
    return st.builds(change, st.lists(edit, max_size=5), st.just(len(raw)) | st.integers(0, len(raw)))


GOOD_NPY = npy_file(GOOD, np.array([1.0, 2.0]).tobytes())


@settings(max_examples=300, deadline=None)
@given(raw=st.binary(max_size=200) | mutated(GOOD_NPY) | st.text(max_size=80).map(lambda t: npy_file(ascii(t))))
def test_any_bytes_as_npy_are_read_or_refused(raw: bytes) -> None:
    """Noise, and valid files with flipped bytes."""
    read_or_refuse("t.npy", raw)


@settings(max_examples=300, deadline=None)
@given(raw=mutated(zipped({"seconds.npy": GOOD_NPY, "limit.npy": GOOD_NPY}, zipfile.ZIP_DEFLATED)))
def test_any_bytes_as_npz_are_read_or_refused(raw: bytes) -> None:
    """Archives with flipped bytes."""
    read_or_refuse("t.npz", raw)


def test_arff_rows_are_read_as_they_are_asked_for(tmp_path: Path) -> None:
    """The header is known before the rows are; a fault further down is met when it is reached."""
    arff_folder(tmp_path, HEAD.encode() + b"x,1,a,1,ok\nbroken\n")
    found = read_arff(tmp_path / "algorithm_runs.arff")
    assert found.attributes[0] == "instance_id"
    assert next(found.rows) == (8, ["x", "1", "a", "1", "ok"])
    with pytest.raises(TableError, match="line 9: found 1 values"):
        next(found.rows)
