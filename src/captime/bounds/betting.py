"""What the betting bounds share: the nodes, the checks of their input, the climb to the root.

A gambler who doubts that the mean is as small as q bets on large scores: a share b of the wealth earns x / q, which is
a fair or a losing game if the mean is at most q. Great wealth is evidence against q. Everything here works with the
logarithm of that wealth, as a function of s = ln q: there ln(1 - b + b·x·e^-s) is convex and falling, sums of it and
mixtures over b are too, and so Newton's method stays on the safe side of the root whatever it starts from.
"""

import math
from collections.abc import Callable

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.errors import ScenarioError

# Below this s, q = e^s cannot change any result and x / q could overflow.
_VANISHING = -600.0
# Newton's method doubles the number of right digits; from the farthest start it still needs fewer steps than this.
_STEPS = 200
_STRIDE = 20.0
# How many numbers a temporary table may hold.
CHUNK = 1 << 17


def sine_nodes(k: int = 64) -> FloatArray:
    """Shares b_i = sin²((i - ½)π / 2K), i = 1, …, K: an equal-weight quadrature of Beta(½, ½).

    >>> sine_nodes(2).round(6).tolist()
    [0.146447, 0.853553]
    """
    if k < 1:
        raise ScenarioError(f"a mixture of {k} bets was asked for, but it takes at least one; try 64")
    nodes: FloatArray = np.sin((np.arange(k) + 0.5) * (np.pi / (2.0 * k))) ** 2
    return nodes


def check_log_inverse(log_inverse: float | FloatArray) -> None:
    """Refuse ln(1 / failure probability) that is not positive: a bound that always fails, or a missing number."""
    if not np.all(np.asarray(log_inverse) > 0.0):
        raise ScenarioError(
            f"log_inverse is {log_inverse}, but ln(1 / failure probability) is positive; give -ln(delta) with delta "
            "strictly between 0 and 1"
        )


def check_nodes(nodes: FloatArray, what: str = "the nodes of the mixture") -> FloatArray:
    """The shares of the wealth that are bet: at least one, each in [0, 1]."""
    shares = np.asarray(nodes, dtype=np.float64)
    if shares.ndim != 1 or len(shares) == 0 or not ((shares >= 0.0) & (shares <= 1.0)).all():
        raise ScenarioError(f"{what} are {shares}, but they are shares of a wealth: a list of numbers in [0, 1]")
    return shares


def check_scores(samples: FloatArray) -> FloatArray:
    """Scores in the order of the stream; refuses what is not a list of numbers in [0, 1]."""
    scores = np.asarray(samples, dtype=np.float64)
    if scores.ndim != 1:
        raise ScenarioError(f"the scores have the shape {scores.shape}, but a bound takes one list of them at a time")
    wrong = np.flatnonzero(~((scores >= 0.0) & (scores <= 1.0)))
    if len(wrong):
        raise ScenarioError(
            f"score number {wrong[0]} is {scores[wrong[0]]}, but every score lies in [0, 1]; scale the scores first"
        )
    return scores


def counted(scores: FloatArray, counts: IntArray | None) -> tuple[FloatArray, FloatArray]:
    """Distinct scores and how often each occurs. Order does not matter to a bet that never changes."""
    if counts is None:
        values, times = np.unique(scores, return_counts=True)
        return values, times.astype(np.float64)
    times = np.asarray(counts)
    if times.shape != scores.shape or not (times >= 0).all():
        raise ScenarioError(
            f"there are {times.size} counts for {scores.size} scores, the smallest is {times.min(initial=0)}; give one "
            "count, at least 0, per score"
        )
    present = times > 0
    return scores[present], times[present].astype(np.float64)


def rounding_allowance(n: float) -> float:
    """More than floating-point arithmetic can add to a sum of n logarithms; asked for on top of the evidence."""
    return 1e-9 + 1e-14 * n


def climb(value_and_slope: Callable[[float], tuple[float, float]], target: float, start: float) -> float:
    """The largest q at which a falling function, convex in s = ln q, is still at least `target`; 0 if q vanishes.

    The tangent of a convex function lies below it, so where the tangent meets the target the function is above: after
    the first step every point is on the safe side, and the points only climb.

    Args:
        value_and_slope: The function and a slope of it (any subgradient will do) at s.
        target: What is asked for.
        start: Any s.
    """
    if start < _VANISHING:
        return 0.0
    s = start
    held = -math.inf
    for _ in range(_STEPS):
        value, slope = value_and_slope(s)
        following = s + (target - value) / slope if slope < 0.0 else -math.inf
        if held == -math.inf and following < s - _STRIDE:
            s -= _STRIDE  # a flat tangent leads too far; go left in strides until it is steep
            if s < _VANISHING:
                return 0.0
            continue
        if following <= held:  # nothing left but rounding
            break
        near = following - held <= 1e-14
        s = held = following
        if near:
            break
    return math.exp(held)


def log_mean(total: float, n: float) -> float:
    """Return the logarithm of a positive mean, also where the mean itself is too small for a number.

    >>> log_mean(5e-324, 2.0) < log_mean(5e-324, 1.0) < 0.0
    True
    """
    mean = total / n
    return math.log(mean) if mean > 0.0 else math.log(total) - math.log(n)
