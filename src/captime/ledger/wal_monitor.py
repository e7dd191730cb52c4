"""Warn when a long-lived reader prevents WAL truncation, and name its process.

SQLite brings the log into the file and begins it anew whenever no reader needs it. A reader that does not end (a shell
with an open transaction, a stopped process) needs it for ever, and it grows with every run. Nothing is lost by that but
space.
"""

import os
from pathlib import Path

from captime.ledger.connection import log_path

LOG_BYTES = 64 << 20
"""How large the log may become before a warning is given, in bytes."""


class WalMonitor:
    """Looks at the size of the log, and speaks up when it is too large, and each time it has doubled since.

    Args:
        path: The ledger.
        allowed: How many bytes the log may have without a warning.
    """

    def __init__(self, path: Path, allowed: int = LOG_BYTES) -> None:
        self._path = path
        self._log = log_path(path)
        self._allowed = allowed

    def look(self) -> str:
        """Return what there is to say; "" for nothing."""
        try:
            size = os.stat(self._log).st_size  # noqa: PTH116 (after every transaction)
        except OSError:
            return ""
        if size <= self._allowed:
            return ""
        self._allowed = 2 * size
        return (
            f"{self._log.name} has grown to {size / 1e6:,.0f} MB, because {_readers(self._path)} still reads an old "
            "state of the ledger. Nothing is lost, but the file grows until that ends"
        )


def _readers(path: Path) -> str:
    """Return which other processes have the ledger open, in words."""
    found = [f"process {pid} ({_name(pid)})" for pid in _processes() if pid != os.getpid() and _has_open(pid, path)]
    return " or ".join(found) or "another process"


def _processes() -> list[int]:
    try:
        return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 (names only)
    except OSError:
        return []


def _has_open(pid: int, path: Path) -> bool:
    """False also where we may not look."""
    try:
        opened = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False
    return any(_is_same(each, path) for each in opened)


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False  # closed in the meantime


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "gone by now"
