"""Is this function a utility? Looks at many moments and names the first one that says no."""

import math
from collections.abc import Callable, Sequence
from numbers import Real

import numpy as np

from captime.arrays import FloatArray
from captime.errors import UtilityError
from captime.utilities.checks import number_text, shown

TOLERANCE = 1e-12
LATEST = 1e9
"""The last moment looked at, about 32 years."""
_SMALL_ENOUGH = 1e-3
_NORMALISE = "or use normalised(function, at_zero=..., at_infinity=...)"


def checked_breakpoints(name: str, breakpoints: Sequence[object]) -> tuple[float, ...]:
    """Return the declared breakpoints in order, refused unless they are finite times after 0."""
    found: set[float] = set()
    for each in breakpoints:
        number = float(each) if isinstance(each, Real) and not isinstance(each, bool) else math.nan
        if not 0.0 < number < math.inf:
            raise UtilityError(
                f"{name}: the breakpoint {shown(each)} is not a finite time after 0; "
                "give the moments in seconds at which the function jumps or bends"
            )
        found.add(number)
    return tuple(sorted(found))


def moments(breakpoints: tuple[float, ...]) -> FloatArray:
    """Where a function is looked at: 0, a logarithmic grid, the breakpoints and both their neighbourhoods."""
    at = np.asarray(breakpoints, dtype=np.float64)
    near = (at, np.nextafter(at, 0.0), np.nextafter(at, np.inf), at * (1.0 - 1e-6), at * (1.0 + 1e-6))
    return np.unique(np.concatenate([[0.0], np.logspace(-6.0, 9.0, 400), *near]))


def validate(
    name: str,
    function: Callable[[FloatArray], FloatArray],
    breakpoints: tuple[float, ...],
    *,
    zero_tail: bool,
) -> None:
    """Refuse a function that does not start at 1, leaves [0, 1], rises, or does not come down to 0.

    Args:
        name: what to call the function in a message.
        function: over arrays of finite times.
        breakpoints: where it jumps or bends; looked at from both sides.
        zero_tail: the user states that the limit is 0, however slowly it is reached.
    """
    t = moments(breakpoints)
    u = function(t)
    _check_values(name, t, u)
    _check_jumps(name, function, breakpoints)
    if u[-1] > _SMALL_ENOUGH and not zero_tail:
        raise UtilityError(
            f"{name}: at t = {t[-1]:.12g} it is still {u[-1]:.12g}, expected at most {_SMALL_ENOUGH:g}; "
            f"say zero_tail=True if its limit is 0 all the same, {_NORMALISE}"
        )


def _check_values(name: str, t: FloatArray, u: FloatArray) -> None:
    """From 1 at 0, inside [0, 1], never rising."""
    if abs(u[0] - 1.0) > TOLERANCE:
        raise UtilityError(
            f"{name}: at t = 0 it is {u[0]:.12g}, expected 1 (an answer at once has full worth); "
            f"divide it by that value, {_NORMALISE}"
        )
    outside = np.flatnonzero((u < -TOLERANCE) | (u > 1.0 + TOLERANCE))
    if outside.size:
        first = outside[0]
        raise UtilityError(
            f"{name}: at t = {t[first]:.12g} it is {u[first]:.12g}, expected a number from 0 to 1; "
            f"cut it off there, {_NORMALISE}"
        )
    rising = np.flatnonzero(np.diff(u) > TOLERANCE)
    if rising.size:
        first = rising[0]
        raise UtilityError(
            f"{name}: it rises from {u[first]:.12g} at t = {number_text(t[first])} to {u[first + 1]:.12g} at "
            f"t = {number_text(t[first + 1])}, expected a function that never rises; "
            "later answers cannot be worth more"
        )


def _check_jumps(name: str, function: Callable[[FloatArray], FloatArray], breakpoints: tuple[float, ...]) -> None:
    """At a jump the value must be the lower one: completed means strictly before the captime."""
    at = np.asarray(breakpoints, dtype=np.float64)
    if not at.size:
        return
    here, after = function(at), function(np.nextafter(at, np.inf))
    # A jump, not a steep slope: the root of the smallest step in time is far below this.
    upper = np.flatnonzero(here - after > 1e-6)
    if upper.size:
        first = upper[0]
        raise UtilityError(
            f"{name}: at its jump t = {at[first]:.12g} it is {here[first]:.12g} and right after it "
            f"{after[first]:.12g}, expected the lower value at the jump itself; write t < {at[first]:.12g} "
            "instead of "
            f"t <= {at[first]:.12g}"
        )
