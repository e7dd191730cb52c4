"""Utilities in closed form: one class per formula, with its worth at a time and the first time of a worth."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import erfc, erfcinv

from captime.arrays import FloatArray
from captime.utilities.formula import Formula, Seconds, number_text, raised, require, times


@dataclass(frozen=True, slots=True)
class DeadlineWindow(Formula):
    """1 up to `start`, 0 from `end` on, and between them what the member says.

    Attributes:
        start: until here nothing is lost (k0).
        end: from here on an answer is worth nothing (k1).
    """

    start: Seconds
    end: Seconds

    start_may_be_zero: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require(self, "start", or_equal=self.start_may_be_zero)
        require(self, "end", above=self.start, relation=f"start is {number_text(self.start)}")
        for parameter in self._parameters[2:]:
            require(self, parameter)

    @property
    def zero_at(self) -> float:
        """The end."""
        return self.end

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """The start (if it is not 0) and the end."""
        return tuple(each for each in (self.start, self.end) if each > 0.0)

    def _left(self, t: FloatArray) -> FloatArray:
        """Return which share of the window is left; outside the two ends it is exactly 1 and exactly 0."""
        return np.asarray((self.end - np.clip(t, self.start, self.end)) / (self.end - self.start))


@dataclass(frozen=True, slots=True)
class Uniform(Formula):
    """max(0, 1 - t / end): the deadline is anywhere up to `end`, each moment as likely as the next.

    Attributes:
        end: from here on an answer is worth nothing (the paper's κ0).
    """

    end: Seconds

    name: ClassVar[str] = "uniform"
    example: ClassVar[str] = "uniform(60)"

    @property
    def zero_at(self) -> float:
        """The end."""
        return self.end

    def _worth(self, t: FloatArray) -> FloatArray:
        return np.asarray(np.maximum(1.0 - t / self.end, 0.0))

    def _moment(self, x: FloatArray) -> FloatArray:
        return np.asarray(self.end * (1.0 - x))

    def remaining(self, seconds: npt.ArrayLike, /) -> FloatArray:
        """Return the integral of u from t to infinity: a triangle."""
        ahead = np.maximum(self.end - times(self.name, seconds), 0.0)
        return np.asarray(ahead * (ahead / self.end) / 2.0)


@dataclass(frozen=True, slots=True)
class Linear(DeadlineWindow):
    """1 before `start`, then (end - t) / (end - start), 0 from `end` on.

    Attributes:
        start: until here nothing is lost (k0); may be 0.
        end: from here on an answer is worth nothing (k1).
    """

    name: ClassVar[str] = "linear"
    example: ClassVar[str] = "linear(10, 60)"

    def _worth(self, t: FloatArray) -> FloatArray:
        return self._left(t)

    def _moment(self, x: FloatArray) -> FloatArray:
        return np.asarray(self.end - x * (self.end - self.start))


@dataclass(frozen=True, slots=True)
class Forward(DeadlineWindow):
    """1 up to `start`, then ((end - t) / (end - start)) ** shape, 0 from `end` on.

    Attributes:
        start: until here nothing is lost (k0); may be 0.
        end: from here on an answer is worth nothing (k1).
        shape: above 1 most is lost soon after the start, below 1 most is lost close to the end (a).
    """

    shape: float

    name: ClassVar[str] = "forward"
    example: ClassVar[str] = "forward(10, 60, 2)"

    def _worth(self, t: FloatArray) -> FloatArray:
        return raised(self._left(t), self.shape)

    def _moment(self, x: FloatArray) -> FloatArray:
        return np.asarray(self.end - (self.end - self.start) * x ** (1.0 / self.shape))


@dataclass(frozen=True, slots=True)
class Backward(DeadlineWindow):
    """1 up to `start`, then 1 - ((t - start) / (end - start)) ** (1 / shape), 0 from `end` on.

    Attributes:
        start: until here nothing is lost (k0); may be 0.
        end: from here on an answer is worth nothing (k1).
        shape: above 1 most is lost soon after the start, below 1 most is lost close to the end (a).
    """

    shape: float

    name: ClassVar[str] = "backward"
    example: ClassVar[str] = "backward(10, 60, 2)"

    def _worth(self, t: FloatArray) -> FloatArray:
        gone = (np.clip(t, self.start, self.end) - self.start) / (self.end - self.start)
        return np.asarray(1.0 - raised(gone, 1.0 / self.shape))

    def _moment(self, x: FloatArray) -> FloatArray:
        return np.asarray(self.start + (self.end - self.start) * (1.0 - x) ** self.shape)


@dataclass(frozen=True, slots=True)
class Geometric(DeadlineWindow):
    """1 before `start`, then ln(end / t) / ln(end / start), 0 from `end` on.

    Attributes:
        start: until here nothing is lost (k0); it cannot be 0, because no number of doublings leads away from
            0.
        end: from here on an answer is worth nothing (k1).
    """

    name: ClassVar[str] = "geometric"
    example: ClassVar[str] = "geometric(1, 100)"
    start_may_be_zero: ClassVar[bool] = False

    @property
    def _span(self) -> float:
        return math.log(self.end) - math.log(self.start)

    def _worth(self, t: FloatArray) -> FloatArray:
        # Differences of logarithms, not the logarithm of a ratio: the ratio may leave the range of numbers.
        left = np.log(self.end) - np.log(np.clip(t, self.start, self.end))
        return np.asarray(left / (np.log(self.end) - np.log(self.start)))

    def _moment(self, x: FloatArray) -> FloatArray:
        return np.asarray(self.end * np.exp(-x * self._span))


@dataclass(frozen=True, slots=True)
class Poly(Formula):
    """max(0, 1 - (t / end) ** shape).

    Attributes:
        end: from here on an answer is worth nothing (the paper's κ0).
        shape: below 1 most is lost early, above 1 most is lost late (the paper's a).
    """

    end: Seconds
    shape: float

    name: ClassVar[str] = "poly"
    example: ClassVar[str] = "poly(60, 2)"

    @property
    def zero_at(self) -> float:
        """The end."""
        return self.end

    def _worth(self, t: FloatArray) -> FloatArray:
        return np.asarray(1.0 - raised(np.minimum(t, self.end) / self.end, self.shape))

    def _moment(self, x: FloatArray) -> FloatArray:
        return np.asarray(self.end * (1.0 - x) ** (1.0 / self.shape))


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


@dataclass(frozen=True, slots=True)
class Exponential(Formula):
    """exp(-t / mean): only the mean of the deadline is known.

    Attributes:
        mean: the mean of the deadline (the paper's κ0); worth halves every mean · ln 2 seconds.
    """

    mean: Seconds

    name: ClassVar[str] = "exponential"
    example: ClassVar[str] = "exponential(60)"

    def _worth(self, t: FloatArray) -> FloatArray:
        return np.asarray(np.exp(t / -self.mean))

    def _moment(self, x: FloatArray) -> FloatArray:
        return np.asarray(-self.mean * np.log(x))

    def remaining(self, seconds: npt.ArrayLike, /) -> FloatArray:
        """Return the integral of u from t to infinity."""
        return np.asarray(self.mean * self(seconds))


@dataclass(frozen=True, slots=True)
class Pareto(Formula):
    """1 before `scale`, then (scale / t) ** shape.

    Attributes:
        scale: until here nothing is lost (the paper's κ0).
        shape: how fast the worth falls afterwards (the paper's a).
    """

    scale: Seconds
    shape: float

    name: ClassVar[str] = "pareto"
    example: ClassVar[str] = "pareto(60, 1)"

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """The scale, where the fall begins."""
        return (self.scale,)

    def _worth(self, t: FloatArray) -> FloatArray:
        # At or below the scale this is scale / scale, exactly 1: no second branch is needed.
        return raised(self.scale / np.maximum(t, self.scale), self.shape)

    def _moment(self, x: FloatArray) -> FloatArray:
        return np.asarray(self.scale * x ** (-1.0 / self.shape))


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
        return np.where(t >= self.limit, 0.0, 1.0 - t / self.limit / self.penalty)

    def _moment(self, x: FloatArray) -> FloatArray:
        # Every value below the height of the jump is first reached by jumping.
        return np.asarray(np.minimum(self.limit * (self.penalty * (1.0 - x)), self.limit))


@dataclass(frozen=True, slots=True)
class LogNormal(Formula):
    """½ erfc( ln(t / median) / (spread · √2) ), and 1 at t = 0.

    Attributes:
        median: the moment at which half the worth is gone (the paper's κ0).
        spread: the standard deviation of the deadline's natural logarithm (σ).
    """

    median: Seconds
    spread: float

    name: ClassVar[str] = "log-normal"
    example: ClassVar[str] = "log-normal(60, 1)"

    def _worth(self, t: FloatArray) -> FloatArray:
        # ½ - ½ erf would lose every digit of a small worth; ½ erfc is the same number and keeps them. The logarithm of
        # 0 is minus infinity, whose erfc is 2: u(0) = 1 needs no shift of t (the authors add 1e-4).
        return np.asarray(0.5 * erfc(np.log(t / self.median) / (self.spread * math.sqrt(2.0))))

    def _moment(self, x: FloatArray) -> FloatArray:
        return np.asarray(self.median * np.exp(self.spread * math.sqrt(2.0) * erfcinv(2.0 * x)))


@dataclass(frozen=True, slots=True)
class LogLaplace(Formula):
    """1 - ½ (t / scale) ** shape before `scale`, ½ (scale / t) ** shape from it on.

    Attributes:
        scale: the moment at which half the worth is gone (the paper's κ0).
        shape: how sharp the change is there (the paper's a); large shapes come close to a step.
    """

    scale: Seconds
    shape: float

    name: ClassVar[str] = "log-laplace"
    example: ClassVar[str] = "log-laplace(60, 1)"

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """The scale, where the formula changes."""
        return (self.scale,)

    def _worth(self, t: FloatArray) -> FloatArray:
        # The worth of the late part plus what the early part has not lost yet: each is constant on the other's side,
        # exactly ½ and exactly 0, so that no masks are needed and the sum cannot rise where they meet.
        late = 0.5 * raised(self.scale / np.maximum(t, self.scale), self.shape)
        early = 0.5 - 0.5 * raised(np.minimum(t, self.scale) / self.scale, self.shape)
        return np.asarray(late + early)

    def _moment(self, x: FloatArray) -> FloatArray:
        early = (2.0 * (1.0 - x)) ** (1.0 / self.shape)
        late = (2.0 * x) ** (-1.0 / self.shape)
        return np.asarray(self.scale * np.where(x >= 0.5, early, late))


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
        # As in LogLaplace: two falling parts, each constant on the other's side, meeting without a gap.
        late = self._meeting * raised(self.scale / np.maximum(t, self.scale), self.right)
        early = (1.0 - self._meeting) * (1.0 - raised(np.minimum(t, self.scale) / self.scale, self.left))
        return np.asarray(late + early)

    def _moment(self, x: FloatArray) -> FloatArray:
        meeting = self._meeting
        early = ((1.0 - x) / (1.0 - meeting)) ** (1.0 / self.left)
        late = (meeting / x) ** (1.0 / self.right)
        return np.asarray(self.scale * np.where(x >= meeting, early, late))
