"""Processes of this machine: what the kernel tells about them, how one is named for certain, how ours are started."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from captime.runs import Shortage

# The few things a supervisor asks of the kernel that Python has no word for; each says what it does elsewhere.

LINUX = sys.platform.startswith("linux")

_SET_PARENT_DEATH_SIGNAL = 1
_SET_CHILD_SUBREAPER = 36
_DROP_FROM_BOUNDING_SET, _MAY_SET_PRIORITIES = 24, 23
_CAPABILITIES_VERSION = 0x2008_0522
_FAIR_POLICIES = (0, 3, 5)  # other, batch, idle
_CLONE3, _CLONE_INTO_CGROUP = 435, 0x2_0000_0000
# The libc is looked up once, before any fork: nothing is loaded between fork and exec.
_libc = ctypes.CDLL(None, use_errno=True) if LINUX else None
# The same one, called without letting go of the interpreter: what forks must hold it.
_libc_held = ctypes.PyDLL(None, use_errno=True) if LINUX else None


def read_file(path: str) -> bytes:
    """Return a small file of the kernel's; empty if there is none (any more) or it is not ours to read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    text = b""
    try:
        # The kernel may hand out long lists a page at a time.
        while part := os.read(descriptor, 1 << 16):
            text += part
    except OSError:
        return b""
    finally:
        os.close(descriptor)
    return text


def become_subreaper() -> bool:
    """From now on orphaned descendants become our children; False where there is no such thing (Linux has it)."""
    return _libc is not None and _libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def die_with_parent(signal_number: int) -> None:
    """Ask for a signal when the thread that started us ends; does nothing where there is no such thing."""
    if _libc is not None:
        _libc.prctl(_SET_PARENT_DEATH_SIGNAL, signal_number, 0, 0, 0)


def give_up_priority() -> None:
    """Never again take a core from other processes: no real-time policy, and no right to ask for one.

    What this process executes cannot have it either, not even as root. Where there are no such rights, nothing is done.
    """
    if _libc is None:
        return
    if os.sched_getscheduler(0) not in _FAIR_POLICIES:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    # Refused to processes that cannot have the right anyway.
    _libc.prctl(_DROP_FROM_BOUNDING_SET, _MAY_SET_PRIORITIES, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION, 0)
    held = (ctypes.c_uint32 * 6)()
    if _libc.capget(header, held) == 0:
        for first in range(3):
            held[first] &= ~(1 << _MAY_SET_PRIORITIES) & 0xFFFF_FFFF
        _libc.capset(header, held)


def fork_into_group(folder: int) -> int | None:
    """As `os.fork`, but the child starts in the control group with this folder; None where that cannot be had.

    To move there after an ordinary fork costs a process some 15 ms: the kernel waits until all cores have taken notice.
    Only for a process with one thread whose child executes a program: the C library is not told of the child.
    """
    if _libc_held is None:
        return None
    # As the kernel has it: flags, pidfd, child_tid, parent_tid, exit_signal, stack, its size, tls, set_tid, its size.
    wishes = (ctypes.c_uint64 * 11)(_CLONE_INTO_CGROUP, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, folder)
    python = ctypes.pythonapi
    python.PyOS_BeforeFork()
    pid = int(_libc_held.syscall(_CLONE3, ctypes.byref(wishes), ctypes.c_size_t(ctypes.sizeof(wishes))))
    if pid == 0:
        python.PyOS_AfterFork_Child()
    else:
        python.PyOS_AfterFork_Parent()
    return None if pid < 0 else pid


def cpu_clock_ns(pid: int) -> int | None:
    """CPU time of a process with all its threads, to the nanosecond, without its children; None if it has gone.

    Works for other people's processes on Linux only: the clock of a process is named by the complement of its number.
    """
    if not LINUX:
        return None
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)
    except OSError:
        return None


def suspended_ns() -> int:
    """Return how long the machine has slept since it was started; only differences mean something."""
    if LINUX:
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    awake = getattr(time, "CLOCK_UPTIME_RAW", None)  # macOS
    return 0 if awake is None else time.clock_gettime_ns(time.CLOCK_MONOTONIC) - time.clock_gettime_ns(awake)


def steady_ns() -> int:
    """Read a clock that cannot be set and runs while the machine sleeps; only differences mean something."""
    return time.monotonic_ns() + suspended_ns()


# The process table, as far as supervision needs it: parents, resources used, and tags of processes.
#
# Reads `/proc` on Linux. Elsewhere `ps` is asked for the little it knows (best effort: seconds of CPU time, no
# queue). Nothing here sends a signal.

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


# How the processes of this room are started without the rest of the package.
#
# `import captime` loads NumPy and SciPy: tens of megabytes and a tenth of a second that a supervisor has no use for.
# So an empty package of that name is put in place first, and only the modules that are asked for are loaded from it.

_STUB = """
import importlib, sys, types
package = types.ModuleType("captime")
package.__path__ = [sys.argv[1]]
sys.modules["captime"] = package
importlib.import_module(sys.argv[2]).main(sys.argv[3:])
"""


def command(module: str, *arguments: str, installed_packages: bool = False) -> list[str]:
    """Return the command that runs `main(arguments)` of a module of this package.

    Args:
        module: Its full name.
        arguments: Handed to its `main`.
        installed_packages: Let it find what is installed, and be influenced by its environment.
    """
    alone = [] if installed_packages else ["-I", "-S"]
    # File names have to mean the same bytes there as here.
    encoding = ["-X", f"utf8={sys.flags.utf8_mode}"]
    package = Path(__file__).parents[1]
    return [sys.executable, *alone, *encoding, "-c", _STUB, str(package), module, *arguments]


# Processes that the kernel kills when memory runs out.


@dataclass(frozen=True, slots=True)
class Lack:
    """What a machine is out of.

    Attributes:
        what: The kind.
        words: The same as part of a sentence, with numbers.
    """

    what: Shortage
    words: str


class MemoryKiller:
    """Counts processes that the kernel killed because the machine was out of memory."""

    def __init__(self) -> None:
        self._killed = _killed_for_memory()

    def look(self) -> Lack | None:
        """Say whether there were more of them than at the last look."""
        before, self._killed = self._killed, _killed_for_memory()
        more = self._killed - before
        return Lack(Shortage.MEMORY, f"the kernel killed {more} for lack of memory") if more > 0 else None


def _killed_for_memory() -> int:
    lines = (line.split() for line in read_file("/proc/vmstat").splitlines())
    return sum(int(words[1]) for words in lines if len(words) == 2 and words[0] == b"oom_kill")
