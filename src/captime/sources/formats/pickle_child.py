"""Run as a script, alone in a small process: turns a pickled dictionary of runtimes into a `.npy` file.

Imports the standard library only. No name in the pickle is ever looked up, so nothing in it can be called.
The answer on standard output is JSON: `{"names": [...]}` or `{"error": "..."}`.
"""

import json
import pickle
import sys
from array import array
from pathlib import Path
from typing import BinaryIO, NoReturn

MEMORY_BYTES = 2 << 30
CPU_SECONDS = 300

# What a pickle that only holds data never needs while it is read. A second wall behind `find_class`.
_FORBIDDEN = (
    "import",
    "exec",
    "compile",
    "open",
    "os.",
    "subprocess.",
    "socket.",
    "ctypes.",
    "pickle.find_class",
)


class RefusedError(Exception):
    """The pickle is not plain data, or not the data we expect."""


class DataOnlyUnpickler(pickle.Unpickler):
    """Builds numbers, texts and containers; knows no class and no function."""

    def find_class(self, module_name: str, global_name: str, /) -> NoReturn:
        """Refuse every name."""
        wanted = f"{module_name}.{global_name}"[:100]
        if module_name.partition(".")[0] == "numpy":
            raise RefusedError(
                f"it holds NumPy objects ({wanted}), which need code to be rebuilt. Where it was written, "
                f"call tolist() on each array, or save the table with numpy.savez"
            )
        raise RefusedError(f"it asks for {wanted!r}, and nothing is looked up on behalf of a pickle")

    def persistent_load(self, pid: object, /) -> NoReturn:
        """Refuse every reference to something outside."""
        del pid
        raise RefusedError("it refers to an object outside the file")


def load(stream: BinaryIO) -> object:
    """Return the one object in the stream, made of plain values."""
    value: object = DataOnlyUnpickler(stream, encoding="utf-8").load()
    if stream.read(1):
        raise RefusedError("something follows the end of the pickle")
    return value


def checked_rows(value: object, size: int) -> list[tuple[str, "array[float]"]]:
    """Names with their runtimes, sorted by name.

    Args:
        value: What was unpickled.
        size: Bytes in the file. Every runtime takes at least one, unless the file refers to the same list
            many times to unfold into something huge.
    """
    if type(value) is not dict:
        raise RefusedError(f"it holds a {type(value).__name__}, not a dictionary")
    if not value:
        raise RefusedError("the dictionary is empty")
    named = sorted(((_name(key), runs) for key, runs in value.items()), key=lambda pair: pair[0])
    width = -1
    for name, runs in named:
        if type(runs) not in {list, tuple}:
            raise RefusedError(f"{name[:100]!r} holds a {type(runs).__name__}, not a list of runtimes")
        width = len(runs) if width < 0 else width
        if len(runs) != width:
            raise RefusedError(f"{name[:100]!r} has {len(runs)} runtimes, the first configuration has {width}")
    if width * len(named) > size:
        raise RefusedError(f"it would unfold into {width * len(named)} runtimes, more than it has bytes")
    return [(name, _numbers(name, runs)) for name, runs in named]


def _name(key: object) -> str:
    if type(key) is bytes:
        return key.decode()
    if type(key) is not str:
        raise RefusedError(f"a configuration is named by a {type(key).__name__}, not by text")
    return key


def _numbers(name: str, runs: "list[object] | tuple[object, ...]") -> "array[float]":
    """Return the runtimes; whole numbers are fine, truth values and gaps are not."""
    numbers = array("d")
    for position, run in enumerate(runs, start=1):
        if type(run) is not float and type(run) is not int:
            raise RefusedError(f"{name[:100]!r}, runtime {position}, is a {type(run).__name__}, not a number")
        try:
            numbers.append(run)
        except OverflowError:
            raise RefusedError(f"{name[:100]!r}, runtime {position}, is too large") from None
    return numbers


def write_npy(rows: list[tuple[str, "array[float]"]], stream: BinaryIO) -> None:
    """Configurations x instances, in the layout numpy.load expects."""
    order = "<" if sys.byteorder == "little" else ">"
    shape = (len(rows), len(rows[0][1]))
    header = f"{{'descr': '{order}f8', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    stream.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    stream.writelines(numbers.tobytes() for _, numbers in rows)


def limit_this_process() -> None:
    """Little memory, little time, no core dump; from here on none of the events that data never causes."""
    import resource  # noqa: PLC0415 (exists on POSIX only; the parent has checked)

    for kind, value in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (allowed, allowed))

    def refuse(event: str, _arguments: object) -> None:
        if event.startswith(_FORBIDDEN):
            raise RefusedError(f"it causes the event {event}")

    sys.addaudithook(refuse)


def main(source: str, target: str) -> dict[str, object]:
    """Read `source`, write `target`, and say how it went."""
    try:
        size = Path(source).stat().st_size
        with Path(source).open("rb") as incoming, Path(target).open("wb") as outgoing:
            limit_this_process()
            rows = checked_rows(load(incoming), size)
            write_npy(rows, outgoing)
    except RefusedError as flaw:
        return {"error": str(flaw)}
    except MemoryError:
        return {"error": f"it needs more than {MEMORY_BYTES} bytes of memory"}
    except Exception as flaw:  # noqa: BLE001 (a damaged pickle can raise almost anything; all of it means refused)
        return {"error": f"it is damaged ({type(flaw).__name__}: {str(flaw)[:200]})"}
    return {"names": [name for name, _ in rows]}


if __name__ == "__main__":
    # Escaped to ASCII, so that no name can depend on the encoding of a pipe.
    sys.stdout.write(json.dumps(main(sys.argv[1], sys.argv[2])))
