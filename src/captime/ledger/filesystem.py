"""Where a ledger may live: not where SQLite's locks are known to fail; and how a new file is made to stay."""

import os
import sqlite3
import sys
from pathlib import Path

from captime.errors import StorageTrouble
from captime.ledger.sqlite_errors import errors_translated

# Kinds of file systems on which memory is not shared between machines, or locks are not to be trusted.
_NETWORK = {
    "9p",
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "gfs2",
    "glusterfs",
    "gpfs",
    "lustre",
    "ncpfs",
    "nfs",
    "nfs4",
    "ocfs2",
    "orangefs",
    "panfs",
    "pvfs2",
    "smb2",
    "smb3",
    "smbfs",
    "virtiofs",
    "webdav",
}
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
        f"SQLite {told} has a rare race between two writers (mended in 3.44.6, 3.50.7 and 3.51.3). captime has exactly "
        "one writer and opens everything else read-only, so it cannot happen here; do not write to a ledger yourself"
    )


def full_sync() -> bool:
    """Return whether this system needs to be told to empty the disk's own cache too."""
    return sys.platform == "darwin"
