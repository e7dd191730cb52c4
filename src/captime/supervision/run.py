"""One run from start to end: wait, stop it at the first limit it reaches, and say what happened.

The order of the ending is the design. A clock is read first and the main process is asked afterwards whether it has
ended, so that a reading is a time at which the run was surely unfinished. What is left of the tree is killed before its
total is read. Only then are output, guarded files and the state of the machine looked at.
"""

import functools
import os
import resource
import time
from dataclasses import dataclass, replace
from typing import Protocol

from captime.runs import Halt, Shortage
from captime.supervision.cgroups import Cgroup
from captime.supervision.io_loop import IoLoop, Pipe
from captime.supervision.kernel import suspended_ns
from captime.supervision.limits import Limits, too_late
from captime.supervision.messages import Ended, Fingerprint, Launch, Report
from captime.supervision.output import Matcher
from captime.supervision.process_tree import ProcessTree

_SECOND = 1_000_000_000
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


class Run:
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
