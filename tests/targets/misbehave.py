"""One bad habit per word.

Usage: misbehave.py signal N | stop | bomb N | close | keep-pipe | kill-group | kill-parent | deep N | tell
    stop-parent | stop-ancestors | trace-parent | hide | hide-and-kill-parent | real-time
"""

import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Callable


def die(number: int) -> None:
    """End by a signal that is not blocked, ignored or handled."""
    if number not in {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    # Some signals are ignored by default; who raises one is not content with itself all the same.
    sys.exit(70)


def bomb(most: int) -> None:
    """Fork until there are this many, each of which forks as well; none ever ends."""
    for _ in range(most.bit_length()):
        try:
            os.fork()
        except OSError:
            break
    while True:
        time.sleep(60)


def close_and_compute() -> None:
    """Close the output at once and continue for a while."""
    os.close(1)
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass


def keep_the_pipe() -> None:
    """End, while a daemon keeps the output open."""
    os.write(1, b"done\n")
    if os.fork() == 0:
        os.setsid()
        time.sleep(60)


def daemonise_without_environment() -> None:
    """Leave a daemon behind whose environment is empty, so that no tag tells where it came from."""
    heard, said = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            os.dup2(said, 5)
            wait = "import os, time; os.write(5, b'%d' % os.getpid()); os.closerange(0, 256); time.sleep(600)"
            os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", wait], {})  # noqa: S606 (no shell is the point)
        os._exit(0)
    os.wait()
    with open("daemon", "w", encoding="ascii") as file:  # noqa: PTH123 (no imports beyond need)
        file.write(os.read(heard, 32).decode())


def stop(ancestors: int) -> None:
    """Stop the processes above, and continue as if nothing had happened."""
    pid = os.getpid()
    for _ in range(ancestors):
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:  # noqa: PTH123 (no imports)
            pid = int(file.read().rpartition(")")[2].split()[1])
        os.kill(pid, signal.SIGSTOP)
    time.sleep(600)


def trace_parent() -> None:
    """Attach to the supervisor as a debugger does; it stands still from then on."""
    attach = 16
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long] * 4
    if libc.ptrace(attach, os.getppid(), 0, 0) != 0:
        sys.exit(71)
    time.sleep(600)


def real_time() -> str:
    """Ask for a priority that no other process can take the core from."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    except OSError as refused:
        return f"refused: {refused.errno}"
    return "granted"


def ask_for_real_time() -> None:
    """Ask for it, and burn time."""
    os.write(1, real_time().encode() + b"\n")
    os.write(1, b"policy %d\n" % os.sched_getscheduler(0))
    end = time.process_time() + 600
    while time.process_time() < end:
        pass


def tell() -> None:
    """What a target sees of the world."""
    told = {
        "descriptors": sorted(int(name) for name in os.listdir("/proc/self/fd"))[:-1],  # noqa: PTH208 (no imports)
        "arguments": [os.fsencode(word).hex() for word in sys.argv[2:]],
        "environment": dict(os.environ),
        "directory": os.getcwd(),  # noqa: PTH109 (no imports beyond need)
        "session": os.getsid(0) == os.getpid(),
        "terminal": os.isatty(0) or os.isatty(1) or os.isatty(2),
        "cores": sorted(os.sched_getaffinity(0)),
    }
    os.write(1, json.dumps(told).encode() + b"\n")


def kill_parent() -> None:
    """Kill the supervisor, and stay."""
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(600)


def hide_and_kill_parent() -> None:
    """Leave a daemon behind that no process looks for."""
    daemonise_without_environment()
    kill_parent()


def go_deep(levels: int) -> None:
    """Make folders in folders."""
    for _ in range(levels):
        os.mkdir("d")  # noqa: PTH102 (no imports beyond need)
        os.chdir("d")


HABITS: dict[str, Callable[[int], None]] = {
    "signal": die,
    "stop": lambda _: os.kill(os.getpid(), signal.SIGSTOP),
    "bomb": bomb,
    "close": lambda _: close_and_compute(),
    "keep-pipe": lambda _: keep_the_pipe(),
    "kill-group": lambda _: os.kill(0, signal.SIGKILL),
    "kill-parent": lambda _: kill_parent(),
    "stop-parent": lambda _: stop(1),
    "stop-ancestors": lambda _: stop(2),
    "trace-parent": lambda _: trace_parent(),
    "hide": lambda _: daemonise_without_environment(),
    "hide-and-kill-parent": lambda _: hide_and_kill_parent(),
    "real-time": lambda _: ask_for_real_time(),
    "deep": go_deep,
    "tell": lambda _: tell(),
}


if __name__ == "__main__":
    word = sys.argv[2] if len(sys.argv) > 2 else ""
    HABITS[sys.argv[1]](int(word) if word.isdigit() and sys.argv[1] != "tell" else 0)
