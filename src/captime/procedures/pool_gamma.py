"""How much of a space its random draws may have missed: gamma, right at every number of draws at once.

Let OPT^γ be the utility that the best fraction γ of the space reaches. After n independent draws none of them reaches
it with probability at most (1 - γ)^n. For *one* γ these events shrink as n grows, so one payment covers all later n.
Here several γ are paid at once, as bets: the wealth Σ w_γ / (1 - γ)^n over those γ that no draw has reached yet is a
fair game from 1, and by Ville it reaches 1/α at any n with probability at most α. A goal that is known beforehand gets
most of the weight. docs/engine.md has the proof.
"""

import math
from bisect import bisect_left
from operator import neg

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.errors import ScenarioError

# The weight of the goal, if there is one, and the grid that shares the rest: 0.9, 0.81, … down to a millionth. Its
# first part, to about a thousandth, is what pools of a usual size are judged by.
_GOAL_WEIGHT = 0.8
_RATIO, _USUAL, _ALL, _USUAL_WEIGHT = 0.9, 66, 131, 0.85


# A smaller goal would take more draws than can be run.
_SMALLEST_GOAL = 1e-4


def check_gamma(goal: float) -> None:
    """Refuse a goal for gamma that is no share of a space, or cannot be reached."""
    if not (goal == 0.0 or _SMALLEST_GOAL <= goal < 1.0):
        raise ScenarioError(
            f"gamma is {goal!r}, but it is a share of the space to leave out, at least {_SMALLEST_GOAL:g} and below 1. "
            "Say 0.1, or 0 for no goal, after --gamma or as gamma = 0.1 under [stop]"
        )


class GammaBets:
    """gamma after n random draws, for every n at once, with one failure probability.

    Args:
        alpha: The failure probability.
        goal: The gamma that is wanted; 0 if there is no such wish.
    """

    def __init__(self, alpha: float, goal: float) -> None:
        check_gamma(goal)
        shares = _RATIO ** np.arange(1, _ALL + 1, dtype=np.float64)
        weights = np.full(_ALL, (1.0 - _USUAL_WEIGHT) / (_ALL - _USUAL))
        weights[:_USUAL] = _USUAL_WEIGHT / _USUAL
        if goal > 0.0:
            shares = np.append(shares, goal)
            weights = np.append((1.0 - _GOAL_WEIGHT) * weights, _GOAL_WEIGHT)
        order = np.argsort(shares, kind="stable")
        self.shares: FloatArray = shares[order]
        self.weights: FloatArray = weights[order]
        self._log_weights: FloatArray = np.log(self.weights)
        self._log_growth: FloatArray = -np.log1p(-self.shares)
        self._log_inverse = -math.log(alpha)
        self._known: list[float] = [1.0]

    def after(self, draws: int) -> float:
        """Return the best fraction of the space that `draws` draws may have missed; 1 if nothing can be said."""
        while len(self._known) <= draws:
            # A share that no draw has hit pays; the smallest share up to which that would have made rich is excluded.
            wealth = np.logaddexp.accumulate(self._log_weights + len(self._known) * self._log_growth)
            rich = np.flatnonzero(wealth >= self._log_inverse)
            self._known.append(float(self.shares[rich[0]]) if len(rich) else 1.0)
        return self._known[draws]

    def after_each(self, draws: IntArray) -> FloatArray:
        """The same for many numbers of draws."""
        self.after(int(draws.max(initial=0)))
        return np.array(self._known)[draws]

    def draws_for(self, gamma: float) -> int:
        """How many draws it takes to miss no more than this share."""
        while self._known[-1] > gamma:
            self.after(len(self._known))
        # More draws never miss more, so the numbers known so far fall.
        return bisect_left(self._known, -gamma, key=neg)
