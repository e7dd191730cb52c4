"""Runtimes in a pickle: a dictionary from configuration to a list of runtimes, like the minisat data.

A pickle is a program. It is run by a reader that can look up no name and so can call nothing, in a process
of its own with little memory and no environment; what comes back is plain numbers. Even so it is read only
when asked for.
"""

import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from captime.errors import TableError
from captime.sources.formats.npz import NUMBERS, as_runtimes, made_up, read_array
from captime.sources.table import RuntimeTable, shown

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
