"""A disk that forgets: SQLite's files with everything written since the last synchronisation in doubt.

SQLite reaches its files through a table of functions. Inside `recorded()` the ones that write, shorten, synchronise and
delete are replaced by functions that also take notes. From the notes follows what the disk may hold after a power cut
at any moment: whatever was synchronised, and of the rest an arbitrary choice, sector by sector.
"""

import _sqlite3
import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Literal

SECTOR = 512
_pointer, _int, _long = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
# Names of files are pointers here: behind the end of a name SQLite keeps more, which a copy would not have.
_Open = ctypes.CFUNCTYPE(_int, _pointer, _pointer, _pointer, _int, _pointer)
_Delete = ctypes.CFUNCTYPE(_int, _pointer, _pointer, _int)
_Write = ctypes.CFUNCTYPE(_int, _pointer, _pointer, _int, _long)
_Truncate = ctypes.CFUNCTYPE(_int, _pointer, _long)
_Sync = ctypes.CFUNCTYPE(_int, _pointer, _int)


class _Methods(ctypes.Structure):
    """What SQLite calls to work with an open file; three versions, each with more at its end."""

    _fields_ = [
        ("version", _int),
        *[(name, _pointer) for name in ("close", "read", "write", "truncate", "sync", "size", "lock", "unlock")],
        *[(name, _pointer) for name in ("reserved", "control", "sector", "traits")],
        *[(name, _pointer) for name in ("shm_map", "shm_lock", "shm_barrier", "shm_unmap", "fetch", "unfetch")],
    ]


class _FileSystem(ctypes.Structure):
    """What SQLite calls to open and delete files."""

    _fields_ = [
        ("version", _int),
        ("file_bytes", _int),
        ("longest_path", _int),
        ("next", _pointer),
        ("name", ctypes.c_char_p),
        *[(name, _pointer) for name in ("data", "open", "delete")],
        *[(name, _pointer) for name in ("access", "full_path", "dl_open", "dl_error", "dl_sym", "dl_close")],
        *[(name, _pointer) for name in ("randomness", "sleep", "time", "last_error", "time_64")],
        *[(name, _pointer) for name in ("set_call", "get_call", "next_call")],
    ]


@dataclass(frozen=True, slots=True)
class Step:
    """Something that SQLite did.

    Attributes:
        what: `acknowledged` is our own: from here on a certain number of rows must never be lost.
        path: To which file.
        offset: Where it wrote; the new length of a file that was shortened; how many rows.
        data: What it wrote.
    """

    what: Literal["write", "truncate", "sync", "delete", "acknowledged"]
    path: Path = Path()
    offset: int = 0
    data: bytes = b""


@dataclass
class Notes:
    """Everything that was done to files since some moment.

    Attributes:
        before: What each file held then.
        steps: What was done.
    """

    before: dict[Path, bytes] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)

    def begin(self, folder: Path) -> None:
        """From now on; everything up to here is safe."""
        self.steps.clear()
        self.before = {path: path.read_bytes() for path in folder.iterdir() if not path.name.endswith(("-shm", "lock"))}

    def in_doubt(self, path: Path) -> list[Step]:
        """What was done to a file and not synchronised since."""
        doubtful: list[Step] = []
        for step in self.steps:
            if step.path == path and step.what == "sync":
                doubtful.clear()
            elif step.path == path:
                doubtful.append(step)
        return doubtful

    def acknowledge(self, rows: int) -> None:
        """Record that this many rows were acknowledged as safe."""
        self.steps.append(Step("acknowledged", offset=rows))

    def acknowledged(self, moment: int) -> int:
        """How many rows were known to be safe after this many steps."""
        return max((step.offset for step in self.steps[:moment] if step.what == "acknowledged"), default=0)

    def after_a_cut(self, moment: int, chance: Random, survives: float | None = None) -> dict[Path, bytes]:
        """What the disk may hold if the power fails after this many steps.

        Args:
            moment: How many.
            chance: Decides about what was not synchronised.
            survives: Which share of that survives; drawn if left out.
        """
        files = {path: bytearray(data) for path, data in self.before.items()}
        steps = self.steps[:moment]
        safe = {step.path: place for place, step in enumerate(steps) if step.what == "sync"}
        kept = chance.choice((0.0, 0.5, 0.9)) if survives is None else survives
        for place, step in enumerate(steps):
            if step.what == "delete":
                # SQLite synchronises the folder only where it must; so this may be lost, and the file is back.
                if place < len(steps) - 1 or chance.random() < kept:
                    files.pop(step.path, None)
                continue
            if step.what not in {"write", "truncate"}:
                continue
            content = files.setdefault(step.path, bytearray())
            certain = place < safe.get(step.path, -1)
            if step.what == "truncate":
                if certain or chance.random() < kept:
                    del content[step.offset :]
                continue
            for first in range(0, len(step.data), SECTOR):
                if certain or chance.random() < kept:
                    _put(content, step.offset + first, step.data[first : first + SECTOR])
        return {path: bytes(content) for path, content in files.items()}


