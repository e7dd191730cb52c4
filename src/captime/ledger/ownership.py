"""One writer at a time: a lock that dies with its holder, and a note of the process that held it.

The lock is `flock` on a file beside the ledger, NAME.lock, which is never deleted: locks on the ledger itself would be
dropped whenever SQLite closes it. The file also tells how far the ledger had come when it was last written, so that a
ledger that has lost its newest rows (a deleted -wal, an old copy put in its place) is found out.
"""

import fcntl
import json
import math
import os
import socket
import subprocess
import time
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from captime.errors import LedgerInUse
from captime.files import open_limited
from captime.ledger.connection import crash_point, errors_translated, sync_directory
from captime.runs import RunRequest

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
            crash_point("lock-taken")
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
        """Let others write. The name goes first, so that the next refusal cannot name this process."""
        if self._file >= 0:
            with suppress(OSError):
                os.ftruncate(self._file, min(os.fstat(self._file).st_size, _LINE))
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


# What runs on which slot just now: a small file beside the ledger, for status commands and the dashboard.
#
# NAME.slots has a line of fixed length for every slot, written over in place when a run begins, is seen under way, or
# ends. It is no part of the record: nothing is decided by it, no writer waits for it to reach the disk, and it may be
# missing, old or torn at any moment. Which runs are under way at all is for the ledger to say.

_SLOT_LINE = 320
_FIRST = "captime-slots"
# With more slots than this, the first ones are shown.
_MOST = 4096


@dataclass(frozen=True, slots=True)
class SlotId:
    """A place for one run at a time.

    Attributes:
        slot: Its number.
        host: The machine; empty for this one.
        worker: Which worker on that machine; empty where there are none.
    """

    slot: int
    host: str = ""
    worker: str = ""


@dataclass(frozen=True, slots=True)
class SlotUse:
    """What a seat is used for.

    Attributes:
        seat: The seat.
        run: Configuration, stream position and attempt; None if nothing runs there.
        captime: How many seconds of its clock the run may take; infinite for no limit.
        since_ns: When that began, in nanoseconds since 1970.
        seen: After how many seconds of its clock the run was last seen unfinished.
        seen_ns: When that was.
    """

    seat: SlotId
    run: tuple[int, int, int] | None = None
    captime: float = math.inf
    since_ns: int = 0
    seen: float = 0.0
    seen_ns: int = 0

    def seconds(self, now_ns: int) -> float:
        """Return how long the run has been under way on its clock, about: what was seen, and the time since then."""
        return self.seen + max(0, now_ns - self.seen_ns) / 1e9


class SlotBoard:
    """Writes the file. It never fails: where the file cannot be written, there is none.

    Args:
        ledger: Of the campaign.
        campaign: Its name, so that an old file is not taken for a new one.
    """

    def __init__(self, ledger: Path, campaign: str) -> None:
        self._path = slots_path(ledger)
        self._campaign = campaign
        self._file: int | None = None
        self._broken = False
        self._lines: dict[SlotId, int] = {}
        self._free: list[int] = []
        self._running: dict[SlotId, SlotUse] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def running(self, seat: SlotId, request: RunRequest, seconds: float = 0.0) -> None:
        """Show that this run is there, and was seen unfinished after this many seconds."""
        run, now = (request.config, request.instance, request.attempt), time.time_ns()
        before = self._running.get(seat)
        same = before is not None and before.run == run
        since = before.since_ns if before is not None and same else now - round(seconds * 1e9)
        self._running[seat] = SlotUse(seat, run, request.captime, since, float(seconds), now)
        self._write(seat, self._running[seat])

    def idle(self, seat: SlotId) -> None:
        """Nothing runs there."""
        self._running.pop(seat, None)
        self._write(seat, SlotUse(seat))

    def gone(self, seat: SlotId) -> None:
        """There is no such seat any more."""
        self._running.pop(seat, None)
        line = self._lines.pop(seat, None)
        if line is not None:
            self._put(line, "")
            self._free.append(line)

    def close(self) -> None:
        """Nothing runs any more."""
        if self._file is not None:
            os.close(self._file)
            self._path.unlink(missing_ok=True)
        self._file, self._broken = None, True

    def _write(self, seat: SlotId, seated: SlotUse) -> None:
        line = self._lines.get(seat)
        if line is None:
            line = self._lines[seat] = self._free.pop() if self._free else len(self._lines) + 1
        run = None if seated.run is None else [*seated.run, float(seated.captime)]
        words = [seat.slot, seat.host, seat.worker, run, seated.since_ns, seated.seen, seated.seen_ns]
        self._put(line, json.dumps(words))

    def _put(self, line: int, text: str) -> None:
        """Over what stood there, in one stroke; readers see by the sum at the end whether they came in between."""
        if self._broken or line > _MOST or len(text) > _SLOT_LINE - 10:
            return
        try:
            if self._file is None:
                flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
                self._file = os.open(self._path, flags, 0o644)
                os.pwrite(self._file, _line(json.dumps([_FIRST, self._campaign, os.getpid()])), 0)
            os.pwrite(self._file, _line(text), line * _SLOT_LINE)
        except OSError:
            # A full disk, a folder that is read-only by now: the campaign has other ways to find out.
            self._broken = True


