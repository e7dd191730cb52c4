"""The inverse of a falling function without a closed form, exact to the last bit of a time."""

from collections.abc import Callable

import numpy as np

from captime.arrays import FloatArray


def first_moment(
    function: Callable[[FloatArray], FloatArray], value: FloatArray, lower: float, upper: float
) -> FloatArray:
    """Return the first time in [lower, upper] at which a falling function is at `value` or below.

    It is `upper` if that never happens before it: the caller knows that the function has fallen far enough
    there. Never returns another time at which the function is above the value, whatever the function does.
    """
    x = np.atleast_1d(value).ravel()
    start = np.full(x.shape, lower)
    # Doubles of one sign are ordered like their bit patterns, so halving the distance of the patterns is
    # bisection with equal relative steps: at most 63 of them lead from any interval to two neighbours.
    low = start.view(np.int64).copy()
    high = np.full(x.shape, upper).view(np.int64).copy()
    high = np.where(function(start) <= x, low, high)
    while np.any(high - low > 1):
        middle = low + (high - low) // 2
        fallen = function(middle.view(np.float64)) <= x
        high = np.where(fallen, middle, high)
        low = np.where(fallen, low, middle)
    return high.view(np.float64).reshape(np.shape(value))
