"""Tables in NumPy's own formats: .npy with the runtimes, .npz with names and timeouts beside them."""

import ast
import importlib.util
import json
import math
import re
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.errors import TableError
from captime.sources.formats.cells import CellError, Ending, read_status
from captime.sources.table import MAX_CELLS, RuntimeTable, first_place, shown

# Runtimes in a NumPy `.npy` file: a row per configuration, a column per instance, names made up.
#
# The header is read here rather than by NumPy, because everything it declares is checked against the size of the file
# before a single array is made. Pickled objects are refused.

NUMBERS = "fiu"
TEXT = "US"

_MAGIC = b"\x93NUMPY"
# NumPy writes 118 bytes for any plain array; this is what keeps literal_eval far from deep nesting.
_MAX_HEADER = 4096
_PLAIN_TYPE = re.compile(r"[<>|=]?([fiuUS])([0-9]{1,9})")


def read_npy(path: Path, timeout: float | None) -> RuntimeTable:
    """Read a two-dimensional array of seconds: configurations x instances."""
    with path.open("rb") as stream:
        matrix = as_runtimes(read_array(stream, path.stat().st_size, path.name, NUMBERS), path.name)
    n_configs, n_instances = matrix.shape
    return RuntimeTable.build(path.stem, made_up("c", n_configs), made_up("i", n_instances), matrix, timeout=timeout)


def made_up(letter: str, count: int) -> list[str]:
    """Names for what has none: c0, c1 and so on."""
    return [f"{letter}{number}" for number in range(count)]


def as_runtimes(array: npt.NDArray[Any], where: str) -> FloatArray:
    """Return the array as 64-bit seconds, if it is a table at all."""
    if array.ndim != 2 or 0 in array.shape:
        raise TableError(
            f"{where}: found an array of shape {array.shape}; expected two dimensions that are not empty, "
            f"configurations x instances"
        )
    if array.size > MAX_CELLS:
        raise TableError(f"{where}: found {array.size} cells; expected at most {MAX_CELLS}. Split the table.")
    return array.astype(np.float64, copy=False)


def read_array(stream: BinaryIO, size: int, where: str, kinds: str) -> npt.NDArray[Any]:
    """One array of plain numbers or plain text from a stream that holds exactly `size` bytes.

    Args:
        stream: Positioned at the start.
        size: Bytes in the file or archive member.
        where: For messages.
        kinds: Which NumPy type letters are acceptable.
    """
    header, used = _read_header(stream, where)
    dtype, order, shape = _checked_header(header, where, kinds)
    declared = math.prod(shape) * dtype.itemsize
    if declared != size - used:
        raise TableError(
            f"{where}: the header declares an array of shape {shape}, {declared} bytes, but {size - used} "
            f"follow; expected both to agree. The file is damaged or cut off."
        )
    data = stream.read(declared)
    if len(data) != declared:
        raise TableError(f"{where}: the file ends early; expected {declared} bytes of data, found {len(data)}")
    flat = np.frombuffer(data, dtype=dtype) if data else np.empty(0, dtype=dtype)
    return flat.reshape(shape, order="F" if order else "C")


def _read_header(stream: BinaryIO, where: str) -> tuple[str, int]:
    """Return the text of the header, and how many bytes it took."""
    start = stream.read(8)
    if len(start) < 8 or not start.startswith(_MAGIC):
        raise TableError(f"{where}: it does not start like a .npy file; expected one written by numpy.save")
    if start[6] not in {1, 2}:
        raise TableError(f"{where}: found .npy version {start[6]}; expected 1 or 2, as numpy.save writes numbers")
    width = 2 if start[6] == 1 else 4
    length = int.from_bytes(stream.read(width), "little")
    if length > _MAX_HEADER:
        raise TableError(f"{where}: the header has {length} bytes; expected at most {_MAX_HEADER}")
    header = stream.read(length)
    if len(header) < length:
        raise TableError(f"{where}: the file ends inside its header; it is cut off")
    return header.decode("latin-1"), 8 + width + length


