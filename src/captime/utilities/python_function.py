"""Any Python function, once it has been looked at and found to be a utility."""

import importlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from captime.arrays import FloatArray
from captime.errors import UtilityError
from captime.utilities.formula import Utility, number_text, require, shown, times, values

# The inverse of a falling function without a closed form, exact to the last bit of a time.


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


# Is this function a utility? Looks at many moments and names the first one that says no.

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
            f"pass zero_tail=True if its limit is 0 all the same, {_NORMALISE}"
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


@dataclass(frozen=True, slots=True)
class PythonFunction:
    """(function(t) - at_infinity) / (at_zero - at_infinity), checked on a wide grid of moments.

    The function may take arrays or single numbers; which of the two is found out once, at construction.

    Attributes:
        function: from seconds to worth, never rising.
        label: what to call it in messages, and its textual form if it cannot be imported.
        breakpoints: where it jumps or bends; these places are checked closely.
        zero_tail: a statement that the limit is 0 although it is not yet small after 1e9 seconds.
        at_zero: the function's own value at 0.
        at_infinity: the function's own limit.
        zero_at: the first moment of worth 0 (found by bisection), infinite if there is none before 1e9
            seconds.
    """

    function: Callable[[Any], Any]
    label: str = ""
    breakpoints: tuple[float, ...] = ()
    zero_tail: bool = False
    at_zero: float = 1.0
    at_infinity: float = 0.0
    zero_at: float = field(init=False, compare=False)
    _takes_arrays: bool = field(init=False, repr=False, compare=False)

    name: ClassVar[str] = "python"
    example: ClassVar[str] = "python(math:erfc)"

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise UtilityError(f"python: {shown(self.function)} cannot be called, expected a function of seconds")
        label = self.label or import_path(self.function) or getattr(self.function, "__qualname__", "a function")
        object.__setattr__(self, "label", str(label))
        object.__setattr__(self, "breakpoints", checked_breakpoints(self.label, self.breakpoints))
        require(self, "at_infinity", above=-math.inf)
        require(self, "at_zero", above=self.at_infinity, relation="the limit at infinity")
        object.__setattr__(self, "_takes_arrays", self._found_to_take_arrays())
        object.__setattr__(self, "zero_at", math.inf)
        validate(self.label, self._normalised, self.breakpoints, zero_tail=self.zero_tail)
        latest = np.array([LATEST])
        if self._worth(latest)[0] == 0.0:
            object.__setattr__(self, "zero_at", float(first_moment(self._worth, np.zeros(1), 0.0, LATEST)[0]))

    @classmethod
    def from_text(
        cls,
        path: object,
        *breakpoints: object,
        tail: str = "",
        at_zero: float = 1.0,
        at_infinity: float = 0.0,
    ) -> "PythonFunction":
        """From the arguments of the textual form, `python(module:function, 10, 60, tail=zero)`.

        This imports the module, which runs its code: read such texts only from people you trust.
        """
        if not isinstance(path, tuple) or not all(isinstance(each, str) for each in path):
            raise UtilityError(f"python: found {path}, expected module:function, as in {cls.example}")
        if tail not in ("", "zero"):
            raise UtilityError(f"python: tail is {shown(tail)}, expected zero (its limit is 0), or nothing")
        function = _imported(*path)
        return cls(
            function,
            breakpoints=cast("tuple[float, ...]", breakpoints),  # checked in the constructor
            zero_tail=tail == "zero",
            at_zero=at_zero,
            at_infinity=at_infinity,
        )

    def __call__(self, seconds: npt.ArrayLike, /) -> FloatArray:
        """u(t), element by element."""
        t = times(self.label, seconds)
        flat = t.ravel()
        worth = np.zeros_like(flat)
        # Not asked from zero_at on, nor at infinity: a user's formula is often undefined there.
        alive = np.flatnonzero(flat < self.zero_at)
        if alive.size:
            worth[alive] = self._worth(flat[alive])
        return worth.reshape(t.shape)

    def inverse(self, value: npt.ArrayLike, /) -> FloatArray:
        """inf{t : u(t) <= value}, by bisection down to neighbouring numbers."""
        x = values(self.label, value)
        flat = x.ravel()
        moment = np.where(flat <= 0.0, self.zero_at, 0.0)
        inside = (flat > 0.0) & (flat < 1.0)
        soon = inside & (flat >= float(self(LATEST)))
        late = inside & ~soon
        moment[soon] = first_moment(self, flat[soon], 0.0, min(self.zero_at, LATEST))
        moment[late] = first_moment(self, flat[late], LATEST, math.inf)
        return moment.reshape(x.shape)

    def __str__(self) -> str:
        path = import_path(self.function)
        if not path:
            return self.label
        parts = [path, *(number_text(each) for each in self.breakpoints)]
        if self.zero_tail:
            parts.append("tail=zero")
        if (self.at_zero, self.at_infinity) != (1.0, 0.0):
            parts += [f"at_zero={number_text(self.at_zero)}", f"at_infinity={number_text(self.at_infinity)}"]
        return f"{self.name}({', '.join(parts)})"

    def _found_to_take_arrays(self) -> bool:
        probe = np.array([0.0, 1.0, 60.0])
        try:
            with np.errstate(all="ignore"):
                together = np.asarray(self.function(probe.copy()), dtype=np.float64)
        except Exception:  # noqa: BLE001 (a function of single numbers may fail on an array in any way)
            return False
        if together.shape != probe.shape:
            return False
        try:
            with np.errstate(all="ignore"):
                singly = np.array([float(self.function(each)) for each in probe.tolist()])
        except Exception:  # noqa: BLE001 (and a function of arrays may fail on single numbers)
            return True
        return bool(np.allclose(together, singly, rtol=1e-12, atol=1e-12, equal_nan=True))

    def _normalised(self, t: FloatArray) -> FloatArray:
        raw = self._raw(t)
        missing = np.flatnonzero(~np.isfinite(raw))
        if missing.size:
            first = missing[0]
            raise UtilityError(
                f"{self.label}: at t = {t[first]:.12g} it is {raw[first]}, expected a number from "
                f"{number_text(self.at_infinity)} to {number_text(self.at_zero)}; make it total on 0 to "
                "infinity"
            )
        if (self.at_zero, self.at_infinity) == (1.0, 0.0):
            return raw
        return np.asarray((raw - self.at_infinity) / (self.at_zero - self.at_infinity))

    def _worth(self, t: FloatArray) -> FloatArray:
        worth = self._normalised(t)
        outside = np.flatnonzero((worth < -TOLERANCE) | (worth > 1.0 + TOLERANCE))
        if outside.size:
            first = outside[0]
            raise UtilityError(
                f"{self.label}: at t = {t[first]:.12g} its worth is {worth[first]:.12g}, expected from 0 "
                "to 1; "
                "the checks did not look there, declare the place in breakpoints"
            )
        return np.clip(worth, 0.0, 1.0)

    def _raw(self, t: FloatArray) -> FloatArray:
        """Return the function's own values; whatever it raises becomes one error that says where."""
        where = t[0] if t.size else 0.0
        try:
            with np.errstate(all="ignore"):
                if self._takes_arrays:
                    return np.array(self.function(t), dtype=np.float64).reshape(t.shape)
                found = np.empty_like(t)
                for place, where in enumerate(t.tolist()):
                    found[place] = self.function(where)
                return found
        except Exception as error:
            raise UtilityError(
                f"{self.label}: it failed at t = {where:.12g} with {type(error).__name__}: {error}; "
                "expected a number "
                "for every time from 0 on"
            ) from error


