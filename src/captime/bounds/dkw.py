"""A band around the whole distribution of runtimes (Dvoretzky, Kiefer, Wolfowitz), and what it says of every utility.

The band holds whatever the utility is. So one experiment answers "and if my utility were another one?" after the fact,
for all non-increasing utilities at once.
"""

import math
from functools import lru_cache
from typing import ClassVar

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.bounds.betting import check_log_inverse, check_scores
from captime.errors import ScenarioError
from captime.utilities.formula import Utility

# Howard and Ramdas's slope: any number above 1/√2 will do, this one is good over many orders of magnitude of n.
_SLOPE = 0.85
_HALVINGS = 60
# Every η of the stitching gives a valid constant; the best of a fine grid is as good as the best of all.
_GRID = 20_000


def dkw_radius(n: IntArray, log_inverse: FloatArray) -> FloatArray:
    """Half the height of the two-sided band at one sample size: sqrt(ln(2/δ) / 2n), with Massart's constant."""
    check_log_inverse(log_inverse)
    radius: FloatArray = np.sqrt((log_inverse + math.log(2.0)) / (2.0 * n))
    return radius


@lru_cache(maxsize=256)
def uniform_dkw_constant(log_inverse: float) -> float:
    """C of Howard and Ramdas's time-uniform band at ln(1/δ), from above.

    The failure probability of the band with constant C is at most 4·e^(-g²C)·(1 + 1 / ((g² - 1)·ln η)), where
    g² = (2/η)·(A - sqrt(2(η - 1)/C))², for every η > 1 that leaves g² > 1.
    """
    check_log_inverse(log_inverse)
    eta = np.linspace(1.0, 2.0 * _SLOPE**2, _GRID + 2)[1:-1]

    def log_failure(constant: float) -> float:
        rest = _SLOPE - np.sqrt(2.0 * (eta - 1.0) / constant)
        gain = np.where(rest > 0.0, 2.0 / eta * rest**2, 0.0)
        good = gain > 1.0
        if not good.any():
            return math.inf
        gain = gain[good]
        return float((math.log(4.0) - gain * constant + np.log1p(1.0 / ((gain - 1.0) * np.log(eta[good])))).min())

    low, high = 0.0, 1.0
    while log_failure(high) > -log_inverse:
        low, high = high, 2.0 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (low, middle) if log_failure(middle) <= -log_inverse else (middle, high)
    return high


def uniform_dkw_radius(n: IntArray, log_inverse: float, first: int = 32) -> FloatArray:
    """Half the height of the time-uniform band: 0.85·sqrt((ln(1 + ln(n / first)) + C) / n); infinite before `first`.

    Args:
        n: Numbers of samples.
        log_inverse: ln(1/δ): the band holds at all n >= `first`, on both sides, with probability at least 1 - δ.
        first: The smallest sample size that counts, fixed before the first run.
    """
    if first < 1:
        raise ScenarioError(f"the band is to start at {first} samples, but it takes at least 1; try 32")
    m = np.maximum(np.asarray(n, dtype=np.float64), first)
    constant = uniform_dkw_constant(float(log_inverse))
    radius = _SLOPE * np.sqrt((np.log1p(np.log(m / first)) + constant) / m)
    return np.where(np.asarray(n) < first, np.inf, radius)


def band_lower(scores: FloatArray, radius: float) -> float:
    """∫ max(P̂(x > y) - r, 0) dy over [0, 1]: the smallest mean of a distribution within the band.

    P̂(x > y) steps down from (n - k + 1)/n to (n - k)/n at the k-th smallest score.
    """
    ordered = np.sort(check_scores(scores))
    n = len(ordered)
    if n == 0 or not radius < 1.0:
        return 0.0
    heights = np.maximum(np.arange(n, 0, -1) / n - radius, 0.0)
    return float(heights @ np.diff(ordered, prepend=0.0))


def utility_bounds(seconds: FloatArray, captime: float, utility: Utility, radius: float) -> tuple[float, float]:
    """Bounds on the expected utility from runtimes that were all cut at one captime, for any number of utilities.

    Args:
        seconds: Runtimes; a run that took `captime` or longer, or never ended, counts as cut.
        captime: When runs were stopped.
        utility: What an answer is worth. The band's event does not depend on it.
        radius: Half the height of the band, as `uniform_dkw_radius` gives it.
    """
    times = np.asarray(seconds, dtype=np.float64)
    completed = times < captime
    high = utility(np.minimum(times, captime))
    low = np.where(completed, high, 0.0)
    return band_lower(low, radius), 1.0 - band_lower(1.0 - high, radius)


class Dkw:
    """The time-uniform band on scores. Wide for one utility, but all utilities share its one event, on both sides.

    Args:
        first: The smallest sample size that counts, fixed before the first run; before it the interval is [0, 1].
    """

    monotone: ClassVar[bool] = True
    time_uniform: ClassVar[bool] = True
    needs: ClassVar[str] = "samples"
    summary: ClassVar[str] = (
        "a band around the whole distribution (DKW), used by reports: every utility at once, all n at once"
    )

    def __init__(self, first: int = 32) -> None:
        self.first = first

    def __call__(self, low: FloatArray, high: FloatArray, log_inverse: float, /) -> tuple[float, float]:
        """See the protocol of sample bounds."""
        radius = float(uniform_dkw_radius(np.array([len(low)]), log_inverse, self.first)[0])
        missing: FloatArray = 1.0 - np.asarray(high, dtype=np.float64)
        return band_lower(low, radius), 1.0 - band_lower(missing, radius)
