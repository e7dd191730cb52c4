"""The few things a supervisor asks of the kernel that Python has no word for; each says what it does elsewhere."""

import ctypes
import os
import signal
import sys
import time

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