def import_path(function: object) -> str:
    """`module:function` if importing that gives this very function, else the empty text."""
    module, attribute = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(attribute, str) or "<" in attribute:
        return ""
    try:
        return f"{module}:{attribute}" if _imported(module, attribute) is function else ""
    except UtilityError:
        return ""


def _imported(module: str, attribute: str) -> Callable[[Any], Any]:
    try:
        found: object = importlib.import_module(module)
    except Exception as error:
        raise UtilityError(
            f"python: the module {module!r} cannot be imported ({type(error).__name__}: {error}); expected "
            "module:function, with the module's folder on PYTHONPATH"
        ) from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise UtilityError(f"python: the module {module!r} has no {attribute!r}, expected a function of seconds")
        found = getattr(found, part)
    return cast("Callable[[Any], Any]", found)


# Utilities from functions in other units, and from distributions.


def from_callable(
    function: Callable[[Any], Any],
    *,
    name: str = "",
    breakpoints: Sequence[float] = (),
    zero_tail: bool = False,
) -> Utility:
    """Return a Python function of seconds as a utility, after validation.

    Args:
        function: of an array or of single numbers; 1 at 0, never rising, falling to 0.
        name: what to call it in messages (default: where it can be imported from).
        breakpoints: where it jumps or bends.
        zero_tail: a statement that its limit is 0, however slowly it gets there.

    Raises:
        UtilityError: it is not a utility; the message names the moment.
    """
    return PythonFunction(function, name, tuple(breakpoints), zero_tail)


@dataclass(frozen=True, slots=True)
class Normalised:
    """A utility made from a function in other units.

    Attributes:
        utility: (v - v(∞)) / (v(0) - v(∞)).
        factor: v(0) - v(∞): an epsilon in utility times this factor is an epsilon in the units of v.
    """

    utility: Utility
    factor: float


def normalised(
    function: Callable[[Any], Any],
    *,
    at_zero: float,
    at_infinity: float,
    name: str = "",
    breakpoints: Sequence[float] = (),
) -> Normalised:
    """Return a falling function with any limits, like euros left, as a utility and the factor back to its own units.

    Args:
        function: of an array or of single numbers, never rising.
        at_zero: its value at 0.
        at_infinity: its limit; stating it is the proof that the tail of the utility is 0.
        name: what to call it in messages.
        breakpoints: where it jumps or bends.
    """
    utility = PythonFunction(function, name, tuple(breakpoints), True, at_zero, at_infinity)
    return Normalised(utility, utility.at_zero - utility.at_infinity)