def _line(text: str) -> bytes:
    return f"{text} {zlib.crc32(text.encode('ascii')):08x}".encode("ascii").ljust(_SLOT_LINE - 1) + b"\n"


@dataclass(frozen=True, slots=True)
class SlotBoardContent:
    """What the file said.

    Attributes:
        campaign: Name of the campaign; empty if there is no file.
        pid: Process number of the writer.
        seats: In the order of hosts, workers and slots.
    """

    campaign: str = ""
    pid: int = 0
    seats: tuple[SlotUse, ...] = ()


def slots_path(ledger: Path) -> Path:
    """Where the file is."""
    return ledger.with_name(ledger.name + ".slots")


def read_slots(ledger: Path) -> SlotBoardContent:
    """What is there now; nothing if there is no such file, and without the lines that are being written just now."""
    try:
        # Whatever else may have that name: it is not waited for.
        descriptor = os.open(slots_path(ledger), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return SlotBoardContent()
    try:
        content = os.read(descriptor, (_MOST + 1) * _SLOT_LINE)
    except OSError:
        return SlotBoardContent()
    finally:
        os.close(descriptor)
    first, *rest = [_words(content[at : at + _SLOT_LINE]) for at in range(0, len(content), _SLOT_LINE)] or [None]
    match first:
        case [str(kind), str(campaign), int(pid)] if kind == _FIRST:
            seats = [seated for words in rest if (seated := _slot_use(words)) is not None]
            return SlotBoardContent(campaign, pid, tuple(sorted(seats, key=_order)))
    return SlotBoardContent()


def under_way(
    ledger: Path, campaign: str, in_flight: Mapping[tuple[int, int, int], object]
) -> tuple[list[SlotUse], int]:
    """Every seat of a campaign with the run that the ledger says is under way, and how many runs have no seat yet.

    Args:
        ledger: The ledger.
        campaign: Its name.
        in_flight: Runs that the ledger says are under way, by configuration, stream position and attempt.
    """
    found = read_slots(ledger)
    seats = [
        seated if seated.run is None or seated.run in in_flight else SlotUse(seated.seat)
        for seated in (found.seats if found.campaign == campaign else ())
    ]
    return seats, len(in_flight) - len({seated.run for seated in seats} - {None})


def _order(seated: SlotUse) -> tuple[str, str, int]:
    return seated.seat.host, seated.seat.worker, seated.seat.slot


def _words(line: bytes) -> Any:
    text, _, check = line.rstrip(b" \n").rpartition(b" ")
    if not text or check != f"{zlib.crc32(text):08x}".encode("ascii"):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def _slot_use(words: Any) -> SlotUse | None:
    match words:
        case [int(slot), str(host), str(worker), run, int(since), float(seen), int(seen_ns)]:
            seat = SlotId(slot, host, worker)
            match run:
                case [int(config), int(position), int(attempt), float(captime)]:
                    return SlotUse(seat, (config, position, attempt), captime, since, seen, seen_ns)
            return SlotUse(seat)
    return None
