"""A log-Laplace utility whose two sides fall at their own speeds."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from captime.arrays import FloatArray
from captime.utilities.checks import Seconds, raise_to
from captime.utilities.formula import Formula


@dataclass(frozen=True, slots=True)
class GeneralisedLogLaplace(Formula):
    """1 - a/(a+b) · (t / scale) ** b before `scale`, b/(a+b) · (scale / t) ** a from it on.

    With equal exponents it is the log-Laplace utility.

    Attributes:
        scale: where the two sides meet, at worth b/(a+b) (the paper's κ0).
        right: the exponent of the late side (a).
        left: the exponent of the early side (b).
    """

    scale: Seconds
    right: float
    left: float

    name: ClassVar[str] = "generalised-log-laplace"
    example: ClassVar[str] = "generalised-log-laplace(60, 1, 2)"

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """The scale, where the formula changes."""
        return (self.scale,)

    @property
    def _meeting(self) -> float:
        """The worth at the scale, b/(a+b), written so that huge exponents do not overflow."""
        return 1.0 / (1.0 + self.right / self.left)

    def _worth(self, t: FloatArray) -> FloatArray:
        late, early = np.empty_like(t), np.empty_like(t)
        # As in log_laplace.py: two falling parts, each constant on the other's side, meeting without a gap.
        np.maximum(t, self.scale, out=late)
        np.divide(self.scale, late, out=late)
        raise_to(late, self.right)
        np.minimum(t, self.scale, out=early)
        early /= self.scale
        raise_to(early, self.left)
        np.subtract(1.0, early, out=early)
        late *= self._meeting
        early *= 1.0 - self._meeting
        late += early
        return late

    def _moment(self, x: FloatArray) -> FloatArray:
        meeting = self._meeting
        early = ((1.0 - x) / (1.0 - meeting)) ** (1.0 / self.left)
        late = (meeting / x) ** (1.0 / self.right)
        return np.asarray(self.scale * np.where(x >= meeting, early, late))
