"""The jobs of a batch queue: submitted, watched, replaced when they have ended, and cancelled with the campaign.

dask-jobqueue writes the script of a job and knows the commands that submit and cancel it. It never replaces a job that
has ended before its worker joined, and its way of closing fails after a refused submission; so jobs are kept here.
Slurm is asked what has become of a job. Other queues are not: there, a job whose worker has left is taken to be over.
"""

import asyncio
import logging
import math
import os
import re
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from stat import S_ISREG
from typing import Any

from captime.errors import ScenarioError

_log = logging.getLogger("captime")
_LOOK_SECONDS = 3.0
_ASK_SECONDS = 10.0
_COMMAND_SECONDS = 120.0
_CLOSE_SECONDS = 30.0
# A worker that has stayed so long is one that can be used, and one that is away so long does not come back.
_STEADY_SECONDS = 60.0
# A job that was submitted a moment ago may not be in the queue's list yet.
_LISTED_SECONDS = 30.0
_MOST_FRUITLESS = 3
_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 600.0
_AT_ONCE = 20
_JOBS_NAMED = 3
# Slurm's words for jobs that may still bring a worker.
_ALIVE = frozenset({"PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED"})
_FIELD = re.compile(r"(\w+)=(\S*)")
_TAIL_BYTES, _LONGEST = 8192, 300


@dataclass(slots=True, eq=False)
class _Job:
    """One job.

    Attributes:
        name: Of its worker.
        job: As dask-jobqueue knows it.
        submitted: When.
        joined: When its worker was first seen; None before.
        left: Since when its worker is away; None while it is there.
        addresses: Of its worker, which may have been started again.
        state: What the queue calls it; empty if it was not asked, or does not know it.
        reason: Why it waits, in the queue's words.
        good: Whether its worker was seen to be of use.
    """

    name: str
    job: Any
    submitted: float
    joined: float | None = None
    left: float | None = None
    addresses: set[str] = field(default_factory=set)
    state: str = ""
    reason: str = ""
    good: bool = False

    @property
    def id(self) -> str:
        return str(self.job.job_id)

    def __str__(self) -> str:
        reason = f" ({self.reason})" if self.reason not in ("", "None") else ""
        return f"job {self.id} is {self.state or 'submitted'}{reason}"


