"""Runtimes in a NumPy `.npy` file: a row per configuration, a column per instance, names made up.

The header is read here rather than by NumPy, because everything it declares is checked against the size of
the file before a single array is made. Pickled objects are refused.
"""

import ast
import math
import re
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from captime.arrays import FloatArray
from captime.errors import TableError
from captime.sources.locations import shown
from captime.sources.table import MAX_CELLS, RuntimeTable

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
