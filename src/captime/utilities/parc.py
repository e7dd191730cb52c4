"""The penalised average runtime (PAR2, PAR10, ...) of competitions, written as a utility."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from captime.arrays import FloatArray
from captime.utilities.checks import Seconds, require
from captime.utilities.formula import Formula


@dataclass(frozen=True, slots=True)
class Parc(Formula):
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

    def _worth(self, t: FloatArray) -> FloatArray:
        worth = np.empty_like(t)
        np.divide(t, self.limit, out=worth)
        worth /= self.penalty
        np.subtract(1.0, worth, out=worth)
        worth[np.asarray(t >= self.limit)] = 0.0
        return worth

    def _moment(self, x: FloatArray) -> FloatArray:
        # Every value below the height of the jump is first reached by jumping.
        return np.asarray(np.minimum(self.limit * (self.penalty * (1.0 - x)), self.limit))
