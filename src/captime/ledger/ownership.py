"""One writer at a time: a lock that dies with its holder, and a note of the process that held it.

The lock is `flock` on a file beside the ledger, NAME.lock, which is never deleted: locks on the ledger itself would be
dropped whenever SQLite closes it. The file also tells how far the ledger had come when it was last written, so that a
ledger that has lost its newest rows (a deleted -wal, an old copy put in its place) is found out.
"""

import fcntl
import json
import os
import socket
import subprocess
import time
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from captime.errors import LedgerInUse
from captime.files import open_limited
from captime.ledger.connection import errors_translated, reached, sync_directory

# The first line has this length, so that it can be replaced in one stroke; the second names the lock's holder.
_LINE = 160
_LARGEST = 1 << 20
# How long to wait for a holder that has just taken the lock to write its name.
_NAME_WITHIN = 1.0


@dataclass(frozen=True, slots=True)
class Owner:
    """A process, in a way that cannot be mistaken for another one.

    Attributes:
        host: Name of the machine.
        boot: Which of its boots; empty if the system does not tell.
        pid: Process number.
        process_start: When that process began, as the system tells it; numbers are used again.
        since_ns: When it became the owner, in nanoseconds since 1970.
    """

    host: str
    boot: str
    pid: int
    process_start: str
    since_ns: int = field(default=0, compare=False)

    @classmethod
    def here(cls) -> Self:
        """This process, which becomes an owner now."""
        return cls(socket.gethostname(), boot_id(), os.getpid(), process_start(os.getpid()), time.time_ns())

    def alive(self) -> bool:
        """Return whether that very process still exists; asked on its own machine and boot."""
        return process_start(self.pid) == self.process_start

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.since_ns // 10**9, tz=UTC)
        return f"process {self.pid} on {self.host}, since {since:%Y-%m-%d %H:%M:%S} UTC"


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a ledger had come.

    Attributes:
        campaign: Name of the ledger's campaign.
        sequence: Number of its last row.
        head: Hash of that row, in hexadecimal digits.
    """

    campaign: str
    sequence: int
    head: str


def boot_id() -> str:
    """Return a name for this boot of this machine; empty if the system does not tell."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return _asked("sysctl", "-n", "kern.bootsessionuuid")


def process_start(pid: int) -> str:
    """When a process began, in whatever way the system tells it; empty if there is no such process."""
    try:
        # The name in parentheses may contain anything; the 20th field after it is the start in clock ticks since boot.
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19].decode()
    except OSError:
        return "" if Path("/proc/self/stat").exists() else _asked("ps", "-o", "lstart=", "-p", str(pid))


def _asked(*command: str) -> str:
    """Return what a small program of the system says; empty if it says nothing."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=5).stdout.strip()  # noqa: S603 (fixed words)
    except (OSError, subprocess.TimeoutExpired):
        return ""


def check_owner(ledger: Path, last: Owner, here: Owner, *, take_over: bool) -> None:
    """Refuse if the last owner, which did not close the ledger, may still be at it. The lock is ours already.

    Never by a timer: a slow owner is an owner.
    """
    same_boot = last.boot == here.boot and bool(here.boot)
    if last.host != here.host and not same_boot:
        if not take_over:
            raise LedgerInUse(
                f"{ledger} was last written by {last}, which did not close it, and this is {here.host}. If that "
                "process is dead for sure, take the ledger over (--take-over)"
            )
        return
    same_boot = same_boot or not here.boot
    if same_boot and last != here and last.alive() and last.process_start:
        raise LedgerInUse(
            f"{ledger} is being written by {last}, although its lock is free; was {ledger}.lock deleted? End that "
            "process first"
        )


class WriteLock:
    """The right to write to a ledger; held until `release`, or until this process dies in any way.

    Args:
        ledger: Path of the ledger.
    """

    def __init__(self, ledger: Path) -> None:
        self._ledger = ledger
        self._path = lock_path(ledger)
        self.owner = Owner.here()
        with errors_translated(ledger, "taking its lock"):
            self._file = self._take()
            reached("lock-taken")
            told = json.dumps(asdict(self.owner)).encode() + b"\n"
            os.ftruncate(self._file, min(os.fstat(self._file).st_size, _LINE))
            os.pwrite(self._file, told, _LINE)

    def _take(self) -> int:
        while True:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = self._holder(descriptor)
                os.close(descriptor)
                raise LedgerInUse(
                    f"{self._ledger} is being written by {holder}; wait for it, or end it, and try again"
                ) from None
            if _same_file(descriptor, self._path):
                return descriptor
            # The file was replaced between the two lines above; a lock on a file without a name locks nothing.
            os.close(descriptor)

    def _holder(self, descriptor: int) -> str:
        patience = time.monotonic() + _NAME_WITHIN
        while True:
            told = os.pread(descriptor, 4096, _LINE)
            try:
                return str(Owner(**json.loads(told)))
            except (ValueError, TypeError):
                if time.monotonic() > patience:
                    return "another process, which has not told its name"
                time.sleep(0.01)

    def mark(self, mark: Mark, *, lasting: bool = False) -> None:
        """Note how far the ledger has come. A hint: it may lag behind the ledger, never the other way round.

        Args:
            mark: How far.
            lasting: Make sure that a power cut leaves this one or a later one.
        """
        line = f"captime {mark.campaign} {mark.sequence} {mark.head}".encode().ljust(_LINE - 1) + b"\n"
        try:
            os.pwrite(self._file, line, 0)
            if lasting:
                os.fsync(self._file)
                sync_directory(self._path.parent)
        except OSError:
            # The row itself is safe on the disk, and an older mark is right too.
            return

    def release(self) -> None:
        """Let others write."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def lock_path(ledger: Path) -> Path:
    """Where the lock of a ledger is."""
    return ledger.with_name(ledger.name + ".lock")


def read_mark(ledger: Path) -> Mark | None:
    """Return how far the ledger had come when it was last written, as its lock file tells; None if there is none."""
    try:
        with open_limited(lock_path(ledger), _LARGEST) as file:
            words = file.read(_LINE).decode("ascii", "replace").split()
    except OSError:
        return None
    if len(words) != 4 or words[0] != "captime" or not words[2].isdecimal():
        return None
    return Mark(words[1], int(words[2]), words[3])


def _same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
