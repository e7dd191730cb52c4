"""What a model may learn from a tally: mean scores as intervals, how many there are, and how much each of them says.

Configurations have been run on different stretches of the stream, and instances differ more than configurations do. So
means are adjusted: every score is taken as a sum of what the configuration is worth and of how kind the position is,
and both are fitted to all scores at once. Who has only met unkind positions is not blamed for them.
"""

from collections.abc import Sequence

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.spaces.model import SCORE_VARIANCE, Known
from captime.spaces.values import Settings
from captime.tally import Tally

# A position with few runs is kept near the middle: it counts as if this many more had run it and scored as usual.
_CAUTION = 1.0
_SWEEPS = 8
# What is left of a score's variance is never taken to be less than this.
_LEAST_VARIANCE = 0.01


class Lessons:
    """Reads a tally again and again, each score once."""

    def __init__(self) -> None:
        self._read: IntArray = np.zeros(0, dtype=np.int64)
        self._sums: FloatArray = np.zeros(0)
        self._by_position: FloatArray = np.zeros(0)
        self._squares = 0.0

    def of(self, tally: Tally, settings: Sequence[Settings]) -> list[Known]:
        """Return what is known of each configuration; from 0 to 1 for those that are not in the tally yet.

        Args:
            tally: What is known; always the same one, and what was settled stays so.
            settings: Of the configurations, by index.
        """
        count = min(len(settings), len(tally.n))
        start, end = tally.skipped[:count], tally.settled[:count]
        self._take_in(tally, start, end)
        n = np.maximum(end - start, 0)
        worth, variance = self._adjusted(start, np.maximum(end, start), n)
        half = (tally.utility_high[:count] - tally.utility_low[:count]) / 2.0 / np.maximum(n, 1)
        heard_of = [
            Known(settings[index], *ends, int(n[index]), variance)
            for index, ends in enumerate(zip((worth - half).tolist(), (worth + half).tolist(), strict=True))
        ]
        return heard_of + [Known(each, 0.0, 1.0, 0, variance) for each in settings[count:]]

    def _take_in(self, tally: Tally, start: IntArray, end: IntArray) -> None:
        more = len(start) - len(self._read)
        self._read = np.append(self._read, start[len(self._read) :]) if more > 0 else self._read
        self._sums = np.append(self._sums, np.zeros(max(more, 0)))
        self._read = np.maximum(self._read, start)
        if int(end.max(initial=0)) > len(self._by_position):
            longer = np.zeros(max(2 * len(self._by_position), int(end.max())))
            longer[: len(self._by_position)] = self._by_position
            self._by_position = longer
        for config in np.flatnonzero(end > self._read).tolist():
            first, last = int(self._read[config]), int(end[config])
            low, high = tally.samples(config, first, last)
            score = (low + high) / 2.0
            self._by_position[first:last] += score
            self._sums[config] += float(score.sum())
            self._squares += float(score @ score)
            self._read[config] = last

    def _adjusted(self, start: IntArray, end: IntArray, n: IntArray) -> tuple[FloatArray, float]:
        """What each configuration is worth on a usual position, and the variance of what is left of a score."""
        total = int(n.sum())
        if not total:
            return np.zeros(len(n)), SCORE_VARIANCE
        middle = float(self._sums.sum()) / total
        length = int(end.max())
        above, kind = self._sums - middle * n, np.zeros(length)
        runners = _over(np.ones(len(n)), start, end, length)
        by_position = self._by_position[:length] - middle * runners
        worth: FloatArray = np.zeros(len(n))
        for _ in range(_SWEEPS):
            before = np.concatenate(([0.0], np.cumsum(kind)))
            worth = (above - (before[end] - before[start])) / np.maximum(n, 1)
            kind = (by_position - _over(worth, start, end, length)) / (runners + _CAUTION)
        left = self._squares - middle**2 * total - float(worth @ above) - float(kind @ by_position)
        freedom = max(1, total - len(n) - length // 2)
        return middle + worth, float(np.clip(left / freedom, _LEAST_VARIANCE, 0.25))


def _over(values: FloatArray, start: IntArray, end: IntArray, length: int) -> FloatArray:
    """The sum, at each position, of the values of those who were run there."""
    steps = np.bincount(start, values, minlength=length + 1) - np.bincount(end, values, minlength=length + 1)
    return np.cumsum(steps)[:length]
