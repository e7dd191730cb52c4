"""Waiting that ends when a signal arrives, so that Ctrl-C is heard at once however long the runs are."""

import selectors
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Bell:
    """Rings when a signal arrives.

    Args:
        heard: Where it is heard; None where no signals are.
    """

    def __init__(self, heard: socket.socket | None) -> None:
        self._heard = heard

    def rung(self) -> bool:
        """Whether it has rung since the last time somebody asked."""
        if self._heard is None:
            return False
        try:
            return bool(self._heard.recv(4096))
        except BlockingIOError:
            return False


_remembered: list[socket.socket] = []
"""Where signals are heard that arrive between two waits; empty if nothing remembers them."""


@contextmanager
def signals_remembered() -> Iterator[None]:
    """Keep signals for the next wait: one that arrives just before it would otherwise be heard after it."""
    heard, bell = socket.socketpair()
    with heard, bell:
        heard.setblocking(False)
        bell.setblocking(False)
        before = signal.set_wakeup_fd(bell.fileno(), warn_on_full_buffer=False)
        _remembered.append(heard)
        try:
            yield
        finally:
            _remembered.remove(heard)
            signal.set_wakeup_fd(before)


@contextmanager
def signals_heard(selector: selectors.BaseSelector) -> Iterator[Bell]:
    """Wake up for signals while waiting; Python hands them to the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield Bell(None)
        return
    if _remembered:
        selector.register(_remembered[-1], selectors.EVENT_READ)
        try:
            yield Bell(_remembered[-1])
        finally:
            selector.unregister(_remembered[-1])
        return
    heard, bell = socket.socketpair()
    with heard, bell:
        heard.setblocking(False)
        bell.setblocking(False)
        before = signal.set_wakeup_fd(bell.fileno(), warn_on_full_buffer=False)
        selector.register(heard, selectors.EVENT_READ)
        try:
            yield Bell(heard)
        finally:
            selector.unregister(heard)
            signal.set_wakeup_fd(before)
