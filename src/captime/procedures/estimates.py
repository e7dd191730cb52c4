"""Mean utilities as the measured times tell them, although some runs are only known to be longer than a captime.

The estimator is the product limit of Kaplan and Meier, with failure as a second way to end (Aalen and Johansen).
Among the runs still watched just before time t, the share that answers at t is d(t) / Y(t). S(t) is the share that
has neither answered nor failed before t. Then the share of instances answered by t is the sum of S * d / Y over the
times up to t, and the mean utility is the sum of u(t) * S * d / Y. A run that was capped, cancelled or lost leaves Y
at the time at which it was last seen unfinished; a failed run is worth 0. The curve ends where fewer than five runs
are watched and more than those have left Y unfinished, or else after the last run. The share S that is left there is
worth between 0 and u(that time); the middle is taken.

The estimator assumes that a captime does not depend on the time that its run would take. No certificate rests on it: it
says which of several certified configurations is named, and what tables and reports show.
"""

import math
from dataclasses import dataclass

import numpy as np

from captime.arrays import BoolArray, FloatArray
from captime.tally import Tally
from captime.utilities.formula import Utility

# Where fewer runs are watched, and more than those have been lost from sight, nothing is estimated any more.
_ENOUGH_WATCHED = 5


@dataclass(frozen=True, slots=True)
class AnswerSteps:
    """The estimated share of instances answered by each time, as steps.

    Attributes:
        times: At which some runs answered, increasing.
        steps: By how much the share rises there.
        left: The share that has neither answered nor failed at the end of the curve.
        watched_until: The end of the curve; 0 without runs.
    """

    times: FloatArray
    steps: FloatArray
    left: float
    watched_until: float

    def mean_utility(self, utility: Utility) -> float:
        """Return the estimated mean utility; not a number if no run was watched for any time."""
        if self.watched_until <= 0.0 and len(self.times) == 0 and self.left >= 1.0:
            return math.nan
        known = float((utility(self.times) * self.steps).sum()) if len(self.times) else 0.0
        hidden = self.left * float(utility(np.array([self.watched_until]))[0])
        return min(1.0, known + hidden / 2.0)


def product_limit(seconds: FloatArray, answered: BoolArray, failed: BoolArray) -> AnswerSteps:
    """Estimate, from the runs of one configuration, which share of instances it answers by when.

    Args:
        seconds: When each run answered or failed, or was last seen unfinished.
        answered: Which answered.
        failed: Which failed.
    """
    times, place = np.unique(seconds, return_inverse=True)
    answers = np.bincount(place, answered, len(times))
    failures = np.bincount(place, failed, len(times))
    # Watched just before each time. Whatever leaves at a time leaves after the answers and failures there.
    watched = len(seconds) - np.searchsorted(np.sort(seconds), times, side="left")
    stay = 1.0 - (answers + failures) / np.maximum(watched, 1)
    survival = np.concatenate((np.ones(1), np.cumprod(stay)))
    steps = survival[:-1] * answers / np.maximum(watched, 1)
    unseen = np.cumsum(np.bincount(place, ~(answered | failed), len(times))) if len(times) else np.empty(0)
    before = np.concatenate((np.zeros(1), unseen[:-1])) if len(times) else unseen
    # A few that are still watched cannot stand for more that are not: there the curve ends.
    too_few = (watched < _ENOUGH_WATCHED) & (watched < before)
    end = int(np.argmax(too_few)) if too_few.any() else len(times)
    known = np.flatnonzero(answers[:end] > 0)
    return AnswerSteps(
        times=times[known],
        steps=steps[known],
        left=float(max(survival[end], 0.0)),
        watched_until=float(times[min(end, len(times) - 1)]) if len(times) else 0.0,
    )


def measured_utility(tally: Tally, config: int, utility: Utility, last: int | None = None) -> float:
    """Return the mean utility of a configuration as its measured times tell it; not a number if there are none.

    Args:
        tally: What is known of all runs.
        config: Which configuration.
        utility: What an answer is worth.
        last: Only positions before this one count; all of its positions if left out.
    """
    if tally.times is None:
        return math.nan
    n = int(tally.n[config])
    seconds, ended = tally.times(config, n if last is None else min(n, last))
    made = ~np.isnan(seconds)
    seconds, ended = seconds[made], ended[made]
    failed = ended & np.isinf(seconds)
    # A failure is seen at the time when it happened or not at all; here only that it is worth nothing counts.
    return product_limit(np.where(failed, 0.0, seconds), ended & ~failed, failed).mean_utility(utility)
