"""The penalised average runtime (PAR2, PAR10, ...) of competitions, written as a utility."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from captime.arrays import FloatArray
from captime.utilities.domain import Seconds, call_text, first_moments, require, times


@dataclass(frozen=True, slots=True)
class Parc:
    """1 - t / (penalty · limit) before the limit, 0 from it on.

    The mean utility is 1 - PARc / (penalty · limit), so ranking by `parc(T, 2)` is ranking by PAR2.

    Attributes:
        limit: the time limit of the competition (T).
        penalty: how many limits an unsolved instance costs (c), at least 1.
    """

    limit: Seconds
    penalty: float

    name: ClassVar[str] = "parc"
    example: ClassVar[str] = "parc(300, 2)"

    def __post_init__(self) -> None:
        require(self, "limit")
        require(self, "penalty", above=1.0, or_equal=True)

    @property
    def zero_at(self) -> float:
        """The limit."""
        return self.limit

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """The limit, where it jumps."""
        return (self.limit,)

    def __call__(self, seconds: npt.ArrayLike, /) -> FloatArray:
        """u(t), element by element."""
        t = times(self.name, seconds)
        worth = np.empty_like(t)
        with np.errstate(all="ignore"):
            np.divide(t, self.limit, out=worth)
            worth /= self.penalty
            np.subtract(1.0, worth, out=worth)
        worth[np.asarray(t >= self.limit)] = 0.0
        return worth

    def inverse(self, value: npt.ArrayLike, /) -> FloatArray:
        """inf{t : u(t) <= value}."""
        return first_moments(self.name, value, self._inside, self.zero_at)

    def _inside(self, x: FloatArray) -> FloatArray:
        # Every value below the height of the jump is first reached by jumping.
        return np.asarray(np.minimum(self.limit * (self.penalty * (1.0 - x)), self.limit))

    def __str__(self) -> str:
        return call_text(self.name, self.limit, self.penalty)
