"""What a slot supervisor is told to run, and what it reports afterwards: plain values, one line of JSON each.

Texts may be file names or arguments in any encoding (surrogateescape); the bytes come back as they were. Floats are
exact, infinity included. Nothing here runs or judges anything.
"""

import base64
import json
import math
import socket
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Self

from captime.runs import Halt, Shortage

Clock = Literal["cpu", "wall"]
Ended = Literal[
    "exit", "target", "captime", "wall", "memory", "output", "disk", "cancelled", "lost", "unfit", "not-started"
]
Fingerprint = tuple[str, int, int, int, int, int, str]
"""Path, device, inode, size, times of change of content and of status in nanoseconds, and SHA-256 ("" if unknown)."""

NOT_RETURNED = "the function returned"
"""How the last line on standard error begins if the value that a function returned cannot be handed over."""


@dataclass(frozen=True, slots=True)
class Preparation:
    """Makes an instance file that does not exist yet; not timed, and no part of the run.

    Attributes:
        argv: The command; no shell. The token `{part}` in it stands for the temporary name of the file.
        output: The path the finished file must have. It appears whole or not at all; if it exists, nothing is done.
        to_stdout: The command prints the file; otherwise it writes the file named by `{part}`.
        timeout: Wall-clock seconds it may take.
    """

    argv: tuple[str, ...]
    output: str
    to_stdout: bool
    timeout: float


