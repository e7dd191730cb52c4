"""The family of utilities; this door is the register.

To add a member: a frozen dataclass that fits `Utility` and has a `name` and an `example`, in a file of its own or in
`formulas`, and one line in `UTILITIES`. Text, command line and conformance tests follow from that.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from captime.errors import UtilityError
from captime.utilities.cost_adjusted import CostAdjusted
from captime.utilities.formula import Utility, shown
from captime.utilities.formulas import (
    Backward,
    Exponential,
    Forward,
    GeneralisedLogLaplace,
    Geometric,
    Linear,
    LogLaplace,
    LogNormal,
    Parc,
    Pareto,
    Poly,
    Step,
    Uniform,
)
from captime.utilities.parser import build, read
from captime.utilities.python_function import PythonFunction
from captime.utilities.tabulated import Piecewise, SciPyDistribution, Tabulated, survival_of_frozen

__all__ = [
    "UTILITIES",
    "Normalised",
    "Utility",
    "from_callable",
    "normalised",
    "parse_utility",
    "survival",
]

UTILITIES: dict[str, type[Utility]] = {
    "step": Step,
    "uniform": Uniform,
    "exponential": Exponential,
    "pareto": Pareto,
    "log-laplace": LogLaplace,
    "generalised-log-laplace": GeneralisedLogLaplace,
    "log-normal": LogNormal,
    "piecewise": Piecewise,
    "poly": Poly,
    "linear": Linear,
    "geometric": Geometric,
    "forward": Forward,
    "backward": Backward,
    "parc": Parc,
    "tabulated": Tabulated,
    "cost-adjusted": CostAdjusted,
    "scipy": SciPyDistribution,
    "python": PythonFunction,
}


def parse_utility(text: str) -> Utility:
    """Return the utility a text describes; whatever is wrong is named with its place in the text.

    >>> str(parse_utility("LogLaplace(scale=1min, shape=1)"))
    'log-laplace(60, 1)'
    """
    if not isinstance(text, str):
        raise UtilityError(f"the utility is {shown(text)}, expected a text like log-laplace(60, 1)")
    return build(text, read(text), UTILITIES)


def utility_of(given: Utility | str | None) -> Utility:
    """Return a utility that was given as itself or as a text; anything else is refused."""
    if isinstance(given, str):
        return parse_utility(given)
    if given is None or not hasattr(given, "inverse"):
        raise UtilityError(
            f"the utility is {shown(given)}, expected a text like log-laplace(60, 1), or a utility; "
            "captime.from_callable makes one of a function"
        )
    return given


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


def survival(distribution: Any) -> Utility:  # any object with `sf`: SciPy has no public common type
    """Return the chance that a random deadline is still ahead, for any object with a survival function `sf`.

    A frozen distribution of scipy.stats keeps its name and numbers in the textual form.
    """
    function = getattr(distribution, "sf", None)
    if function is None:
        raise UtilityError(
            f"{shown(distribution)} has no survival function, expected an object with a method sf(t), like "
            "scipy.stats.weibull_min(1.5, scale=60)"
        )
    frozen = survival_of_frozen(distribution)
    if frozen is not None:
        return frozen
    name = f"the survival function of {type(distribution).__name__}"
    return PythonFunction(function, name, zero_tail=True)
