"""How long it may still take, from how fast epsilon has fallen lately. A guess, and said to be one."""

import math
from collections import deque

from captime.certificate import Population
from captime.utilities.durations import duration_text, rounded_time

# Epsilon falls about like one over the square root of the time; the last stretch of it tells the pace.
_REMEMBERED = 64
_LEAST_SECONDS = 2.0


class Pace:
    """Remembers when epsilon was what.

    Args:
        goal: The epsilon asked for; 0 for none.
    """

    def __init__(self, goal: float) -> None:
        self._goal = goal
        self._noted: deque[tuple[float, float]] = deque(maxlen=_REMEMBERED)
        self._now = 0.0

    def note(self, now: float, epsilon: float) -> None:
        """At that moment this was certified; only progress is remembered, and the newest moment.

        Epsilon rises when another configuration takes the lead: how fast it fell for the former one tells nothing then.
        """
        if self._noted and epsilon > self._noted[-1][1]:
            self._noted.clear()
        if not self._noted or epsilon < self._noted[-1][1]:
            self._noted.append((now, epsilon))
        self._now = now

    def seconds_left(self) -> float | None:
        """Until the goal is reached at this pace; None if it cannot be told yet."""
        certified = [(now, epsilon) for now, epsilon in self._noted if epsilon < 1.0]
        if len(certified) < 3 or not 0.0 < self._goal < certified[-1][1]:
            return None
        (first, wide), (last, narrow) = certified[0], certified[-1]
        if last - first < _LEAST_SECONDS:
            return None
        # Straight in log epsilon against log time; time counts from the start of the campaign.
        slope = math.log(wide / narrow) / math.log(max(last, 1e-9) / max(first, 1e-9))
        if slope < 0.05:
            return None
        reached_at: float = last * (narrow / self._goal) ** (1.0 / slope)
        return max(0.0, reached_at - self._now)

    def words(self, floor: float = 0.0) -> str:
        """Return the guess as half a sentence; nothing if there is none.

        Args:
            floor: What epsilon can fall to with all instances there are (`floor_of`). A goal below it is never reached,
                so no time is named for it.
        """
        if 0.0 < self._goal < floor < 1.0:
            return f"(about {floor:.2g} at best with all instances there are)"
        left = self.seconds_left()
        return "" if left is None else f"({self._goal:g} in about {duration_text(rounded_time(left))} at this pace)"


def floor_of(epsilon: float, met: int, n_instances: int | None, population: Population) -> float:
    """Return what epsilon can fall to with all instances there are, a guess: it falls like one over their root.

    About exactly these instances it falls to 0, and on an endless stream it falls for ever.

    Args:
        epsilon: What is certified.
        met: On how many instances.
        n_instances: How many there are; None for no end of them.
        population: What the claim is about.
    """
    if population is Population.THESE or n_instances is None:
        return 0.0
    return epsilon * math.sqrt(min(1.0, met / n_instances))
