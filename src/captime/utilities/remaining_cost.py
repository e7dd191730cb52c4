"""The expected cost still ahead, ∫ S dc from t to infinity, when there is no formula for it.

The integral is taken once, over narrow panels; between their ends it is a cubic that cannot rise. Asking is
then a look-up, fast on millions of times.
"""

import math
from collections.abc import Callable

import numpy as np

from captime.arrays import FloatArray
from captime.errors import UtilityError
from captime.utilities.protocol import Utility

_PER_DECADE = 120
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
# Beyond this moment, in units of the half-worth time, only the exponent of the tail is looked at.
_FARTHEST_DECADE = 100
_NEGLIGIBLE = 1e-14


class RemainingCost:
    """t -> ∫ S(s) c'(s) ds from t to infinity, never rising.

    Args:
        deadline: S, the chance that the deadline is still ahead.
        slope: c', the cost per second at a moment.
        name: what to call this in a message.

    Raises:
        UtilityError: the expected cost is infinite (or too close to it to be told apart).
    """

    def __init__(self, deadline: Utility, slope: Callable[[FloatArray], FloatArray], name: str) -> None:
        knots = _knots(deadline, slope)
        panel = np.diff(knots)
        nodes = knots[:-1, None] + panel[:, None] * (_NODES + 1.0) / 2.0
        inner = (deadline(nodes.ravel()) * slope(nodes.ravel())).reshape(nodes.shape)
        pieces = (inner @ _WEIGHTS) * panel / 2.0
        self._last = float(knots[-1])
        self._exponent = math.inf
        beyond = 0.0
        if math.isinf(deadline.zero_at):
            beyond, self._exponent = _tail(deadline, slope, self._last, name)
        # Summed from the far end: the small pieces first, and every knot at least as high as the next.
        ends = np.append(np.cumsum(pieces[::-1])[::-1], 0.0) + beyond
        if not math.isfinite(ends[0]):
            raise UtilityError(
                f"{name}: the expected cost is too large to be computed; lower rate or choose other units"
            )
        starts_at = -deadline(knots[:-1]) * slope(knots[:-1])
        ends_at = -deadline(np.nextafter(knots[1:], 0.0)) * slope(knots[1:])
        # Imported late: it brings in large parts of SciPy, and only these utilities need it.
        from scipy.interpolate import PPoly  # noqa: PLC0415

        self._beyond = beyond
        self._cubics = PPoly(_falling_cubics(panel, ends, starts_at, ends_at), knots)

    def __call__(self, t: FloatArray) -> FloatArray:
        """Return the expected cost ahead of each moment."""
        ahead = np.asarray(self._cubics(np.minimum(t, self._last)))
        late = np.asarray(t >= self._last)
        if late.any():
            with np.errstate(all="ignore"):
                power = (self._last / t) ** self._exponent
            ahead = np.where(late, self._beyond * power if self._beyond > 0.0 else 0.0, ahead)
        return np.maximum(ahead, 0.0)


def _knots(deadline: Utility, slope: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Ends of the panels: 0, a logarithmic grid around the half-worth time, and the breakpoints."""
    half = float(deadline.inverse(np.array([0.5]))[0])
    half = half if 0.0 < half < math.inf else 1.0
    decades = half * np.logspace(-12.0, _FARTHEST_DECADE, 13 + _FARTHEST_DECADE)
    if math.isfinite(deadline.zero_at):
        last = deadline.zero_at
    else:
        # s S(s) c'(s) is the cost of one e-fold of time. Its largest value may lie far out (log-normal), so
        # the end is the first decade after the largest at which it no longer matters.
        with np.errstate(all="ignore"):
            weight = decades * deadline(decades) * slope(decades)
        peak = int(np.argmax(weight))
        small = np.flatnonzero(weight[peak:] <= _NEGLIGIBLE * weight[peak])
        last = float(decades[peak + small[0]] if small.size else decades[-1])
    first = min(decades[0], last / 2.0)
    count = int(np.ceil(np.log10(last / first) * _PER_DECADE)) + 2
    grid = np.geomspace(first, last, count)
    inside = [each for each in deadline.breakpoints if each < last]
    return np.unique(np.concatenate([[0.0], grid[:-1], inside, [last]]))


def _tail(deadline: Utility, slope: Callable[[FloatArray], FloatArray], last: float, name: str) -> tuple[float, float]:
    """Return the integral beyond `last` and the exponent with which it falls there, from the last three decades."""
    s = last * np.array([0.01, 0.1, 1.0])
    weight = s * deadline(s) * slope(s)
    if weight[2] <= 0.0:
        return 0.0, math.inf
    with np.errstate(all="ignore"):
        earlier, exponent = (float(each) for each in -np.diff(np.log(weight)) / math.log(10.0))
    # A pure power law converges if it falls at all. Anything slower than that is judged by Bertrand's test:
    # 1 / (s ln s) diverges, 1 / (s (ln s)^p) with p > 1 converges; too close to 1 counts as divergent.
    pure = abs(exponent - earlier) <= 1e-9
    if exponent <= 1e-9 or (not pure and exponent * math.log(last) <= 1.1 and exponent < 0.5):
        raise UtilityError(
            f"{name}: the expected cost is infinite, or too large to be told from it (after {last:.3g} s "
            f"each tenfold of the time still costs {weight[2] * math.log(10.0):.3g}), expected a deadline "
            "that ends the costs in time; choose one with a lighter tail, like exponential(60), or cost=log"
        )
    return float(weight[2]) / exponent, exponent


def _falling_cubics(panel: FloatArray, ends: FloatArray, starts_at: FloatArray, ends_at: FloatArray) -> FloatArray:
    """Cubics through the panel ends with the given slopes, the slopes cut so that no cubic rises.

    A cubic between two points is monotone if both its end slopes are at most three times the slope of the
    chord.
    """
    chord = np.diff(ends) / panel
    first = np.clip(starts_at, 3.0 * chord, 0.0)
    last = np.clip(ends_at, 3.0 * chord, 0.0)
    square = (3.0 * chord - 2.0 * first - last) / panel
    cube = (first + last - 2.0 * chord) / panel**2
    return np.stack([cube, square, first, ends[:-1]])