@dataclass(frozen=True, slots=True)
class StopValue:
    """The value at which a run has done what was asked of it; one of the two bounds is given.

    Attributes:
        at_most: The value has to be this or less.
        at_least: The value has to be this or more.
    """

    at_most: float | None = None
    at_least: float | None = None

    def reached_by(self, value: bytes) -> bool:
        """Return whether a value that was printed reaches the target; what is no finite number does not.

        >>> StopValue(at_most=105).reached_by(b"104.5"), StopValue(at_most=105).reached_by(b"inf")
        (True, False)
        """
        try:
            number = float(value)
        except ValueError:
            return False
        if not math.isfinite(number):
            return False
        return (self.at_most is None or number <= self.at_most) and (self.at_least is None or number >= self.at_least)


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A Python function as target.

    Attributes:
        function: The pickled function, or nothing if `reference` names it.
        reference: `module:qualname` of an importable function, or nothing.
        arguments: A pickled pair of positional and keyword arguments.
        search_path: Put before `sys.path` where the function is imported.
    """

    function: bytes
    reference: str
    arguments: bytes
    search_path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Launch:
    """Run this, within these limits.

    The supervisor fills in `{output}` and `{scratch}` (the run's own directory) in `argv`; every other placeholder is
    filled in by the caller that makes the launch.

    Attributes:
        number: Comes back in the report; unique per executor.
        argv: The command, passed on byte by byte without a shell; empty if there is a `call`.
        call: A function to be called instead.
        environment: The whole environment of the target; `CAPTIME_RUN` and `TMPDIR` are added.
        directory: Where it runs; None for the run's own directory, made for it and deleted afterwards.
        captime: Seconds on `clock`; may be infinite.
        clock: `cpu`, the CPU time of the whole process tree, or `wall`.
        wall_limit: Wall-clock seconds after which even a sleeping program is stopped; may be infinite.
        memory_limit: Bytes for the whole tree.
        output_limit: Bytes of stdout and stderr together.
        disk_limit: Bytes that the run's own directory may hold.
        processes_limit: How many processes the tree may have.
        stdin: A file; None is `/dev/null`.
        patterns: Regular expressions by name, matched against stdout line by line; the last match counts, of which the
            group `value`, or group 1, or the whole is reported.
        output_file: A name inside the run's own directory that `{output}` stands for; read after the run.
        preparation: What has to be made first.
        guarded: Files that must not change, as they were when the campaign began.
        tag: Value of `CAPTIME_RUN`, by which every process of the run can be found.
        verifier: A command that checks the answer; None for none. The slot runs it after a run that ended by itself,
            whatever its exit code, and before the run's own directory is deleted: untimed, in that directory, with the
            target's environment, and killed with its tree after `verifier_timeout`. Its stdin is a file with the
            target's stdout (kept on disk, up to `output_limit`); `{stdout}` in it is the path of that file, `{output}`
            and `{scratch}` are as in `argv`. Exit code 0: right; 1: wrong; anything else, or too late: no verdict.
        verifier_timeout: Wall-clock seconds the verifier may take.
        exit_codes: Accepted exit codes; None for 0, none at all if the program tells its result otherwise. After a run
            that ends with another one the machine is looked at closely.
        until: The run ends, and is timed, when a line of stdout that the pattern `until` matches reaches this value;
            None for a run that ends by itself.
    """

    number: int
    argv: tuple[str, ...]
    call: FunctionCall | None
    environment: Mapping[str, str]
    directory: str | None
    captime: float
    clock: Clock
    wall_limit: float
    memory_limit: int | None
    output_limit: int
    disk_limit: int | None
    processes_limit: int | None
    stdin: str | None
    patterns: Mapping[str, str]
    output_file: str | None
    preparation: Preparation | None
    guarded: tuple[Fingerprint, ...]
    tag: str
    verifier: tuple[str, ...] | None = None
    verifier_timeout: float = 60.0
    exit_codes: tuple[int, ...] | None = None
    until: StopValue | None = None

    def to_json(self) -> str:
        """One line of ASCII text."""
        return json.dumps(_plain(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read back what `to_json` wrote."""
        values = json.loads(text)
        call, preparation = values["call"], values["preparation"]
        return cls(
            **values
            | {
                "argv": tuple(values["argv"]),
                "call": None if call is None else _call(call),
                "preparation": None
                if preparation is None
                else Preparation(**preparation | {"argv": tuple(preparation["argv"])}),
                "guarded": tuple(tuple(entry) for entry in values["guarded"]),
                "verifier": None if values["verifier"] is None else tuple(values["verifier"]),
                "exit_codes": None if values["exit_codes"] is None else tuple(values["exit_codes"]),
                "until": None if values["until"] is None else StopValue(**values["until"]),
            }
        )


def plain_launch(*argv: str, number: int = 0, tag: str = "") -> Launch:
    """Return a command in an empty environment and within no limits but a minute of wall-clock time; to be refined."""
    return Launch(
        number=number,
        argv=argv,
        call=None,
        environment={},
        directory=None,
        captime=math.inf,
        clock="cpu",
        wall_limit=60.0,
        memory_limit=None,
        output_limit=1 << 30,
        disk_limit=None,
        processes_limit=None,
        stdin=None,
        patterns={},
        output_file=None,
        preparation=None,
        guarded=(),
        tag=tag,
    )


@dataclass(frozen=True, slots=True)
class Report:
    """What became of a launch.

    Attributes:
        number: Of the launch.
        ended: Why it ended: by itself (`exit`), because it reached its target value (`target`), at a limit, because
            it was cancelled, through our own fault (`lost`), or before it began (`unfit`: the machine is out of
            something; `not-started`: the program cannot be started).
        exit_code: Of the main process; None if a signal ended it, or nothing was started.
        signal: The signal that ended it.
        cpu_ns: CPU time of the whole tree, leftovers included.
        wall_ns: From the start to the end of the main process.
        runtime_ns: On the clock of the launch: until the main process ended by itself, or until the line was read that
            reached the target; of a run that was stopped, the last reading at which it was seen unfinished.
        peak_memory: Bytes, the largest sum over the tree that was seen.
        queue_wait_ns: How long the tree was ready to run and waited for a core.
        switches: Involuntary context switches.
        leftovers: Processes still alive after the main process had ended; they were killed.
        output_bytes: Written to stdout and stderr together.
        stdout_head: The first 64 KiB of stdout.
        stdout_tail: The last 64 KiB of it.
        stderr_tail: The last 64 KiB of stderr.
        output_file: The first 64 KiB of the output file.
        matches: What the patterns found.
        returned: The pickled value that a function returned; None if it raised.
        flags: Warnings: `contended`, `idle`, `clocks-disagree`, `leftovers`, `suspended`, `swapping`, `throttled`.
        problem: Why it was lost or not started, in a sentence.
        verified: What the verifier said: True for right, False for wrong, None if it was not asked or gave no verdict
            (then `problem` says why).
        halt: Why the whole campaign has to stop, where the supervisor knows.
        changed_file: With `Halt.FILE_CHANGED`, which file.
        shortage: What the machine was out of when the run had ended, or before it could begin; None if it is fit.
        short: The same in words, with numbers.
    """

    number: int
    ended: Ended
    exit_code: int | None = None
    signal: int | None = None
    cpu_ns: int = 0
    wall_ns: int = 0
    runtime_ns: int = 0
    peak_memory: int | None = None
    queue_wait_ns: int = 0
    switches: int = 0
    leftovers: int = 0
    output_bytes: int = 0
    stdout_head: bytes = b""
    stdout_tail: bytes = b""
    stderr_tail: bytes = b""
    output_file: bytes = b""
    matches: Mapping[str, bytes] = field(default_factory=dict)
    returned: bytes | None = None
    flags: tuple[str, ...] = ()
    problem: str = ""
    verified: bool | None = None
    halt: Halt | None = None
    changed_file: str = ""
    shortage: Shortage | None = None
    short: str = ""

    def to_json(self) -> str:
        """One line of ASCII text."""
        return json.dumps(_plain(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read back what `to_json` wrote."""
        values = json.loads(text)
        for name in ("stdout_head", "stdout_tail", "stderr_tail", "output_file"):
            values[name] = base64.b64decode(values[name])
        returned = values["returned"]
        values["returned"] = None if returned is None else base64.b64decode(returned)
        values["matches"] = {name: base64.b64decode(found) for name, found in values["matches"].items()}
        values["flags"] = tuple(values["flags"])
        values["halt"] = None if values["halt"] is None else Halt(values["halt"])
        values["shortage"] = None if values["shortage"] is None else Shortage(values["shortage"])
        return cls(**values)


def lost_by_change(number: int, path: str, problem: str = "") -> Report:
    """Return the report of a run that does not count because a file changed that must not."""
    words = problem or f"{path} is not the file it was when the campaign began"
    return Report(number, "lost", problem=words, halt=Halt.FILE_CHANGED, changed_file=path)


def _plain(value: Any) -> Any:
    """Values that JSON knows; bytes in base 64. The fields say which texts were bytes."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Halt | Shortage):
        return value.value
    if isinstance(value, Launch | Report | FunctionCall | Preparation | StopValue):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {name: _plain(held) for name, held in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(held) for held in value]
    return value


def _call(values: Mapping[str, Any]) -> FunctionCall:
    return FunctionCall(
        function=base64.b64decode(values["function"]),
        reference=values["reference"],
        arguments=base64.b64decode(values["arguments"]),
        search_path=tuple(values["search_path"]),
    )


# Lines between an executor and its slot supervisors: a word, a space and one line of ASCII text, over a socket.
#
# Neither side ever waits for the other: what cannot be sent yet is kept, so a supervisor keeps enforcing captimes
# while its coordinator is stopped. What the words mean is known to the modules that use them.

_CHUNK = 1 << 18


class Channel:
    """One end of a connection.

    Args:
        connection: A connected stream socket; belongs to the channel from now on.

    Attributes:
        closed: The other side has gone, and everything it had said has been received.
    """

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.closed = False
        self._socket = connection
        self._outgoing = bytearray()
        self._incoming = bytearray()
        self._heard: deque[bytes] = deque()

    def fileno(self) -> int:
        """For selectors."""
        return self._socket.fileno()

    @property
    def waiting(self) -> bool:
        """Something could not be sent yet; `flush` when the socket can be written to."""
        return bool(self._outgoing)

    def send(self, word: str, text: str = "") -> None:
        """Say something; kept if it cannot be sent at once, dropped if the other side has gone."""
        self._outgoing += f"{word} {text}\n".encode("ascii")
        self.flush()

    def flush(self) -> None:
        """Send as much as can be sent without waiting."""
        while self._outgoing:
            try:
                sent = self._socket.send(self._outgoing)
            except BlockingIOError:
                return
            except OSError:
                # Nothing more can be sent. What the other side said before it went may still be waiting to be
                # received, so only `receive` says that the conversation is over.
                self._outgoing.clear()
                with suppress(OSError):
                    self._socket.shutdown(socket.SHUT_WR)
                return
            del self._outgoing[:sent]

    def receive(self) -> Iterator[tuple[str, str]]:
        """Everything that has arrived, as pairs of word and text; sets `closed` at the end of the conversation."""
        while not self.closed:
            try:
                chunk = self._socket.recv(_CHUNK)
            except BlockingIOError:
                break
            except OSError:
                chunk = b""
            if not chunk:
                self.closed = True
            self._incoming += chunk
        *lines, rest = self._incoming.split(b"\n")
        self._incoming = bytearray(rest)
        self._heard.extend(bytes(line) for line in lines)
        # One by one: after an interruption in the middle the others are still there.
        while self._heard:
            word, _, text = self._heard.popleft().decode("ascii").partition(" ")
            yield word, text

    def close(self) -> None:
        """End the conversation; the other side notices."""
        self.closed = True
        self._socket.close()
