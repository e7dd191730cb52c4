"""What runs on which slot just now: a small file beside the ledger, for status commands and the dashboard.

NAME.slots has a line of fixed length for every slot, written over in place when a run begins, is seen under way, or
ends. It is no part of the record: nothing is decided by it, no writer waits for it to reach the disk, and it may be
missing, old or torn at any moment. Which runs are under way at all is for the ledger to say.
"""

import json
import math
import os
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from captime.runs import RunRequest

_LINE = 320
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
        if self._broken or line > _MOST or len(text) > _LINE - 10:
            return
        try:
            if self._file is None:
                flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
                self._file = os.open(self._path, flags, 0o644)
                os.pwrite(self._file, _line(json.dumps([_FIRST, self._campaign, os.getpid()])), 0)
            os.pwrite(self._file, _line(text), line * _LINE)
        except OSError:
            # A full disk, a folder that is read-only by now: the campaign has other ways to find out.
            self._broken = True


def _line(text: str) -> bytes:
    return f"{text} {zlib.crc32(text.encode('ascii')):08x}".encode("ascii").ljust(_LINE - 1) + b"\n"


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
        content = os.read(descriptor, (_MOST + 1) * _LINE)
    except OSError:
        return SlotBoardContent()
    finally:
        os.close(descriptor)
    first, *rest = [_words(content[at : at + _LINE]) for at in range(0, len(content), _LINE)] or [None]
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
