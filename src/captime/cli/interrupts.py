"""Ctrl-C as a wish, not as an accident: the first one asks the loop to stop, the second one insists."""

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import typer

from captime.executors.signals import signals_remembered
from captime.report.stopped import STOPPED

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# A queue signals every process of a job, and the job's script passes the signal on: that is one wish, not two.
_SAME_WISH_SECONDS = 5.0


class Asked:
    """Whether a stop was requested: call it.

    Attributes:
        signal: Number of the signal that did; None if none was.
    """

    def __init__(self) -> None:
        self.signal: int | None = None

    def __call__(self) -> bool:
        """Return True once a stop was requested."""
        return self.signal is not None


@contextmanager
def asking_to_stop() -> Iterator[Asked]:
    """While inside, the first Ctrl-C (or SIGTERM, or a closed terminal) only makes the yielded function return True."""
    asked = Asked()
    until = 0.0

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal until
        if asked.signal is None:
            asked.signal = number
            until = time.monotonic() + _SAME_WISH_SECONDS
        elif number == signal.SIGINT or time.monotonic() > until:
            signal.default_int_handler(number, frame)

    before = {number: signal.signal(number, note) for number in _SIGNALS}
    try:
        with signals_remembered():
            yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def clearing_up() -> Iterator[None]:
    """While inside, a first SIGTERM or a closed terminal ends the process as Ctrl-C does: what was begun is undone."""

    def leave(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 (the shape of a handler)
        signal.signal(number, signal.SIG_DFL)
        sys.exit(128 + number)

    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, leave) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


COMPLETE = "instances"
"""How ledgers call the end of a table on which nothing is missing."""
_ADVICE = {
    "budget": "The scenario's stop.cpu counts all runs in this ledger: raise it, and the same command resumes",
    "deadline": "That is the scenario's stop.wall or stop.until; the same command resumes",
}


def say_why(stopped: str) -> None:
    """On stderr, so that it is not missed where the output is read by a program."""
    if stopped != COMPLETE:
        advice = _ADVICE.get(stopped, "The same command resumes")
        typer.echo(f"captime: some runs are missing, because {STOPPED[stopped]}. {advice}.", err=True)
