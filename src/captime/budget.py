"""How delta, the allowed probability of a wrong certificate, is shared out among the statements that could be wrong.

A budget answers one question: at a cell (configuration, n samples, captime level), how small must the probability of
one wrong inequality be? It answers twice: `share` exactly, as a fraction of delta, and `log_inverse`, the natural
logarithm of 1 / (delta · share), which the bounds use. The test suite sums the exact shares over *all* cells with
rational arithmetic and compares them with `log_inverse`, because a simulation cannot see an overspent budget.

Captime levels are counted 0, 1, 2, … from the first captime; the paper's `log κ + 1` is the rung, `level + 1`. Counting
rungs instead of taking a logarithm of seconds makes the sum independent of the unit and of the first captime.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.certificate import check_delta
from captime.errors import ScenarioError

# Σ 1/r² = π²/6, once over sample sizes and once over rungs. The authors' code writes the square as 2.705808.
PUBLISHED_SERIES = Fraction("2.705808")
# A rational number just above (π²/6)²; rounding up keeps the total at or below delta.
SERIES_SQUARED = Fraction("2.7058080843")


class FailureBudget(Protocol):
    """What every budget can do."""

    @property
    def delta(self) -> float:
        """The whole budget."""
        ...

    @property
    def events(self) -> int:
        """How many inequalities are charged per cell."""
        ...

    def share(self, n: int, level: int) -> Fraction:
        """Return the exact share of delta of one inequality at one cell of one configuration."""
        ...

    def log_inverse(self, n: IntArray, level: IntArray) -> FloatArray:
        """ln(1 / (delta · share)), element by element."""
        ...


class _TwiceLog:
    """2·ln(k) for k = 1, 2, …, looked up: the lockstep loop asks for it at every sample of every configuration."""

    def __init__(self) -> None:
        self._table: FloatArray = self._computed(64)

    @staticmethod
    def _computed(size: int) -> FloatArray:
        table = np.arange(size, dtype=np.float64)
        table[0] = np.nan  # there is no cell with zero samples, nor a rung 0
        table[1:] = 2.0 * np.log(table[1:])
        return table

    def __call__(self, k: IntArray) -> FloatArray:
        try:
            return self._table.take(k)
        except IndexError:
            self._table = self._computed(2 * int(k.max()) + 1)
            return self._table.take(k)


@dataclass(frozen=True, slots=True)
class CellBudget:
    """Union over configurations, sample sizes and rungs: delta / (constant · n_configs · n² · rung²) a cell.

    [UAC] Theorem 4. The paper charges four inequalities a cell (two sides of Û, two sides of F̂) and rounds the
    constant 4·(π²/6)² = 10.82… up to 11; the authors' code uses 4·2.705808. Two inequalities suffice for the interval,
    because LCB is Hoeffding's bound on the low ends and UCB on the high ends; `events=2` halves the constant.
    """

    delta: float
    n_configs: int
    events: int = 4
    constant: Fraction = Fraction(11)
    _twice_log: _TwiceLog = field(default_factory=_TwiceLog, init=False, repr=False, compare=False)
    _log_whole: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_delta(self.delta)
        object.__setattr__(self, "_log_whole", math.log(float(self.constant) * self.n_configs / self.delta))
        if self.events not in (2, 4):
            raise ScenarioError(
                f"events is {self.events}, but a cell has either the paper's 4 inequalities or the 2 that the interval "
                "needs; use events=4 or events=2"
            )

    def share(self, n: int, level: int) -> Fraction:
        """See the class."""
        return 1 / (self.constant * self.n_configs * n**2 * (level + 1) ** 2)

    def log_inverse(self, n: IntArray, level: IntArray) -> FloatArray:
        """See the class."""
        return self._twice_log(n) + (self._twice_log(level + 1) + self._log_whole)


@dataclass(frozen=True, slots=True)
class SampleBudget:
    """Union over configurations and sample sizes: delta / (4 · n_configs · n²) a cell, two inequalities.

    [UAC] Theorem 1, the runtime oracle. Spends (π²/6)/2 = 0.82 of delta.
    """

    delta: float
    n_configs: int
    events: int = 2
    _twice_log: _TwiceLog = field(default_factory=_TwiceLog, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_delta(self.delta)

    def share(self, n: int, level: int) -> Fraction:  # noqa: ARG002 (an oracle has one level)
        """See the class."""
        return Fraction(1, 4 * self.n_configs * n**2)

    def log_inverse(self, n: IntArray, level: IntArray) -> FloatArray:  # noqa: ARG002 (as above)
        """See the class."""
        return self._twice_log(n) + math.log(4.0 * self.n_configs / self.delta)


@dataclass(frozen=True, slots=True)
class SingleLookBudget:
    """Union over configurations only, for one sample size fixed before the first run: delta / (2 · n_configs).

    [UAC] Theorem 3, Naive. Valid at that one n and at no other: earlier looks are not covered.
    """

    delta: float
    n_configs: int
    events: int = 2

    def __post_init__(self) -> None:
        check_delta(self.delta)

    def share(self, n: int, level: int) -> Fraction:  # noqa: ARG002 (one n, one level)
        """See the class."""
        return Fraction(1, 2 * self.n_configs)

    def log_inverse(self, n: IntArray, level: IntArray) -> FloatArray:  # noqa: ARG002 (as above)
        """See the class."""
        return np.full(len(n), math.log(2.0 * self.n_configs / self.delta))


@dataclass(frozen=True, slots=True)
class PhaseBudget:
    """Union over phases too: delta / (constant · phase² · n_configs · n² · rung²) a cell of one phase.

    COUP grows its pool phase by phase and restarts its bounds with each, so a cell is charged once per phase. Four
    inequalities a cell over all phases, sample sizes and rungs come to 4·(π²/6)³ / 36 = 0.495: with the constant 36 the
    bounds take half of delta. The other half pays for the pools (`pool_share`).
    """

    delta: float
    n_configs: int
    phase: int
    events: int = 4
    constant: Fraction = Fraction(36)
    _twice_log: _TwiceLog = field(default_factory=_TwiceLog, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_delta(self.delta)

    def share(self, n: int, level: int) -> Fraction:
        """See the class."""
        return 1 / (self.constant * self.phase**2 * self.n_configs * n**2 * (level + 1) ** 2)

    def log_inverse(self, n: IntArray, level: IntArray) -> FloatArray:
        """See the class."""
        whole = math.log(float(self.constant) * self.phase**2 * self.n_configs / self.delta)
        return self._twice_log(n) + (self._twice_log(level + 1) + whole)

    def pool_share(self) -> float:
        """The share of delta for a pool of this phase that misses the best gamma: 3 / (π² · phase²), in all 1/2."""
        return 3.0 / (math.pi * self.phase) ** 2


@dataclass(frozen=True, slots=True)
class ThreeBoundsBudget:
    """Union over configurations, sample sizes and rungs of a fixed pool, three inequalities a cell.

    COUP+ bounds a cell by a lower and an upper bound on the mean of the high ends and a lower bound on the share of
    completed runs. Its authors keep half of delta for configurations that were never drawn and charge n² for a pool
    that grows: 6·(π²/6)³ = 26.71. In a pool that is fixed beforehand all of delta is there for the bounds and every
    configuration gets the same share, so 3·(π²/6)² · n_configs = 8.117… · n_configs is enough, and exact.
    """

    delta: float
    n_configs: int
    events: int = 3
    _twice_log: _TwiceLog = field(default_factory=_TwiceLog, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_delta(self.delta)

    def share(self, n: int, level: int) -> Fraction:
        """See the class."""
        return 1 / (self.events * SERIES_SQUARED * self.n_configs * n**2 * (level + 1) ** 2)

    def log_inverse(self, n: IntArray, level: IntArray) -> FloatArray:
        """See the class."""
        whole = math.log(float(self.events * SERIES_SQUARED) * self.n_configs / self.delta)
        return self._twice_log(n) + (self._twice_log(level + 1) + whole)


@dataclass(frozen=True, slots=True)
class SelectionBudget:
    """For time-uniform bounds and a recommendation: delta / (2 · n_configs) a lower bound, delta / 2 an upper bound.

    A wrong recommendation needs a wrong lower bound of some configuration, or a wrong upper bound of the one best
    configuration, whichever that is: n_configs · delta / (2 · n_configs) + delta / 2 = delta. The upper bounds of all
    others together are not covered. One event covers all sample sizes and, the bound being monotone, all captimes.
    """

    delta: float
    n_configs: int
    events: int = 1

    def __post_init__(self) -> None:
        check_delta(self.delta)

    def share(self, n: int, level: int) -> Fraction:  # noqa: ARG002 (one event for all sample sizes and captimes)
        """Return the share of delta of one lower bound."""
        return Fraction(1, 2 * self.n_configs)

    def share_upper(self) -> Fraction:
        """Return the share of delta of the upper bound of the best configuration."""
        return Fraction(1, 2)

    def log_inverse(self, n: IntArray, level: IntArray) -> FloatArray:  # noqa: ARG002 (as above)
        """See the class; for lower bounds."""
        return np.full(len(n), self.log_inverse_lower)

    @property
    def log_inverse_lower(self) -> float:
        """ln(1 / failure probability) of one lower bound."""
        return math.log(2.0 * self.n_configs / self.delta)

    @property
    def log_inverse_upper(self) -> float:
        """ln(1 / failure probability) of one upper bound."""
        return math.log(2.0 / self.delta)
