"""Open the file of a ledger: which file systems hold one, how SQLite is set up, and what its errors mean to a user."""

import os
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Literal, Self
from urllib.parse import quote

from captime.errors import InvariantViolated, LedgerDamaged, LedgerError, LedgerLocked, ScenarioError, StorageTrouble
from captime.ledger.schema import APPLICATION_ID, TABLES, VERSION

# What SQLite complains about, in our words: whose turn is it to act?

_STORAGE = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "the disk reports an error",
    sqlite3.SQLITE_READONLY: "it cannot be written to",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_BUSY: "another process keeps it locked",
    sqlite3.SQLITE_LOCKED: "another process keeps it locked",
    sqlite3.SQLITE_PERM: "permission was denied",
    sqlite3.SQLITE_AUTH: "permission was denied",
    sqlite3.SQLITE_NOMEM: "there is not enough memory",
    sqlite3.SQLITE_PROTOCOL: "its locks do not work on this file system",
    sqlite3.SQLITE_INTERRUPT: "it took longer than was allowed",
    sqlite3.SQLITE_NOLFS: "it is too large for this file system",
}
_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_SCHEMA, sqlite3.SQLITE_ERROR}


def salvage_advice(path: Path) -> str:
    """Return what to do about a damaged ledger."""
    return f"Keep the file as it is; `captime salvage {path} -o NEW` copies what is still whole"


def translated_error(error: sqlite3.Error, path: Path, doing: str) -> LedgerError | InvariantViolated:
    """Return the error of ours that says the same."""
    # Complaints of Python's own module carry no code.
    extended = getattr(error, "sqlite_errorcode", None)
    code = None if extended is None else extended & 0xFF
    where = f"ledger {path}: while {doing}"
    if code in _STORAGE:
        kind = LedgerLocked if code in _LOCKED else StorageTrouble
        return kind(
            f"{where}, {_STORAGE[code]} ({error}). Nothing false was written; make room or let go of the file, then "
            "run the same command again"
        )
    # Without a code: text that is not text. SQLite hands out whatever stands in a damaged page.
    if code in _DAMAGE or (code is None and isinstance(error, sqlite3.OperationalError)):
        return LedgerDamaged(
            f"{where}, SQLite found that the file is damaged or not a ledger ({error})", salvage_advice(path)
        )
    return InvariantViolated(f"{where}: {error}")


@contextmanager
def damage_reported(path: Path) -> Iterator[None]:
    """Rows are read in here as what they were written as; a damaged page may hold anything else."""
    try:
        yield
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
        raise LedgerDamaged(
            f"{path}: a row cannot be read as what it was written as ({error})", salvage_advice(path)
        ) from error


@contextmanager
def errors_translated(path: Path, doing: str) -> Iterator[None]:
    """Whatever SQLite or the file system complains about in here comes out as an error of ours."""
    try:
        yield
    except sqlite3.Error as error:
        raise translated_error(error, path, doing) from error
    except UnicodeDecodeError as error:
        # Python cannot even read the complaint, because it quotes a damaged page.
        raise LedgerDamaged(
            f"ledger {path}: while {doing}, text was found that is none; the file is damaged", salvage_advice(path)
        ) from error
    except OSError as error:
        raise StorageTrouble(
            f"ledger {path}: while {doing}, the system said: {error.strerror or error}. Nothing false was written; put "
            "it right, then run the same command again"
        ) from error


# Where a ledger may live: not where SQLite's locks are known to fail; and how a new file is made to stay.

# Kinds of file systems on which memory is not shared between machines, or locks are not to be trusted.
# fmt: off
_NETWORK = {
    "9p", "afs", "beegfs", "ceph", "cifs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2",
    "orangefs", "panfs", "pvfs2", "smb2", "smb3", "smbfs", "virtiofs", "webdav",
}
# fmt: on
_MOUNTS = Path("/proc/self/mountinfo")
# The writers' race in WAL mode is mended in these versions and all later ones of their line.
_MENDED = ((3, 44, 6), (3, 50, 7), (3, 51, 3))


def file_system(directory: Path, mounts: str | None = None) -> str:
    """Return what kind of file system a directory is on, such as `ext4` or `nfs4`; empty if the system does not tell.

    Args:
        directory: An existing directory.
        mounts: The system's list of mounts; read from the system if left out.
    """
    if mounts is None:
        try:
            mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return ""
    place, best, kind = str(directory.resolve()), -1, ""
    for line in mounts.splitlines():
        # 36 35 98:0 /root /mount/point options … - type source options; blanks in names are \040.
        front, _, back = line.partition(" - ")
        fields = front.split()
        if len(fields) < 5 or not back:
            continue
        mounted = fields[4].encode("utf-8", "surrogateescape").decode("unicode_escape")
        inside = place == mounted or place.startswith(mounted.rstrip("/") + "/")
        # Of two mounts on one place, the later one is in front.
        if inside and len(mounted) >= best:
            best, kind = len(mounted), back.split()[0]
    return kind


