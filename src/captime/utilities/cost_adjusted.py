"""An answer has a value, and waiting for it has a price."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, cast

import numpy as np
import numpy.typing as npt

from captime.arrays import FloatArray
from captime.errors import UtilityError
from captime.utilities.checks import Seconds, call_text, require, shown, times, values
from captime.utilities.numeric_inverse import first_moment
from captime.utilities.protocol import Utility
from captime.utilities.remaining_cost import RemainingCost

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
                "say cost=step"
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
