"""An exact deadline: full worth before it, nothing from it on."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from captime.arrays import FloatArray
from captime.utilities.domain import Seconds, call_text, first_moments, require, times


@dataclass(frozen=True, slots=True)
class Step:
    """1 before the deadline, 0 at it and after it.

    Attributes:
        deadline: the moment of the fall (the paper's d).
    """

    deadline: Seconds

    name: ClassVar[str] = "step"
    example: ClassVar[str] = "step(300)"

    def __post_init__(self) -> None:
        require(self, "deadline")

    @property
    def zero_at(self) -> float:
        """The deadline: at it an answer comes too late."""
        return self.deadline

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """The deadline, where it jumps."""
        return (self.deadline,)

    def __call__(self, seconds: npt.ArrayLike, /) -> FloatArray:
        """u(t), element by element."""
        return np.asarray(times(self.name, seconds) < self.deadline, dtype=np.float64)

    def inverse(self, value: npt.ArrayLike, /) -> FloatArray:
        """inf{t : u(t) <= value}."""
        return first_moments(self.name, value, lambda x: np.full_like(x, self.deadline), self.zero_at)

    def remaining(self, seconds: npt.ArrayLike, /) -> FloatArray:
        """The integral of u from t to infinity: the part of the wait until the deadline still ahead."""
        return np.asarray(np.maximum(self.deadline - times(self.name, seconds), 0.0))

    def __str__(self) -> str:
        return call_text(self.name, self.deadline)
