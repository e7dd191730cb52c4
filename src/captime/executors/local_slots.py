"""The slots of this machine: how many fit, which cores they have, how fast these are, and the supervisors on them."""

import math
import os
import re
import resource
import select
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from captime.errors import InvariantViolated, MachineUnfit, ScenarioError
from captime.supervision import scratch as directories
from captime.supervision.cgroups import (
    GROUP_NOTE,
    escape_attempt,
    escaped,
    hand_down_controllers,
    hands_down_memory,
    own_group,
    remove_groups,
)
from captime.supervision.launcher import SlotPlace
from captime.supervision.messages import Launch, Report, plain_launch
from captime.supervision.process_tree import ISOLATIONS, Isolation
from captime.supervision.processes import LINUX
from captime.supervision.scratch import FOLDER_PREFIX, GROUP_PREFIX
from captime.supervision.slot_client import SlotClient

# Raise the limit of open file descriptors to what the slots need, or refuse before anything has begun.

# A slot has a channel, a log while it is started and a process handle; the ledger, its lock, imports that are still to
# come and a dashboard's state have files of their own.
_PER_SLOT, _ELSEWHERE = 4, 40


def ensure_descriptors(slots: int) -> None:
    """Raise our limit on open files as far as it is needed and allowed.

    Raises:
        ScenarioError: The system does not allow that many.
    """
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = _open_now() + _PER_SLOT * slots + _ELSEWHERE
    if allowed == resource.RLIM_INFINITY or needed <= allowed:
        return
    if most != resource.RLIM_INFINITY and needed > most:
        fitting = max(0, (most - (needed - _PER_SLOT * slots)) // _PER_SLOT)
        raise ScenarioError(
            f"{slots} jobs need {needed} open files, and this process may have {most} (`ulimit -Hn`); "
            f"raise that limit, or use --jobs {fitting} at most"
            if fitting
            else f"captime needs {needed} open files, and this process may have {most} (`ulimit -Hn`); raise that limit"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, most))


def _open_now() -> int:
    listing = Path("/proc/self/fd") if Path("/proc/self/fd").is_dir() else Path("/dev/fd")
    try:
        return len(os.listdir(listing))  # noqa: PTH208 (names alone; no stat calls)
    except OSError:
        return 0


# Where the slots of this machine stand: their cores, directories and control groups, and which isolation holds here.
#
# Only `executors/local.py` has a use for this.

HELD_TOO_OFTEN = 2
"""A supervisor may be stopped by accident during a run, once. A program that stops it does so again."""

_PATIENCE = 60.0
_TAG = re.compile(r"[\w.-]{1,100}", re.ASCII)
_CALIBRATIONS = 7


@dataclass(frozen=True, slots=True)
class Overhead:
    """What it costs to run a program that does nothing; measured at the start, told, and never subtracted.

    Attributes:
        added: Seconds between handing a launch over and having its report, beyond the run's own wall-clock time; the
            median of a few runs.
        measured: CPU seconds that such a program is said to have taken; the median.
        worst: The largest of the added seconds.
    """

    added: float
    measured: float
    worst: float


def cores() -> list[int]:
    """One number for each physical core that we may use; its other threads are left idle."""
    if not hasattr(os, "sched_getaffinity"):
        return []
    seen: dict[str, int] = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        try:
            seen.setdefault(siblings.read_text(encoding="ascii"), cpu)
        except OSError:
            seen[str(cpu)] = cpu
    return list(seen.values())


