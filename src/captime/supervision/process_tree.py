"""The process tree of one run: what it has used so far, which processes are alive, and how all of them are ended.

Three ways, called isolation levels. `cgroup2`: a control group of its own, which counts and kills everything in it.
`subreaper`: orphans become children of the supervisor, so everything below it belongs to the run. `posix`: sessions, a
walk from parent to child, and the tag in the environment. The two better ways use the weaker ones as well.
"""

import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from captime.supervision.cgroups import Cgroup
from captime.supervision.processes import (
    Process,
    children_of,
    cpu_clock_ns,
    descendants,
    look_at,
    queue_wait_ns,
    tagged,
)
from captime.supervision.spawn import SpawnedProcess

Isolation = Literal["cgroup2", "subreaper", "posix"]
ISOLATIONS: tuple[Isolation, ...] = ("cgroup2", "subreaper", "posix")

# A process in the middle of a disk access dies only when that is over.
_KILL_PATIENCE = 60.0
_ROUNDING_NS = 20_000_000


@dataclass(slots=True)
class Usage:
    """What those used who were waited for.

    Attributes:
        cpu_ns: CPU time, of their own waited-for children too.
        switches: Involuntary context switches.
        largest: Bytes, the largest process among them.
    """

    cpu_ns: int = 0
    switches: int = 0
    largest: int = 0

    def add(self, pid: int, options: int) -> int | None:
        """Wait for a child; its status, or None if it is not over yet, or no child of ours."""
        try:
            waited, status, used = os.wait4(pid, options)
        except ChildProcessError:
            return None
        if waited == 0:
            return None
        self.cpu_ns += round((used.ru_utime + used.ru_stime) * 1e6) * 1000
        self.switches += used.ru_nivcsw
        self.largest = max(self.largest, used.ru_maxrss * 1024)
        return status


