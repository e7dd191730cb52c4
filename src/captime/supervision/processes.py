"""The process table, as far as supervision needs it: parents, resources used, and tags of processes.

Reads `/proc` on Linux. Elsewhere `ps` is asked for the little it knows (best effort: seconds of CPU time, no queue).
Nothing here sends a signal.
"""

import os
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from captime.supervision.kernel import LINUX, cpu_clock_ns, read_file

TAG = "CAPTIME_RUN"
SLOT = "CAPTIME_SLOT"
"""The same for slot supervisors and their guardians, which are no part of any run."""
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
# Kernels can be built without it; then every process is asked for its parent.
_KNOWS_CHILDREN = Path(f"/proc/self/task/{os.getpid()}/children").exists()


@dataclass(frozen=True, slots=True)
class Process:
    """One line of the process table.

    Attributes:
        pid: Its number.
        parent: The number of its parent.
        group: Its process group.
        state: One letter; `Z` is a zombie.
        threads: How many it has.
        started: When, in ticks since boot; tells it from a later process of the same number.
        children_ns: CPU time of those of its descendants that were waited for.
        own_ns: Its own CPU time.
    """

    pid: int
    parent: int
    group: int
    state: str
    threads: int
    started: int
    children_ns: int
    own_ns: int

    @property
    def alive(self) -> bool:
        """Neither a zombie nor gone."""
        return self.state not in "ZXx"

    @property
    def stopped(self) -> bool:
        """Stopped by a signal, or held by a process that traces it."""
        return self.state in "Tt"


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 (pathlib costs several times as much, and this is done all the time)
    except OSError:
        return []


def look_at(pid: int) -> Process | None:
    """Return the process of that number; None if there is none."""
    if not LINUX:
        return _table_by_ps().get(pid)
    # The name stands in brackets and may itself hold brackets and spaces: everything after the last one is safe.
    fields = read_file(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    if len(fields) < 20:
        return None
    own = cpu_clock_ns(pid)
    return Process(
        pid=pid,
        parent=int(fields[1]),
        group=int(fields[2]),
        state=fields[0].decode("ascii"),
        threads=int(fields[17]),
        started=int(fields[19]),
        children_ns=(int(fields[13]) + int(fields[14])) * _TICK_NS,
        own_ns=(int(fields[11]) + int(fields[12])) * _TICK_NS if own is None else own,
    )


def tracer_of(pid: int) -> int:
    """Return the number of the process that traces this one; 0 if none does, or where that cannot be known."""
    for line in read_file(f"/proc/{pid}/status").splitlines():
        if line.startswith(b"TracerPid:"):
            return int(line.split()[1])
    return 0


def all_pids() -> list[int]:
    """Return every process there is."""
    if not LINUX:
        return list(_table_by_ps())
    return [int(name) for name in _names("/proc") if name.isdigit()]


def children_of(pid: int) -> list[int]:
    """Its children, zombies included."""
    if not LINUX:
        return [each.pid for each in _table_by_ps().values() if each.parent == pid]
    if not _KNOWS_CHILDREN:
        return [each.pid for each in map(look_at, all_pids()) if each is not None and each.parent == pid]
    found = [read_file(f"/proc/{pid}/task/{thread}/children") for thread in _names(f"/proc/{pid}/task")]
    return [int(child) for line in found for child in line.split()]


def descendants(roots: Iterable[int], keep: frozenset[int] = frozenset()) -> Iterator[Process]:
    """Yield these processes and everything below them, but not what is kept nor what is below that."""
    waiting = [pid for pid in roots if pid not in keep]
    seen = set(waiting)
    while waiting:
        pid = waiting.pop()
        process = look_at(pid)
        if process is None:
            continue
        yield process
        if not process.alive:
            continue
        below = [child for child in children_of(pid) if child not in keep and child not in seen]
        seen.update(below)
        waiting += below


def tagged(tag: str, *, whole: bool = False, name: str = TAG) -> list[int]:
    """Processes that were started with a tag beginning like this in their environment, zombies left out.

    Args:
        tag: The beginning of their tags.
        whole: It is all of it: a run's tag may be the beginning of another one's.
        name: The variable that holds the tag.
    """
    wanted = f"{name}={tag}".encode("ascii")
    if not LINUX:
        return _tagged_by_ps(wanted, whole=whole)
    begins = b"\0" + wanted + (b"\0" if whole else b"")
    return [pid for pid in all_pids() if begins in b"\0" + read_file(f"/proc/{pid}/environ")]


def resident_bytes(pid: int) -> int:
    """Memory of a process that is in use now; pages shared with others are counted in full."""
    if not LINUX:
        return _resident_by_ps().get(pid, 0)
    fields = read_file(f"/proc/{pid}/statm").split()
    return int(fields[1]) * _PAGE if len(fields) > 1 else 0


def proportional_bytes(pid: int) -> int:
    """Return the same with shared pages divided among those who share them; slower. `resident_bytes` if unknown."""
    for line in read_file(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    return resident_bytes(pid)


def queue_wait_ns(pid: int, threads: int) -> int:
    """Return how long its threads were ready to run without a core to run on; ended threads are forgotten."""
    if threads <= 1:
        return _run_delay(read_file(f"/proc/{pid}/schedstat"))
    return sum(_run_delay(read_file(f"/proc/{pid}/task/{task}/schedstat")) for task in _names(f"/proc/{pid}/task"))


def _run_delay(line: bytes) -> int:
    fields = line.split()
    return int(fields[1]) if len(fields) > 1 else 0


def _ps(*options: str) -> list[list[str]]:
    try:
        done = subprocess.run(  # noqa: S603 (a fixed command)
            ["/bin/ps", *options], capture_output=True, check=False, text=True, errors="replace"
        )
    except OSError:
        return []
    return [line.split() for line in done.stdout.splitlines()]


def _table_by_ps() -> dict[int, Process]:
    rows = _ps("-axo", "pid=,ppid=,pgid=,state=,time=")
    return {
        int(row[0]): Process(
            int(row[0]), int(row[1]), int(row[2]), row[3][0], 1, 0, 0, _seconds(row[4]) * 1_000_000_000
        )
        for row in rows
        if len(row) == 5
    }


def _seconds(text: str) -> int:
    """`[[days-]hours:]minutes:seconds[.hundredths]`, rounded down."""
    days, _, clock = text.rpartition("-")
    seconds = 0
    for part in clock.split(":"):
        seconds = seconds * 60 + int(part.partition(".")[0])
    return int(days or 0) * 86_400 + seconds


def _resident_by_ps() -> dict[int, int]:
    return {int(row[0]): int(row[1]) * 1024 for row in _ps("-axo", "pid=,rss=") if len(row) == 2}


def _tagged_by_ps(wanted: bytes, *, whole: bool) -> list[int]:
    text = wanted.decode("ascii")
    rows = _ps("axeww", "-o", "pid=,command=")
    return [int(row[0]) for row in rows if any(word == text if whole else word.startswith(text) for word in row[1:])]
