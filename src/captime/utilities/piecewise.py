"""Two straight lines: the last useful moment is known, and how much is lost by an earlier one."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from captime.arrays import FloatArray
from captime.utilities.checks import Seconds, number_text, require
from captime.utilities.formula import Formula


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
        # As in log_laplace.py: two falling parts, each constant on the other's side, meeting without a gap.
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