class ProcessTree:
    """Everything that a run has started.

    Args:
        started: Its main process.
        group: Its control group, on level `cgroup2`.
        adopts: Orphans become our children; False on level `posix`.
        keep: Children of the supervisor that are no part of the run.
        tag: The value of `CAPTIME_RUN` in its environment.

    Attributes:
        usage: What those used who were waited for.
        queue_wait_ns: How long its processes waited for a core, as far as it was seen.
    """

    def __init__(
        self,
        started: SpawnedProcess,
        group: Cgroup | None,
        *,
        adopts: bool,
        keep: Callable[[], frozenset[int]],
        tag: str,
    ) -> None:
        self.started = started
        self.usage = Usage()
        self._group = group
        self._adopts = adopts
        self._keep = keep
        self._tag = tag
        self._waits: dict[int, int] = {}
        self._seen: dict[tuple[int, int], Process] = {}
        self._forgotten_ns = 0
        self._most_ns = 0

    @property
    def queue_wait_ns(self) -> int:
        """How long its processes were ready and waited for a core, as far as it was seen."""
        return max(0, sum(self._waits.values()) - self.started.queue_wait_ns)

    def main_has_ended(self) -> bool:
        """Return whether the main process is over; it stays a zombie, so that its number is not reused."""
        if not hasattr(os, "waitid"):
            process = look_at(self.started.pid)
            return process is None or not process.alive
        try:
            return os.waitid(os.P_PID, self.started.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def members(self) -> list[Process]:
        """Return all processes of the tree, the main process included, zombies too."""
        if self._adopts:
            inside = [] if self._group is None else self._group.pids()
            return list(descendants([*children_of(os.getpid()), *inside], self._keep()))
        known = [pid for pid, _ in self._seen]
        return list(descendants([self.started.pid, *known], self._keep() | {os.getpid()}))

    def sample(self) -> list[Process]:
        """Look at every process once; return those alive. Meant to be called now and then during a run."""
        members = self.members()
        if self._group is None:
            self._count_gone(members)
        self._seen = {(each.pid, each.started): each for each in members}
        for each in members:
            self._waits[each.pid] = queue_wait_ns(each.pid, each.threads)
        self._reap()
        return [each for each in members if each.alive]

    def cpu_ns(self) -> int:
        """CPU time of the whole tree so far, as of now on level `cgroup2`, else as of the last sample but for main."""
        self._most_ns = max(self._most_ns, self._reading_ns())
        return self._most_ns

    def _reading_ns(self) -> int:
        clock = cpu_clock_ns(self.started.pid)
        if clock is None:
            clock = max((each.own_ns for each in self._seen.values() if each.pid == self.started.pid), default=0)
        main = max(0, clock - self.started.cpu_ns)
        if self._group is not None:
            # The group's count lags by a tick of the scheduler, the clock of a process does not.
            return max(main, self._counted_ns())
        others = sum(
            each.children_ns + (each.own_ns if each.pid != self.started.pid else 0) for each in self._seen.values()
        )
        return main + others + self.usage.cpu_ns + self._forgotten_ns

    def _counted_ns(self) -> int:
        """Return what the control group has counted since the main process became the target."""
        return 0 if self._group is None else max(0, self._group.cpu_ns() - self.started.counted_ns)

    def _count_gone(self, members: Iterable[Process]) -> None:
        """Keep the CPU time of processes that vanished without having been waited for."""
        now = {(each.pid, each.started): each for each in members}
        alive = {each.pid: each for each in now.values()}
        gone: dict[int, int] = {}
        for key, process in self._seen.items():
            if key not in now:
                gone[process.parent] = gone.get(process.parent, 0) + process.own_ns + process.children_ns
        for parent, used in gone.items():
            before = next((each for each in self._seen.values() if each.pid == parent), None)
            after = alive.get(parent)
            if before is not None and after is not None:
                missing = used - (after.children_ns - before.children_ns)
            else:
                missing = used if parent == 1 else 0
            if missing > _ROUNDING_NS:
                self._forgotten_ns += missing

    def _reap(self) -> None:
        """Wait for orphans that have ended; what they used is added up."""
        if self._adopts:
            for pid in children_of(os.getpid()):
                if pid != self.started.pid and pid not in self._keep():
                    waited = queue_wait_ns(pid, 1)
                    if self.usage.add(pid, os.WNOHANG) is not None:
                        self._waits[pid] = max(waited, self._waits.get(pid, 0))
                        self._seen = {key: each for key, each in self._seen.items() if key[0] != pid}

    def destroy(self) -> tuple[int, bool]:
        """Kill all processes of the tree and wait until none is left.

        Returns:
            How many were killed besides the main process, and whether all of them are gone.
        """
        killed: set[tuple[int, int]] = set()
        deadline = time.monotonic() + _KILL_PATIENCE
        looks_without_any = 0
        pause = 0.0
        while looks_without_any < 2:
            living = self._living(killed)
            looks_without_any = 0 if living else looks_without_any + 1
            if living:
                if self._group is not None:
                    self._group.kill()
                strike_group(self.started.pid)
                for each in living:
                    strike(each)
                killed.update((each.pid, each.started) for each in living)
                if time.monotonic() > deadline:
                    return len(killed), False
                time.sleep(pause)
                pause = min(0.01, pause + 0.0005)
            self._reap()
        return len({pid for pid, _ in killed} - {self.started.pid}), True

    def _living(self, killed: Iterable[tuple[int, int]]) -> list[Process]:
        """Return the processes alive, killed ones included that are not gone yet and cannot be found any more."""
        found = {(each.pid, each.started): each for each in self._all_members()}
        for pid, started in killed:
            leaving = look_at(pid)
            if leaving is not None and leaving.started == started:
                found.setdefault((pid, started), leaving)
        return [each for each in found.values() if each.alive]

    def _all_members(self) -> list[Process]:
        members = self.members()
        if self._adopts:
            return members
        mine = {os.getpid(), *self._keep()}
        found = [look_at(pid) for pid in tagged(self._tag, whole=True) if pid not in mine]
        return members + [each for each in found if each is not None]

    def finish(self) -> int:
        """After `destroy`: wait for the main process; its status as `os.wait4` gives it."""
        self._reap()
        self._waits[self.started.pid] = max(queue_wait_ns(self.started.pid, 1), self._waits.get(self.started.pid, 0))
        status = self.usage.add(self.started.pid, 0)
        self._seen = {}
        self.usage.cpu_ns = max(0, self.usage.cpu_ns - self.started.cpu_ns)
        return 0 if status is None else status

    def total_cpu_ns(self) -> int:
        """After `finish`: CPU time of everything that ever was in the tree."""
        counted = self._counted_ns()
        return max(self.usage.cpu_ns + self._forgotten_ns, counted, self._most_ns)


def strike(process: Process) -> None:
    """Kill exactly this process, and no later one that was given its number."""
    if process.pid <= 1 or process.pid == os.getpid():
        return
    try:
        if not hasattr(os, "pidfd_open"):
            os.kill(process.pid, signal.SIGKILL)
            return
        handle = os.pidfd_open(process.pid)
    except OSError:
        return
    try:
        again = look_at(process.pid)
        if again is not None and again.started == process.started:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    except OSError:
        return
    finally:
        os.close(handle)


def strike_group(leader: int) -> None:
    """Kill the process group that a process leads, but never our own."""
    if leader <= 1 or leader == os.getpgrp():
        return
    try:
        os.killpg(leader, signal.SIGKILL)
    except OSError:
        return
