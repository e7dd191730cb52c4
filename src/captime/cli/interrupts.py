"""Ctrl-C as a wish, not as an accident: the first one asks the loop to stop, the second one insists."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def asking_to_stop() -> Iterator[Callable[[], bool]]:
    """While inside, the first Ctrl-C only makes the yielded function return True."""
    asked = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            signal.default_int_handler(number, frame)
        asked = True

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)
