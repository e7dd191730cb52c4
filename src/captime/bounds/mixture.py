"""Mixture betting, the recommended bound: monotone, good at all sample sizes at once, narrow where scores vary little.

The relatives live in files of their own and are offered here too: on binned scores, on pairs, on finite sets, in regret
form and from moments alone.
"""

import math
from typing import ClassVar

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.bounds.betting import (
    CHUNK,
    check_log_inverse,
    check_nodes,
    check_scores,
    climb,
    counted,
    log_mean,
    rounding_allowance,
    sine_nodes,
)
from captime.bounds.binned_mixture import BinnedMixture
from captime.bounds.fan import fan_lower
from captime.bounds.finite_mixture import mixture_lower_finite, mixture_upper_finite
from captime.bounds.paired_mixture import PairedMixture
from captime.bounds.regret import regret, regret_lower
from captime.errors import ScenarioError


def mixture_lower(
    samples: FloatArray, log_inverse: float, nodes: FloatArray | None = None, counts: IntArray | None = None
) -> float:
    """The largest mean q that the mixture refutes: Σ_k ∏_t (1 - b_k + b_k·x_t / q) / K >= exp(log_inverse).

    Computed from below, so never above the exact value; 0 if nothing is refuted. Valid for any nodes that were fixed
    before the data: the mixture is a bet, not an approximation of an integral.

    Args:
        samples: Scores in [0, 1], in any order.
        log_inverse: ln(1 / failure probability).
        nodes: Shares b_k that are bet, with equal weights; `sine_nodes()` if left out.
        counts: How often each score occurs; once each if left out.
    """
    scores = check_scores(samples)
    check_log_inverse(log_inverse)
    shares = check_nodes(sine_nodes() if nodes is None else nodes)
    values, times = counted(scores, counts)
    n = float(times.sum())
    total = float(times @ values)
    if not (total > 0.0 and shares.max() > 0.0):
        return 0.0
    target = log_inverse + rounding_allowance(n)
    # At the mean the wealth is at most 1, so the root lies below.
    return climb(lambda s: _log_wealth_and_slope(values, times, shares, s), target, log_mean(total, n))


def mixture_upper(
    samples: FloatArray, log_inverse: float, nodes: FloatArray | None = None, counts: IntArray | None = None
) -> float:
    """The smallest mean that mixture betting leaves possible: the lower bound of 1 - x, seen from the other side."""
    return 1.0 - mixture_lower(1.0 - np.asarray(samples, dtype=np.float64), log_inverse, nodes, counts)


def log_wealth(samples: FloatArray, q: float, nodes: FloatArray | None = None) -> float:
    """The logarithm of what the mixture has won against the mean q, 0 < q <= 1: the evidence itself."""
    if not 0.0 < q <= 1.0:
        raise ScenarioError(f"the mean to bet against is {q}, but it has to lie in (0, 1]")
    values, times = counted(check_scores(samples), None)
    return _log_wealth_and_slope(values, times, check_nodes(sine_nodes() if nodes is None else nodes), math.log(q))[0]


def _log_wealth_and_slope(values: FloatArray, times: FloatArray, shares: FloatArray, s: float) -> tuple[float, float]:
    """The logarithm of the wealth and its derivative by s, at q = e^s."""
    won, slope = np.zeros(len(shares)), np.zeros(len(shares))
    rows = max(1, CHUNK // len(shares))
    for start in range(0, len(values), rows):
        stake = np.multiply.outer(values[start : start + rows] * math.exp(-s), shares)
        factor = stake + (1.0 - shares)
        part = times[start : start + rows]
        # The plain logarithm is right to 1e-16 a factor, which is all that a sum of many needs, and much faster than
        # log1p. Everything bet on a score of 0 is ruin, ln 0.
        with np.errstate(divide="ignore"):
            won += part @ np.log(factor)
        slope -= part @ np.divide(stake, factor, out=stake, where=factor > 0.0)
    top = float(won.max())
    if top == -math.inf:
        return top, -1.0
    weight = np.exp(won - top)
    whole = float(weight.sum())
    return top + math.log(whole / len(shares)), float(weight @ slope) / whole


class Mixture:
    """Mixture betting on the scores one by one. What the default procedure trusts.

    Args:
        nodes: How many bets are mixed, at the shares of `sine_nodes`.
    """

    monotone: ClassVar[bool] = True
    time_uniform: ClassVar[bool] = True
    needs: ClassVar[str] = "samples"
    summary: ClassVar[str] = (
        "mixture betting, used by fixed-captimes and reports: all n at once, any captimes, narrow for small variances"
    )

    def __init__(self, nodes: int = 64) -> None:
        self.nodes = sine_nodes(nodes)

    def __call__(self, low: FloatArray, high: FloatArray, log_inverse: float, /) -> tuple[float, float]:
        """See the protocol of sample bounds."""
        return mixture_lower(low, log_inverse, self.nodes), mixture_upper(high, log_inverse, self.nodes)


__all__ = [
    "BinnedMixture",
    "Mixture",
    "PairedMixture",
    "fan_lower",
    "log_wealth",
    "mixture_lower",
    "mixture_lower_finite",
    "mixture_upper",
    "mixture_upper_finite",
    "regret",
    "regret_lower",
    "sine_nodes",
]