def _checked_header(header: str, where: str, kinds: str) -> tuple[np.dtype[Any], bool, tuple[int, ...]]:
    try:
        # Literals only: nothing in the header can be called or looked up.
        fields = ast.literal_eval(header.strip())
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        fields = None
    if not isinstance(fields, dict) or set(fields) != {"descr", "fortran_order", "shape"}:
        raise TableError(f"{where}: the header is {shown(header.strip())}; expected descr, fortran_order and shape")
    shape, order = fields["shape"], fields["fortran_order"]
    if not isinstance(order, bool):
        raise TableError(f"{where}: fortran_order is {shown(order)}; expected True or False")
    if not isinstance(shape, tuple) or not all(type(side) is int and 0 <= side <= MAX_CELLS for side in shape):
        raise TableError(f"{where}: the shape is {shown(str(shape))}; expected a tuple of sizes from 0 to {MAX_CELLS}")
    if len(shape) > 2:
        raise TableError(f"{where}: the array has {len(shape)} dimensions; expected configurations x instances")
    return _plain_dtype(fields["descr"], where, kinds), order, shape


def _plain_dtype(descr: object, where: str, kinds: str) -> np.dtype[Any]:
    wanted = "numbers of at most 64 bits" if kinds == NUMBERS else "text"
    parts = _PLAIN_TYPE.fullmatch(descr) if isinstance(descr, str) else None
    if parts is None or parts[1] not in kinds:
        pickled = (
            " (Python objects, which would have to be unpickled)" if isinstance(descr, str) and "O" in descr else ""
        )
        raise TableError(
            f"{where}: it holds type {shown(str(descr))}{pickled}; expected {wanted}. Convert it with astype."
        )
    try:
        dtype = np.dtype(parts[0])
    except (TypeError, ValueError):
        dtype = np.dtype("V")
    if dtype.itemsize == 0 or (kinds == NUMBERS and dtype.itemsize > 8):
        raise TableError(f"{where}: it holds type {shown(descr)}; expected {wanted}. Convert it with astype.")
    return dtype


# Runtimes with their names in a NumPy `.npz` archive; also the format in which captime writes tables.
#
# Arrays: `seconds` (or `runtimes`), configurations x instances; optional `configs`, `instances`, `limit` (or
# `timeout`), `statuses` (words, shaped like the runtimes), `groups`, `name` and `notes`.

_KINDS = {
    "seconds": NUMBERS,
    "runtimes": NUMBERS,
    "configs": TEXT,
    "instances": TEXT,
    "limit": NUMBERS,
    "timeout": NUMBERS,
    "statuses": TEXT,
    "groups": "iu",
    "name": TEXT,
    "notes": TEXT,
}
_SYNONYMS = (("seconds", "runtimes"), ("limit", "timeout"))
_MAX_BYTES = 8 * MAX_CELLS
# Runtimes cut at a timeout compress well, so a high ratio alone is no crime; with a large size it is.
_MAX_RATIO, _UNSUSPICIOUS = 100, 256 << 20

_Arrays = dict[str, npt.NDArray[Any]]


def read_npz(path: Path, timeout: float | None) -> RuntimeTable:
    """Read an archive of plain arrays; arrays of objects are refused."""
    arrays, notes = _read_arrays(path)
    seconds, capped = as_runtimes(arrays["seconds"], f"{path.name}, array seconds"), None
    n_configs, n_instances = seconds.shape
    if "statuses" in arrays:
        seconds, capped = _apply_statuses(seconds, arrays["statuses"], path.name)
    stored = _texts(arrays, "notes", path.name) or []
    return RuntimeTable.build(
        _scalar_text(arrays, path),
        _texts(arrays, "configs", path.name) or made_up("c", n_configs),
        _texts(arrays, "instances", path.name) or made_up("i", n_instances),
        seconds,
        timeout=timeout,
        recorded_limit=_scalar_number(arrays, path.name),
        capped=capped,
        groups=_groups(arrays),
        notes=[*stored, *(note for note in notes if note not in stored)],
    )


def write_npz(table: RuntimeTable, path: Path) -> None:
    """Write a table so that `read_npz` gives back every field exactly."""
    with path.open("wb") as stream:
        np.savez(
            stream,
            seconds=table.seconds,
            configs=np.array(table.configs, dtype=np.str_),
            instances=np.array(table.instances, dtype=np.str_),
            limit=np.float64(table.limit),
            groups=table.groups,
            name=np.array(table.name, dtype=np.str_),
            notes=np.array(table.notes, dtype=np.str_),
        )


