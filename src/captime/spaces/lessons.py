"""What a model may learn from a tally: mean scores as intervals, how many there are, and how much each of them says.

Configurations have been run on different stretches of the stream, and instances differ more than configurations do. So
means are adjusted: every score is taken as a sum of what the configuration is worth and of how kind the position is,
and both are fitted to all scores at once. Who has only met unkind positions is not blamed for them.

Scores of random captimes are mostly 0 or near 1, so that means of few of them say little. Measured times say more: a
run that ended counts what its answer is worth, and one that was stopped counts what such runs are usually worth in the
end. That is estimated from all runs together, by the product-limit estimator of survival analysis. Here it is a guess
to learn from, and no claim.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.spaces.model import SCORE_VARIANCE, Known
from captime.spaces.values import Settings
from captime.tally import Tally
from captime.utilities import Utility

# A position with few runs is kept near the middle: it counts as if this many more had run it and scored as usual.
_CAUTION = 1.0
_SWEEPS = 8
# What is left of a score's variance is never taken to be less than this.
_LEAST_VARIANCE, _LEAST_VARIANCE_OF_TIMES = 0.01, 0.002
# Utilities are counted in this many steps to estimate what stopped runs are worth.
_STEPS = 64


@dataclass(frozen=True, slots=True)
class _Run:
    """Runs of one configuration on neighbouring positions.

    Attributes:
        config: Which.
        first: The first of the positions.
        worth: What each answer is worth; of a stopped run, what it would have been worth just then.
        stopped: Which of them were stopped.
    """

    config: int
    first: int
    worth: FloatArray
    stopped: BoolArray


def in_the_end(worth: FloatArray, stopped: BoolArray, step: IntArray) -> FloatArray:
    """Return what runs that were stopped in each step are worth in the end, by the product-limit estimator.

    Args:
        worth: What each answer is worth, or would have been worth when the run was stopped.
        stopped: Which runs were stopped.
        step: The step of each worth, from 0 for the highest on.
    """
    ended = np.bincount(step[~stopped], minlength=_STEPS)
    of_ended = np.bincount(step[~stopped], worth[~stopped], minlength=_STEPS)
    watched = np.cumsum(np.bincount(step, minlength=_STEPS)[::-1])[::-1]
    left = np.zeros(_STEPS)
    for place in range(_STEPS - 1, 0, -1):
        # A share of the runs that were watched in this step ended; their answers have this mean.
        share = ended[place] / max(1, watched[place])
        left[place - 1] = share * of_ended[place] / max(1, ended[place]) + (1.0 - share) * left[place]
    return left


class Lessons:
    """Reads a tally again and again, each score once.

    Args:
        utility: What an answer is worth, to learn from measured times; left out, from scores of random captimes.
    """

    def __init__(self, utility: Utility | None = None) -> None:
        self._utility = utility
        self._runs: list[_Run] = []
        self._levels: IntArray = np.zeros(0, dtype=np.int64)
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
        half = half if self._utility is None else np.zeros(count)
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
        self._read_longer_again(tally.level[: len(start)], start)
        for config in np.flatnonzero(end > self._read).tolist():
            first, last = int(self._read[config]), int(end[config])
            self._read[config] = last
            if self._utility is not None and tally.times is not None:
                seconds, ended = tally.times(config, last)
                # Without a time the run is known to have begun, and nothing more.
                worth = np.asarray(self._utility(np.nan_to_num(seconds[first:last], nan=0.0)), dtype=np.float64)
                self._runs.append(_Run(config, first, worth, ~ended[first:last]))
                continue
            low, high = tally.samples(config, first, last)
            score = (low + high) / 2.0
            self._by_position[first:last] += score
            self._sums[config] += float(score.sum())
            self._squares += float(score @ score)
        if self._runs:
            self._score_times()

    def _read_longer_again(self, level: IntArray, start: IntArray) -> None:
        """Forget the measured times of configurations whose captimes have become longer: they are read anew."""
        self._levels = np.append(self._levels, level[len(self._levels) :])
        longer = np.flatnonzero(level > self._levels)
        if len(longer) and self._utility is not None:
            again = set(longer.tolist())
            self._runs = [each for each in self._runs if each.config not in again]
            self._read[longer] = start[longer]
            self._levels[longer] = level[longer]

    def _score_times(self) -> None:
        """Estimate what stopped runs are worth in the end, and score all runs anew."""
        worth = np.concatenate([each.worth for each in self._runs])
        stopped = np.concatenate([each.stopped for each in self._runs])
        config = np.repeat([each.config for each in self._runs], [len(each.worth) for each in self._runs])
        position = np.concatenate([np.arange(each.first, each.first + len(each.worth)) for each in self._runs])
        step = np.clip(((1.0 - worth) * _STEPS).astype(np.int64), 0, _STEPS - 1)
        score = np.where(stopped, in_the_end(worth, stopped, step)[step], worth)
        self._sums = np.bincount(config, score, minlength=len(self._sums)).astype(np.float64)
        self._by_position = np.bincount(position, score, minlength=len(self._by_position)).astype(np.float64)
        self._squares = float(score @ score)

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
        least = _LEAST_VARIANCE if self._utility is None else _LEAST_VARIANCE_OF_TIMES
        freedom = max(1, total - len(n) - length // 2)
        return middle + worth, float(np.clip(left / freedom, least, 0.25))


def lessons_for(proposals: int, utility: Utility) -> Lessons:
    """Return lessons from measured times where proposals come in batches, and otherwise from scores, as ever.

    Args:
        proposals: How many follow each random draw.
        utility: What an answer is worth.
    """
    return Lessons(utility if proposals > 1 else None)


def _over(values: FloatArray, start: IntArray, end: IntArray, length: int) -> FloatArray:
    """The sum, at each position, of the values of those who were run there."""
    steps = np.bincount(start, values, minlength=length + 1) - np.bincount(end, values, minlength=length + 1)
    return np.cumsum(steps)[:length]
