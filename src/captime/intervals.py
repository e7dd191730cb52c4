"""The tightest valid interval per configuration, and the certificate drawn from them.

Only this room speaks about certainty. Procedures decide what to learn; whatever they decide, the intervals hold.
"""

from dataclasses import dataclass, field

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.bounds.protocol import Bound
from captime.budget import FailureBudget
from captime.certificate import Certificate
from captime.plans import Plan


@dataclass(slots=True)
class IntervalEnds:
    """Both ends of every configuration's expected utility as they stand, [0, 1] at first.

    Attributes:
        n_configs: How many configurations.
        lower: Lower ends, in [0, 1].
        upper: Upper ends, in [0, 1].
        crossed: Configurations whose lower end has come out above their upper end. Within the guarantee this happens
            with probability at most delta; more often it says that the instances are not independent draws.
    """

    n_configs: int
    lower: FloatArray = field(init=False)
    upper: FloatArray = field(init=False)
    crossed: BoolArray = field(init=False)

    def __post_init__(self) -> None:
        self.lower = np.zeros(self.n_configs)
        self.upper = np.ones(self.n_configs)
        self.crossed = np.zeros(self.n_configs, dtype=np.bool_)


@dataclass(slots=True)
class Intervals(IntervalEnds):
    """Ends with the bound that moves them, and the certificate drawn from them.

    Args:
        n_configs: How many configurations.
        bound: From sums to an interval.
        budget: How unlikely a wrong inequality must be, per cell.
        plan: Gives the range of the high ends at a level.
        running: Keep the tightest value each end ever had (all of them hold at once, so the tightest does too).
            The paper's pseudocode recomputes instead; its authors' code and captime keep.
    """

    bound: Bound
    budget: FailureBudget
    plan: Plan
    running: bool = True

    def tightened(
        self,
        n: IntArray,
        level: IntArray,
        low: FloatArray,
        high: FloatArray,
        start: tuple[FloatArray, FloatArray],
        *,
        since: IntArray | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the ends after each of several rounds, shape (A, K). Nothing is kept yet: see `keep`.

        Args:
            n: Prefix lengths, shape (K,) in lockstep, (A, K) if configurations differ.
            level: Captime levels, shape (A,).
            low: Sums of the low ends, shape (A, K).
            high: Sums of the high ends, shape (A, K).
            start: Lower and upper ends before the first of these rounds, shape (A,) each.
            since: Only rounds from this one on (counted from 0) have anything to say, shape (A,); all if left out.
        """
        # One row of levels and log-probabilities serves all, in the usual case that all are at the same level.
        levels = level[:1] if (level == level[0]).all() else level[:, None]
        log_inverse = self.budget.log_inverse(n, levels)
        lower, upper = self.bound(n, low, high, log_inverse, self.plan.floor(levels))
        if since is not None:
            too_early = np.arange(len(n)) < since[:, None]
            lower[too_early], upper[too_early] = 0.0, 1.0
        if self.running:
            np.maximum(lower[:, 0], start[0], out=lower[:, 0])
            np.minimum(upper[:, 0], start[1], out=upper[:, 0])
            if lower.shape[1] > 1:
                _run(np.maximum, lower)
                _run(np.minimum, upper)
        else:
            np.maximum(lower, 0.0, out=lower)
            np.minimum(upper, 1.0, out=upper)
        return lower, upper

    def keep(self, config: IntArray, lower: FloatArray, upper: FloatArray) -> None:
        """These ends now stand for these configurations."""
        self.lower[config] = lower
        self.upper[config] = upper
        if self.running and (wrong := lower > upper).any():
            self.crossed[config[wrong]] = True

    def gap(self, config: int, candidates: IntArray) -> float:
        """Return how far the best of the other candidates may be above `config`: the epsilon that can be certified."""
        others = candidates[candidates != config]
        if len(others) == 0:
            return 0.0
        return max(0.0, float(self.upper.take(others).max()) - float(self.lower[config]))

    def certificate(self, config: int, epsilon: float) -> Certificate:
        """Return the statement about `config`, with its own interval."""
        return Certificate(
            config=config,
            epsilon=min(1.0, epsilon),
            delta=self.budget.delta,
            n_configs=self.n_configs,
            utility_low=float(self.lower[config]),
            utility_high=float(max(self.upper[config], self.lower[config])),
        )


def _run(extreme: np.ufunc, ends: FloatArray) -> None:
    """The running maximum or minimum along each row, in place.

    Compared as integers, which takes a fraction of the time: the bits of numbers that are not negative are ordered like
    the numbers, and a negative one (a raw lower end) is below all of them either way. Each row begins with a number in
    [0, 1], so whatever survives is one.
    """
    bits = ends.view(np.int64)
    extreme.accumulate(bits, axis=1, out=bits)
