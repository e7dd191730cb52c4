"""Short captimes in a search: proposals are looked at cheaply first, and estimates come from measured times.

A run that is stopped at u⁻¹(1/B) costs a fraction of a run that uses up its draw, and tells nearly as much about which
of two configurations is better. So the first runs of proposals are stopped there (docs/engine.md, step 10). A
configuration that leads, or that keeps the certificate weak, makes its stopped runs again with their drawn captimes.
Random draws use up their draws from the first run on: their ranks at arrival need complete scores.

Runs that were stopped at different moments are compared by measured times. A run that ended counts what its answer is
worth. A stopped one counts what such runs are usually worth in the end, by the product-limit estimator over all runs.
These are estimates; they decide what is run and which configuration leads, and no certificate rests on them.
"""

from dataclasses import dataclass

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.procedures.pool_bets import BestBets
from captime.procedures.pool_terms import Origin
from captime.utilities.formula import Utility

# Utilities are counted in this many steps to estimate what stopped runs are worth.
_STEPS = 64
# A run of a random draw counts this much in that estimate: most draws are slower than what is being compared.
_DRAWS_COUNT = 0.1
# The estimate is renewed when there are this many times as many runs.
_RENEWED = 1.1


def worth_in_the_end(ended: FloatArray, of_ended: FloatArray, stopped: FloatArray) -> FloatArray:
    """Return what runs that were stopped in each step are worth in the end, by the product-limit estimator.

    Args:
        ended: The weight of the runs that ended, by step of their worth, from the highest worth on.
        of_ended: The sum of their weighted worths, by step.
        stopped: The weight of the runs that were stopped, by step of what they would have been worth then.
    """
    watched = np.cumsum((ended + stopped)[::-1])[::-1]
    left = np.zeros(len(ended))
    for place in range(len(ended) - 1, 0, -1):
        # A share of the runs that were watched in this step ended; their answers have this mean.
        share = ended[place] / max(watched[place], 1e-9)
        mean = of_ended[place] / max(ended[place], 1e-9)
        left[place - 1] = share * mean + (1.0 - share) * left[place]
    return left


@dataclass(slots=True)
class _Runs:
    """Runs of one configuration on neighbouring positions.

    Attributes:
        start: The first of the positions.
        worth: What each answer is worth; of a stopped run, what it would have been worth just then.
        ended: Which of them ended.
        step: The step of each worth.
        score: What each counts.
    """

    start: int
    worth: FloatArray
    ended: BoolArray
    step: IntArray
    score: FloatArray


class MeasuredBets(BestBets):
    """What each configuration seems to be worth by measured times, and how uncertain that is.

    Args:
        utility: What an answer is worth.
    """

    def __init__(self, utility: Utility) -> None:
        super().__init__()
        self._utility = utility
        self._runs: list[_Runs | None] = []
        self._counts: list[float] = []
        self._left: FloatArray = np.zeros(_STEPS)
        self._renewed_at = 0
        self._known = 0

    def enter(self, origin: Origin) -> None:
        """One more configuration, without a run."""
        super().enter(origin)
        self._runs.append(None)
        self._counts.append(_DRAWS_COUNT if origin == "random" else 1.0)

    def take_in_times(self, config: int, start: int, seconds: FloatArray, ended: BoolArray) -> None:
        """All runs of a configuration as they are now; earlier ones may have become longer.

        Args:
            config: Which.
            start: Its first position.
            seconds: When each run ended or was last seen, from that position on; infinite for a failed one.
            ended: Which runs ended.
        """
        worth = np.asarray(self._utility(np.nan_to_num(seconds, nan=0.0, posinf=np.inf)), dtype=np.float64)
        step = np.clip(((1.0 - worth) * _STEPS).astype(np.int64), 0, _STEPS - 1)
        runs = _Runs(start, worth, ended, step, self._scored(worth, ended, step))
        before = self._runs[config]
        if before is not None:
            self._known -= len(before.worth)
            self._add(config, before.start, -before.score, float(before.score @ -before.score))
        self._runs[config] = runs
        self._known += len(worth)
        self._add(config, start, runs.score, float(runs.score @ runs.score))
        self._start[config], self._end[config] = start, start + len(worth)

    def weigh(self) -> None:
        """Estimate anew from all runs."""
        if self._known >= _RENEWED * self._renewed_at:
            self._renew()
        super().weigh()

    def _scored(self, worth: FloatArray, ended: BoolArray, step: IntArray) -> FloatArray:
        return np.where(ended, worth, self._left[step])

    def _renew(self) -> None:
        """Estimate anew what stopped runs are worth, and score all runs again."""
        there = [(config, runs) for config, runs in enumerate(self._runs) if runs is not None]
        if not there:
            return
        self._renewed_at = self._known
        step = np.concatenate([runs.step for _, runs in there])
        ended = np.concatenate([runs.ended for _, runs in there])
        worth = np.concatenate([runs.worth for _, runs in there])
        weight = np.repeat([self._counts[config] for config, _ in there], [len(runs.worth) for _, runs in there])
        weights: tuple[FloatArray, ...] = (weight * ended, weight * ended * worth, weight * ~ended)
        by_step = [np.asarray(np.bincount(step, each, minlength=_STEPS), dtype=np.float64) for each in weights]
        self._left = worth_in_the_end(*by_step)
        self._sums[:] = 0.0
        self._by_position[:] = 0.0
        self._squares = 0.0
        for config, runs in there:
            runs.score = self._scored(runs.worth, runs.ended, runs.step)
            self._add(config, runs.start, runs.score, float(runs.score @ runs.score))
