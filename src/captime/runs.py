"""One run, question and answer: what an executor is asked to do, and what it has to say about it afterwards.

Live path only: a replay answers orders from array slices and never makes one of these. Whether a run was *completed in
time* is not decided here: `RunOutcome` says what was measured, and the captime plan says what that is worth.
"""

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, assert_never

from captime.errors import InvariantViolated


class Status(Enum):
    """How an attempt ended."""

    COMPLETED = "completed"
    """The program answered by itself."""
    CAPPED = "capped"
    """We stopped it: at its captime, or earlier because the answer is not needed any more."""
    FAILED = "failed"
    """It will never answer: a crash, a wrong answer, out of memory. The program's fault; not tried again."""
    LOST = "lost"
    """Our fault: a machine or a file vanished. Tried again on the same instance with the same seed; open until then."""
    ABANDONED = "abandoned"
    """Stopped early or lost, and never to be tried again: "unfinished after x seconds" is all there will be."""

    @property
    def meaning(self) -> "Meaning":
        """What an attempt that ended so says about its run.

        Whatever decides on a status asks for this, or has a `match` that ends with `assert_never`: so a new status
        cannot be overlooked.
        """
        match self:
            case Status.COMPLETED:
                return Meaning(counts=True, answered=True, final=True)
            case Status.CAPPED:
                return Meaning(counts=True, unfinished=True)
            case Status.FAILED:
                return Meaning(counts=True, never=True, final=True)
            case Status.LOST:
                return Meaning(unfinished=True)
            case Status.ABANDONED:
                return Meaning(counts=True, unfinished=True, final=True)
            case _:
                assert_never(self)


class Meaning(NamedTuple):
    """What an attempt says about its run.

    Attributes:
        counts: It is a result; otherwise the attempt does not count, and the run is open as before.
        answered: The program answered, after a time that is known.
        never: The program will never answer.
        unfinished: A time is known at which the run was unfinished, and nothing else.
        final: The run is never tried again.
    """

    counts: bool = False
    answered: bool = False
    never: bool = False
    unfinished: bool = False
    final: bool = False


class Verdict(Enum):
    """What exactly happened to a program, in more words than the mathematics needs; each belongs to one `Status`."""

    ANSWERED = "answered"
    """It ended by itself before its captime, with an accepted exit code and a right answer. The only success."""
    CAPPED = "capped"
    """It reached its captime."""
    CANCELLED = "cancelled"
    """Stopped early: the answer is not needed any more, or the campaign was stopped."""
    WALL = "wall"
    """The wall-clock guard stopped it: it slept, or the machine was too busy to let it reach its captime."""
    CRASH = "crash"
    """It ended by a signal or with an exit code that is not accepted."""
    WRONG = "wrong"
    """It answered, and the known answer or the verifier says that the answer is wrong."""
    UNKNOWN = "unknown"
    """It ended without an answer that could be recognised; its own time limit, perhaps."""
    MEMOUT = "memout"
    """It used more memory than it was allowed."""
    OUTPUT = "output"
    """It wrote more than it was allowed."""
    LOST = "lost"
    """Our fault: a supervisor or a machine died, or a file vanished."""
    INTERRUPTED = "interrupted"
    """It was under way when the campaign was cut off. Our fault, and not counted as a loss of the machine's."""
    BLOCKED = "blocked"
    """Lost too often; not tried again."""


class Halt(Enum):
    """Why a whole campaign has to stop after a run; see `RunOutcome.halt`."""

    ABORTED = "aborted"
    """The wrapper asks to stop everything."""
    FILE_CHANGED = "file-changed"
    """A file that must not change did: the program, or the instance."""
    NOT_STARTED = "not-started"
    """The program, or the generator of the instance, could not be started."""
    PATTERN_TOO_SLOW = "pattern-too-slow"
    """The output could not be searched for a pattern in reasonable time."""
    SUPERVISOR_HELD = "supervisor-held"
    """A supervisor was stopped, traced or silent during a run, and not for the first time."""


def _status_of(verdict: Verdict) -> Status:
    match verdict:
        case Verdict.ANSWERED:
            return Status.COMPLETED
        case Verdict.CAPPED | Verdict.CANCELLED:
            return Status.CAPPED
        case Verdict.CRASH | Verdict.WRONG | Verdict.UNKNOWN | Verdict.MEMOUT | Verdict.OUTPUT:
            return Status.FAILED
        case Verdict.LOST | Verdict.INTERRUPTED:
            return Status.LOST
        case Verdict.WALL | Verdict.BLOCKED:
            return Status.ABANDONED
        case _:
            assert_never(verdict)


STATUS_OF: dict[Verdict, Status] = {verdict: _status_of(verdict) for verdict in Verdict}
"""Under which status a verdict counts. A cancelled run of a program that cannot be repeated is ABANDONED instead."""


