"""The next positions of some configurations, each from where it stands, shown before they are booked."""

from typing import TYPE_CHECKING

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.sources.window import running_sums
from captime.targets import Targets

if TYPE_CHECKING:
    from captime.sources.replay import Replay


class ReplayedLanes:
    """See `captime.procedures.turns.Lanes`.

    Args:
        replay: Where runs are looked up and booked.
        targets: The orders; a configuration ordered at a higher level than it has gets a lane of length 0.
        depth: Show at most this many positions.
        affordable: CPU seconds that may still be spent.

    Attributes:
        cost: CPU seconds of each run, shape (A, K).
    """

    def __init__(self, replay: "Replay", targets: Targets, depth: int, affordable: float) -> None:
        tally, config, end = replay.tally, targets.config, replay.stream.length
        self._replay = replay
        self._affordable = affordable
        self.config = config
        self.level: IntArray = tally.level.take(config)
        first = tally.n.take(config)
        self.length: IntArray = np.full(len(config), depth)
        if end is not None:
            np.minimum(self.length, end - first, out=self.length)
            depth = max(1, int(self.length.max()))
        self.length[targets.level > self.level] = 0
        position = first[:, None] + np.arange(depth)
        self.n: IntArray = position + 1
        # Beyond the end of the stream there is nothing to look up; whatever stands there is outside the lane.
        shown = position if end is None else np.minimum(position, end - 1)
        cells = replay.made(replay.seconds_at(config, shown), self.level[:, None], shown)
        self.cost: FloatArray = cells.cost
        self.low = running_sums(tally.utility_low.take(config), cells.low)
        self.high = running_sums(tally.utility_high.take(config), cells.high)
        self.completed: IntArray = tally.completed[config, None] + np.cumsum(cells.completed, axis=1)

    def payable(self, row: IntArray, /) -> int:
        """See the protocol."""
        if np.isinf(self._affordable):
            return len(row)
        spent = np.cumsum(self._costs(row).sum(axis=1))
        return min(len(row), int(np.searchsorted(spent, self._affordable)) + 1)

    def book(self, row: IntArray) -> tuple[FloatArray, IntArray]:
        """Make the runs of these decisions.

        Returns:
            CPU seconds and executions in all, after each decision.
        """
        tally, config = self._replay.tally, self.config
        spent, started = float(tally.seconds.sum()), int(tally.runs.sum())
        costs = self._costs(row)
        moved = row >= 0
        used = np.bincount(row[moved], minlength=len(config))
        walked = np.flatnonzero(used)
        who, last = config[walked], used[walked] - 1
        tally.n[who] = self.n[walked, last]
        tally.utility_low[who] = self.low[walked, last]
        tally.utility_high[who] = self.high[walked, last]
        tally.completed[who] = self.completed[walked, last]
        tally.runs[who] += used[walked]
        tally.seconds[config] += np.bincount(row[moved], weights=costs[moved], minlength=len(config))
        return spent + np.cumsum(costs.sum(axis=1)), started + np.cumsum(moved.sum(axis=1))

    def _costs(self, row: IntArray) -> FloatArray:
        """CPU seconds of each run of these decisions: a lane's first turn is its first position, and so on."""
        moved = row >= 0
        lane = row[moved]
        order = np.argsort(lane, kind="stable")
        times = np.bincount(lane, minlength=len(self.config))
        step = np.empty_like(lane)
        step[order] = np.arange(len(lane)) - np.repeat(np.cumsum(times) - times, times)
        costs = np.zeros(row.shape)
        costs[moved] = self.cost[lane, step]
        return costs
