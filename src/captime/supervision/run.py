"""One run from start to end: wait, stop it at the first limit it reaches, and say what happened.

The order of the ending is the design. A clock is read first and the main process is asked afterwards whether it has
ended, so that a reading is a time at which the run was surely unfinished. What is left of the tree is killed before its
total is read. Only then are output, guarded files and the state of the machine looked at.
"""

import functools
import os
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from captime.runs import Halt, Shortage
from captime.supervision.cgroups import Cgroup
from captime.supervision.messages import Ended, Fingerprint, Launch, Report
from captime.supervision.output import IoLoop, Matcher, Pipe
from captime.supervision.process_tree import ProcessTree
from captime.supervision.processes import Process, proportional_bytes, resident_bytes, suspended_ns
from captime.supervision.scratch import used_bytes

# Which limit a run has reached, if any: the one place where readings are compared with what a launch allows.

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


# One run from start to end: wait, stop it at the first limit it reaches, and say what happened.
#
# The order of the ending is the design. A clock is read first and the main process is asked afterwards whether it has
# ended, so that a reading is a time at which the run was surely unfinished. What is left of the tree is killed before
# its total is read. Only then are output, guarded files and the state of the machine looked at.

# Output may still be on its way from a helper process when the main process has ended.
_DRAIN_NS = 100_000_000
_LAST_LOOK_SECONDS = 30.0
_TELL_NS = 500_000_000
_CONTENDED_SHARE, _CONTENDED_NS = 0.05, 1_000_000
_IDLE_SHARE, _IDLE_NS = 0.1, 50_000_000
_DISAGREE_SHARE, _DISAGREE_NS = 0.05, 20_000_000
_SUSPENDED_NS = 50_000_000
_OVERSLEPT_NS = 250_000_000
_KILLED = "the kernel killed a process of the run for lack of memory, and the run was within its own limit"


class CoordinatorLink(Protocol):
    """What else a supervisor does during a run."""

    def attend(self, ready: set[int]) -> bool:
        """Hear the coordinator; True if the run under way shall be stopped."""
        ...

    def tell(self, seen_ns: int) -> None:
        """Pass on how far the run has come."""
        ...


@dataclass(frozen=True, slots=True)
class Pipes:
    """The streams of a run; `result` is that of a function's value."""

    stdout: Pipe
    stderr: Pipe
    matcher: Matcher
    result: Pipe | None = None

    def each(self) -> list[Pipe]:
        """Return all of them."""
        return [self.stdout, self.stderr] if self.result is None else [self.stdout, self.stderr, self.result]

    @property
    def written(self) -> int:
        """Bytes of stdout and stderr so far."""
        return self.stdout.capture.total + self.stderr.capture.total


def changed_file(guarded: tuple[Fingerprint, ...]) -> tuple[str, str] | None:
    """Return the first of these files that is not what it was, and what happened to it; None if all are."""
    for path, device, inode, size, content_ns, status_ns, digest in guarded:
        try:
            found = os.stat(path)  # noqa: PTH116 (before and after every run; pathlib costs more than the call)
        except OSError as trouble:
            return path, f"{path}: {trouble.strerror}; it was there when the campaign began"
        same = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns) == (device, inode, size, content_ns)
        if not same or (found.st_ctime_ns != status_ns and not _holds(path, found.st_ctime_ns, digest)):
            return path, f"{path}: it is not the file it was when the campaign began; put it back or begin anew"
    return None


@functools.lru_cache(maxsize=4096)
def _holds(path: str, status_ns: int, digest: str) -> bool:  # noqa: ARG001 (asked once for each change of status)
    """Return whether a file whose status was changed still holds what it held: a new mode or link is no change."""
    from hashlib import sha256  # noqa: PLC0415 (rarely needed, and supervisors stay small)

    found = sha256()
    try:
        with open(path, "rb") as stream:  # noqa: PTH123 (a name of any bytes, as above)
            while piece := stream.read(1 << 20):
                found.update(piece)
    except OSError:
        return False
    return found.hexdigest() == digest


