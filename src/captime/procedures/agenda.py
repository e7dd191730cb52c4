"""Who runs next in a race, and how far: one challenger at a time or hundreds, the leader ahead of them.

Schedules touch only what a certificate costs, never whether it is true.
"""

import math
from dataclasses import dataclass

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.targets import Targets

# One challenger in so many is run at a time, or one if there are fewer.
_TOGETHER = 32
# Up to this share of the runs that somebody will need is ordered ahead of results, if there are slots for them; the
# need is a guess from the runs so far, and is trusted up to so many times their number.
_IN_FLIGHT, _TRUST = 0.5, 3.0


@dataclass(frozen=True, slots=True)
class Rivals:
    """Challengers that need runs and can have them; parallel arrays.

    Attributes:
        config: Which configurations.
        urgency: Larger first.
        missing: About how many more runs each will need.
        open: Runs of theirs that were ordered and are not settled.
    """

    config: IntArray
    urgency: FloatArray
    missing: FloatArray
    open: IntArray


def runs_missing(epsilon: FloatArray, lead: FloatArray, n: IntArray, goal: float) -> FloatArray:
    """About how many more runs it takes until each is cleared, if widths shrink with the root of their number.

    Args:
        epsilon: By how much each may be better than the leader at most, as shown by n runs.
        lead: By how much each seems to be better; negative if it seems worse.
        n: Runs so far.
        goal: By how much each may be better in the end.
    """
    width = np.maximum(epsilon - lead, 0.0)
    room = np.maximum(goal - lead, 0.1 * goal + 1e-3)
    missing: FloatArray = n * ((width / room) ** 2 - 1.0)
    return missing


class Agenda:
    """Orders placed so far, and the next ones.

    Args:
        n_configs: How many configurations.
        growth: How much of its past a configuration repeats at a time.
        available: Length of the stream; infinite if it is endless.

    Attributes:
        ordered: Up to which position each configuration was told to run.
        start: The first position of the race; None before it is known.
        offset: By how many positions each begins after the start of the race.
    """

    def __init__(self, n_configs: int, growth: float, available: float) -> None:
        self._growth = growth
        self._available = available
        self.ordered: IntArray = np.zeros(n_configs, dtype=np.int64)
        self.offset: IntArray = np.zeros(n_configs, dtype=np.int64)
        self.start: int | None = None

    def enter(self, count: int) -> None:
        """So many more configurations."""
        nothing = np.zeros(count, dtype=np.int64)
        self.ordered, self.offset = np.append(self.ordered, nothing), np.append(self.offset, nothing)

    def begin_at(self, config: int, position: int) -> None:
        """This one begins later than the race; only before its first order."""
        self.ordered[config] = position
        self.offset[config] = position - (self.start or 0)

    def lengthen(self, available: int) -> None:
        """The stream has become longer at its end."""
        self._available = available

    def place(self, config: IntArray, n: IntArray) -> Targets:
        """Order these prefixes, as far as the stream goes and as far as they are new."""
        if math.isfinite(self._available):
            n = np.minimum(n, int(self._available))
        more = n > self.ordered[config]
        config, n = config[more], n[more]
        self.ordered[config] = n
        first = None if self.start is None else self.start + self.offset[config]
        return Targets(config, n, np.zeros(len(config), dtype=np.int64), first)

    def has_more(self, config: IntArray) -> BoolArray:
        """Whether the stream has positions that these have not been told to run."""
        more: BoolArray = self.ordered[config] < self._available
        return more

    def further(self, config: int, least: int) -> int:
        """Where this configuration's prefix should end next, at least so many positions further."""
        start = (self.start or 0) + int(self.offset[config])
        have = max(int(self.ordered[config]), start)
        return have + max(least, int(self._growth * (have - start)))

    def for_challengers(self, leader: int, rivals: Rivals, slots: int) -> Targets:
        """The most urgent of those with the least work in hand, and the leader as far as the farthest of them.

        Args:
            leader: Who leads.
            rivals: Challengers that need runs and can have them.
            slots: How many runs are wanted.
        """
        # How many strides each is behind with already; whoever is idle comes first, then whoever has least to do.
        have = np.maximum(self.ordered[rivals.config] - self.offset[rivals.config] - (self.start or 0), 0)
        stride = 1.0 + np.maximum(self._growth * have, _IN_FLIGHT * np.clip(rivals.missing, 0.0, _TRUST * have))
        behind = np.ceil(rivals.open / stride)
        # With many challengers, several at a time: all of them need runs, and one decision serves them together.
        together = max(1, slots, np.count_nonzero(rivals.open == 0) // _TOGETHER)
        places = np.lexsort((-rivals.urgency, behind))[:together]
        # With many slots and few challengers, deeper orders.
        share = math.ceil(slots / (len(places) + 1)) if slots > 1 else 1
        least = np.minimum(np.ceil(stride[places]), share).astype(np.int64).tolist()
        chosen = rivals.config[places].tolist()
        wanted = [(config, self.further(config, runs)) for config, runs in zip(chosen, least, strict=True)]
        ahead = max((n for _, n in wanted), default=0)
        if self.ordered[leader] < ahead:
            wanted.insert(0, (leader, max(ahead, self.further(leader, 1))))
        return self.place(
            np.array([config for config, _ in wanted], dtype=np.int64), np.array([n for _, n in wanted], dtype=np.int64)
        )
