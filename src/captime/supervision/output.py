"""What a program prints: counted, the beginning and the end of it kept, every line of it looked at, and the rest gone.

However much is written, a bounded amount is held. A program can be slowed down by this (its pipe is full), but it can
not keep the supervisor from its duties: lines are looked at in small portions.
"""

import os
import re
import selectors
import signal
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import BinaryIO

from captime.supervision.messages import Channel, StopValue

UNTIL = "until"
"""The name of the pattern whose values are compared with the target of a run."""
KEPT_BYTES = 64 * 1024
# A search may take the square of what it looks at, so it never looks at much at once: a few KiB, or one longer line by
# patterns that are anchored to its beginning.
_AT_ONCE = 4 * 1024
_LONGEST_LINE = 64 * 1024
# A pattern with a repetition inside a repetition can take for ever on a single line. CPU time, not time on the clock: a
# busy machine must not decide what is found.
_SEARCH_CPU_SECONDS = 2.0
# With these (looking around, atomic groups, possessive repeats, ends of the whole text) a pattern can match in a line
# and yet nowhere in the text that holds the line.
_MINDS_ITS_SURROUNDINGS = re.compile(rb"\\[AZ]|\(\?[!=<>(-]|[*+?}]\+")


class _MatchTimeout(Exception):  # noqa: N818 (what is so; never leaves this file)
    """A search has used up its CPU time."""


class Capture:
    """Head and tail of a stream.

    Args:
        kept: How many bytes of its head are kept.

    Attributes:
        total: Bytes in all.
        head: The first bytes.
    """

    def __init__(self, kept: int = KEPT_BYTES) -> None:
        self.total = 0
        self._kept = kept
        self.head = b""
        self._tail = bytearray()

    def add(self, chunk: bytes) -> None:
        """Take note of what came next."""
        self.total += len(chunk)
        if len(self.head) < self._kept:
            self.head += chunk[: self._kept - len(self.head)]
        self._tail += chunk[-KEPT_BYTES:]
        if len(self._tail) > 4 * KEPT_BYTES:
            del self._tail[:-KEPT_BYTES]

    @property
    def tail(self) -> bytes:
        """The last 64 KiB."""
        return bytes(self._tail[-KEPT_BYTES:])


class _Pattern:
    """One regular expression, ready for lines and for a first glance at several lines at once."""

    def __init__(self, text: str) -> None:
        source = text.encode("utf-8", "surrogateescape")
        self._by_line = re.compile(source)
        self._longest = _LONGEST_LINE if source.startswith(b"^") else _AT_ONCE
        self._glance = None if _MINDS_ITS_SURROUNDINGS.search(source) else re.compile(source, re.MULTILINE)

    def may_be_in(self, lines: bytes) -> bool:
        """False: in none of these lines."""
        return self._glance is None or self._glance.search(lines) is not None

    def found_in(self, line: bytes) -> bytes | None:
        """Return the group `value`, or the first group, or all of the match; None if there is none."""
        match = self._by_line.search(line[: self._longest])
        if match is None:
            return None
        group: str | int = "value" if "value" in self._by_line.groupindex else min(1, self._by_line.groups)
        found: bytes | None = match.group(group)
        return b"" if found is None else found