class Jobs:
    """Keeps the number of jobs at what is wanted.

    Args:
        cluster: A cluster of dask-jobqueue, without any job yet.
        kind: Of the queue, such as `slurm`.
        wanted: How many jobs.

    Attributes:
        over: Why no job will bring a worker any more; "" as long as one may.
    """

    def __init__(self, cluster: Any, kind: str, wanted: int) -> None:
        self.over = ""
        self._cluster = cluster
        self._kind = kind
        self._wanted = wanted
        self._jobs: dict[str, _Job] = {}
        self._numbers = count(1)
        self._news: list[dict[str, object]] = []
        self._useful: set[str] = set()
        self._fruitless = 0
        self._why = ""
        self._submit_after = -math.inf
        self._asked_at = -math.inf
        self._listed: frozenset[str] | None = None
        self._closing = False
        self._under_way: list[Future[Any]] = []

    # ------------------------------------------------------------------ the coordinator's thread

    def begin(self, interrupted: Callable[[], bool]) -> None:
        """Submit the first job, and keep up the number from then on; a queue that refuses it is a clear error."""
        first = self._on_loop(self._submit())
        self._under_way.append(first)
        while not interrupted():
            try:
                trouble = first.result(timeout=0.1)
            except NotYet:
                continue
            if trouble:
                raise ScenarioError(
                    f"executor.options: the queue ({self._kind}) has refused the first job: {trouble}. Expected a job "
                    "that it accepts; check queue, account, cores, memory and walltime"
                )
            break
        self._under_way.append(self._on_loop(self._keep()))

    def words(self) -> str:
        """Return what is known of the jobs, for people."""
        jobs = list(self._jobs.values())
        waiting = [str(job) for job in jobs if job.joined is None or job.left is not None]
        more = [f"and {len(waiting) - _JOBS_NAMED} more"] if len(waiting) > _JOBS_NAMED else []
        told = ", ".join([*waiting[:_JOBS_NAMED], *more]) or "no job is in the queue"
        return f"{self._kind}: {told}" + (f"; before that, {self._why}" if self._why else "")

    def news(self) -> list[dict[str, object]]:
        """Jobs that have ended since the last time, as facts."""
        found = []
        while self._news:
            found.append(self._news.pop(0))
        return found

    def useful(self, address: str) -> None:
        """The worker at this address has made a run, so its job was worth asking for."""
        self._useful.add(address)

    def close(self) -> None:
        """Cancel all jobs."""
        self._closing = True
        try:
            # A job that is being submitted is not forgotten.
            for work in self._under_way:
                work.result(timeout=_CLOSE_SECONDS)
            left = self._on_loop(self._cancel_all()).result(timeout=_CLOSE_SECONDS)
        except NotYet:
            left = [job.id for job in self._jobs.values()]
        if left:
            command = str(self._cluster.job_cls.cancel_command)
            _log.warning("some jobs could not be cancelled and may still be there; use: %s %s", command, " ".join(left))

    def _on_loop(self, work: Any) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(work, self._cluster.loop.asyncio_loop)

    # ------------------------------------------------------------------ Dask's thread

    async def _keep(self) -> None:
        while not self._closing:
            try:
                await self._look()
            except Exception as trouble:  # noqa: BLE001 (whatever it is, the campaign continues with the workers it has)
                _log.warning(
                    "the jobs could not be looked after: %s", in_a_line(f"{type(trouble).__name__}: {trouble}")
                )
            for _ in range(10):
                if not self._closing:
                    await asyncio.sleep(_LOOK_SECONDS / 10)

    async def _look(self) -> None:
        now = time.monotonic()
        there: dict[str, str] = {}
        for address, worker in self._cluster.scheduler.workers.items():
            # With several processes per job, the names of its workers have a number at the end.
            there |= {str(worker.name): address, str(worker.name).rpartition("-")[0]: address}
        away = []
        for job in self._jobs.values():
            if job.name in there:
                job.joined, job.left = (now if job.joined is None else job.joined), None
                job.addresses.add(there[job.name])
                # Once per job: an old worker says nothing about nodes that spoil one job after the other.
                if not job.good and (now - job.joined >= _STEADY_SECONDS or job.addresses & self._useful):
                    job.good = True
                    self._fruitless, self._why = 0, ""
            else:
                job.left = now if job.left is None else job.left
                away.append(job)
        if away and now - self._asked_at >= _ASK_SECONDS:
            self._asked_at = now
            await self._ask(away)
        for job in away:
            if self._has_ended(job, now):
                await self._remove_ended(job)
        if self._fruitless >= _MOST_FRUITLESS and not self._jobs and not there:
            self.over = (
                f"the last {self._fruitless} jobs of {self._kind} ended before their workers could be used; {self._why}"
            )
        elif not self.over:
            await self._fill(now)

    def _has_ended(self, job: _Job, now: float) -> bool:
        away = job.joined is not None and job.left is not None and now - job.left >= _STEADY_SECONDS
        if self._listed is None or job.state in _ALIVE:
            return away
        # A state that is not alive, or no state at all although the queue has told all that it knows.
        return bool(job.state) or (job.id not in self._listed and now - job.submitted >= _LISTED_SECONDS)

    async def _remove_ended(self, job: _Job) -> None:
        del self._jobs[job.name]
        why = await self._explained(job)
        used = job.good or bool(job.addresses & self._useful)
        self._useful -= job.addresses
        self._news.append({"queue": self._kind, "job": job.id, "used": used, "why": why})
        if job.state in _ALIVE or self._listed is None:
            await self._cancel(job)
        if used:
            return
        self._fruitless += 1
        self._why = why
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** (self._fruitless - 1))
        self._submit_after = time.monotonic() + pause
        _log.warning("%s", why)

    async def _fill(self, now: float) -> None:
        missing = self._wanted - len(self._jobs)
        if missing <= 0 or now < self._submit_after or self._closing:
            return
        # While jobs come to nothing, one at a time.
        answers = await asyncio.gather(
            *(self._submit() for _ in range(1 if self._fruitless else min(missing, _AT_ONCE)))
        )
        troubles = [trouble for trouble in answers if trouble]
        if troubles:
            # The queue itself is in trouble; it is asked again and again, for as long as the executor has patience.
            self._why = f"the queue has refused a job: {troubles[0]}"
            self._submit_after = now + _STEADY_SECONDS
            _log.warning("%s; it is asked again in a minute", self._why)

    async def _submit(self) -> str:
        """Submit a job; what was wrong, or nothing."""
        spec, scheduler = self._cluster.new_spec, self._cluster.scheduler
        address = getattr(scheduler, "contact_address", None) or scheduler.address
        name = f"captime-{next(self._numbers)}"
        try:
            job = spec["cls"](address, name=name, **spec["options"])
            await asyncio.wait_for(job.start(), _COMMAND_SECONDS)
        except TimeoutError:
            return f"{job.submit_command} has not answered for {_COMMAND_SECONDS:.0f} s"
        except (RuntimeError, ValueError, OSError) as trouble:
            return in_a_line(str(trouble).rpartition("stderr:")[2] or str(trouble))
        self._jobs[name] = _Job(name, job, time.monotonic())
        return ""

    async def _cancel(self, job: _Job) -> bool:
        try:
            await asyncio.wait_for(job.job.close(), _CLOSE_SECONDS)
        except (OSError, RuntimeError, TimeoutError):
            return False
        return True

    async def _cancel_all(self) -> list[str]:
        """Cancel the jobs; return those that could not be cancelled."""
        left: list[str] = []
        jobs = list(self._jobs.values())
        for first in range(0, len(jobs), _AT_ONCE):
            some = jobs[first : first + _AT_ONCE]
            done = await asyncio.gather(*(self._cancel(job) for job in some))
            left += [job.id for job, well in zip(some, done, strict=True) if not well]
        self._jobs.clear()
        return left

    # ------------------------------------------------------------------ asking Slurm

    async def _ask(self, jobs: Sequence[_Job]) -> None:
        """Ask what has become of these jobs, in one question."""
        told = await self._slurm("squeue", "-h", "-t", "all", "-u", str(os.getuid()), "-o", "%i|%T|%r")
        if told is None:
            self._listed = None
            return
        listed = {words[0]: words[1:] for line in told.splitlines() if len(words := line.strip().split("|")) == 3}
        self._listed = frozenset(listed)
        for job in jobs:
            job.state, job.reason = listed.get(job.id, ["", ""])

    async def _explained(self, job: _Job) -> str:
        """Return what is known of a job that has ended, in words."""
        when = "before its worker joined" if job.joined is None else "after its worker had joined"
        told = await self._slurm("scontrol", "-o", "show", "job", job.id)
        if told is None:
            return f"job {job.id} of {self._kind} ended {when}"
        facts = dict(_FIELD.findall(told))
        state, code = facts.get("JobState", job.state), facts.get("ExitCode", "")
        # Slurm names the file as it was asked for, with a place for the number of the job.
        said = _end_of_file(facts.get("StdErr", "").replace("%J", job.id).replace("%j", job.id))
        return f"job {job.id} of {self._kind} ended {when} as {state}, exit code {code.partition(':')[0] or '?'}" + (
            f", and its last line was: {said}" if said else ""
        )

    async def _slurm(self, *command: str) -> str | None:
        """Return what a command of Slurm says; None if it does not know, or if this is another queue."""
        if self._kind != "slurm" or shutil.which(command[0]) is None:
            return None
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
            out, _ = await asyncio.wait_for(process.communicate(), _COMMAND_SECONDS)
        except (OSError, TimeoutError):
            return None
        return out.decode("utf-8", "replace") if process.returncode == 0 else None


def in_a_line(text: str) -> str:
    """Return a message in one line of printable characters, and not too long."""
    line = "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in " ".join(text.split()))
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} …"


def _end_of_file(path: str) -> str:
    """Return the end of a job's output, if it can be read here; what Dask tells of its normal doings is left out."""
    try:
        file = Path(path)
        if not path or not S_ISREG(file.stat().st_mode):
            return ""
        with file.open("rb") as stream:
            stream.seek(max(0, file.stat().st_size - _TAIL_BYTES))
            lines = stream.read(_TAIL_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    told = [line for line in lines if line.strip() and " - INFO - " not in line]
    return in_a_line(told[-1] if told else "")
