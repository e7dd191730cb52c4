"""The way from a supervisor to a program: fork, put on the limits, exec; and the moment at which its clock starts.

A supervisor is small and has one thread, so forking it is cheap and safe. The clocks of a run start immediately before
exec: what this module itself costs is no part of a run.
"""

import os
import resource
import shutil
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from captime.supervision.fitness import SHORTAGE_OF
from captime.supervision.processes import die_with_parent, fork_into_group, give_up_priority, queue_wait_ns

# A target that uses up the machine's memory is killed before any other process.
_KILL_ME_FIRST = b"500"
# How far a process may raise its priority; Linux has these two limits.
_PRIORITIES = [getattr(resource, name) for name in ("RLIMIT_RTPRIO", "RLIMIT_NICE") if hasattr(resource, name)]


class NotStarted(Exception):  # noqa: N818 (what is so, not what went wrong; never leaves this room)
    """The program could not be started; the message says why."""


@dataclass(frozen=True, slots=True)
class ProcessSetup:
    """What a process gets before it becomes a target.

    Attributes:
        supervisor: Process number of the supervisor, whose end it shall not survive.
        directory: Where it runs.
        core: Which core it is tied to; None for any.
        address_space: Bytes of address space per process.
        file_size: Bytes per file.
        processes: How many processes its user may have.
    """

    supervisor: int
    directory: str
    core: int | None = None
    address_space: int | None = None
    file_size: int | None = None
    processes: int | None = None


@dataclass(frozen=True, slots=True)
class Descriptors:
    """Open files that a target is given: its three streams, and two ways into its control group: by foot, by birth."""

    stdin: int
    stdout: int
    stderr: int
    entrance: int | None = None
    group: int | None = None


@dataclass(frozen=True, slots=True)
class SpawnedProcess:
    """A running target.

    Attributes:
        pid: Its main process.
        cpu_ns: CPU time that this process had behind it when it became the target.
        wall_ns: The monotonic clock at that moment.
        queue_wait_ns: How long it had waited for a core until then.
        counted_ns: CPU time that its control group had counted by then.
    """

    pid: int
    cpu_ns: int
    wall_ns: int
    queue_wait_ns: int
    counted_ns: int = 0


def become_target(surroundings: ProcessSetup, descriptors: Descriptors) -> None:
    """Leave everything of the supervisor behind; called in the new process.

    The control group, unless it was born there, is entered last, so that it counts the target's CPU time, none of ours.
    """
    os.setsid()
    die_with_parent(signal.SIGKILL)
    if os.getppid() != surroundings.supervisor:
        os._exit(1)
    # Python ignores these two, and what is ignored stays ignored through exec.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for kind, value in (
        (resource.RLIMIT_AS, surroundings.address_space),
        (resource.RLIMIT_FSIZE, surroundings.file_size),
        (resource.RLIMIT_NPROC, surroundings.processes),
        *((kind, 0) for kind in _PRIORITIES),
    ):
        if value is not None:
            _, hard = resource.getrlimit(kind)
            allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
            # Nets below nets: a system that knows no such limit runs the program without.
            with suppress(OSError, ValueError):
                resource.setrlimit(kind, (allowed, allowed))
    # It may share its core with the supervisor, which must always be able to interrupt it.
    give_up_priority()
    _write_if_possible("/proc/self/oom_score_adj", _KILL_ME_FIRST)
    if surroundings.core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {surroundings.core})
    os.chdir(surroundings.directory)
    os.dup2(descriptors.stdin, 0)
    os.dup2(descriptors.stdout, 1)
    os.dup2(descriptors.stderr, 2)
    if descriptors.entrance is not None:
        os.write(descriptors.entrance, b"0")


def clocks_now() -> bytes:
    """Return the clocks of this process, as it tells them to its supervisor when it becomes the target."""
    waited = queue_wait_ns(os.getpid(), 1)
    return b"%d %d %d\n" % (time.process_time_ns(), time.monotonic_ns(), waited)


def start(
    argv: tuple[str, ...], environment: Mapping[str, str], surroundings: ProcessSetup, descriptors: Descriptors
) -> SpawnedProcess:
    """Start a program; returns once it really runs.

    Raises:
        NotStarted: There is no such program, or it cannot be executed.
    """
    program = _found(argv[0], environment)
    # What the child says here ends by itself when exec succeeds: the descriptor is closed then.
    heard, said = os.pipe()
    born_inside = None if descriptors.group is None else fork_into_group(descriptors.group)
    pid = os.fork() if born_inside is None else born_inside
    if pid == 0:
        try:
            become_target(surroundings, descriptors if born_inside is None else replace(descriptors, entrance=None))
            os.write(said, clocks_now())
            os.execve(program, argv, environment)  # noqa: S606 (no shell is the point)
        except (OSError, ValueError) as trouble:
            words = trouble.strerror if isinstance(trouble, OSError) and trouble.strerror else str(trouble)
            number = getattr(trouble, "errno", None) or 0
            os.write(said, b"!%d " % number + words.encode("utf-8", "replace"))
        finally:
            os._exit(127)
    os.close(said)
    try:
        started = _as_told(pid, heard, argv[0])
    finally:
        os.close(heard)
    return started if born_inside is None else replace(started, counted_ns=started.cpu_ns)


def _as_told(pid: int, heard: int, name: str) -> SpawnedProcess:
    told = b"".join(iter(lambda: os.read(heard, 4096), b""))
    clocks, _, failure = told.partition(b"!")
    fields = clocks.split()
    if failure or len(fields) != 3:
        os.waitpid(pid, 0)
        number, _, said = failure.decode("utf-8", "replace").partition(" ")
        words = f"cannot start {name[:200]!r}: {said or 'it was gone before it began'}"
        if number.isdecimal() and int(number) in SHORTAGE_OF:
            # Not a word about the program: the machine is out of something.
            raise OSError(int(number), words)
        raise NotStarted(words)
    return SpawnedProcess(pid, *map(int, fields))


def _found(name: str, environment: Mapping[str, str]) -> str:
    """Return the program by that name: as it stands if it is a path, else on the PATH of the target."""
    if "/" in name:
        return name
    found = shutil.which(name, path=environment.get("PATH", os.defpath))
    if found is None:
        raise NotStarted(f"cannot start {name[:200]!r}: it is not on the PATH of the target's environment")
    return found


def _write_if_possible(path: str, text: bytes) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY)
    except OSError:
        return
    try:
        os.write(descriptor, text)
    except OSError:
        return
    finally:
        os.close(descriptor)
