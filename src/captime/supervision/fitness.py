"""Whether the machine is fit for a run: room on its disk, memory, processes, descriptors.

A run that fails while its machine is out of one of these says nothing about its configuration: it is lost, and made
again. The scratch folder is looked at before every run, which costs microseconds. After a run that seems to have failed
everything is looked at, and tried: what can be tried, a file, a pipe, a process, needs no knowledge of the system.
"""

import errno
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from captime.runs import Shortage
from captime.supervision.processes import Lack, MemoryKiller, read_file

SHORTAGE_OF = {
    errno.ENOSPC: Shortage.DISK,
    errno.EDQUOT: Shortage.DISK,
    errno.EROFS: Shortage.READ_ONLY,
    errno.ENOMEM: Shortage.MEMORY,
    errno.EAGAIN: Shortage.PROCESSES,
    errno.EMFILE: Shortage.DESCRIPTORS,
    errno.ENFILE: Shortage.DESCRIPTORS,
}
"""What the machine is out of, by the number of an error that the kernel returns to captime itself."""

# A program may say it too. Only errors that no limit of the run's own can cause: those are never the program's doing.
_SAID = {os.strerror(number).encode(): SHORTAGE_OF[number] for number in (errno.ENOSPC, errno.EDQUOT, errno.ENFILE)}
# Where programs write that do not ask for the folder of temporary files.
_ELSEWHERE = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 (looked at, never written to)
# Less than this share counts as none, between a least and a most: a small file system may be used nearly to its end.
_SHARE = 100
_LEAST_BYTES, _MOST_BYTES = 1 << 20, 64 << 20
_LEAST_FILES, _MOST_FILES = 4, 256
_TRIAL_BYTES = 1 << 16

StatVfs = Callable[[str], os.statvfs_result]


class Fitness:
    """Looks at the machine for one slot.

    Args:
        scratch: The folder in which directories of runs are made.
        statvfs: Tells how much room a file system has.
    """

    def __init__(self, scratch: str, statvfs: StatVfs = os.statvfs) -> None:
        self._scratch = scratch
        self._statvfs = statvfs
        self._killer = MemoryKiller()

    def before(self) -> Lack | None:
        """Look at the scratch folder: whether a run can begin there."""
        try:
            found = self._statvfs(self._scratch)
        except OSError as trouble:
            words = f"the scratch folder {self._scratch} cannot be used: {trouble.strerror}"
            return Lack(SHORTAGE_OF.get(trouble.errno or 0, Shortage.SCRATCH), words)
        if found.f_flag & os.ST_RDONLY:
            return Lack(Shortage.READ_ONLY, f"the file system of the scratch folder {self._scratch} is read-only")
        return _lack_of_room(found, self._scratch)

    def after(self, directory: str | None) -> Lack | None:
        """Look at the file systems that a run was told to write to.

        Args:
            directory: Where the run took place, if not in a directory of its own.
        """
        return self.before() or (None if directory is None else self._room_at(directory))

    def after_failure(self, said: bytes, *, killer: bool) -> Lack | None:
        """Look closely, after a run that seems to have failed.

        Args:
            said: The last of what it printed.
            killer: Whether processes that the kernel killed for lack of memory may have been the run's.
        """
        return (
            next((lack for place in _ELSEWHERE if (lack := self._room_at(place)) is not None), None)
            or (self._killer.look() if killer else None)
            or _lack_of_memory()
            or _tried("no file can be written to the scratch folder", self._write)
            or _tried("no further file can be opened", _open)
            or _tried("no further process can be started", _fork)
            or _as_said(said)
        )

    def _room_at(self, place: str) -> Lack | None:
        try:
            found = self._statvfs(place)
        except OSError:
            return None
        # What is read-only by nature is full by nature.
        return None if found.f_flag & os.ST_RDONLY else _lack_of_room(found, place)

    def _write(self) -> None:
        path = f"{self._scratch}/room"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            left = bytes(_TRIAL_BYTES)
            while left:
                left = left[os.write(descriptor, left) :]
        finally:
            os.close(descriptor)
            os.unlink(path)  # noqa: PTH108 (a slot supervisor; pathlib costs more than the call)


def lack_behind(trouble: OSError) -> Lack | None:
    """Return what the machine is out of, if that is what this error says; None if it says something else."""
    what = SHORTAGE_OF.get(trouble.errno or 0)
    return None if what is None else Lack(what, trouble.strerror or str(trouble))


def _lack_of_room(found: os.statvfs_result, place: str) -> Lack | None:
    unit = found.f_frsize
    free, all_of_it = (found.f_bfree if os.geteuid() == 0 else found.f_bavail) * unit, found.f_blocks * unit
    if all_of_it and free < _threshold(all_of_it, _LEAST_BYTES, _MOST_BYTES):
        return Lack(Shortage.DISK, f"the file system of {place} has {_size(free)} of {_size(all_of_it)} left")
    # Some file systems make room for files as they come, and say that there are none.
    files, all_files = (found.f_ffree if os.geteuid() == 0 else found.f_favail), found.f_files
    if all_files and files < _threshold(all_files, _LEAST_FILES, _MOST_FILES):
        return Lack(Shortage.INODES, f"the file system of {place} has room for {files} more files, of {all_files:,}")
    return None


