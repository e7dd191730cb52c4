"""Which limit a run has reached, if any: the one place where readings are compared with what a launch allows."""

import os
import time
from collections.abc import Iterator

from captime.supervision.messages import Ended, Launch
from captime.supervision.process_tree import ProcessTree
from captime.supervision.processes import Process, proportional_bytes, resident_bytes
from captime.supervision.scratch import used_bytes

_SECOND = 1_000_000_000
# How often the tree is looked at while it runs: more often where memory has to be watched by looking.
_LOOK_NS = 50_000_000
_LOOK_AT_MEMORY_NS = 20_000_000
_LOOK_AT_DISK_NS = 500_000_000
_SHORTEST_NS = 500_000
_CORES = os.cpu_count() or 1


def too_late(runtime_ns: int, captime: float) -> bool:
    """A run that took its captime or longer is capped, whatever it says; the only comparison of its kind here."""
    return runtime_ns / _SECOND >= captime


class Limits:
    """The limits of one run, and what was last seen of it.

    Args:
        launch: What is allowed.
        tree: The process tree that is limited.
        folder: The run's own directory.
        memory_is_limited: The kernel limits the memory of the tree; no polling is needed.

    Attributes:
        seen_ns: On the launch's clock, the last reading at which the run was unfinished for sure.
        peak_memory: The largest sum over the tree that was seen.
        problem: Why it was stopped, where `Ended` has no word for it.
    """

    def __init__(self, launch: Launch, tree: ProcessTree, folder: str, *, memory_is_limited: bool) -> None:
        self.seen_ns = 0
        self.peak_memory = 0
        self.problem = ""
        self._launch = launch
        self._tree = tree
        self._folder = folder
        self._memory = None if memory_is_limited else launch.memory_limit
        self._every = _LOOK_NS if self._memory is None else _LOOK_AT_MEMORY_NS
        now = tree.started.wall_ns
        self._next_sample = now + self._every
        self._next_disk = now + _LOOK_AT_DISK_NS
        self._disk: Iterator[int] | None = None
        self._threads = 1
        self._looked_at = 0
        self.next_look_ns = now + min(self._every, self._left_ns(0, 0))

    def reached(self) -> Ended | None:
        """Look, if it is time to, and say which limit has been reached."""
        now = time.monotonic_ns()
        if now < self.next_look_ns:
            return None
        living = None
        if now >= self._next_sample or self._threads > 1:
            living = self._look()
            self._next_sample = now + self._every
        wall = now - self._tree.started.wall_ns
        reading = wall if self._launch.clock == "wall" else self._tree.cpu_ns()
        if self._tree.main_has_ended():
            return None
        self.seen_ns = max(self.seen_ns, reading)
        self.next_look_ns = time.monotonic_ns() + max(_SHORTEST_NS, min(self._every, self._left_ns(reading, wall)))
        if too_late(self.seen_ns, self._launch.captime):
            return "captime"
        if too_late(wall, self._launch.wall_limit):
            return "wall"
        if living is not None and self._memory_is_used_up(living):
            return "memory"
        if living is not None and self._crowded(living):
            return "exit"
        return "disk" if now >= self._next_disk and self._disk_is_full(now) else None

    def reading_ns(self) -> int:
        """Return the launch's clock as of now."""
        if self._launch.clock == "wall":
            return time.monotonic_ns() - self._tree.started.wall_ns
        # The CPU time of other processes than the main one is known as of the last look.
        if time.monotonic_ns() - self._looked_at > _SHORTEST_NS:
            self._look()
        return self._tree.cpu_ns()

    def _look(self) -> list[Process]:
        living = self._tree.sample()
        self._threads = max(1, sum(each.threads for each in living))
        self._looked_at = time.monotonic_ns()
        return living

    def disk_is_used_up(self) -> bool:
        """For a run that has failed: whether the kernel may have refused it more room."""
        allowed = self._launch.disk_limit
        return allowed is not None and max(used_bytes(self._folder)) >= allowed

    def _left_ns(self, reading: int, wall: int) -> int:
        """Wall-clock time until a limit can be reached at the earliest, if every thread burns on a core of its own."""
        launch = self._launch
        at_once = 1 if launch.clock == "wall" else min(self._threads, _CORES)
        left = min((launch.captime * _SECOND - reading) / at_once, launch.wall_limit * _SECOND - wall)
        return int(min(max(0.0, left), float(_LOOK_NS)))

    def _memory_is_used_up(self, living: list[Process]) -> bool:
        used = sum(resident_bytes(each.pid) for each in living)
        if self._memory is not None and used > self._memory and len(living) > 1:
            # Processes that were forked share pages; counted in full for each, they seem more than they are.
            used = sum(proportional_bytes(each.pid) for each in living)
        self.peak_memory = max(self.peak_memory, used)
        return self._memory is not None and used > self._memory

    def _crowded(self, living: list[Process]) -> bool:
        allowed = self._launch.processes_limit
        if allowed is None or len(living) <= allowed:
            return False
        self.problem = f"it had {len(living)} processes, {allowed} are allowed"
        return True

    def _disk_is_full(self, now: int) -> bool:
        """Continue counting, a portion at a time; a directory of a million files does not keep us from the clocks."""
        if self._launch.disk_limit is None:
            return False
        if self._disk is None:
            self._disk = used_bytes(self._folder)
        used = next(self._disk, None)
        if used is None:
            self._disk = None
            self._next_disk = now + _LOOK_AT_DISK_NS
            return False
        self.next_look_ns = now
        return used > self._launch.disk_limit
