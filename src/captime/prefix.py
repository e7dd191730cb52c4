"""All runs of one configuration, one entry per stream position: what was measured, and the interval of its score.

Columns with room to grow, no object per run. Nothing is decided here.
"""

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray

# The state of a run before any news of it.
_UNHEARD_OF: dict[str, float | bool | int] = {
    "captime": 0.0,
    "runtime": np.nan,
    "seen": 0.0,
    "cost": 0.0,
    "low": 0.0,
    "high": 1.0,
    "attempts": 0,
    "completed": False,
    "settled": False,
    "flying": False,
    "skipped": False,
    "abandoned": False,
    "given_up": False,
}


class Prefix:
    """Everything known of one configuration, one entry per stream position; arrays with room to grow.

    Nothing is kept of what comes before its first position: configurations that join late are many, and begin far
    down the stream. So an entry's place in the arrays is its position less `start`.

    Attributes:
        start: Its first position; those before count as skipped.
        captime: In force when the run was last asked for.
        runtime: Not a number until known; infinite if the run failed.
        seen: CPU seconds after which the run was last seen unfinished.
        cost: CPU seconds of all its attempts.
        low: Low end of its score at the level in force; 0 if skipped.
        high: High end; 0 if skipped, so that sums do not count it.
        attempts: How often it was asked for.
        completed: Whether it ended before its captime at the level in force.
        settled: Whether nothing more can become known of it at the level in force; true if skipped.
        flying: Whether an attempt is under way.
        skipped: Whether it will never be run.
        abandoned: Whether it was begun and will never be tried again; what was seen of it is all there will be.
        given_up: Whether it was abandoned before the captime in force, so that its score stays an interval.
        done: Length of the prefix in which everything is settled.
        sums: Low ends, high ends and costs over that prefix, added from the left.
        n_completed: Completed runs of that prefix.
    """

    captime: FloatArray
    runtime: FloatArray
    seen: FloatArray
    cost: FloatArray
    low: FloatArray
    high: FloatArray
    attempts: IntArray
    completed: BoolArray
    settled: BoolArray
    flying: BoolArray
    skipped: BoolArray
    abandoned: BoolArray
    given_up: BoolArray

    def __init__(self) -> None:
        self.start = 0
        for name, value in _UNHEARD_OF.items():
            setattr(self, name, np.full(0, value))
        self.start_over()

    def begin_at(self, start: int) -> None:
        """Its first position is this one; only before anything is known of it."""
        self.start = start
        self.start_over()

    def start_over(self) -> None:
        """Forget the sums: a new level makes every entry anew."""
        self.done = self.start
        self.sums: FloatArray = np.zeros(3)
        self.n_completed = 0

    def grow(self, n: int) -> None:
        """Make room for the first n positions of the stream."""
        if n - self.start > len(self.seen):
            more = max(n - self.start, 2 * len(self.seen), 16) - len(self.seen)
            for name, value in _UNHEARD_OF.items():
                setattr(self, name, np.concatenate((getattr(self, name), np.full(more, value))))

    def totals(self, n: int) -> tuple[FloatArray, int, int]:
        """Sums over the first n positions, completed runs among them, and open ones."""
        begin, end = self.done - self.start, n - self.start
        settled = self.settled[begin:end]
        fresh = end - begin if bool(settled.all()) else int(settled.argmin())
        # Added from left to right whatever came first, as in a replay: the order of arrival must not show in rounding.
        steps = np.empty((3, end - begin + 1))
        steps[:, 0] = self.sums
        steps[0, 1:], steps[1, 1:], steps[2, 1:] = self.low[begin:end], self.high[begin:end], self.cost[begin:end]
        np.cumsum(steps, axis=1, out=steps)
        self.done += fresh
        self.sums = steps[:, fresh].copy()
        in_tail = int(np.count_nonzero(self.completed[begin + fresh : end]))
        self.n_completed += int(np.count_nonzero(self.completed[begin : begin + fresh]))
        return steps[:, -1], self.n_completed + in_tail, int(np.count_nonzero(~settled))
