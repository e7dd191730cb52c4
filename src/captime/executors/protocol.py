"""What an executor looks like."""

import selectors
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Protocol, runtime_checkable

from captime.arrays import IntArray
from captime.ledger.ownership import SlotId
from captime.runs import RunOutcome, RunRequest


class Executor(Protocol):
    """Does requests, several at a time. Every request that was submitted comes back exactly once, as some outcome."""

    @property
    def slots(self) -> int:
        """How many runs can be under way at once."""
        ...

    @property
    def ahead(self) -> int:
        """How many more requests it holds gladly, so that a free slot need not wait for the next decision."""
        ...

    @property
    def now(self) -> float:
        """Wall-clock seconds since the executor was made."""
        ...

    def submit(self, requests: Sequence[RunRequest]) -> None:
        """Start these runs; those that find no free slot wait for one."""
        ...

    def collect(self, timeout: float | None = None) -> list[RunOutcome]:
        """Return the outcomes that have come back, in order; wait for at least one, or for `timeout` seconds.

        Empty if nothing is under way, or if nothing came back in time.
        """
        ...

    def watch(self) -> list[tuple[RunRequest, float]]:
        """Runs under way, each with the CPU seconds since its very first start at which it was last seen unfinished."""
        ...

    def cancel(self, configs: IntArray) -> None:
        """Stop all runs of these configurations; they come back as CAPPED, after the seconds they took."""
        ...

    def stop(self) -> None:
        """Stop all runs, whosever they are, as `cancel` does; for good, where `cancel` may be declined."""
        ...

    def close(self) -> None:
        """Stop everything; nothing comes back any more."""
        ...


class SlotDisplay(Protocol):
    """Shows what runs where, for status commands. No decision depends on it; it never waits and never fails."""

    def running(self, seat: SlotId, request: RunRequest, seconds: float = 0.0) -> None:
        """Show that this run is there, and was seen unfinished after this many seconds."""
        ...

    def idle(self, seat: SlotId) -> None:
        """Nothing runs there."""
        ...

    def gone(self, seat: SlotId) -> None:
        """There is no such seat any more."""
        ...


class NoBoard:
    """A board that shows nothing."""

    def running(self, seat: SlotId, request: RunRequest, seconds: float = 0.0) -> None:
        """Forget it."""

    def idle(self, seat: SlotId) -> None:
        """Forget it."""

    def gone(self, seat: SlotId) -> None:
        """Forget it."""


@runtime_checkable
class Visible(Protocol):
    """An executor that knows which slot a run is on."""

    def show_on(self, board: SlotDisplay) -> None:
        """From now on tell this board."""
        ...


@runtime_checkable
class Remote(Executor, Protocol):
    """An executor on other machines, which come and go, and may be gone for good."""

    @property
    def gone(self) -> str:
        """Why the machines are given up; "" as long as they are not."""
        ...

    @property
    def place(self) -> str:
        """On which machines time was measured, in words for the certificate."""
        ...

    @property
    def most_slots(self) -> int:
        """The largest number of runs at once that was possible so far."""
        ...

    def tell_events(self, note: Callable[..., None], late: Callable[[Sequence[RunOutcome]], None]) -> None:
        """Set the functions that record what happens to machines, and answers that came after the run was given up."""
        ...


# Waiting that ends when a signal arrives, so that Ctrl-C is heard at once however long the runs are.


class WakeupSocket:
    """Rings when a signal arrives.

    Args:
        heard: Where it is heard; None where no signals are.
    """

    def __init__(self, heard: socket.socket | None) -> None:
        self._heard = heard

    def was_signalled(self) -> bool:
        """Return whether a signal has arrived since the last call."""
        if self._heard is None:
            return False
        try:
            return bool(self._heard.recv(4096))
        except BlockingIOError:
            return False


_NOWHERE = -1

_remembered: list[socket.socket] = []
"""Where signals are heard that arrive between two waits; empty if nothing remembers them."""


@contextmanager
def signals_remembered() -> Iterator[None]:
    """Keep signals for the next wait: one that arrives just before it would otherwise be heard after it."""
    with _woken_by_signals() as heard:
        try:
            _remembered.append(heard)
            yield
        finally:
            _remembered[:] = [each for each in _remembered if each is not heard]


@contextmanager
def signals_heard(selector: selectors.BaseSelector) -> Iterator[WakeupSocket]:
    """Wake up for signals while waiting; Python hands them to the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield WakeupSocket(None)
        return
    if _remembered:
        selector.register(_remembered[-1], selectors.EVENT_READ)
        try:
            yield WakeupSocket(_remembered[-1])
        finally:
            selector.unregister(_remembered[-1])
        return
    with _woken_by_signals() as heard:
        try:
            selector.register(heard, selectors.EVENT_READ)
            yield WakeupSocket(heard)
        finally:
            with suppress(KeyError):  # it was interrupted before it was registered
                selector.unregister(heard)


@contextmanager
def _woken_by_signals() -> Iterator[socket.socket]:
    """Yield a socket that can be read once a signal has arrived."""
    heard, bell = socket.socketpair()
    with heard, bell:
        heard.setblocking(False)
        bell.setblocking(False)
        before = _NOWHERE
        try:
            before = signal.set_wakeup_fd(bell.fileno(), warn_on_full_buffer=False)
            yield heard
        finally:
            _wake_again(before, heard, bell)


def _wake_again(before: int, *ours: socket.socket) -> None:
    """Tell of signals where they were told of before; nowhere if that was closed, by an interrupt or by its owner.

    Args:
        before: The descriptor that was in use before.
        ours: Those in use now. If one of them has the same number, the former had been closed when it was opened.
    """
    try:
        signal.set_wakeup_fd(_NOWHERE if before in [each.fileno() for each in ours] else before)
    except (OSError, ValueError):
        signal.set_wakeup_fd(_NOWHERE)


@contextmanager
def ctrl_c_asks(interrupted: Callable[[], bool], name: str) -> Iterator[Callable[[], bool]]:
    """Let the first Ctrl-C end the call with what is known by then; the second one is a KeyboardInterrupt as usual.

    Only the main thread hears signals, and a program that handles Ctrl-C in its own way keeps its handler.

    Args:
        interrupted: What else can end the call.
        name: Of the function, for the line that says what happens.
    """
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or usual is not signal.default_int_handler:
        yield interrupted
        return
    asked = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            signal.default_int_handler(number, frame)
        asked = True
        print(f"{name}: stopping; once more for KeyboardInterrupt", file=sys.stderr)  # noqa: T201 (for people)

    signal.signal(signal.SIGINT, note)
    try:
        with signals_remembered():
            yield lambda: asked or interrupted()
    finally:
        signal.signal(signal.SIGINT, usual)