def _read_arrays(path: Path) -> tuple[_Arrays, list[str]]:
    """Return the known arrays by their first name, and a note about the others."""
    arrays: _Arrays = {}
    try:
        with zipfile.ZipFile(path) as archive:
            members = _checked_members(archive, path)
            for key in sorted(members.keys() & _KINDS.keys()):
                info = members[key]
                with archive.open(info) as stream:
                    where = f"{path.name}, array {key}"
                    # ZipExtFile is a binary stream in all but its declared type.
                    arrays[key] = read_array(stream, info.file_size, where, _KINDS[key])  # type: ignore[arg-type]
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        RuntimeError,  # an encrypted member
        ValueError,
    ) as flaw:
        raise TableError(
            f"{path.name}: it cannot be unpacked ({shown(str(flaw))}); expected a .npz file as numpy.savez writes it"
        ) from None
    for first, second in _SYNONYMS:
        if second in arrays:
            if first in arrays:
                raise TableError(f"{path.name}: it holds both {first} and {second}; expected one of them")
            arrays[first] = arrays.pop(second)
    if "seconds" not in arrays:
        found = ", ".join(sorted(map(shown, members))[:10]) or "nothing"
        raise TableError(f"{path.name}: found the arrays {found}; expected seconds (or runtimes). Rename the array.")
    unused = sorted(map(shown, members.keys() - _KINDS.keys()))
    return arrays, [f"arrays not used: {', '.join(unused[:5])}"] if unused else []


def _checked_members(archive: zipfile.ZipFile, path: Path) -> dict[str, zipfile.ZipInfo]:
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        key = info.filename.removesuffix(".npy")
        if key in members:
            raise TableError(f"{path.name}: the array {shown(key)} occurs twice; expected each name once")
        if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            raise TableError(f"{path.name}: the array {shown(key)} is packed in a way that numpy.savez never uses")
        members[key] = info
    total = sum(info.file_size for key, info in members.items() if key in _KINDS)
    packed = max(1, path.stat().st_size)
    if total > _MAX_BYTES or (total > _UNSUSPICIOUS and total > _MAX_RATIO * packed):
        raise TableError(
            f"{path.name}: its {packed} bytes would unpack to {total}; expected at most {_MAX_BYTES}, and no "
            f"more than {_MAX_RATIO} times the file. If the table is really yours, save it with numpy.savez, "
            f"uncompressed."
        )
    return members


def _texts(arrays: _Arrays, key: str, where: str) -> list[str] | None:
    if key not in arrays:
        return None
    array = arrays[key]
    if array.ndim != 1:
        raise TableError(f"{where}, array {key}: found {array.ndim} dimensions; expected a list of names")
    return _decoded(array, f"{where}, array {key}")


def _decoded(array: npt.NDArray[Any], where: str) -> list[str]:
    try:
        return [item.decode() if isinstance(item, bytes) else str(item) for item in array.ravel().tolist()]
    except ValueError:
        raise TableError(f"{where}: a name is not valid text; expected Unicode, or UTF-8 bytes") from None


def _scalar_text(arrays: _Arrays, path: Path) -> str:
    if "name" not in arrays:
        return path.stem
    if arrays["name"].size != 1:
        raise TableError(f"{path.name}, array name: found {arrays['name'].size} texts; expected one")
    return _decoded(arrays["name"], f"{path.name}, array name")[0]


def _scalar_number(arrays: _Arrays, where: str) -> float | None:
    if "limit" not in arrays:
        return None
    if arrays["limit"].size != 1 or math.isnan(arrays["limit"].item()):
        raise TableError(f"{where}, array limit: expected one number of seconds above 0, or inf for no timeout")
    return float(arrays["limit"].item())


def _groups(arrays: _Arrays) -> IntArray | None:
    return arrays["groups"].astype(np.int64) if "groups" in arrays else None


