"""Waiting that ends when a signal arrives, so that Ctrl-C is heard at once however long the runs are."""

import selectors
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType


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
    heard, bell = socket.socketpair()
    with heard, bell:
        heard.setblocking(False)
        bell.setblocking(False)
        before = _NOWHERE
        try:
            before = signal.set_wakeup_fd(bell.fileno(), warn_on_full_buffer=False)
            _remembered.append(heard)
            yield
        finally:
            _remembered[:] = [each for each in _remembered if each is not heard]
            _wake_again(before, heard, bell)


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
    heard, bell = socket.socketpair()
    with heard, bell:
        heard.setblocking(False)
        bell.setblocking(False)
        before = _NOWHERE
        try:
            before = signal.set_wakeup_fd(bell.fileno(), warn_on_full_buffer=False)
            selector.register(heard, selectors.EVENT_READ)
            yield WakeupSocket(heard)
        finally:
            with suppress(KeyError):  # it was interrupted before it was registered
                selector.unregister(heard)
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
