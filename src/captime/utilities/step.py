"""An exact deadline: full worth before it, nothing from it on."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from captime.arrays import FloatArray
from captime.utilities.checks import Seconds, times
from captime.utilities.formula import Formula


@dataclass(frozen=True, slots=True)
class Step(Formula):
    """1 before the deadline, 0 at it and after it.

    Attributes:
        deadline: the moment of the fall (the paper's d).
    """

    deadline: Seconds

    name: ClassVar[str] = "step"
    example: ClassVar[str] = "step(300)"

    @property
    def zero_at(self) -> float:
        """The deadline: at it an answer comes too late."""
        return self.deadline

    def _worth(self, t: FloatArray) -> FloatArray:
        return np.asarray(t < self.deadline, dtype=np.float64)

    def _moment(self, x: FloatArray) -> FloatArray:
        return np.full_like(x, self.deadline)

    def remaining(self, seconds: npt.ArrayLike, /) -> FloatArray:
        """Return the integral of u from t to infinity: the part of the wait until the deadline still ahead."""
        return np.asarray(np.maximum(self.deadline - times(self.name, seconds), 0.0))
