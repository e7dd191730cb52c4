"""Maurer and Pontil's empirical Bernstein bound: narrow for small variances and many samples, at one sample size."""

import math
from typing import ClassVar

import numpy as np

from captime.arrays import FloatArray
from captime.bounds.betting import check_log_inverse
from captime.bounds.moments import Moments


def empirical_bernstein_lower(scores: Moments, log_inverse: FloatArray) -> FloatArray:
    """The mean less sqrt(2·V·ln(2/δ) / n) + 7·ln(2/δ) / (3(n - 1)), V the variance with divisor n - 1.

    Nothing is known below two samples.

    Args:
        scores: Moments of scores in [0, 1].
        log_inverse: ln(1/δ); broadcasts with the moments.
    """
    check_log_inverse(log_inverse)
    n, total, squares = scores
    m = np.maximum(np.asarray(n, dtype=np.float64), 2.0)
    mean = total / m
    variance = np.maximum(squares - m * mean**2, 0.0) / (m - 1.0)
    price = log_inverse + math.log(2.0)
    lower = mean - np.sqrt(2.0 * variance * price / m) - 7.0 * price / (3.0 * (m - 1.0))
    return np.where(np.asarray(n) < 2, 0.0, np.clip(lower, 0.0, 1.0))


class EmpiricalBernstein:
    """Maurer and Pontil's bound. Its width moves with the variance, so it is not monotone.

    Where captimes follow the data, or runs are open, it may not be used: a cut run counted as 0 can *raise* the lower
    bound of the others through a smaller variance. It is sound at captime levels that were paid for one by one.
    """

    monotone: ClassVar[bool] = False
    time_uniform: ClassVar[bool] = False
    needs: ClassVar[str] = "moments"
    summary: ClassVar[str] = (
        "empirical Bernstein (Maurer-Pontil): variance-adaptive, one n at a time, settled runs only"
    )

    def __call__(self, low: Moments, high: Moments, log_inverse: FloatArray, /) -> tuple[FloatArray, FloatArray]:
        """See the protocol of moment bounds."""
        return empirical_bernstein_lower(low, log_inverse), 1.0 - empirical_bernstein_lower(
            high.mirrored(), log_inverse
        )