class Matcher:
    """Look for patterns in lines as they come; the last match of each counts.

    A line ends with a newline, before which a carriage return is left out. Of a long line only the beginning is looked
    at: 64 KiB by patterns that begin with `^`, 4 KiB by others.

    Args:
        patterns: Regular expressions by name.
        until: The value that ends a run, compared with what the pattern `until` finds; None for none.

    Attributes:
        found: The last matches; of the pattern `until`, no match after the one that reached the target.
        problem: Why matching has stopped; "" if it has not.
        reached_ns: The reading with which the line came that reached the target; None if none has.
    """

    def __init__(self, patterns: Mapping[str, str], until: StopValue | None = None) -> None:
        self.found: dict[str, bytes] = {}
        self.problem = ""
        self.reached_ns: int | None = None
        self._until = until
        self._searched = ""
        self._patterns = {name: _Pattern(text) for name, text in patterns.items()}
        self._partial = b""
        self._skipping = False
        # Whole lines with the reading at which they came, and where in the first text of them the next look begins.
        self._waiting: deque[tuple[bytes, int]] = deque()
        self._position = 0

    @property
    def busy(self) -> bool:
        """Return whether lines wait to be matched."""
        return bool(self._waiting)

    @property
    def waiting_since_ns(self) -> int | None:
        """The reading with which the first line came that waits for a look; None if none waits."""
        return self._waiting[0][1] if self._waiting else None

    def add(self, chunk: bytes, at_ns: int = 0) -> None:
        """Take in what came next, at a reading of the run's clock; `look` looks at it."""
        if not self._patterns:
            return
        if self._skipping:
            # The rest of a line whose beginning was long enough to be looked at.
            _, newline, chunk = chunk.partition(b"\n")
            if not newline:
                return
            self._skipping = False
        text = self._partial + chunk
        end = text.rfind(b"\n") + 1
        if end:
            self._waiting.append((text[:end], at_ns))
        self._partial = text[end:]
        if len(self._partial) > _LONGEST_LINE:
            self._end_line(at_ns)
            self._skipping = True

    def look(self, patience: float) -> None:
        """Match waiting lines, for at most this many seconds."""
        if not self._waiting:
            return
        deadline = time.monotonic() + patience
        try:
            with _alarm():
                while self._waiting and time.monotonic() < deadline:
                    signal.setitimer(signal.ITIMER_VIRTUAL, _SEARCH_CPU_SECONDS)
                    self._look_at_some(*self._waiting[0])
        except _MatchTimeout:
            self.problem = (
                f"the pattern for {self._searched!r} took more than {_SEARCH_CPU_SECONDS:g} s on a few lines; "
                "expected: no repetition within a repetition, such as (a+)+"
            )
            self._patterns.clear()
            self._waiting.clear()

    def finish(self, at_ns: int = 0) -> None:
        """The end: what stands after the last newline is a line too."""
        if self._partial:
            self._end_line(at_ns)
        self._skipping = False

    def _end_line(self, at_ns: int) -> None:
        self._waiting.append((self._partial + b"\n", at_ns))
        self._partial = b""

    def _look_at_some(self, text: bytes, at_ns: int) -> None:
        """The next few lines, or one long one."""
        begin = self._position
        end = text.rfind(b"\n", begin, begin + _AT_ONCE) + 1
        short = end > begin
        if not short:
            end = text.index(b"\n", begin) + 1
        lines = text[begin:end].replace(b"\r\n", b"\n")
        self._position = end
        if end == len(text):
            self._waiting.popleft()
            self._position = 0
        for name, pattern in self._patterns.items():
            self._searched = name
            # Most output matches nothing: one glance at all of it saves looking at every line.
            if not short or pattern.may_be_in(lines):
                for line in lines[:-1].split(b"\n"):
                    found = pattern.found_in(line)
                    if found is not None:
                        self._note(name, found[:KEPT_BYTES], at_ns)

    def _note(self, name: str, found: bytes, at_ns: int) -> None:
        """Keep a match; the first that reaches the target stays."""
        if name != UNTIL or self._until is None:
            self.found[name] = found
        elif self.reached_ns is None:
            self.found[name] = found
            if self._until.reached_by(found):
                self.reached_ns = at_ns


@contextmanager
def _alarm() -> Iterator[None]:
    """Raise `_MatchTimeout` inside when the timer for CPU time runs out; searches heed signals while they search."""

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise _MatchTimeout

    before = signal.signal(signal.SIGVTALRM, ring)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


# The pipes of a run and everything else a supervisor listens to while it waits.
#
# One selector for as long as a supervisor runs: the channel to its coordinator, a pipe that wakes it when a child has
# ended or a signal asks it to end, and the pipes of the run under way.

_CHUNK = 1 << 18
_LOOK_SECONDS = 0.005