class Shortage(Enum):
    """What a machine was out of while a run failed on it, or before the run could begin.

    The values are flags of measurements, by which a ledger remembers them.
    """

    DISK = "no-disk"
    """No room on a file system that runs write to."""
    INODES = "no-inodes"
    """No further file can be made there."""
    READ_ONLY = "read-only"
    """The scratch folder cannot be written to."""
    SCRATCH = "no-scratch"
    """The scratch folder is gone."""
    MEMORY = "no-memory"
    """The machine's memory was used up: the kernel killed processes, beyond any limit of the run's own."""
    PROCESSES = "no-processes"
    """No further process can be started."""
    DESCRIPTORS = "no-descriptors"
    """No further file can be opened."""


UNBEGUN = "unbegun"
"""The flag of a run that was refused by an unfit machine before it began."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Please run this.

    Attributes:
        config: Which configuration, by index.
        instance: Position in the stream of instances; seeds are tied to it.
        captime: CPU seconds the run may take in all, counted from its very first start.
        attempt: 0 for the first time this run is asked for, then 1, 2, … It makes every request different, so that the
            answer to an attempt that was given up is told from the answer that counts.
    """

    config: int
    instance: int
    captime: float
    attempt: int = 0

    def __post_init__(self) -> None:
        if self.config < 0 or self.instance < 0 or self.attempt < 0:
            raise InvariantViolated(f"{self}: indices and attempts count from 0")
        if not self.captime >= 0.0:
            raise InvariantViolated(f"{self}: a captime is a number of CPU seconds, 0 or more, possibly infinite")


@dataclass(frozen=True, slots=True)
class Measurement:
    """What was measured of a real run, for people and for the ledger; decisions use none of it.

    Attributes:
        cpu_ns: CPU time of the whole process tree.
        wall_ns: Wall-clock time from start to end.
        exit_code: How the main process ended; None if by a signal.
        signal: The signal that ended it; None if it ended by itself.
        peak_memory: Bytes, the largest sum over the tree that was seen; None if unknown.
        answer: What was recognised as its answer.
        reported: CPU seconds by the program's own account, if a wrapper told.
        queue_wait_ns: How long the tree was ready to run and had to wait for a core.
        switches: Involuntary context switches.
        leftovers: Processes still alive when the main process had ended; they were killed.
        output_bytes: How much it wrote to stdout and stderr.
        stdout_tail: The last of its stdout, kept where something went wrong.
        stderr_tail: The last of its stderr, likewise.
        host: Where it ran.
        slot: On which slot there.
        flags: Warnings: `contended`, `idle`, `clocks-disagree`, `reported-disagrees`, `leftovers`, `swapping`,
            `throttled`, `drifted`; and why a run was lost, if its machine was unfit: a `Shortage`, `unbegun`.
    """

    cpu_ns: int
    wall_ns: int
    exit_code: int | None = None
    signal: int | None = None
    peak_memory: int | None = None
    answer: bytes | None = None
    reported: float | None = None
    queue_wait_ns: int = 0
    switches: int = 0
    leftovers: int = 0
    output_bytes: int = 0
    stdout_tail: bytes = b""
    stderr_tail: bytes = b""
    host: str = ""
    slot: int = 0
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What became of a request.

    Attributes:
        request: What was asked.
        status: How it ended.
        runtime: CPU seconds. COMPLETED: until the answer. CAPPED, LOST or ABANDONED: how long the run was seen
            unfinished for sure (0 without a look); stopped at its captime, not less than that. FAILED: until it
            failed. Counted from its very first start if it was resumed.
        cost: CPU seconds this attempt took, less than `runtime` if it was resumed.
        detail: Exit code, last words; for people only.
        verdict: What exactly happened, where a real program was run.
        measured: What was measured of it there.
        halt: Why the campaign has to stop now; None if it need not. Nothing that a ledger keeps.
        changed_file: With `Halt.FILE_CHANGED`, which file.
    """

    request: RunRequest
    status: Status
    runtime: float
    cost: float
    detail: str = ""
    verdict: Verdict | None = None
    measured: Measurement | None = None
    halt: Halt | None = field(default=None, compare=False)
    changed_file: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for what, seconds in (("runtime", self.runtime), ("cost", self.cost)):
            if not (math.isfinite(seconds) and seconds >= 0.0):
                raise InvariantViolated(
                    f"outcome of {self.request}: its {what} is {seconds!r}; expected a finite number of CPU seconds, 0 "
                    "or more. A run that never answers is FAILED or CAPPED after the seconds it took."
                )

    @property
    def shortage(self) -> Shortage | None:
        """What the machine was out of, if the run was lost because of that."""
        flags = () if self.measured is None else self.measured.flags
        return next((each for each in Shortage if each.value in flags), None)

    @property
    def unbegun(self) -> bool:
        """Whether an unfit machine refused the run before it began, so that it can begin later without any bias."""
        return self.measured is not None and UNBEGUN in self.measured.flags


def never() -> bool:
    """Answer False: the default for functions that are asked before every lap whether to stop."""
    return False
