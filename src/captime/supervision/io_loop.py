"""The pipes of a run and everything else a supervisor listens to while it waits.

One selector for as long as a supervisor runs: the channel to its coordinator, a pipe that wakes it when a child has
ended or a signal asks it to end, and the pipes of the run under way.
"""

import os
import selectors
import signal
import socket
from collections.abc import Callable
from types import FrameType
from typing import BinaryIO

from captime.supervision.channel import Channel
from captime.supervision.output import KEPT_BYTES, Capture, Matcher

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
