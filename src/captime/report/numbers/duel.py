"""Two configurations on the same instances: their runtimes in pairs, and an interval for what lies between them."""

import math
from dataclasses import dataclass

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.bounds.mixture import mixture_lower
from captime.report.story import Story

# Differences are rounded up to so many steps, which keeps the bound valid and makes it fast.
_STEPS = 500


@dataclass(frozen=True, slots=True)
class Duel:
    """One configuration against another, on positions that both ran.

    Attributes:
        first: One of them.
        second: The other.
        position: Where both ran.
        seconds: Times of the first and of the second, rows 0 and 1.
        kind: What became of the runs, likewise.
        lower: Certified lower end of the first's expected utility minus the second's.
        upper: Certified upper end.
        estimate: Mean difference of the scores; not a number without common positions.
        delta: The intervals of all pairs there are hold at all times at once with probability 1 - delta.
    """

    first: int
    second: int
    position: IntArray
    seconds: FloatArray
    kind: IntArray
    lower: float
    upper: float
    estimate: float
    delta: float


def duel(story: Story, first: int, second: int) -> Duel | None:
    """The comparison; None without runs or without a utility.

    Who is compared may depend on the data (the leader does), so the interval pays for all pairs there are.
    """
    runs, scores = story.runs, story.scores
    if runs is None or scores is None:
        return None
    ends = runs.bounds(len(story.names))
    slices = [slice(int(ends[config]), int(ends[config + 1])) for config in (first, second)]
    position, here, there = np.intersect1d(
        runs.position[slices[0]], runs.position[slices[1]], assume_unique=True, return_indices=True
    )
    rows = (here + slices[0].start, there + slices[1].start)
    low = scores.low[rows[0]] - scores.high[rows[1]]
    high = scores.high[rows[0]] - scores.low[rows[1]]
    n = len(story.names)
    log_inverse = math.log(max(2, n * (n - 1)) / story.delta)
    return Duel(
        first=first,
        second=second,
        position=position,
        seconds=np.stack([runs.seconds[row] for row in rows]),
        kind=np.stack([runs.kind[row] for row in rows]),
        lower=-_at_most(-low, log_inverse),
        upper=_at_most(high, log_inverse),
        estimate=float((low + high).mean() / 2.0) if len(position) else math.nan,
        delta=story.delta,
    )


def _at_most(differences: FloatArray, log_inverse: float) -> float:
    """An upper bound on a mean difference D, from a lower bound on the mean of (1 - D) / 2, which lies in [0, 1]."""
    if len(differences) == 0:
        return 1.0
    rounded = np.ceil(differences * _STEPS - 1e-9) / _STEPS
    values, counts = np.unique(np.clip((1.0 - rounded) / 2.0, 0.0, 1.0), return_counts=True)
    return 1.0 - 2.0 * mixture_lower(values, log_inverse, counts=counts)
