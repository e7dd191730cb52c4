"""Control groups, version 2: one group per run, which nothing that the run starts can leave by forking.

Needs a writable group of our own (a delegated one, or root). Counting CPU time, listing and killing work without any
controller; limits on memory and on the number of processes work where these controllers are handed down to us.
"""

import errno
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

from captime.supervision.messages import Launch, Report, plain_launch
from captime.supervision.processes import look_at, read_file

GROUP_NOTE = "group"
"""File in an executor's folder that names its control group."""
_REMOVAL_PATIENCE = 0.5


def own_group() -> Path | None:
    """Return the folder of the control group we are in, if there is a version 2 hierarchy at all."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        groups = Path("/proc/self/cgroup").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    inside = next((line[3:] for line in groups if line.startswith("0::")), None)
    for line in mounts:
        before, _, after = line.partition(" - ")
        if inside is not None and after.startswith("cgroup2 "):
            return Path(before.split()[4]) / inside.lstrip("/")
    return None


class Cgroup:
    """A group that exists as long as this object is not removed.

    Args:
        folder: Where; its parent must exist.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = str(folder)
        self._procs = f"{self._path}/cgroup.procs"
        self._stat = f"{self._path}/cpu.stat"
        folder.mkdir()

    def entrance(self) -> int:
        """Return a descriptor; a process that writes `0` to it is inside."""
        return os.open(self._procs, os.O_WRONLY | os.O_CLOEXEC)

    def place(self) -> int:
        """Return a descriptor; a process that is forked with it begins inside."""
        return os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def limit(self, memory: int | None, processes: int | None) -> bool:
        """Set limits; says whether memory is limited by the kernel now."""
        if processes is not None:
            self._set("pids.max", str(processes))
        if memory is None or not self._set("memory.max", str(memory)):
            return False
        # Swap would let it grow on; and a tree of which one process was killed is of no use any more.
        self._set("memory.swap.max", "0")
        self._set("memory.oom.group", "1")
        return True

    def cpu_ns(self) -> int:
        """CPU time of everything that ever was inside."""
        return self._number(self._stat, b"usage_usec") * 1000

    def peak_memory(self) -> int | None:
        """Return the most memory ever in use at once; None if the kernel did not count."""
        counted = read_file(f"{self._path}/memory.peak").strip()
        return int(counted) if counted.isdigit() else None

    def ran_out_of_memory(self) -> bool:
        """Say whether the kernel killed a process inside because the group reached its own limit."""
        return self._killed() and self._reached_its_limit()

    def killed_from_outside(self) -> bool:
        """Say whether the kernel killed a process inside for lack of memory that is not the group's own doing."""
        return self._killed() and not self._reached_its_limit()

    @property
    def counts_memory(self) -> bool:
        """Whether the kernel counts the memory of this group at all."""
        return bool(read_file(f"{self._path}/memory.events"))

    def _killed(self) -> bool:
        # The kernel counts here the processes killed by any of its out-of-memory killers, the machine's own included.
        return self._number(f"{self._path}/memory.events", b"oom_kill") > 0

    def _reached_its_limit(self) -> bool:
        # This one is counted only where it happened: at the group whose limit was reached, and above it.
        return self._number(f"{self._path}/memory.events", b"oom") > 0

    def pids(self) -> list[int]:
        """Return the processes inside."""
        return [int(pid) for pid in read_file(self._procs).split()]

    def kill(self) -> None:
        """Kill all processes inside at once; kernels before 5.14 cannot."""
        self._set("cgroup.kill", "1")

    def remove(self) -> None:
        """Take the empty group away."""
        try:
            os.rmdir(self._path)  # noqa: PTH106 (once per run; pathlib costs more than the call)
        except OSError:
            remove_groups(self.folder)

    def _set(self, name: str, value: str) -> bool:
        try:
            descriptor = os.open(f"{self._path}/{name}", os.O_WRONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            return os.write(descriptor, value.encode("ascii")) > 0
        except OSError:
            return False
        finally:
            os.close(descriptor)

    @staticmethod
    def _number(path: str, name: bytes) -> int:
        fields = read_file(path).split()
        return int(fields[fields.index(name) + 1]) if name in fields else 0


def hand_down_controllers(folder: Path) -> None:
    """Let groups below limit memory and processes, if we are allowed to; they count and kill without it."""
    for controller in ("+memory", "+pids"):
        try:
            (folder / "cgroup.subtree_control").write_text(controller, encoding="ascii")
        except OSError:
            continue


def hands_down_memory(folder: Path) -> bool:
    """Return whether groups below this one can limit memory."""
    return b"memory" in read_file(f"{folder}/cgroup.subtree_control").split()


def kill_groups(folder: Path) -> int:
    """Kill all processes in a group and in the groups below it, and remove these; return how many were inside."""
    inside = 0
    try:
        for each in [folder, *(path for path in folder.rglob("*") if path.is_dir())]:
            inside += len((each / "cgroup.procs").read_bytes().split())
        (folder / "cgroup.kill").write_text("1", encoding="ascii")
    except OSError:
        return inside
    remove_groups(folder)
    return inside


def remove_groups(folder: Path) -> None:
    """Take a group away with all groups below it. A process that was just killed may be inside for a moment longer."""
    deadline = time.monotonic() + _REMOVAL_PATIENCE
    while folder.exists():
        try:
            for below in [each for each in folder.iterdir() if each.is_dir()]:
                remove_groups(below)
            folder.rmdir()
        except OSError as trouble:
            if trouble.errno not in {errno.EBUSY, errno.ENOTEMPTY, errno.ENOENT} or time.monotonic() > deadline:
                return
            time.sleep(0.001)


# The escape attempt: which isolation level holds on this machine is found out by trying, not by asking for versions.
#
# The probe forks, starts a session, forks again, closes everything, and its main process ends. If the process it
# leaves behind is alive after the run was reported, the level does not hold.

# Prints the number of the process that tries to escape; the run's tree is otherwise gone when it ends.
_ESCAPE = """
import os, time
heard, said = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        os.write(said, b"%d" % os.getpid())
        os.closerange(0, 256)
        time.sleep(60)
    os._exit(0)
print(os.read(heard, 32).decode(), flush=True)
"""
_PATTERN = r"^(\d+)$"


def escape_attempt(number: int, tag: str) -> Launch:
    """Return the launch of the probe."""
    plain = plain_launch(sys.executable, "-I", "-S", "-c", _ESCAPE, number=number, tag=tag)
    return replace(plain, patterns={"escaped": _PATTERN})


def escaped(report: Report) -> str:
    """Why the level does not hold; nothing if it does."""
    found = report.matches.get("escaped")
    if report.ended != "exit" or report.exit_code != 0 or found is None:
        said = report.stderr_tail[-300:].decode("utf-8", "replace").strip()
        return f"the probe could not be run ({report.ended}: {report.problem or said or report.exit_code})"
    survivor = look_at(int(found))
    if survivor is not None and survivor.alive:
        return f"a process that forked twice and started sessions of its own survived (process {survivor.pid})"
    return ""
