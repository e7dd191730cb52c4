"""The price of not knowing the best bet, and the bounds that pay it outright instead of mixing over bets."""

import math
from typing import ClassVar

import numpy as np
from scipy.special import gammaln

from captime.arrays import FloatArray, IntArray
from captime.bounds.betting import check_log_inverse, check_scores, climb, counted, log_mean, rounding_allowance

# Halving alone would settle the best share to 16 digits in this many steps; Newton's method needs far fewer.
_STEPS = 60


def regret(n: IntArray | FloatArray | float) -> FloatArray:
    """R(n) = ½ ln π + lnΓ(n + 1) - lnΓ(n + ½): what the best constant bet gains over the Beta(½, ½) mixture at most.

    About ½ ln(πn).

    >>> regret(np.array([1, 100, 1000])).round(4).tolist()
    [0.6931, 2.8762, 4.0264]
    """
    m = np.asarray(n, dtype=np.float64)
    return np.asarray(0.5 * math.log(math.pi) + gammaln(m + 1.0) - gammaln(m + 0.5), dtype=np.float64)


def regret_lower(samples: FloatArray, log_inverse: float, counts: IntArray | None = None) -> float:
    """The regret form of mixture betting: the best share in hindsight, less what hindsight can be worth.

    Valid and monotone like the mixture over all shares, and a little below it.

    Args:
        samples: Scores in [0, 1], in any order.
        log_inverse: ln(1 / failure probability).
        counts: How often each score occurs; once each if left out.
    """
    scores = check_scores(samples)
    check_log_inverse(log_inverse)
    values, times = counted(scores, counts)
    n = float(times.sum())
    total = float(times @ values)
    if not total > 0.0:
        return 0.0
    target = log_inverse + float(regret(n)) + rounding_allowance(n)

    def best_bet(s: float) -> tuple[float, float]:
        gain = values * math.exp(-s) - 1.0
        share = _best_share(gain, times)
        with np.errstate(divide="ignore"):
            value = float(times @ np.log1p(share * gain))
        # The slope of the best bet is the slope of the bet that is best here.
        slope = -float(times @ (share * (gain + 1.0) / (1.0 + share * gain)))
        return value, slope

    # At the mean no bet gains anything; just below it the best one does, and has a slope.
    return climb(best_bet, target, log_mean(total, n) - 1.0)


def _best_share(gain: FloatArray, times: FloatArray) -> float:
    """Where Σ ln(1 + b·gain) is largest on [0, 1]: it is concave, so Newton's steps within a shrinking interval do.

    Any share would give a valid bound; a worse one gives a lower one.
    """
    if gain.min() > -1.0 and float(times @ (gain / (1.0 + gain))) >= 0.0:
        return 1.0
    low, high, share = 0.0, 1.0, 0.5
    for _ in range(_STEPS):
        relative = gain / (1.0 + share * gain)
        weighed = times * relative
        slope, bend = float(weighed.sum()), float(weighed @ relative)
        low, high = (share, high) if slope > 0.0 else (low, share)
        following = share + slope / bend if bend > 0.0 else low
        if not low < following < high:
            following = (low + high) / 2.0
        if abs(following - share) <= 1e-13:
            break
        share = following
    return share


class RegretBetting:
    """The regret form of mixture betting (the idea of PRECiSE): no nodes to choose, a little wider than the mixture."""

    monotone: ClassVar[bool] = True
    time_uniform: ClassVar[bool] = True
    needs: ClassVar[str] = "samples"
    summary: ClassVar[str] = (
        "the best bet in hindsight less its regret, where the search for the mixture begins: a little wider, no nodes"
    )

    def __call__(self, low: FloatArray, high: FloatArray, log_inverse: float, /) -> tuple[float, float]:
        """See the protocol of sample bounds."""
        return regret_lower(low, log_inverse), 1.0 - regret_lower(1.0 - np.asarray(high), log_inverse)
