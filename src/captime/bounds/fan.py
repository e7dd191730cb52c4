"""A cheap floor under the regret form: from the number of scores, their sum and the sum of their squares alone."""

from typing import ClassVar

import numpy as np

from captime.arrays import FloatArray
from captime.bounds.betting import check_log_inverse, rounding_allowance
from captime.bounds.kl import kl_divergence, kl_lower
from captime.bounds.protocol import Moments
from captime.bounds.regret import regret

# Halving [0, 1] this often leaves 1e-12.
_HALVINGS = 40


def fan_lower(scores: Moments, log_inverse: FloatArray) -> FloatArray:
    """Lower bounds from moments: the better of KL and of Fan's inequality ln(1 + λy) >= λy + (ln(1 - λ) + λ)y².

    Never above the regret form on the same scores.

    Args:
        scores: Moments of scores in [0, 1].
        log_inverse: ln(1 / failure probability); broadcasts with the moments.
    """
    check_log_inverse(log_inverse)
    n, total, squares, log_inverse = np.broadcast_arrays(
        *(np.asarray(given, dtype=np.float64) for given in (*scores, log_inverse))
    )
    mean = np.clip(np.divide(total, n, out=np.zeros(n.shape), where=n > 0), 0.0, 1.0)
    # A variance that rounding made too small would overstate the gain; the allowance covers it.
    variance = np.clip(np.divide(squares, n, out=np.zeros(n.shape), where=n > 0) - mean**2, 0.0, 0.25) + 1e-15
    target = log_inverse + regret(n) + rounding_allowance(float(n.max(initial=0)))
    # The KL bound is refuted by the statistic itself, so the search starts there and only climbs.
    low: FloatArray = kl_lower(n, total, target)
    high = mean.copy()
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        enough = np.maximum(_fan(mean, variance, middle), kl_divergence(mean, middle)) * n >= target
        low, high = np.where(enough, middle, low), np.where(enough, high, middle)
    return low


def _fan(mean: FloatArray, variance: FloatArray, q: FloatArray) -> FloatArray:
    """What a bet against q gains at least, per score. A and B are the mean and mean square of x / q - 1."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        a = (mean - q) / q
        b = (variance + (mean - q) ** 2) / q**2
        share = a / (a + b)
        gain = a * share + (np.log1p(-share) + share) * b
    return np.where(np.isfinite(gain) & (a > 0.0), gain, 0.0)


class Fan:
    """Fan's inequality under the regret form: a screen for many configurations, from three sums each.

    Not monotone itself, so declared so. Still, `fan_lower` is valid on low ends of any origin, because what it computes
    never exceeds the statistic of the regret form, which is monotone: good for a first look, not for an interval.
    """

    monotone: ClassVar[bool] = False
    time_uniform: ClassVar[bool] = True
    needs: ClassVar[str] = "moments"
    summary: ClassVar[str] = (
        "a cheap floor under mixture-regret, inside mixture: from n, the sum and the sum of squares"
    )

    def __call__(self, low: Moments, high: Moments, log_inverse: FloatArray, /) -> tuple[FloatArray, FloatArray]:
        """See the protocol of moment bounds."""
        return fan_lower(low, log_inverse), 1.0 - fan_lower(high.mirrored(), log_inverse)
