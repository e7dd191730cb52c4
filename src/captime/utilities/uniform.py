"""Worth that drains away evenly until nothing is left."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from captime.arrays import FloatArray
from captime.utilities.domain import Seconds, call_text, first_moments, require, times


@dataclass(frozen=True, slots=True)
class Uniform:
    """max(0, 1 - t / end): the deadline is anywhere up to `end`, each moment as likely as the next.

    Attributes:
        end: from here on an answer is worth nothing (the paper's κ0).
    """

    end: Seconds

    name: ClassVar[str] = "uniform"
    example: ClassVar[str] = "uniform(60)"

    def __post_init__(self) -> None:
        require(self, "end")

    @property
    def zero_at(self) -> float:
        """The end."""
        return self.end

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """The end, where the slope changes."""
        return (self.end,)

    def __call__(self, seconds: npt.ArrayLike, /) -> FloatArray:
        """u(t), element by element."""
        t = times(self.name, seconds)
        worth = np.empty_like(t)
        with np.errstate(all="ignore"):
            np.divide(t, self.end, out=worth)
        np.subtract(1.0, worth, out=worth)
        return np.maximum(worth, 0.0, out=worth)

    def inverse(self, value: npt.ArrayLike, /) -> FloatArray:
        """inf{t : u(t) <= value}."""
        return first_moments(self.name, value, lambda x: self.end * (1.0 - x), self.zero_at)

    def remaining(self, seconds: npt.ArrayLike, /) -> FloatArray:
        """The integral of u from t to infinity: a triangle."""
        ahead = np.maximum(self.end - times(self.name, seconds), 0.0)
        return np.asarray(ahead * (ahead / self.end) / 2.0)

    def __str__(self) -> str:
        return call_text(self.name, self.end)
