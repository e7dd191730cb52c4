"""Utilities from data: points of a table, or any SciPy distribution of the deadline."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from captime.arrays import FloatArray
from captime.errors import UtilityError
from captime.utilities.formula import Duration, Formula, Seconds, nearest, number_text, require, shown, times, values
from captime.utilities.python_function import PythonFunction

# Utilities given by points: straight lines between them, or a table from a file.

# Two straight lines: the last useful moment is known, and how much is lost by an earlier one.


@dataclass(frozen=True, slots=True)
class Piecewise(Formula):
    """From 1 straight down to 1 - lost at `middle`, from there straight down to 0 at `end`.

    Attributes:
        end: from here on an answer is worth nothing (the paper's κ0).
        middle: the moment where the slope changes (κ1).
        lost: the share of the worth that is gone by then (q).
    """

    end: Seconds
    middle: Seconds
    lost: float

    name: ClassVar[str] = "piecewise"
    example: ClassVar[str] = "piecewise(300, 60, 0.5)"

    def __post_init__(self) -> None:
        require(self, "end")
        require(self, "middle", below=self.end, relation=f"end is {number_text(self.end)}")
        require(self, "lost", below=1.0)

    @property
    def zero_at(self) -> float:
        """The end."""
        return self.end

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """The middle and the end."""
        return (self.middle, self.end)

    def _worth(self, t: FloatArray) -> FloatArray:
        late, early = np.empty_like(t), np.empty_like(t)
        # As in LogLaplace: two falling parts, each constant on the other's side, meeting without a gap.
        np.clip(t, self.middle, self.end, out=late)
        np.subtract(self.end, late, out=late)
        late /= self.end - self.middle
        late *= 1.0 - self.lost
        np.minimum(t, self.middle, out=early)
        early /= self.middle
        np.subtract(1.0, early, out=early)
        early *= self.lost
        late += early
        return late

    def _moment(self, x: FloatArray) -> FloatArray:
        kept = 1.0 - self.lost
        early = self.middle * (1.0 - x) / self.lost
        late = self.end - (self.end - self.middle) * x / kept
        return np.asarray(np.where(x >= kept, early, late))


# A worth known at some moments, joined by straight lines.

_TAILS = ("none", "drop", "pareto")


@dataclass(frozen=True, slots=True)
class Tabulated(Formula):
    """Straight lines through the knots (seconds, worth).

    The first knot is (0, 1), times rise strictly, worths never rise. If the last worth is not 0, the tail has
    to be
    chosen: `drop` falls to 0 at the last knot, `pareto` continues as worth · (last time / t).

    Attributes:
        knots: at least two pairs (seconds, worth).
        tail: what happens from the last knot on, one of none, drop, pareto; none needs a last worth of 0.
    """

    knots: tuple[tuple[float, float], ...]
    tail: str = "none"
    _seconds: FloatArray = field(init=False, repr=False, compare=False)
    _levels: FloatArray = field(init=False, repr=False, compare=False)

    name: ClassVar[str] = "tabulated"
    example: ClassVar[str] = "tabulated(0:1, 10:0.5, 60:0)"

    def __post_init__(self) -> None:
        knots = _checked_knots(self.knots)
        object.__setattr__(self, "knots", knots)
        if self.tail not in _TAILS:
            raise UtilityError(f"tabulated: tail is {shown(self.tail)}, expected one of {', '.join(_TAILS)}")
        if self.tail == "none" and knots[-1][1] != 0.0:
            raise UtilityError(
                f"tabulated: the last worth is {number_text(knots[-1][1])} at t = "
                f"{number_text(knots[-1][0])}, expected "
                "0; add a knot of worth 0, or use tail=drop (it falls to 0 there) or tail=pareto (it falls "
                "like 1/t)"
            )
        object.__setattr__(self, "_seconds", np.array([t for t, _ in knots]))
        object.__setattr__(self, "_levels", np.array([u for _, u in knots]))

    @classmethod
    def from_text(cls, *knots: object, tail: str = "none") -> "Tabulated":
        """From the arguments of the textual form, `tabulated(0:1, 10:0.5, 60:0)`."""
        for each in knots:
            # Only the class of the worth tells whether a unit was written after it: a plain number has none.
            if not isinstance(each, tuple) or type(each[1]) is not float or not isinstance(each[0], float):
                found = ":".join(str(part) for part in each) if isinstance(each, tuple) else str(each)
                raise UtilityError(
                    f"tabulated: found {found}, expected a knot time:worth, as in tabulated(0:1, 10:0.5, 1min:0)"
                )
        return cls(tuple((float(each[0]), each[1]) for each in knots if isinstance(each, tuple)), tail)

    @property
    def zero_at(self) -> float:
        """The first knot of worth 0, or the last knot if it drops there; infinite with a pareto tail."""
        empty = np.flatnonzero(self._levels == 0.0)
        if empty.size:
            return float(self._seconds[empty[0]])
        return self.knots[-1][0] if self.tail == "drop" else math.inf

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """Every knot but the first."""
        return tuple(t for t, _ in self.knots[1:])

    def _worth(self, t: FloatArray) -> FloatArray:
        worth = np.asarray(np.interp(t, self._seconds, self._levels))
        last, level = self.knots[-1]
        beyond = np.asarray(t >= last)
        if self.tail == "pareto" and level > 0.0:
            np.divide(last * level, t, out=worth, where=beyond)
        elif level > 0.0:
            worth[beyond] = 0.0
        # A line that ends at 0 may undershoot it by the last bit.
        return np.maximum(worth, 0.0, out=worth)

    def _moment(self, x: FloatArray) -> FloatArray:
        # The first knot at or below x ends the line on which x is first reached; index 0 is (0, 1), above any
        # x < 1.
        end = np.clip(np.searchsorted(-self._levels, -x, side="left"), 1, len(self.knots) - 1)
        high, low = self._levels[end - 1], self._levels[end]
        share = np.clip((high - x) / (high - low), 0.0, 1.0)
        moment = self._seconds[end - 1] + share * (self._seconds[end] - self._seconds[end - 1])
        last, level = self.knots[-1]
        later = last * level / x if self.tail == "pareto" else last
        return np.asarray(np.where(x < level, later, moment))

    def __str__(self) -> str:
        knots = ", ".join(f"{number_text(t)}:{number_text(u)}" for t, u in self.knots)
        return f"{self.name}({knots})" if self.tail == "none" else f"{self.name}({knots}, tail={self.tail})"


def _checked_knots(knots: Iterable[Iterable[float]]) -> tuple[tuple[float, float], ...]:
    try:
        checked = [(float(t), float(u)) for t, u in knots]
    except (TypeError, ValueError):
        raise UtilityError(
            f"tabulated: knots is {shown(knots)}, expected pairs (seconds, worth), as in ((0, 1), (10, 0.5), (60, 0))"
        ) from None
    first = ":".join(map(shown, checked[0])) if checked else "missing"
    if len(checked) < 2 or checked[0] != (0.0, 1.0):
        raise UtilityError(
            f"tabulated: {len(checked)} knot(s), the first {first}; "
            "expected at least two, the first 0:1 (an answer at once has full worth)"
        )
    for (t, u), (later, lower) in pairwise(checked):
        knot = f"{shown(later)}:{shown(lower)}"
        if not t < later < math.inf:
            raise UtilityError(f"tabulated: knot {knot} follows t = {shown(t)}, expected a later, finite time")
        if not 0.0 <= lower <= u:
            raise UtilityError(
                f"tabulated: knot {knot} follows a worth of {shown(u)}, expected from 0 to that; a worth never rises"
            )
    return tuple(checked)


# Any SciPy distribution of the deadline, by its name: worth is the chance that it is still ahead.


@dataclass(frozen=True, slots=True)
class SciPyDistribution:
    """P(deadline > t), the survival function of a distribution in scipy.stats.

    Attributes:
        distribution: its name there, like weibull_min.
        parameters: (name, number) pairs: its shapes, and loc and scale in seconds.
    """

    distribution: str
    parameters: tuple[tuple[str, float], ...] = ()
    zero_at: float = field(init=False, compare=False)
    breakpoints: tuple[float, ...] = field(init=False, compare=False)
    _function: PythonFunction = field(init=False, repr=False, compare=False)

    name: ClassVar[str] = "scipy"
    example: ClassVar[str] = "scipy(weibull_min, c=1.5, scale=60)"

    def __post_init__(self) -> None:
        family = _find(self.distribution)
        order = _parameter_names(family)
        given = _checked_parameters(self.distribution, self.parameters, order)
        defaults = {"loc": 0.0, "scale": 1.0}
        kept = tuple((each, given[each]) for each in order if each in given and given[each] != defaults.get(each))
        object.__setattr__(self, "parameters", kept)
        frozen = family(**given)
        ends = np.asarray(frozen.support(), dtype=np.float64)
        if not np.all(np.isfinite(frozen.sf(np.array([0.0, 1.0])))) or np.any(np.isnan(ends)):
            raise UtilityError(f"{self}: SciPy refuses these parameters; look at their ranges in its documentation")
        object.__setattr__(self, "breakpoints", tuple(float(each) for each in ends if 0.0 < each < math.inf))
        # A survival function has the limit 0 by definition, so its tail needs no proof.
        function = PythonFunction(frozen.sf, str(self), self.breakpoints, zero_tail=True)
        object.__setattr__(self, "_function", function)
        object.__setattr__(self, "zero_at", float(ends[1]))

    @classmethod
    def from_text(cls, distribution: str, *shapes: object, **parameters: object) -> "SciPyDistribution":
        """From the arguments of the textual form, `scipy(weibull_min, c=1.5, scale=60)`."""
        order = _parameter_names(_find(distribution))
        if len(shapes) > len(order):
            raise UtilityError(f"scipy: {distribution} takes {', '.join(order)}, found {len(shapes)} numbers")
        pairs = dict(zip(order, shapes, strict=False))
        twice = pairs.keys() & parameters.keys()
        if twice:
            raise UtilityError(f"scipy: {min(twice)} of {distribution} is given twice")
        everything = {**pairs, **parameters}
        for each, number in everything.items():
            if isinstance(number, Duration) and each not in ("loc", "scale"):
                raise UtilityError(f"scipy: {each} of {distribution} is a time, expected a plain number without a unit")
        return cls(distribution, tuple(everything.items()))  # type: ignore[arg-type]  # checked there

    def __call__(self, seconds: npt.ArrayLike, /) -> FloatArray:
        """u(t), element by element."""
        t = times(str(self), seconds)
        # What SciPy says beyond the end of the support is not trusted to be exactly 0.
        return np.asarray(np.where(t < self.zero_at, self._function(t), 0.0))

    def inverse(self, value: npt.ArrayLike, /) -> FloatArray:
        """inf{t : u(t) <= value}, by bisection down to neighbouring numbers."""
        x = values(str(self), value)
        # Where the survival function underflows to 0 is no end of the support.
        return np.asarray(np.where(x > 0.0, np.minimum(self._function.inverse(x), self.zero_at), self.zero_at))

    def __str__(self) -> str:
        parts = [self.distribution, *(f"{each}={number_text(number)}" for each, number in self.parameters)]
        return f"{self.name}({', '.join(parts)})"


def survival_of_frozen(distribution: Any) -> SciPyDistribution | None:  # SciPy's frozen classes are private
    """Return the member for a frozen distribution of scipy.stats; None if the object is something else."""
    family = getattr(distribution, "dist", None)
    known = getattr(family, "name", None)
    if not isinstance(known, str) or known not in _all_names():
        return None
    if type(_find(known)) is not type(family):
        return None
    order = _parameter_names(family)
    everything = {**dict(zip(order, distribution.args, strict=False)), **distribution.kwds}
    return SciPyDistribution(known, tuple(everything.items()))


def _all_names() -> list[str]:
    # Imported late: scipy.stats takes longer to load than everything else in this package together.
    from scipy import stats  # noqa: PLC0415

    kinds = (stats.rv_continuous, stats.rv_discrete)
    return sorted(each for each in dir(stats) if isinstance(getattr(stats, each), kinds))


def _find(name: object) -> Any:  # scipy.stats has no common public type for its distributions
    from scipy import stats  # noqa: PLC0415  # see _all_names

    names = _all_names()
    if not isinstance(name, str) or name not in names:
        hint = nearest(str(name), names).partition("Known")[0]
        raise UtilityError(
            f"scipy: there is no distribution called {shown(name)} in scipy.stats; {hint}expected a name "
            "like "
            "weibull_min, gamma or lognorm"
        )
    return getattr(stats, name)


def _parameter_names(family: Any) -> list[str]:
    shapes = [each.strip() for each in (family.shapes or "").split(",") if each.strip()]
    # Discrete distributions have a location, but no scale.
    return [*shapes, "loc", "scale"] if hasattr(family, "pdf") else [*shapes, "loc"]


def _checked_parameters(
    distribution: str, parameters: tuple[tuple[str, float], ...], order: list[str]
) -> dict[str, float]:
    given: dict[str, float] = {}
    for each, number in parameters:
        if each not in order:
            raise UtilityError(f"scipy: {distribution} has no parameter {each!r}; {nearest(each, order)}")
        plain = isinstance(number, (int, float, np.number)) and not isinstance(number, bool)
        if not plain or not math.isfinite(number):
            raise UtilityError(f"scipy: {each} of {distribution} is {shown(number)}, expected a finite number")
        given[each] = float(number)
    missing = [each for each in order if each not in given and each not in ("loc", "scale")]
    if missing:
        raise UtilityError(f"scipy: {distribution} needs its parameter {missing[0]}; it takes {', '.join(order)}")
    return given
