"""Runtimes with their names in a NumPy `.npz` archive; also the format in which captime writes tables.

Arrays: `seconds` (or `runtimes`), configurations x instances; optional `configs`, `instances`, `limit`
(or `timeout`), `statuses` (words, shaped like the runtimes), `groups`, `name` and `notes`.
"""

import math
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.errors import TableError
from captime.sources.formats.cells import CellError, Ending, read_status
from captime.sources.formats.npy import NUMBERS, TEXT, as_runtimes, made_up, read_array
from captime.sources.locations import first_place, shown
from captime.sources.table import MAX_CELLS, RuntimeTable

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
