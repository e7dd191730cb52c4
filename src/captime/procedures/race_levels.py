"""Which captimes clear a challenger at the least cost: an estimate by level. Validity does not depend on it.

A challenger is cleared by its own upper bound once the bet against "its utility is at least q" has grown enough. Here q
is the leader's lower bound plus epsilon. A run that is stopped at c multiplies the bet by 1 - b + b(1 - u(c)) / (1 - q)
and costs c. For q near 1 short captimes are the cheapest evidence; for q below 1/B only drawn captimes gain.
"""

from dataclasses import dataclass

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.plans.random_captimes import RandomCaptimes

# Shares that are bet in the estimate, and quantiles of the draws it looks at.
_BETS: FloatArray = np.array([0.25, 0.5, 0.7, 0.85, 0.95])
_QUANTILES = 24
# What mixing over bets costs, in nats: the best bet is not known beforehand.
_MIXING = 1.2
# A challenger that takes more runs than this is not cleared by its own bound.
_MOST_RUNS = 64
_FEW_RUNS = 16


@dataclass(frozen=True, slots=True)
class Challenger:
    """What is known of a configuration that is to be cleared.

    Attributes:
        position: Its positions so far.
        low: Low ends of its scores there.
        high: High ends.
        level: Its level of captimes.
        wanted: The logarithm that the bet against it has to reach.
    """

    position: IntArray
    low: FloatArray
    high: FloatArray
    level: int
    wanted: float


class LevelCosts:
    """Estimates of what it costs to clear a challenger, by level of the plan.

    Args:
        plan: The captimes.
        boost: B of the plan.
        longest: The longest captime in use.
    """

    def __init__(self, plan: RandomCaptimes, boost: float, longest: float) -> None:
        self._plan = plan
        self._least = 1.0 / boost
        levels = np.arange(plan.stops.top + 1)
        quantile = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
        drawn = np.minimum(plan.utility.inverse(quantile / boost), longest)
        self._seconds: FloatArray = plan.stops.applied(drawn[None, :], levels[:, None])
        self._high: FloatArray = self._ends(self._seconds, drawn[None, :], np.asarray(quantile[None, :]))

    def _ends(self, captime: FloatArray, drawn: FloatArray, draw: FloatArray) -> FloatArray:
        """High ends of runs that are still unfinished at these captimes."""
        worth = self._plan.utility(captime)
        reached = (captime >= drawn) & (draw >= worth / self._least)
        return np.where(reached, 0.0, np.maximum(worth, self._least))

    def _gain(self, high: FloatArray, q: float) -> FloatArray:
        """Logarithms of the factors of bets on these high ends, bets in the last axis."""
        return np.log1p(_BETS * ((1.0 - high) / (1.0 - q) - 1.0))

    def best_level(self, challenger: Challenger, q: float) -> tuple[int, float]:
        """Return the level at which a challenger is likely to be cleared at the least cost, and that cost.

        Args:
            challenger: What is known of it.
            q: What has to be refuted: that its utility is at least this.
        """
        position, low, high = challenger.position, challenger.low, challenger.high
        top = self._plan.stops.top
        levels = np.arange(challenger.level, top + 1)
        open_ended = high > low
        known = self._gain(high[~open_ended, None], q).sum(axis=0)
        cut = position[open_ended]
        drawn = np.minimum(self._plan.drawn(cut), self._plan.longest.at(cut))
        seconds = self._plan.stops.applied(drawn[None, :], levels[:, None])
        ends = self._ends(seconds, drawn[None, :], self._plan.draws(cut)[None, :])
        bet = known + self._gain(ends[..., None], q).sum(axis=1)
        longer = seconds > seconds[0]
        again = np.where(longer, seconds, 0.0).sum(axis=1)
        answered = np.count_nonzero(low > 0.0)
        alive = (len(position) - answered + 0.25) / (len(position) + 0.25)
        scores = low[low > 0.0] if answered else np.ones(1)
        gain = alive * self._gain(self._high[levels][..., None], q).mean(axis=1)
        gain = gain + (1.0 - alive) * self._gain(scores[:, None], q).mean(axis=0)
        # A score above 1/B tells the time of the answer.
        answers = float(self._plan.utility.inverse(scores).mean()) if answered else 0.0
        cost = alive * self._seconds[levels].mean(axis=1) + (1.0 - alive) * answers
        missing = np.maximum(challenger.wanted + _MIXING - bet, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            runs = np.where(gain > 0.0, missing / gain, np.where(missing > 0.0, np.inf, 0.0))
        total = (again[:, None] + runs * cost[:, None]).min(axis=1)
        best = int(total.argmin())
        most = _MOST_RUNS * float(self._seconds[top].mean())
        if total[best] < most:
            return int(levels[best]), float(total[best])
        # Its own bound will not do, as far as can be told. After few runs that is luck, and the last stop shows a loss
        # where there is one; after many a duel has to clear it, with drawn captimes.
        few = len(position) < _FEW_RUNS and q > self._least
        return max(challenger.level, int(np.count_nonzero(self._plan.stops.reach == 0.0)) - 1) if few else top, most
