"""Mixture betting on scores that lie on a grid: many configurations at once, single scores or paired differences."""

import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.errors import ScenarioError

# What the betting bounds share: the nodes, the checks of their input, the climb to the root.
#
# A gambler who doubts that the mean is as small as q bets on large scores: a share b of the wealth earns x / q, which
# is a fair or a losing game if the mean is at most q. Great wealth is evidence against q. Everything here works with
# the logarithm of that wealth, as a function of s = ln q: there ln(1 - b + b·x·e^-s) is convex and falling, sums of
# it and mixtures over b are too, and so Newton's method stays on the safe side of the root whatever it starts from.

# Below this s, q = e^s cannot change any result and x / q could overflow.
_VANISHING = -600.0
# Newton's method doubles the number of right digits; from the farthest start it still needs fewer steps than this.
_STEPS = 200
_STRIDE = 20.0
# How many numbers a temporary table may hold.
CHUNK = 1 << 17


def sine_nodes(k: int = 64) -> FloatArray:
    """Shares b_i = sin²((i - ½)π / 2K), i = 1, …, K: an equal-weight quadrature of Beta(½, ½).

    >>> sine_nodes(2).round(6).tolist()
    [0.146447, 0.853553]
    """
    if k < 1:
        raise ScenarioError(f"a mixture of {k} bets was asked for, but it takes at least one; try 64")
    nodes: FloatArray = np.sin((np.arange(k) + 0.5) * (np.pi / (2.0 * k))) ** 2
    return nodes


def check_log_inverse(log_inverse: float | FloatArray) -> None:
    """Refuse ln(1 / failure probability) that is not positive: a bound that always fails, or a missing number."""
    if not np.all(np.asarray(log_inverse) > 0.0):
        raise ScenarioError(
            f"log_inverse is {log_inverse}, but ln(1 / failure probability) is positive; give -ln(delta) with delta "
            "strictly between 0 and 1"
        )


def check_nodes(nodes: FloatArray, what: str = "the nodes of the mixture") -> FloatArray:
    """The shares of the wealth that are bet: at least one, each in [0, 1]."""
    shares = np.asarray(nodes, dtype=np.float64)
    if shares.ndim != 1 or len(shares) == 0 or not ((shares >= 0.0) & (shares <= 1.0)).all():
        raise ScenarioError(f"{what} are {shares}, but they are shares of a wealth: a list of numbers in [0, 1]")
    return shares


def check_scores(samples: FloatArray) -> FloatArray:
    """Scores in the order of the stream; refuses what is not a list of numbers in [0, 1]."""
    scores = np.asarray(samples, dtype=np.float64)
    if scores.ndim != 1:
        raise ScenarioError(f"the scores have the shape {scores.shape}, but a bound takes one list of them at a time")
    wrong = np.flatnonzero(~((scores >= 0.0) & (scores <= 1.0)))
    if len(wrong):
        raise ScenarioError(
            f"score number {wrong[0]} is {scores[wrong[0]]}, but every score lies in [0, 1]; scale the scores first"
        )
    return scores


def counted(scores: FloatArray, counts: IntArray | None) -> tuple[FloatArray, FloatArray]:
    """Distinct scores and how often each occurs. Order does not matter to a bet that never changes."""
    if counts is None:
        values, times = np.unique(scores, return_counts=True)
        return values, times.astype(np.float64)
    times = np.asarray(counts)
    if times.shape != scores.shape or not (times >= 0).all():
        raise ScenarioError(
            f"there are {times.size} counts for {scores.size} scores, the smallest is {times.min(initial=0)}; give one "
            "count, at least 0, per score"
        )
    present = times > 0
    return scores[present], times[present].astype(np.float64)


def rounding_allowance(n: float) -> float:
    """More than floating-point arithmetic can add to a sum of n logarithms; asked for on top of the evidence."""
    return 1e-9 + 1e-14 * n


def climb(value_and_slope: Callable[[float], tuple[float, float]], target: float, start: float) -> float:
    """The largest q at which a falling function, convex in s = ln q, is still at least `target`; 0 if q vanishes.

    The tangent of a convex function lies below it, so where the tangent meets the target the function is above: after
    the first step every point is on the safe side, and the points only climb.

    Args:
        value_and_slope: The function and a slope of it (any subgradient will do) at s.
        target: What is asked for.
        start: Any s.
    """
    if start < _VANISHING:
        return 0.0
    s = start
    held = -math.inf
    for _ in range(_STEPS):
        value, slope = value_and_slope(s)
        following = s + (target - value) / slope if slope < 0.0 else -math.inf
        if held == -math.inf and following < s - _STRIDE:
            s -= _STRIDE  # a flat tangent leads too far; go left in strides until it is steep
            if s < _VANISHING:
                return 0.0
            continue
        if following <= held:  # nothing left but rounding
            break
        near = following - held <= 1e-14
        s = held = following
        if near:
            break
    return math.exp(held)