class IoLoop:
    """Waits for whatever comes first.

    Args:
        channel: The conversation with the coordinator.

    Attributes:
        asked_to_go: A signal has asked the supervisor to end: the coordinator is dead, or wants it to.
    """

    def __init__(self, channel: Channel) -> None:
        self.asked_to_go = False
        self._channel = channel
        self._selector = selectors.DefaultSelector()
        self._heard, self._bell = socket.socketpair()
        self._heard.setblocking(False)
        self._bell.setblocking(False)
        signal.set_wakeup_fd(self._bell.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        # Handled rather than ignored: what is ignored would be ignored by the programs we start, too.
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._go)
        self._selector.register(self._heard, selectors.EVENT_READ)
        self._selector.register(channel, selectors.EVENT_READ)

    def _go(self, _number: int, _frame: FrameType | None) -> None:
        self.asked_to_go = True

    def add(self, descriptor: int) -> None:
        """Listen to this, too."""
        self._selector.register(descriptor, selectors.EVENT_READ)

    def drop(self, descriptor: int) -> None:
        """Do not listen to this any more."""
        self._selector.unregister(descriptor)

    def wait(self, seconds: float) -> set[int]:
        """Wait so long at most; the descriptors that can be read. Sends what could not be sent before."""
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._channel.waiting else 0)
        self._selector.modify(self._channel, wanted)
        ready = {key.fd for key, _ in self._selector.select(max(0.0, seconds))}
        if self._channel.waiting:
            self._channel.flush()
        if self._heard.fileno() in ready:
            while self._rung():
                pass
        return ready

    def _rung(self) -> bool:
        try:
            return bool(self._heard.recv(4096))
        except BlockingIOError:
            return False


class Pipe:
    """A stream of the target's, from our side.

    Args:
        listener: Where we wait for it.
        matcher: Looks at its lines.
        kept: How much of its beginning is kept.
        copy: A file that all of it is written to.

    Attributes:
        outer: The descriptor for the target; closed on our side once it has been handed over.
        capture: What came out of it.
        open: Whether a process may still write to it.
        clock: Reads the run's clock in nanoseconds, where it matters when a line came; None where it does not.
    """

    def __init__(
        self,
        listener: IoLoop,
        matcher: Matcher | None = None,
        *,
        kept: int = KEPT_BYTES,
        copy: BinaryIO | None = None,
    ) -> None:
        self._inner, self.outer = os.pipe()
        os.set_blocking(self._inner, False)
        self.capture = Capture(kept)
        self.open = True
        self.clock: Callable[[], int] | None = None
        self._listener = listener
        self._matcher = matcher
        self._copy = copy
        self._listening = True
        listener.add(self._inner)

    def hand_over(self) -> None:
        """The target has its end now; ours of it is closed, so that its end is the end."""
        if self.outer >= 0:
            os.close(self.outer)
            self.outer = -1

    def heard(self, ready: set[int]) -> None:
        """Take in what is there, a portion of it; a target that writes faster than we can look has to wait."""
        if self._matcher is not None and self._matcher.busy:
            self._matcher.look(_LOOK_SECONDS)
            self._listen(wanted=not self._matcher.busy)
        elif self._inner in ready:
            self.read()
            self._listen(wanted=self.open and not (self._matcher is not None and self._matcher.busy))

    @property
    def busy(self) -> bool:
        """There is something to be done at once, without waiting for anything."""
        return self._matcher is not None and self._matcher.busy

    def read(self) -> bool:
        """Read once; False if there is nothing."""
        if not self.open:
            return False
        try:
            chunk = os.read(self._inner, _CHUNK)
        except BlockingIOError:
            return False
        if not chunk:
            self.open = False
            return False
        self.capture.add(chunk)
        if self._copy is not None:
            self._copy.write(chunk)
        if self._matcher is not None:
            # The clock is read before the lines are looked at: looking takes time, in which the program may work.
            self._matcher.add(chunk, 0 if self.clock is None else self.clock())
            self._matcher.look(_LOOK_SECONDS)
        return True

    def close(self) -> None:
        """Forget it; once is enough."""
        self.hand_over()
        self._listen(wanted=False)
        self.open = False
        if self._inner >= 0:
            os.close(self._inner)
            self._inner = -1

    def _listen(self, *, wanted: bool) -> None:
        if wanted and not self._listening:
            self._listener.add(self._inner)
        elif self._listening and not wanted:
            self._listener.drop(self._inner)
        self._listening = wanted