class SupervisedRun:
    """A run under way.

    Args:
        launch: What was asked for.
        tree: What it has started.
        pipes: Its streams.
        limits: What it may use.
        listener: Where we wait.
        duties: What else has to be done meanwhile.
        group: Its control group, if it has one.
    """

    def __init__(
        self,
        launch: Launch,
        tree: ProcessTree,
        pipes: Pipes,
        limits: Limits,
        *,
        listener: IoLoop,
        duties: CoordinatorLink,
        group: Cgroup | None,
    ) -> None:
        self._launch = launch
        self._tree = tree
        self._pipes = pipes
        self._limits = limits
        self._listener = listener
        self._duties = duties
        self._group = group
        self._slept_before = suspended_ns()
        self._overslept = 0
        if launch.until is not None:
            pipes.stdout.clock = limits.reading_ns

    def watch(self) -> Report:
        """Wait until it is over, one way or another, and until nothing of it is left."""
        ended = self._settled(self._wait())
        wall = time.monotonic_ns() - self._tree.started.wall_ns
        runtime = self._limits.seen_ns if self._reached_ns is None else self._reached_ns
        exited = ended == "exit" and not self._limits.problem
        if exited:
            self._tree.sample()
            runtime = wall if self._launch.clock == "wall" else self._tree.cpu_ns()
            if too_late(runtime, self._launch.captime):
                ended = "captime"
            self._pipes.stdout.clock = lambda: runtime
            self._drain()
        killed, all_gone = self._tree.destroy()
        status = self._tree.finish()
        self._final_output(runtime)
        if exited and self._reached_ns is not None:
            # The line was written before the end, and read after it: how the program ended does not matter any more.
            runtime = min(runtime, self._reached_ns)
            ended = "captime" if too_late(runtime, self._launch.captime) else "target"
        leftovers = killed if exited else 0
        return self._judged(self._report(ended, status, wall, runtime, leftovers), all_gone=all_gone)

    def _wait(self) -> Ended:
        """Wait until the main process ends, a limit is reached or the run is stopped; return which of these."""
        tell_at = time.monotonic_ns() + _TELL_NS
        while True:
            planned = self._limits.next_look_ns
            ready = self._listener.wait(0.0 if self._busy() else (planned - time.monotonic_ns()) / _SECOND)
            now = time.monotonic_ns()
            self._overslept = max(self._overslept, now - planned)
            if self._tree.main_has_ended():
                return "exit"
            stopped = self._duties.attend(ready)
            for pipe in self._pipes.each():
                pipe.heard(ready)
            if self._reached_ns is not None:
                return "target"
            if stopped:
                return "cancelled"
            if self._pipes.written > self._launch.output_limit:
                return "output"
            reached = self._limits.reached()
            if reached is not None:
                return reached
            if now >= tell_at and (unfinished := self._unfinished_ns()):
                self._duties.tell(unfinished)
                tell_at = now + _TELL_NS

    @property
    def _reached_ns(self) -> int | None:
        """The reading at which the target was reached; None if it was not, or there is none."""
        return self._pipes.matcher.reached_ns

    def _unfinished_ns(self) -> int:
        """Return the last reading at which the run was unfinished for sure: lines that wait for a look may end it."""
        waiting = self._pipes.matcher.waiting_since_ns if self._launch.until is not None else None
        return self._limits.seen_ns if waiting is None else min(self._limits.seen_ns, waiting)

    def _settled(self, ended: Ended) -> Ended:
        """Return why a run with a target ended, after a look at every line that was read before that."""
        if self._launch.until is None or ended not in ("captime", "cancelled", "target"):
            return ended
        self._pipes.matcher.look(_LAST_LOOK_SECONDS)
        reached = self._reached_ns
        if reached is None:
            return ended
        return "captime" if too_late(reached, self._launch.captime) else "target"

    def _busy(self) -> bool:
        return self._pipes.stdout.busy

    def _drain(self) -> None:
        """Hear the rest, until the streams end or the patience does: a daemon may hold them open for ever."""
        deadline = time.monotonic_ns() + _DRAIN_NS
        while any(pipe.open for pipe in self._pipes.each()) or self._busy():
            left = deadline - time.monotonic_ns()
            if left <= 0 or self._pipes.written > self._launch.output_limit:
                return
            ready = self._listener.wait(0.0 if self._busy() else left / _SECOND)
            self._duties.attend(ready)
            for pipe in self._pipes.each():
                pipe.heard(ready)

    def _final_output(self, runtime: int) -> None:
        """Read what is still in the pipes; no process is left to write more."""
        self._pipes.stdout.clock = lambda: runtime
        for pipe in self._pipes.each():
            while self._pipes.written <= self._launch.output_limit and pipe.read():
                pass
            pipe.close()
        self._pipes.matcher.finish(runtime)
        self._pipes.matcher.look(_LAST_LOOK_SECONDS)

    def _report(self, ended: Ended, status: int, wall: int, runtime: int, leftovers: int) -> Report:
        pipes, usage = self._pipes, self._tree.usage
        ended_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        result = pipes.result
        killed = self._group is not None and self._group.killed_from_outside()
        return Report(
            number=self._launch.number,
            ended=self._reason(ended, status),
            exit_code=os.WEXITSTATUS(status) if ended_by is None else None,
            signal=ended_by,
            cpu_ns=self._tree.total_cpu_ns(),
            wall_ns=wall,
            runtime_ns=runtime,
            peak_memory=self._peak_memory(),
            queue_wait_ns=self._tree.queue_wait_ns,
            switches=usage.switches,
            leftovers=leftovers,
            output_bytes=pipes.written,
            stdout_head=pipes.stdout.capture.head,
            stdout_tail=pipes.stdout.capture.tail,
            stderr_tail=pipes.stderr.capture.tail,
            matches=pipes.matcher.found,
            returned=result.capture.head if result is not None and result.capture.total else None,
            shortage=Shortage.MEMORY if killed else None,
            short=_KILLED if killed else "",
        )

    def _reason(self, ended: Ended, status: int) -> Ended:
        """Why it ended, where the kernel was faster than we were."""
        if ended != "exit":
            return ended
        if self._pipes.written > self._launch.output_limit:
            return "output"
        if self._group is not None and self._group.ran_out_of_memory():
            return "memory"
        return "disk" if status != 0 and self._limits.disk_is_used_up() else ended

    def _peak_memory(self) -> int | None:
        """Return the largest memory use seen; None for a small run that was over before the first look."""
        counted = None if self._group is None else self._group.peak_memory()
        if counted is not None:
            return counted
        largest = self._tree.usage.largest
        # A process begins as a copy of the supervisor, and the kernel never forgets how large that was.
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        seen = max(self._limits.peak_memory, largest if largest > own else 0)
        return seen or None

    def _judged(self, report: Report, *, all_gone: bool) -> Report:
        """Flags, and whether it has to count as lost."""
        launch, cpu, wall = self._launch, report.cpu_ns, report.wall_ns
        waited = self._tree.usage.cpu_ns
        suspended = suspended_ns() - self._slept_before > _SUSPENDED_NS
        changed = changed_file(launch.guarded)
        flags = {
            "contended": report.queue_wait_ns > max(_CONTENDED_SHARE * wall, _CONTENDED_NS),
            # A run that waits for a core does not sleep; of the rest of its time it may have slept the most.
            "idle": wall > _IDLE_NS and is_idle(cpu, wall, report.queue_wait_ns),
            "clocks-disagree": cpu - waited > max(_DISAGREE_SHARE * cpu, _DISAGREE_NS),
            "leftovers": report.leftovers > 0,
            "suspended": suspended,
        }
        lost, halt, file = "", None, ""
        if changed is not None:
            (file, lost), halt = changed, Halt.FILE_CHANGED
        elif suspended:
            lost = "the machine was suspended during the run"
        elif launch.clock == "wall" and self._overslept > _OVERSLEPT_NS and report.ended in ("exit", "target"):
            lost = f"the supervisor was held up for {self._overslept / _SECOND:.2f} s; when the run ended is unknown"
        elif not all_gone:
            lost = "a process of the run could not be killed"
        elif self._pipes.matcher.problem:
            lost, halt = self._pipes.matcher.problem, Halt.PATTERN_TOO_SLOW
        return replace(
            report,
            ended="lost" if lost else report.ended,
            flags=tuple(name for name, raised in flags.items() if raised),
            problem=lost or self._limits.problem,
            halt=halt,
            changed_file=file,
        )


def is_idle(cpu: int, wall: int, queue_wait: int) -> bool:
    """Say whether a run slept nearly all of the time in which it had a core or wanted none."""
    return cpu < _IDLE_SHARE * (wall - queue_wait)