def _threshold(whole: int, least: int, most: int) -> int:
    return max(least, min(most, whole // _SHARE))


def _lack_of_memory() -> Lack | None:
    fields = {line.split(b":")[0]: line.split() for line in read_file("/proc/meminfo").splitlines()}
    whole, free, swap = (
        int(fields[name][1]) * 1024 if name in fields else None for name in (b"MemTotal", b"MemAvailable", b"SwapFree")
    )
    if whole is None or free is None:
        return None
    left = free + (swap or 0)
    if left >= _threshold(whole, _LEAST_BYTES, _MOST_BYTES):
        return None
    return Lack(Shortage.MEMORY, f"the machine has {_size(left)} of {_size(whole)} of memory left")


def _tried(words: str, attempt: Callable[[], None]) -> Lack | None:
    try:
        attempt()
    except OSError as trouble:
        found = lack_behind(trouble)
        return None if found is None else Lack(found.what, f"{words}: {found.words}")
    return None


def _open() -> None:
    for descriptor in os.pipe():
        os.close(descriptor)


def _fork() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def _as_said(said: bytes) -> Lack | None:
    for words, what in _SAID.items():
        if words in said:
            return Lack(what, f"the program said {words.decode()!r}")
    return None


def _size(number: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number} bytes"


def looks_failed(exit_codes: Sequence[int] | None, exit_code: int | None, *, unanswered: bool) -> bool:
    """Say whether a run that has ended looks like one that did not answer.

    Args:
        exit_codes: The accepted ones; None for the usual, 0.
        exit_code: Its own; None if a signal ended it.
        unanswered: Whether something else says so: a pattern, a verifier, a function that returned nothing.
    """
    if exit_code is None or unanswered:
        return True
    return exit_code not in ((0,) if exit_codes is None else exit_codes)


# Whether the machine was in trouble during a run: it swapped, a core was slowed down, a container's share was used
# up.
#
# Such a run counts all the same, because to leave it out would be a choice made after seeing it. But it is flagged:
# its time says more about the machine than about the program.

# Counters of every core are looked at before and after every run; on a machine with many, those of packages must do.
_MOST_CORES = 16

Counters = dict[str, int]
"""How often each kind of trouble has happened so far, by the flag that a run gets for it."""


class MachineHealth:
    """The kernel's counters of trouble; those that this machine does not have are left out.

    Args:
        cores: On which runs may happen.
        proc: Where the kernel shows processes.
        sys: Where it shows the machine.
    """

    def __init__(self, cores: Iterable[int], proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> None:
        self._swapped = str(proc / "vmstat") if _swaps(proc) else None
        self._slowed = [str(path) for path in _heat_counters(sorted(cores), sys / "devices/system/cpu")]
        self._short = [str(path) for path in _share_counters(proc, sys / "fs/cgroup")]

    def read(self) -> Counters:
        """Return the counters as they are now."""
        found = {}
        if self._swapped is not None:
            found["swapping"] = _sum_of(self._swapped, (b"pswpin", b"pswpout"))
        if self._slowed or self._short:
            heat = sum(int(read_file(path) or 0) for path in self._slowed)
            found["throttled"] = heat + sum(_sum_of(path, (b"nr_throttled",)) for path in self._short)
        return found

    def since(self, before: Counters) -> tuple[str, ...]:
        """Flags of a run that began when the counters stood like that."""
        return tuple(flag for flag, count in self.read().items() if count > before[flag])


def usable_cores() -> set[int]:
    """Return the cores that this process may use; empty where the system does not say."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


def _swaps(proc: Path) -> bool:
    """Return whether there is anything to swap to: a line for each place, below a line of headings."""
    return len(read_file(str(proc / "swaps")).splitlines()) > 1


def _heat_counters(cores: list[int], folder: Path) -> list[Path]:
    """Return how often each core was slowed down because of its heat, and each package of cores."""
    of_cores: list[Path] = []
    of_packages: dict[bytes, Path] = {}
    for core in cores:
        place = folder / f"cpu{core}"
        of_cores.append(place / "thermal_throttle/core_throttle_count")
        package = read_file(str(place / "topology/physical_package_id"))
        of_packages.setdefault(package, place / "thermal_throttle/package_throttle_count")
    wanted = [*(of_cores if len(of_cores) <= _MOST_CORES else ()), *of_packages.values()]
    return [path for path in wanted if path.exists()]


def _share_counters(proc: Path, groups: Path) -> list[Path]:
    """Where it is counted how often our control group, or one above it, had used up the CPU time it is allowed."""
    found = []
    for line in read_file(str(proc / "self/cgroup")).decode(errors="replace").splitlines():
        number, controllers, name = line.split(":", 2)
        if number == "0":
            root = groups
        elif "cpu" in controllers.split(","):
            root = groups / controllers
        else:
            continue
        own = Path(name.lstrip("/"))
        found += [root / group / "cpu.stat" for group in (own, *own.parents)]
    # Without a limit there is nothing to count, and no such line.
    return [path for path in dict.fromkeys(found) if b"nr_throttled" in read_file(str(path))]


def _sum_of(path: str, names: tuple[bytes, ...]) -> int:
    lines = (line.split() for line in read_file(path).splitlines())
    return sum(int(words[1]) for words in lines if len(words) == 2 and words[0] in names)
