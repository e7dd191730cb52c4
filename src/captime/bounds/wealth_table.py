"""Many gamblers at once, on scores that lie on a grid: the logarithms of all factors are computed once and looked up.

The wealth against a candidate falls from one candidate to the next, so the question "up to which candidate is the
wealth large enough?" needs two looks instead of all: one at the first candidate of every block, one at the block where
the answer lies. The cost does not depend on the number of samples.
"""

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.bounds.betting import CHUNK, check_log_inverse
from captime.errors import ScenarioError

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