class LocalSlots:
    """Opens slots, after having found out how.

    Args:
        tag: What the tags of all processes begin with.
        slots: How many.
        pin: Tie each to a core of its own, if there are enough.
        isolation: The level asked for; None for the best.
        scratch: Where directories are made.

    Attributes:
        isolation: The level that holds.
        overhead: What running a program costs.
        handles: The slots, open.
        limits_memory: The kernel limits and counts the memory of runs; it is watched by looking otherwise.
    """

    def __init__(self, tag: str, slots: int, *, pin: bool, isolation: str | None, scratch: str | None) -> None:
        if not _TAG.fullmatch(tag):
            raise InvariantViolated(f"the tag of an executor is {tag!r}; expected letters, digits, dots and dashes")
        ensure_descriptors(slots)
        self._tag = tag
        self._numbers = count()
        found = cores() if pin else []
        self._cores = found[:slots] if slots <= len(found) else []
        try:
            self._folder = tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{tag}-", dir=scratch)
        except OSError as trouble:
            raise MachineUnfit(
                f"there can be no scratch folder in {scratch or 'the folder for temporary files'}: {trouble}; expected "
                "room to write there. Make room, or name another folder with TMPDIR"
            ) from None
        self._group: Path | None = None
        self.handles: list[SlotClient] = []
        try:
            self.isolation, first = self._first_that_holds(isolation)
            self.limits_memory = self._group is not None and hands_down_memory(self._group)
            self.handles.append(first)
            self.overhead = self._calibrated(first)
            self.handles += [self.open(index) for index in range(1, slots)]
            for handle in self.handles[1:]:
                self._receive(handle, "ready")
        except BaseException:
            self.close(self.handles)
            raise

    def open(self, index: int) -> SlotClient:
        """Start a supervisor."""
        name = f"slot-{index}-{next(self._numbers)}"
        place = SlotPlace(
            isolation=self.isolation,
            scratch=f"{self._folder}/{name}",
            group=None if self._group is None else self._group / name,
            core=self._cores[index] if self._cores else None,
        )
        try:
            self._still_there()
            return SlotClient(index, place, self._tag)
        except OSError as trouble:
            raise MachineUnfit(
                f"no supervisor can be started in {place.scratch}: {trouble}; expected room, memory and processes for "
                "it. Free what the machine is out of, and give the same command again"
            ) from None

    def _still_there(self) -> None:
        """Make folder and group again if they are gone: the last supervisor to be told to end takes them away."""
        Path(self._folder).mkdir(mode=0o700, exist_ok=True)
        if Path(self._folder).lstat().st_uid != os.geteuid():
            raise PermissionError(f"{self._folder} belongs to another user")
        if self._group is not None and not self._group.exists():
            self._group.mkdir()
            hand_down_controllers(self._group)
            self._note_group(self._group)

    def close(self, handles: list[SlotClient]) -> None:
        """Close these slots, all at once, and take their directories and groups away."""
        for handle in handles:
            handle.channel.close()
        for handle in handles:
            handle.close()
        self._remove_group()
        directories.remove(self._folder)

    # ------------------------------------------------------------------ finding out

    def _first_that_holds(self, wanted: str | None) -> tuple[Isolation, SlotClient]:
        levels = [level for level in ISOLATIONS if wanted in (None, level)]
        if not levels:
            raise ScenarioError(
                f"the isolation level {wanted!r} was asked for; there are {', '.join(ISOLATIONS)}. Leave it out for "
                "the best that holds on this machine"
            )
        reasons = []
        for level in levels:
            self.isolation = level
            trouble = self._make_group() if level == "cgroup2" else ""
            if level != "posix" and not LINUX:
                trouble = "only Linux has it"
            if not trouble:
                handle = self.open(0)
                trouble = escaped(self._answer(handle, escape_attempt(next(self._numbers), f"{self._tag}/probe")))
                if not trouble:
                    return level, handle
                handle.close()
            self._remove_group()
            reasons.append(f"{level}: {trouble}")
        raise ScenarioError(
            f"the isolation level {wanted or 'posix'!r} does not hold on this machine ({'; '.join(reasons)}), and runs "
            "would leave processes behind. Ask for another level, or see docs/measuring.md"
        )

    def _make_group(self) -> str:
        """Return a control group for all slots; why not, if there can be none."""
        own = own_group()
        if own is None:
            return "there is no control group hierarchy of version 2"
        folder = own / f"{GROUP_PREFIX}{self._tag}-{os.getpid()}-{next(self._numbers)}"
        try:
            folder.mkdir()
            if not (folder / "cgroup.kill").exists():
                folder.rmdir()
                return "this kernel cannot kill a control group (Linux 5.14 can)"
        except OSError as trouble:
            return f"no group can be made below our own ({trouble.strerror})"
        hand_down_controllers(own)
        hand_down_controllers(folder)
        self._group = folder
        # Where to find it, for the process that clears away after this one.
        self._note_group(folder)
        return ""

    def _note_group(self, group: Path) -> None:
        Path(self._folder, GROUP_NOTE).write_text(str(group), encoding="utf-8", errors="surrogateescape")

    def _remove_group(self) -> None:
        if self._group is not None:
            remove_groups(self._group)
            self._group = None

    def _calibrated(self, handle: SlotClient) -> Overhead:
        """Run a program that does nothing a few times."""
        nothing = shutil.which("true")
        argv = (sys.executable, "-I", "-S", "-c", "") if nothing is None else (nothing,)
        added, measured = [], []
        for _ in range(_CALIBRATIONS):
            number = next(self._numbers)
            launch = plain_launch(*argv, number=number, tag=f"{self._tag}/calibration")
            before = time.monotonic_ns()
            report = self._answer(handle, launch)
            added.append((time.monotonic_ns() - before - report.wall_ns) / 1e9)
            measured.append(report.runtime_ns / 1e9)
        return Overhead(statistics.median(added), statistics.median(measured), max(added))

    def _answer(self, handle: SlotClient, launch: Launch) -> Report:
        handle.give(launch)
        report = Report.from_json(self._receive(handle, "report"))
        handle.take_back(launch.number)
        if report.ended == "unfit":
            raise MachineUnfit(
                f"no program can be run here: {report.problem}. Free what the machine is out of (TMPDIR names the "
                "folder in which runs take place), and give the same command again"
            )
        return report

    def _receive(self, handle: SlotClient, awaited: str) -> str:
        """Wait for a slot to say something in particular."""
        deadline = time.monotonic() + _PATIENCE
        while not handle.channel.closed:
            left = deadline - time.monotonic()
            if left <= 0.0:
                break
            select.select([handle.channel], [handle.channel] if handle.channel.waiting else [], [], left)
            handle.channel.flush()
            for word, text in handle.hear():
                if word == awaited:
                    return text
        how = handle.clear_away()
        if handle.was_killed:
            raise MachineUnfit(
                f"{how} before it had said {awaited!r}: it was too slow, or the machine or another program killed "
                "it; expected a supervisor that stays alive. Find out what kills it (lack of memory, most often), and "
                "give the same command again"
            )
        raise InvariantViolated(f"{how} before it had said {awaited!r}. Please report it")