def _apply_statuses(matrix: FloatArray, words: npt.NDArray[Any], where: str) -> tuple[FloatArray, BoolArray]:
    """Runtimes and timed-out marks; the time of a run that never finishes is ignored."""
    if words.shape != matrix.shape:
        raise TableError(
            f"{where}, array statuses: found shape {words.shape}; expected {matrix.shape}, like the runtimes"
        )
    endings = np.empty(matrix.shape, dtype=np.int8)
    order = list(Ending)
    for word in _distinct(words, where):
        raw = word.encode() if words.dtype.kind == "S" else word
        here = words == raw
        try:
            endings[here] = order.index(read_status(word))
        except CellError as flaw:
            config, instance = divmod(int(np.argmax(here)), here.shape[1])
            raise flaw.at(f"{where}, array statuses, row {config + 1}, column {instance + 1}") from None
    finished = order.index(Ending.FINISHED)
    endless = first_place(lambda end, run: (end == finished) & np.isinf(run), endings, matrix)
    if endless is not None:
        config, instance = endless
        raise TableError(
            f"{where}, row {config + 1}, column {instance + 1}: the status says finished, the runtime says "
            f"inf; expected a time in seconds. Correct one of them."
        )
    never = endings == order.index(Ending.NEVER)
    capped: BoolArray = endings == order.index(Ending.TIMED_OUT)
    # A missing time is acceptable exactly where the run has none.
    known = np.where(never | (capped & np.isnan(matrix)), np.inf, matrix)
    return known, capped


def _distinct(words: npt.NDArray[Any], where: str) -> Iterable[str]:
    return _decoded(np.unique(words), f"{where}, array statuses")


# Runtimes in a pickle: a dictionary from configuration to a list of runtimes, like the minisat data.
#
# A pickle is a program. It is run by a reader that can look up no name and so can call nothing, in a process of its
# own with little memory and no environment; what comes back is plain numbers. Even so it is read only when asked for.

# The processor limit of the child is what ends a long read; this one is for a child that waits for nothing.
_WALL_SECONDS = 900
_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"PK\x03\x04")


def read_pickle(path: Path, timeout: float | None) -> RuntimeTable:
    """Read a pickled dictionary of runtimes; configurations are sorted by name, instances are numbered."""
    with path.open("rb") as stream:
        if stream.read(6).startswith(_COMPRESSED):
            raise TableError(f"{path.name}: the pickle is compressed; expected a plain one. Unpack it first.")
    if importlib.util.find_spec("resource") is None:
        raise TableError(
            f"{path.name}: this system cannot limit a process, so pickles are not read here; expected "
            f"another format. Convert the table to .npz or .csv."
        )
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "seconds.npy"
        names = _run_child(path, result)
        with result.open("rb") as stream:
            matrix = as_runtimes(read_array(stream, result.stat().st_size, path.name, NUMBERS), path.name)
    return RuntimeTable.build(path.stem, names, made_up("i", matrix.shape[1]), matrix, timeout=timeout)


def _run_child(path: Path, result: Path) -> list[str]:
    """Let the child read; the names of the configurations in order, or the reason why not."""
    child = Path(__file__).with_name("pickle_child.py")
    # -I and -S: no user paths, no installed packages, nothing but the standard library to be found at all.
    command = [sys.executable, "-I", "-S", str(child), str(path.resolve()), str(result)]
    try:
        done = subprocess.run(  # noqa: S603 (our own interpreter and script; the file is an argument, never a command)
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_WALL_SECONDS,
            check=False,
            cwd=result.parent,
            env={},
        )
        answer = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise TableError(f"{path.name}: reading the pickle took more than {_WALL_SECONDS} s and was stopped") from None
    except ValueError:
        raise TableError(
            f"{path.name}: the reader was stopped before it could answer (exit code {done.returncode}): "
            f"the pickle needs more than 2 GiB of memory or 300 s. Convert the table to .npz where it was "
            f"written."
        ) from None
    if "error" in answer:
        raise TableError(
            f"{path.name}: the pickle was refused: {answer['error']}. Expected a dictionary from "
            f"configuration to a list of runtimes, made of plain Python values only."
        )
    names = answer["names"]
    if not all(isinstance(name, str) for name in names):
        raise TableError(f"{path.name}: found the names {shown(str(names))}; expected text")
    return list(names)