def is_network(kind: str) -> bool:
    """Return whether SQLite's shared memory cannot be trusted on this kind of file system."""
    return kind in _NETWORK or kind == "fuse" or kind.startswith("fuse.")


def check_filesystem(ledger: Path, *, network: bool) -> None:
    """Refuse a ledger on a network file system, unless the slower way of writing was asked for."""
    kind = file_system(ledger.parent)
    if is_network(kind) and not network:
        raise StorageTrouble(
            f"{ledger} would be on a network file system ({kind}), where SQLite's write-ahead log can lose rows. Put "
            "the ledger on a local disk and back it up to this one"
        )


def sync_directory(directory: Path) -> None:
    """Make the names of new files in a directory survive a power cut."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_writable(ledger: Path) -> None:
    """Refuse before anything is started if nothing can be written beside the ledger."""
    with errors_translated(ledger, "looking at its directory"):
        ledger.parent.stat()
    if not os.access(ledger.parent, os.W_OK | os.X_OK):
        raise StorageTrouble(f"{ledger}: its directory cannot be written to; choose another one, or change its mode")


def sqlite_note(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> str | None:
    """Return what there is to say about this SQLite; None if nothing.

    Args:
        version: As `sqlite3.sqlite_version_info`.
    """
    mended = version >= _MENDED[-1] or any(version[:2] == line[:2] and version >= line for line in _MENDED)
    if mended:
        return None
    told = ".".join(map(str, version))
    return (
        f"SQLite {told} has a rare race between two writers (fixed in 3.44.6, 3.50.7 and 3.51.3). captime has exactly "
        "one writer and opens everything else read-only, so it cannot happen here; do not write to a ledger yourself"
    )


def full_sync() -> bool:
    """Return whether this system needs to be told to empty the disk's own cache too."""
    return sys.platform == "darwin"


# How a ledger's file is opened: one connection that writes, any number that only read.

BUSY_SECONDS = 5.0
"""How long to wait for another process's lock."""

_MAGIC = b"SQLite format 3\x00"
_HEADER = 100
_BETWEEN_LOOKS = 0.05
_TRIES = 20
_CANNOT_WRITE = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
_CACHE_KIB = 32 * 1024
# Pages of 4 KiB after which the write-ahead log is brought into the file: 4 MB.
_CHECKPOINT_PAGES = 1000
_LOG_KEPT_BYTES = 16 << 20


