"""An answer has a value, and waiting for it has a price."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, cast

import numpy as np
import numpy.typing as npt

from captime.arrays import FloatArray
from captime.errors import UtilityError
from captime.utilities.formula import Seconds, Utility, call_text, require, shown, times, values
from captime.utilities.python_function import first_moment

_COSTS = ("linear", "log", "step", "constant")


@dataclass(frozen=True, slots=True)
class CostAdjusted:
    """[value · S(t) + ∫ S dc from t on] / [value + ∫ S dc from 0 on].

    Finishing before the deadline yields value - c(t); being cut off by it costs what has been paid until
    then.

    Attributes:
        deadline: S, a utility read as the chance that the deadline is still ahead.
        value: what an answer is worth (B), in any currency.
        rate: a, in the same currency: per second for `linear` (c = a t), per e-fold for `log` (c = a ln(1 +
            t)), once for `step` (c = a from `at` on), and without effect on any decision for `constant` (c =
            a).
        cost: the shape of c.
        at: when a `step` cost falls due; a deadline at that very moment saves it.
        zero_at: the deadline's own: while it may still be ahead, an answer keeps some worth.
    """

    deadline: Utility
    value: float
    rate: float
    cost: str = "linear"
    at: Seconds = 0.0
    _ahead: Callable[[FloatArray], FloatArray] = field(init=False, repr=False, compare=False)
    _whole: float = field(init=False, repr=False, compare=False)

    name: ClassVar[str] = "cost-adjusted"
    example: ClassVar[str] = "cost-adjusted(uniform(60), 1, 0.01)"

    def __post_init__(self) -> None:
        if not all(hasattr(self.deadline, each) for each in ("inverse", "zero_at", "breakpoints")):
            raise UtilityError(
                f"{self.name}: deadline is {shown(self.deadline)}, expected a utility; an example is {self.example}"
            )
        require(self, "value")
        require(self, "rate", or_equal=True)
        if self.cost not in _COSTS:
            raise UtilityError(f"{self.name}: cost is {shown(self.cost)}, expected one of {', '.join(_COSTS)}")
        require(self, "at", or_equal=self.cost != "step")
        if self.cost != "step" and self.at != 0.0:
            raise UtilityError(
                f"{self.name}: at is {shown(self.at)}, but only a step cost falls due at one moment; leave "
                "it out or "
                "use cost=step"
            )
        object.__setattr__(self, "_ahead", self._cost_ahead())
        object.__setattr__(self, "_whole", self.value + float(self._ahead(np.zeros(1))[0]))

    @property
    def zero_at(self) -> float:
        """The deadline's own."""
        return self.deadline.zero_at

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """The deadline's own, and the moment of a step cost."""
        own = {self.at} if self.cost == "step" else set()
        return tuple(sorted({*self.deadline.breakpoints, *own}))

    def __call__(self, seconds: npt.ArrayLike, /) -> FloatArray:
        """u(t), element by element."""
        t = times(self.name, seconds)
        worth = np.array(self.deadline(t))
        worth *= self.value
        worth += self._ahead(t)
        worth /= self._whole
        return np.minimum(worth, 1.0, out=worth)

    def inverse(self, value: npt.ArrayLike, /) -> FloatArray:
        """inf{t : u(t) <= value}, by bisection down to neighbouring numbers."""
        x = values(self.name, value)
        flat = x.ravel()
        moment = np.where(flat <= 0.0, self.zero_at, 0.0)
        inside = (flat > 0.0) & (flat < 1.0)
        moment[inside] = first_moment(self, flat[inside], 0.0, self.zero_at)
        return moment.reshape(x.shape)

    def __str__(self) -> str:
        if self.cost == "step":
            return call_text(self.name, self.deadline, self.value, self.rate, self.cost, self.at)
        if self.cost == "linear":
            return call_text(self.name, self.deadline, self.value, self.rate)
        return call_text(self.name, self.deadline, self.value, self.rate, self.cost)

    def _cost_ahead(self) -> Callable[[FloatArray], FloatArray]:
        """Return the function ∫ S dc from t to infinity, in the best form there is for this deadline and cost."""
        rate, at = self.rate, self.at
        if self.cost == "constant" or rate == 0.0:
            # Paid in any case, so it is no reason to prefer one moment to another.
            return np.zeros_like
        if self.cost == "step":
            due = rate * float(self.deadline(np.array([at]))[0])
            return lambda t: np.where(t < at, due, 0.0)
        if self.cost == "log":
            return RemainingCost(self.deadline, lambda s: rate / (1.0 + s), self.name)
        # Members whose integral has a closed form offer it under this name: exponential, uniform and step.
        remaining = getattr(self.deadline, "remaining", None)
        if remaining is not None:
            closed = cast("Callable[[FloatArray], FloatArray]", remaining)
            return lambda t: rate * closed(t)
        return RemainingCost(self.deadline, lambda s: np.full_like(s, rate), self.name)


# The expected cost still ahead, ∫ S dc from t to infinity, when there is no formula for it.
#
# The integral is taken once, over narrow panels; between their ends it is a cubic that cannot rise. Asking is then a
# look-up, fast on millions of times.

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