# A fixed piece of work, done now and then, tells whether a machine is still as fast as it was.

REMEASURE_SECONDS = 600.0
"""How often a machine does the piece of work again."""

TIMES = 3
"""How often in a row; the least of them counts, because other work disturbs it least."""

# Not at once: while nothing else runs, cores are faster than they will be.
_FIRST_SECONDS = 10.0
_TOLERANCE = 0.1
# About 0.05 s of whole-number arithmetic: the same on every machine, and nothing but the core's own speed.
_WORK = "n = 1\nfor _ in range(400_000): n = (n * 1103515245 + 12345) % 2147483648"


def reference_launch(tag: str, number: int = 0) -> Launch:
    """Return the piece of work, to be run by a slot.

    Args:
        tag: Of the campaign.
        number: Of the launch.
    """
    return plain_launch(sys.executable, "-I", "-S", "-c", _WORK, number=number, tag=f"{tag}/reference")


class SpeedChecks:
    """When each slot has to do the piece of work again, and what came of it.

    Args:
        slots: Their numbers.
        now: Seconds on some clock.
    """

    def __init__(self, slots: Iterable[int], now: float) -> None:
        self._due = dict.fromkeys(slots, now + _FIRST_SECONDS)
        self._at_first: dict[int, float] = {}
        self._heard: dict[int, list[float]] = {}
        self._drifted: set[int] = set()

    def is_due(self, slot: int, now: float) -> bool:
        """Return whether it is time; if so, the next time is a while later."""
        if now < self._due[slot]:
            return False
        self._due[slot] = now + REMEASURE_SECONDS
        self._heard[slot] = []
        return True

    def hear(self, slot: int, seconds: float) -> None:
        """Record the CPU seconds of the piece of work; not a finite number if it failed."""
        heard = self._heard.setdefault(slot, [])
        heard.append(seconds)
        if len(heard) < TIMES:
            return
        least = min(heard)
        if not math.isfinite(least):
            return
        first = self._at_first.setdefault(slot, least)
        (self._drifted.add if abs(least / first - 1.0) > _TOLERANCE else self._drifted.discard)(slot)

    def has_drifted(self, slot: int) -> bool:
        """Return whether a slot was faster or slower than at first, by more than a tenth, when it was last measured."""
        return slot in self._drifted