def _put(content: bytearray, offset: int, data: bytes) -> None:
    content.extend(bytes(max(0, offset - len(content))))
    content[offset : offset + len(data)] = data


def _path(name: int) -> Path:
    return Path(ctypes.string_at(name).decode())


class _Recorder:
    """The file system of SQLite, with notes taken."""

    def __init__(self, plain: _FileSystem, notes: Notes) -> None:
        self._plain = plain
        self._notes = notes
        self._paths: dict[int, Path] = {}
        self._originals: dict[int, _Methods] = {}
        self._replaced: dict[int, tuple[_Methods, list[Any]]] = {}
        self._hooks = [_Open(self._opened), _Delete(self._deleted)]
        self.system = _FileSystem.from_buffer_copy(plain)
        self.system.name = b"with notes"
        self.system.open, self.system.delete = (ctypes.cast(each, _pointer).value for each in self._hooks)

    def _opened(self, system: int, name: int | None, file: int, flags: int, found: int) -> int:
        code = int(_Open(self._plain.open)(system, name, file, flags, found))
        methods = _pointer.from_address(file).value
        if code == 0 and methods is not None and name is not None:
            self._paths[file] = _path(name)
            if methods not in self._replaced:
                self._replaced[methods] = self._with_notes(_Methods.from_address(methods))
            _pointer.from_address(file).value = ctypes.addressof(self._replaced[methods][0])
        return code

    def _deleted(self, system: int, name: int, synchronise: int) -> int:
        code = int(_Delete(self._plain.delete)(system, name, synchronise))
        self._notes.steps.append(Step("delete", _path(name)))
        return code

    def _with_notes(self, plain: _Methods) -> tuple[_Methods, list[Any]]:
        write, truncate, sync = _Write(plain.write), _Truncate(plain.truncate), _Sync(plain.sync)

        def written(file: int, data: int, count: int, offset: int) -> int:
            self._notes.steps.append(Step("write", self._paths[file], offset, ctypes.string_at(data, count)))
            return int(write(file, data, count, offset))

        def shortened(file: int, length: int) -> int:
            self._notes.steps.append(Step("truncate", self._paths[file], length))
            return int(truncate(file, length))

        def synchronised(file: int, flags: int) -> int:
            code = int(sync(file, flags))
            self._notes.steps.append(Step("sync", self._paths[file]))
            return code

        hooks = [_Write(written), _Truncate(shortened), _Sync(synchronised)]
        changed = _Methods.from_buffer_copy(plain)
        changed.write, changed.truncate, changed.sync = (ctypes.cast(each, _pointer).value for each in hooks)
        return changed, hooks


@contextmanager
def recorded() -> Iterator[Notes]:
    """Notes of everything that connections opened inside do to their files."""
    library = ctypes.CDLL(_sqlite3.__file__)  # the very SQLite that Python uses
    library.sqlite3_vfs_find.restype = _pointer
    plain_at = library.sqlite3_vfs_find(None)
    notes = Notes()
    recorder = _Recorder(_FileSystem.from_address(plain_at), notes)
    library.sqlite3_vfs_register(ctypes.byref(recorder.system), 1)
    try:
        yield notes
    finally:
        library.sqlite3_vfs_unregister(ctypes.byref(recorder.system))
        library.sqlite3_vfs_register(_pointer(plain_at), 1)