def log_mean(total: float, n: float) -> float:
    """Return the logarithm of a positive mean, also where the mean itself is too small for a number.

    >>> log_mean(5e-324, 2.0) < log_mean(5e-324, 1.0) < 0.0
    True
    """
    mean = total / n
    return math.log(mean) if mean > 0.0 else math.log(total) - math.log(n)


# Many gamblers at once, on scores that lie on a grid: the logarithms of all factors are computed once and looked up.
#
# The wealth against a candidate falls from one candidate to the next, so the question "up to which candidate is the
# wealth large enough?" needs two looks instead of all: one at the first candidate of every block, one at the block
# where the answer lies. The cost does not depend on the number of samples.

# Stands for ln 0, so that "never seen" times "ruin" is 0 and not undefined.
_RUIN = -1e290
# exp of this is finite, and large enough for every comparison with 1.
_LARGE = 700.0
# Products with more multiplications than this are spread over threads by the usual BLAS. On a machine whose cores are
# busy measuring runs the threads wait for each other a thousand times longer than the product takes.
_ALONE = 250_000


class WealthTable:
    """Logarithms of factors, by grid value, candidate and bet.

    Args:
        log_factors: Shape (grid values, candidates, bets). For all counts the mixture over the bets (with equal
            weights) must not grow from a candidate to the next.
    """

    def __init__(self, log_factors: FloatArray) -> None:
        table = np.maximum(log_factors, _RUIN)
        self.values, self.candidates, self.bets = table.shape
        self._block = max(1, int(np.ceil(np.sqrt(self.candidates))))
        firsts = np.arange(0, self.candidates, self._block)
        self._firsts: FloatArray = self._flat(table[:, firsts])
        self._blocks: list[FloatArray] = [self._flat(table[:, first : first + self._block]) for first in firsts]
        self._log_bets = float(np.log(self.bets))

    def _flat(self, table: FloatArray) -> FloatArray:
        return np.ascontiguousarray(table.reshape(self.values, -1))

    def log_wealth(self, counts: IntArray) -> FloatArray:
        """The logarithm of the wealth for every row of counts and every candidate, shape (A, candidates)."""
        seen = self._checked(counts)
        wealth = np.concatenate([_product(seen, block) for block in self._blocks], axis=1)
        wealth = wealth.reshape(len(seen), self.candidates, self.bets)
        top = wealth.max(axis=2)
        return np.asarray(top + np.log(np.exp(wealth - top[..., None]).mean(axis=2)))

    def passed(self, counts: IntArray, log_inverse: FloatArray) -> IntArray:
        """How many candidates, from the first on, have a wealth of at least exp(log_inverse); shape (A,).

        Args:
            counts: How often each grid value was seen, shape (A, grid values).
            log_inverse: ln(1 / failure probability) per row, shape (A,) or a single one for all.
        """
        seen = self._checked(counts)
        check_log_inverse(log_inverse)
        # Equal weights: the sum over the bets has to reach as many times more as there are bets.
        target = np.broadcast_to(np.asarray(log_inverse, dtype=np.float64), len(seen)) + self._log_bets
        result = np.zeros(len(seen), dtype=np.int64)
        rows = max(1, CHUNK // self._firsts.shape[1])
        for start in range(0, len(seen), rows):
            part = slice(start, start + rows)
            result[part] = self._passed(seen[part], target[part])
        return result

    def _passed(self, seen: FloatArray, target: FloatArray) -> IntArray:
        block = self._reached(seen, target, self._firsts) - 1
        if len(seen) == 1:
            which = block.item()
            return block + 1 if which < 0 else which * self._block + self._reached(seen, target, self._blocks[which])
        result = np.zeros(len(seen), dtype=np.int64)
        for which in np.unique(block[block >= 0]):
            rows = np.flatnonzero(block == which)
            result[rows] = which * self._block + self._reached(seen[rows], target[rows], self._blocks[which])
        return result

    def _reached(self, seen: FloatArray, target: FloatArray, columns: FloatArray) -> IntArray:
        """One more than the index of the last of these candidates with enough wealth; 0 if none has it."""
        excess = _product(seen, columns)
        excess -= target[:, None]
        np.minimum(excess, _LARGE, out=excess)
        np.exp(excess, out=excess)
        enough = excess.reshape(len(seen), -1, self.bets).sum(axis=2) >= 1.0
        n = enough.shape[1]
        return np.where(enough.any(axis=1), n - enough[:, ::-1].argmax(axis=1), 0)

    def _checked(self, counts: IntArray) -> FloatArray:
        seen = np.asarray(counts, dtype=np.float64)
        if seen.ndim != 2 or seen.shape[1] != self.values:
            raise ScenarioError(
                f"the counts have the shape {seen.shape}, but there are {self.values} grid values; give one row of "
                f"{self.values} counts per configuration"
            )
        return seen


def _product(seen: FloatArray, columns: FloatArray) -> FloatArray:
    """The matrix product, in pieces that one thread computes alone."""
    rows = max(1, _ALONE // columns.size)
    result = np.empty((len(seen), columns.shape[1]))
    for start in range(0, len(seen), rows):
        np.matmul(seen[start : start + rows], columns, out=result[start : start + rows])
    return result


def rising(values: FloatArray, what: str, low: float, high: float, *, ends: str = "[]") -> FloatArray:
    """A strictly increasing list of numbers between `low` and `high`, ends included or not; refuses anything else."""
    grid = np.asarray(values, dtype=np.float64)
    inside = grid.ndim == 1 and len(grid) > 0 and bool((np.diff(grid) > 0).all())
    if inside:
        inside = bool((grid[0] >= low) if ends[0] == "[" else (grid[0] > low))
        inside &= bool((grid[-1] <= high) if ends[1] == "]" else (grid[-1] < high))
    if not inside:
        raise ScenarioError(
            f"{what} are {grid}, but they have to be a strictly increasing list of numbers in {ends[0]}{low:g}, "
            f"{high:g}{ends[1]}"
        )
    return grid


def bins_below(values: FloatArray, grid: FloatArray) -> IntArray:
    """For each value the index of the largest grid value that is not above it."""
    index = np.searchsorted(grid, values, side="right") - 1
    if (index < 0).any() or np.isnan(values).any():
        raise ScenarioError(
            f"the smallest value to round down is {np.min(values)}, but the grid starts at {grid[0]}; start the grid "
            "at the smallest possible value"
        )
    return np.asarray(index, dtype=np.int64)


def bins_above(values: FloatArray, grid: FloatArray) -> IntArray:
    """For each value the index of the smallest grid value that is not below it."""
    index = np.searchsorted(grid, values, side="left")
    if (index >= len(grid)).any() or np.isnan(values).any():
        raise ScenarioError(
            f"the largest value to round up is {np.max(values)}, but the grid ends at {grid[-1]}; end the grid at the "
            "largest possible value"
        )
    return np.asarray(index, dtype=np.int64)


# Mixture betting on binned scores: many configurations in one stroke, at a cost that does not grow with n.


class BinnedMixture:
    """Lower bounds on means from counts of rounded scores; see `Mixture` for what is bet.

    The mixture never falls when a score rises. So rounding scores *down* to the grid can only lower its lower bounds:
    they stay valid. For an upper bound round the scores *up* and look from the other side: the counts of 1 - x on the
    grid 1 - x_g, bounded below, then 1 minus that (`upper` does this, on a grid that is its own mirror image or not).

    Args:
        grid: The values a score can be rounded to, increasing, in [0, 1]; 0 and 1 belong to it unless no score ever
            lies outside its ends. Left out: 129 equidistant values.
        candidates: The values a lower bound can take besides 0, increasing, strictly between 0 and 1. Left out: 255
            equidistant values.
        nodes: Shares that are bet, with equal weights. Left out: `sine_nodes(24)`.
    """

    monotone: ClassVar[bool] = True
    time_uniform: ClassVar[bool] = True
    needs: ClassVar[str] = "bins"
    summary: ClassVar[str] = (
        "mixture betting on rounded scores, used by race and pool: many configurations at once, cost independent of n"
    )

    def __init__(
        self,
        grid: FloatArray | None = None,
        candidates: FloatArray | None = None,
        nodes: FloatArray | None = None,
    ) -> None:
        self.grid = rising(np.linspace(0.0, 1.0, 129) if grid is None else grid, "the bins of the scores", 0.0, 1.0)
        if candidates is None:
            candidates = np.arange(1, 256) / np.float64(256.0)
        self.candidates = rising(candidates, "the candidate means", 0.0, 1.0, ends="()")
        self.nodes = check_nodes(sine_nodes(24) if nodes is None else nodes)
        self._lower_table: WealthTable | None = None
        self._upper_table: WealthTable | None = None
        self._values = np.concatenate((np.zeros(1), self.candidates))

    def _table(self, grid: FloatArray) -> WealthTable:
        odds = grid[:, None, None] / self.candidates[:, None] - 1.0
        with np.errstate(divide="ignore"):  # everything bet on a score of 0: ruin, which the table knows
            return WealthTable(np.log1p(self.nodes * odds))

    @property
    def lower_table(self) -> WealthTable:
        """Logarithms of 1 + b(x / q - 1), by grid value, candidate q and share b; made when first needed."""
        if self._lower_table is None:
            self._lower_table = self._table(self.grid)
        return self._lower_table

    @property
    def upper_table(self) -> WealthTable:
        """The same for 1 - x."""
        if self._upper_table is None:
            self._upper_table = self._table(1.0 - self.grid)
        return self._upper_table

    def lower(self, counts: IntArray, log_inverse: FloatArray) -> FloatArray:
        """The largest candidate mean that is refuted, per configuration; 0 if none is.

        Args:
            counts: How many scores were rounded down to each grid value, shape (A, grid values).
            log_inverse: ln(1 / failure probability), shape (A,) or a single one.
        """
        return self._values[self.lower_table.passed(counts, log_inverse)]

    def upper(self, counts: IntArray, log_inverse: FloatArray) -> FloatArray:
        """1 minus the lower bound on the mean of 1 - score, per configuration.

        Args:
            counts: How many scores were rounded *up* to each grid value, shape (A, grid values).
            log_inverse: As in `lower`.
        """
        return 1.0 - self._values[self.upper_table.passed(counts, log_inverse)]

    def bin_down(self, scores: FloatArray) -> IntArray:
        """Which bin each score is rounded down to: for lower bounds."""
        return bins_below(scores, self.grid)

    def bin_up(self, scores: FloatArray) -> IntArray:
        """Which bin each score is rounded up to: for upper bounds."""
        return bins_above(scores, self.grid)


# Is a challenger better than the leader by more than a margin? Betting on their differences, position by position.


class PairedMixture:
    """Upper bounds on the difference of two means, from counts of D = challenger's score - leader's score.

    Against "the challenger is better by at least ε" it bets a fraction f: the factor of a position is
    1 + f(ε - D) / (1 - ε). If the claim holds no factor gains on average. Factors fall when D rises, so D is taken from
    the challenger's high end and the leader's low end, and rounded *up*. They rise with ε, so all margins are judged on
    one event. It is mixture betting on y = (1 - D)/2 against the mean q = (1 - ε)/2, a share f of the wealth at stake.

    Args:
        differences: The values D can be rounded to, increasing, in [-1, 1]; the last is 1 unless no D is ever above it.
            Left out: 129 equidistant values.
        margins: The values of ε to judge, increasing, in [0, 1). Left out: 0, 1/256, …, 255/256.
        fractions: Fractions f that are bet, with equal weights. Left out: `sine_nodes(24)`.
    """

    monotone: ClassVar[bool] = True
    time_uniform: ClassVar[bool] = True
    needs: ClassVar[str] = "pairs"
    summary: ClassVar[str] = (
        "mixture betting on differences of two configurations on the same positions, used by race and pool"
    )

    def __init__(
        self,
        differences: FloatArray | None = None,
        margins: FloatArray | None = None,
        fractions: FloatArray | None = None,
    ) -> None:
        if differences is None:
            differences = np.linspace(-1.0, 1.0, 129)
        if margins is None:
            margins = np.arange(256) / np.float64(256.0)
        self.differences = rising(differences, "the bins of the differences", -1.0, 1.0)
        self.margins = rising(margins, "the margins", 0.0, 1.0, ends="[)")
        self.fractions = check_nodes(sine_nodes(24) if fractions is None else fractions, "the fractions that are bet")
        # From the largest margin down, because the wealth against a margin shrinks with it.
        shrinking = self.margins[::-1]
        odds = (shrinking - self.differences[:, None]) / (1.0 - shrinking)
        with np.errstate(divide="ignore"):  # everything bet on D < 1: ruin at D = 1, which the table knows
            self.table = WealthTable(np.log1p(self.fractions * odds[..., None]))
        self._values = np.concatenate((np.ones(1), shrinking))

    def log_wealth(self, counts: IntArray) -> FloatArray:
        """The logarithm of E_ε for every row of counts and every margin, shape (A, margins)."""
        return self.table.log_wealth(counts)[:, ::-1]

    def smallest_margin(self, counts: IntArray, log_inverse: FloatArray) -> FloatArray:
        """The smallest margin by which the challenger is shown not to be better, per pair; 1.0 if there is none.

        Args:
            counts: How many differences were rounded up to each grid value, shape (A, grid values).
            log_inverse: ln(1 / failure probability), shape (A,) or a single one.
        """
        return self._values[self.table.passed(counts, log_inverse)]

    def bin_up(self, differences: FloatArray) -> IntArray:
        """Which bin each difference is rounded up to."""
        return bins_above(differences, self.differences)
