"""A fixed piece of work, done now and then, tells whether a machine is still as fast as it was."""

import math
import sys
from collections.abc import Iterable

from captime.supervision.messages import Launch, plain_launch

REMEASURE_SECONDS = 600.0
"""How often a machine does the piece of work again."""

TIMES = 3
"""How often in a row; the least of them counts, because other work disturbs it least."""

# Not at once: while nothing else runs, cores are faster than they will be.
_FIRST_SECONDS = 10.0
_TOLERANCE = 0.1
# About 0.05 s of whole-number arithmetic: the same on every machine, and nothing but the core's own speed.
_WORK = "n = 1\nfor _ in range(400_000): n = (n * 1103515245 + 12345) % 2147483648"


def reference_launch(tag: str, number: int = 0) -> Launch:
    """Return the piece of work, to be run by a slot.

    Args:
        tag: Of the campaign.
        number: Of the launch.
    """
    return plain_launch(sys.executable, "-I", "-S", "-c", _WORK, number=number, tag=f"{tag}/reference")


class SpeedChecks:
    """When each slot has to do the piece of work again, and what came of it.

    Args:
        slots: Their numbers.
        now: Seconds on some clock.
    """

    def __init__(self, slots: Iterable[int], now: float) -> None:
        self._due = dict.fromkeys(slots, now + _FIRST_SECONDS)
        self._at_first: dict[int, float] = {}
        self._heard: dict[int, list[float]] = {}
        self._drifted: set[int] = set()

    def is_due(self, slot: int, now: float) -> bool:
        """Return whether it is time; if so, the next time is a while later."""
        if now < self._due[slot]:
            return False
        self._due[slot] = now + REMEASURE_SECONDS
        self._heard[slot] = []
        return True

    def hear(self, slot: int, seconds: float) -> None:
        """Record the CPU seconds of the piece of work; not a finite number if it failed."""
        heard = self._heard.setdefault(slot, [])
        heard.append(seconds)
        if len(heard) < TIMES:
            return
        least = min(heard)
        if not math.isfinite(least):
            return
        first = self._at_first.setdefault(slot, least)
        (self._drifted.add if abs(least / first - 1.0) > _TOLERANCE else self._drifted.discard)(slot)

    def has_drifted(self, slot: int) -> bool:
        """Return whether a slot was faster or slower than at first, by more than a tenth, when it was last measured."""
        return slot in self._drifted