def writer(
    path: Path, *, network: bool = False, patience: float = BUSY_SECONDS, new: bool = False
) -> sqlite3.Connection:
    """Return the one connection that writes.

    Args:
        path: The file.
        network: Do without shared memory: slower, and readers have to wait meanwhile.
        patience: How long to wait for another process's lock, in seconds.
        new: Make the file.
    """
    connection = _connect(path, "rwc" if new else "rw", patience)
    try:
        if network:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        _set_journal(connection, path, "delete" if network else "wal")
        connection.execute(f"PRAGMA synchronous = {'EXTRA' if network else 'FULL'}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        # A log that a reader has kept from being emptied becomes small again when that reader is gone.
        connection.execute(f"PRAGMA journal_size_limit = {_LOG_KEPT_BYTES}")
        if full_sync():
            connection.execute("PRAGMA fullfsync = ON")
            connection.execute("PRAGMA checkpoint_fullfsync = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _set_journal(connection: sqlite3.Connection, path: Path, wanted: str) -> None:
    found = connection.execute(f"PRAGMA journal_mode = {wanted}").fetchone()[0]
    if found != wanted:
        raise StorageTrouble(f"{path}: SQLite cannot use the journal it needs here ({found}); choose another place")


def reader(path: Path, patience: float = BUSY_SECONDS) -> sqlite3.Connection:
    """Return a connection that can do no harm. It neither blocks the writer nor is blocked by it."""
    check_is_ledger_file(path)
    with errors_translated(path, "opening it"):
        try:
            connection = _connected_or_put_back(path, patience)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in _CANNOT_WRITE:
                raise
            # In a directory that cannot be written to, SQLite cannot make its shared memory. If there is no
            # write-ahead log, there is no writer, and the file can be read as it lies.
            if has_log(path):
                connection = _connected_to_copy(path, patience)
            else:
                connection = _connected_to_read(path, "ro&immutable=1", patience)
    connection.execute("PRAGMA query_only = ON")
    return connection


def _connected_or_put_back(path: Path, patience: float) -> sqlite3.Connection:
    try:
        return _connected_to_read(path, "ro", patience)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_READONLY or not _journal_path(path).exists():
            raise
    _put_back(path, patience)
    return _connected_to_read(path, "ro", patience)


def _connected_to_copy(path: Path, patience: float) -> sqlite3.Connection:
    """Read a copy of a ledger that was not closed and lies where SQLite cannot write what it needs for reading.

    The copy has no name any more when this returns; it is gone when the connection is closed.
    """
    for _ in range(_TRIES):
        with tempfile.TemporaryDirectory(prefix="captime-reading-") as folder:
            before = _looks(path)
            for each in _files_of(path):
                shutil.copyfile(each, Path(folder, each.name))
            if _looks(path) == before:
                return _connected_to_read(Path(folder, path.name), "rw", patience)
        # Another machine is writing to it just now.
        time.sleep(_BETWEEN_LOOKS)
    raise StorageTrouble(
        f"{path} is being written and its folder cannot be written to from here, so that it cannot be read meanwhile. "
        "Read it where it is written, or copy it with `captime backup` there"
    )


def _files_of(path: Path) -> list[Path]:
    return [each for each in (path, log_path(path), _journal_path(path)) if each.exists()]


def _looks(path: Path) -> list[tuple[int, int]]:
    return [(found.st_size, found.st_mtime_ns) for found in (each.stat() for each in _files_of(path))]


def _connected_to_read(path: Path, mode: str, patience: float) -> sqlite3.Connection:
    """Return a connection that has read something: only then does SQLite look at what lies beside the file."""
    connection = _connect(path, mode, patience)
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _put_back(path: Path, patience: float) -> None:
    """Undo the change that was being made when the process was killed or the power failed.

    A ledger that is opened or closed changes from one kind of journal to the other: a change of the file itself, with
    the pages as they were in a file beside it. SQLite puts them back when it may write; if a writer is at work, it
    knows and leaves them.
    """
    _connected_to_read(path, "rw", patience).close()


def lenient_reader(path: Path) -> sqlite3.Connection:
    """Return a connection that reads as much as it can of a damaged file."""
    with errors_translated(path, "opening it"):
        if not path.is_file():
            raise ScenarioError(f"there is no ledger {path}; check the name")
        _header(path)
        try:
            connection = _connect(path, "ro", BUSY_SECONDS)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in _CANNOT_WRITE or not has_log(path):
                raise
            connection = _connected_to_copy(path, BUSY_SECONDS)
        # Otherwise SQLite refuses a file that is shorter than it says of itself. Nothing can be written anyway.
        connection.execute("PRAGMA writable_schema = ON")
    return connection


def _connect(path: Path, mode: str, patience: float) -> sqlite3.Connection:
    uri = f"file:{quote(os.fsencode(path.absolute()))}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=patience)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA mmap_size = 0")
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    return connection


def log_path(path: Path) -> Path:
    """Where SQLite keeps what is not in the file yet."""
    return path.with_name(path.name + "-wal")


def _journal_path(path: Path) -> Path:
    """Where SQLite keeps pages as they were, while it changes the file itself."""
    return path.with_name(path.name + "-journal")


def has_log(path: Path) -> bool:
    """Return whether there is more to the ledger than the file itself: rows to come into it, or pages to put back."""
    for other in (log_path(path), _journal_path(path)):
        try:
            if other.stat().st_size > 0:
                return True
        except OSError:
            continue
    return False


def left_open(path: Path) -> bool:
    """Return whether the file itself says that it is in use: true from opening until it is closed in good order."""
    with path.open("rb") as file:
        return file.read(20)[18:20] == b"\x02\x02"


def check_is_ledger_file(path: Path) -> None:
    """Refuse what is no ledger, or a ledger whose end is missing, before SQLite makes its own sense of it."""
    size, told = _sizes(path)
    if size != told and not has_log(path):
        # Perhaps its writer has closed it between two of these looks.
        time.sleep(_BETWEEN_LOOKS)
        size, told = _sizes(path)
        if size != told and not has_log(path):
            raise LedgerDamaged(
                f"{path} was cut: it has {size:,} bytes, but says of itself that it has {told:,}", salvage_advice(path)
            )


def _sizes(path: Path) -> tuple[int, int]:
    """Return how many bytes a file has, and how many it says it has."""
    with errors_translated(path, "looking at it"):
        if not path.is_file():
            raise ScenarioError(f"there is no ledger {path}; check the name")
        size = path.stat().st_size
        header = _header(path)
    if len(header) < _HEADER or not header.startswith(_MAGIC):
        raise LedgerDamaged(
            f"{path} is not a ledger any more: its beginning is missing or was overwritten ({size:,} bytes). Keep the "
            "file as it is, and continue with a backup if there is one"
        )
    page = int.from_bytes(header[16:18], "big")
    # The format writes 1 for 65,536, which does not fit.
    return size, (65536 if page == 1 else page) * int.from_bytes(header[28:32], "big")


def _header(path: Path) -> bytes:
    """Return the first bytes of a file that is a ledger, or was one; any other is refused.

    A damaged ledger and a file that never was one ask different things of people. What tells them apart are SQLite's
    first words, as far as the file goes; where they were overwritten, our own mark behind them or a log beside the
    file, and zeros, which a power cut leaves and no writer writes.
    """
    with path.open("rb") as file:
        header = file.read(_HEADER)
    begins_well = _MAGIC.startswith(header[: len(_MAGIC)])
    if begins_well or header[68:72] == APPLICATION_ID.to_bytes(4, "big") or not header.strip(b"\0") or has_log(path):
        return header
    beside = path.with_suffix(".ledger")
    meant = f"; did you mean {beside}?" if beside != path and beside.is_file() else "; check the name"
    raise ScenarioError(
        f"{path} is no ledger of captime, but a file of another kind. Expected one that captime run has written{meant}"
    )


def check_schema(connection: sqlite3.Connection, path: Path) -> int:
    """Refuse an SQLite file that is not a ledger, or a ledger of a newer captime; return the version of its tables."""
    with errors_translated(path, "reading what tables it has"):
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        found = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        made_by, said = _told_by_first_row(connection)
    missing = [table.name for table in TABLES if table.name not in found and table.since <= max(version, 1)]
    # Without any tables it may be all that is left of a ledger.
    if application != APPLICATION_ID and found and len(missing) == len(TABLES):
        raise ScenarioError(
            f"{path} is an SQLite file, but not a ledger of captime. Expected one that captime run has written; check "
            "the name"
        )
    if application != APPLICATION_ID:
        raise LedgerDamaged(f"{path} does not have the mark of a ledger of captime: it was cut or changed")
    if said not in (None, version):
        raise LedgerDamaged(
            f"{path} says of itself that its tables have version {version}, but was made with version {said}: it was "
            "changed"
        )
    if version > VERSION:
        raise ScenarioError(
            f"{path} was made by a newer captime{made_by}: its tables have version {version}, and this captime knows "
            f"them up to version {VERSION}. Nothing is wrong with it; install that captime or a later one to use it"
        )
    if version < 1:
        raise LedgerDamaged(f"{path} does not say which version its tables have: it was cut or changed")
    if missing:
        raise LedgerDamaged(f"{path} has no table {missing[0]}: it is damaged, or was not made by captime")
    return version


def _told_by_first_row(connection: sqlite3.Connection) -> tuple[str, int | None]:
    """Return which captime made a ledger, in brackets, and with which version of the tables, if that can be read."""
    try:
        found = connection.execute("SELECT captime_version, schema_version FROM campaign ORDER BY seq").fetchone()
    except (sqlite3.Error, UnicodeDecodeError):
        found = None
    return ("", None) if found is None else (f" ({found[0]})", found[1])


# For whatever has to be closed: `with` closes it, whatever happens inside.


class Closing(ABC):
    """Something with a `close` that may be used in a `with` statement."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what is held."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


# Named places at which a test can have the process killed, as hard as a power cut: for fault injection only.
#
# `CAPTIME_CRASH_AT="row-committed:after:3"` sends SIGKILL to this process when it has reached "after row-committed"
# for the third time. The variable is read once, when this module is imported. Unset, as it always is outside tests, a
# crash point costs one comparison.

_VARIABLE = "CAPTIME_CRASH_AT"
When = Literal["before", "after"]


class _CrashCountdown:
    """Burns down by one each time its place is reached."""

    def __init__(self, wish: str) -> None:
        name, _, rest = wish.partition(":")
        when, _, times = rest.partition(":")
        if not name or when not in {"before", "after"} or not times.isdecimal() or int(times) < 1:
            raise ScenarioError(
                f"{_VARIABLE} is {wish!r}; expected name:before:n or name:after:n with n at least 1. It is for tests "
                "only: unset it"
            )
        self.place = (name, when)
        self.left = int(times)

    def reached(self, name: str, when: When) -> None:
        if (name, when) == self.place:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


_countdown = _CrashCountdown(os.environ[_VARIABLE]) if os.environ.get(_VARIABLE) else None


def crash_point(name: str, when: When = "after") -> None:
    """The process has come to this place; if a test asked for it, this is where it dies.

    Args:
        name: What is being done, such as `row-committed`.
        when: Just before it is done, or just after.
    """
    if _countdown is not None:
        _countdown.reached(name, when)
