"""Who runs next in a race, and how far: one challenger at a time or hundreds, the leader ahead of them.

Schedules touch only what a certificate costs, never whether it is true.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.targets import Targets

# One challenger in 32 is run at a time, or one if there are fewer.
_TOGETHER = 32
# Up to this share of the runs that a challenger will need is ordered ahead of results, if there are slots for them; the
# need is a guess from the runs so far, and is trusted up to three times their number.
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
        level: Level of captimes that each configuration was ordered at.
    """

    def __init__(self, n_configs: int, growth: float, available: float) -> None:
        self._growth = growth
        self._available = available
        self.ordered: IntArray = np.zeros(n_configs, dtype=np.int64)
        self.offset: IntArray = np.zeros(n_configs, dtype=np.int64)
        self.level: IntArray = np.zeros(n_configs, dtype=np.int64)
        self.start: int | None = None

    def enter(self, count: int) -> None:
        """Make room for `count` more configurations."""
        nothing = np.zeros(count, dtype=np.int64)
        self.ordered, self.offset = np.append(self.ordered, nothing), np.append(self.offset, nothing)
        self.level = np.append(self.level, nothing)

    def begin_at(self, config: int, position: int) -> None:
        """This one begins later than the race; only before its first order."""
        self.ordered[config] = position
        self.offset[config] = position - (self.start or 0)

    def lengthen(self, available: int) -> None:
        """The stream has become longer at its end."""
        self._available = available

    def place(self, config: IntArray, n: IntArray, level: IntArray | None = None) -> Targets:
        """Order these prefixes, as far as the stream goes and as far as they, or their levels, are new."""
        if math.isfinite(self._available):
            n = np.minimum(n, int(self._available))
        n = np.maximum(n, self.ordered[config])
        level = self.level[config] if level is None else np.maximum(level, self.level[config])
        more = (n > self.ordered[config]) | (level > self.level[config])
        config, n, level = config[more], n[more], level[more]
        self.ordered[config], self.level[config] = n, level
        first = None if self.start is None else self.start + self.offset[config]
        return Targets(config, n, level, first)

    def has_more(self, config: IntArray) -> BoolArray:
        """Whether the stream has positions that these have not been told to run."""
        more: BoolArray = self.ordered[config] < self._available
        return more

    def further(self, config: int, least: int) -> int:
        """Return where this configuration's prefix should end next, at least `least` positions further."""
        start = (self.start or 0) + int(self.offset[config])
        have = max(int(self.ordered[config]), start)
        return have + max(least, int(self._growth * (have - start)))

    def for_challengers(
        self, leader: int, rivals: Rivals, slots: int, level_for: Callable[[int], tuple[int, bool]]
    ) -> Targets:
        """The most urgent of those with the least work in hand, and the leader as far as the farthest of them.

        Args:
            leader: Who leads.
            rivals: Challengers that need runs and can have them.
            slots: How many runs are wanted.
            level_for: The level of captimes that a challenger should be at, and whether runs of it are made longer
                by that. If so, no new ones are ordered.
        """
        # How many strides each rival is behind already; an idle rival comes first, then the one with the least to do.
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
        wanted: list[tuple[int, int, int]] = []
        for config, runs in zip(chosen, least, strict=True):
            level, longer = level_for(config)
            wanted.append((config, int(self.ordered[config]) if longer else self.further(config, runs), level))
        ahead = max((n for _, n, _ in wanted), default=0)
        if self.ordered[leader] < ahead:
            wanted.insert(0, (leader, max(ahead, self.further(leader, 1)), level_for(leader)[0]))
        columns = np.array(wanted, dtype=np.int64).reshape(-1, 3).T
        return self.place(columns[0], columns[1], columns[2])
