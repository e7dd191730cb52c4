"""Whether the machine was in trouble during a run: it swapped, a core was slowed down, a container's share was used up.

Such a run counts all the same, because to leave it out would be a choice made after seeing it. But it is flagged: its
time says more about the machine than about the program.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from captime.supervision.kernel import read_file

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
