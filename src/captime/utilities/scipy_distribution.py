"""Any SciPy distribution of the deadline, by its name: worth is the chance that it is still ahead."""

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from captime.arrays import FloatArray
from captime.errors import UtilityError
from captime.utilities.durations import Duration
from captime.utilities.formula import nearest, number_text, shown, times, values
from captime.utilities.python_function import PythonFunction


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
