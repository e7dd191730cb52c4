"""Duels on a fixed set of instances: by how much may a challenger be ahead of the leader on exactly these instances?

The order of the N instances is uniformly random. D_j is the difference of the two *utilities* on position j, challenger
less leader, and S_j the sum of the differences on all positions before j. If the mean difference over the set is at
least ε, then the positions from j on have a mean of at least m_j = (N·ε - S_j) / (N - j), and the next of them has that
mean too, given everything before it. So the bet 1 - f + f·y_j / μ_j with y_j = (1 - D_j) / 2 and μ_j = (1 - m_j) / 2 is
fair or loses. Great wealth refutes ε. docs/fixed-sets.md has the proof.

Known intervals of utilities take the place of utilities: every factor falls when D_j rises and when S_j rises, so the
high end of a difference is safe in both. The same bets with μ = (1 - ε) / 2 are those for instances that are drawn from
a distribution.
"""

from dataclasses import dataclass

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.bounds.betting import rounding_allowance

# Numbers in one temporary table.
_CELLS = 1 << 20
# Halvings of the interval in which the smallest margin is searched for.
_HALVINGS = 20


@dataclass(frozen=True, slots=True)
class PairedBets:
    """Bets of several challengers against one leader, one row each; the columns are stream positions.

    Attributes:
        gain: y_j = (1 - D_j) / 2 from high ends of differences.
        base: μ_j at ε = 0.
        slope: By how much μ_j falls per unit of ε, by position.
        counts: Positions on which the row bets.
        log_inverse: ln(1 / failure probability) of each row.
        nodes: Shares of the wealth that are bet, mixed with equal weights.
    """

    gain: FloatArray
    base: FloatArray
    slope: FloatArray
    counts: BoolArray
    log_inverse: FloatArray
    nodes: FloatArray

    @classmethod
    def on_set(
        cls,
        differences: FloatArray,
        population: int,
        counts: BoolArray,
        log_inverse: FloatArray,
        nodes: FloatArray,
    ) -> "PairedBets":
        """Bet about the mean over exactly these instances.

        Args:
            differences: High ends of the differences of *utilities* on the positions 0, 1, …, by row. Positions on
                which a row does not bet count in the sums all the same, so none is left out.
            population: N, the number of instances of the set.
            counts: Positions on which each row bets; decided without a look at them.
            log_inverse: ln(1 / failure probability) of each row.
            nodes: Shares that are bet.
        """
        length = differences.shape[1]
        left = (population - np.arange(length)).astype(np.float64)
        before = np.cumsum(differences, axis=1) - differences
        # Sums are rounded: a little more than the rounding of the sum of `length` numbers in [-1, 1].
        before += 1e-15 * np.arange(length) * np.arange(1, length + 1)
        return cls(
            (1.0 - differences) / 2.0,
            0.5 + 0.5 * before / left,
            np.asarray(0.5 * population / left),
            counts,
            log_inverse,
            nodes,
        )

    @classmethod
    def on_draws(
        cls, differences: FloatArray, counts: BoolArray, log_inverse: FloatArray, nodes: FloatArray
    ) -> "PairedBets":
        """Bet about the distribution from which the instances were drawn; arguments as for `on_set`."""
        half = np.full(differences.shape[1], 0.5)
        return cls(
            (1.0 - differences) / 2.0,
            np.broadcast_to(half, differences.shape),
            half,
            counts,
            log_inverse,
            nodes,
        )

    def refutes(self, margin: FloatArray, rows: IntArray | None = None) -> BoolArray:
        """Return for which rows a lead of `margin` or more is refuted, at some length of the prefix.

        Args:
            margin: ε of each row asked for.
            rows: Indices of the rows asked for; all if left out.
        """
        which = np.arange(len(self.gain)) if rows is None else np.asarray(rows, dtype=np.int64)
        found = np.zeros(len(which), dtype=np.bool_)
        width = max(1, self.gain.shape[1] * len(self.nodes))
        at_once = max(1, _CELLS // width)
        for first in range(0, len(which), at_once):
            part = slice(first, first + at_once)
            found[part] = self._refutes(which[part], margin[part])
        return found

    def _refutes(self, rows: IntArray, margin: FloatArray) -> BoolArray:
        counts, length = self.counts[rows], self.gain.shape[1]
        if not length:
            return np.zeros(len(rows), dtype=np.bool_)
        mean = np.minimum(self.base[rows] - margin[:, None] * self.slope, 1.0)
        # What is left cannot make up for what was seen: refuted without a bet.
        impossible = counts & (mean <= 0.0)
        ratio = np.where(counts & (mean > 0.0), self.gain[rows] / np.where(mean > 0.0, mean, 1.0) - 1.0, 0.0)
        wealth = np.empty((len(self.nodes), *ratio.shape))
        np.multiply(self.nodes[:, None, None], ratio, out=wealth)
        with np.errstate(divide="ignore"):
            np.log1p(wealth, out=wealth)
        np.cumsum(wealth, axis=2, out=wealth)
        top = wealth.max(axis=0)
        top = np.where(np.isfinite(top), top, 0.0)
        np.subtract(wealth, top, out=wealth)
        np.exp(wealth, out=wealth)
        with np.errstate(divide="ignore"):
            mixed = np.log(wealth.mean(axis=0)) + top
        needed = self.log_inverse[rows] + rounding_allowance(length)
        reached: BoolArray = (mixed >= needed[:, None]).any(axis=1) | impossible.any(axis=1)
        return reached

    def margins(self, held: FloatArray, goal: float) -> FloatArray:
        """Return refuted margins, one for each row and none above `held`; `goal` where that is refuted.

        The largest of them is found to a precision of 1e-6. The others may be larger than necessary.

        Args:
            held: Margins that are known already.
            goal: The margin that is good enough.
        """
        best = np.minimum(held, 1.0)
        open_rows = np.flatnonzero(best > goal)
        if not len(open_rows):
            return best
        at_goal = self.refutes(np.full(len(open_rows), goal), open_rows)
        best[open_rows[at_goal]] = goal
        open_rows = open_rows[~at_goal]
        low = goal
        for _ in range(_HALVINGS):
            if not len(open_rows):
                break
            middle = 0.5 * (low + float(best[open_rows].max()))
            asked = open_rows[best[open_rows] > middle]
            shown = self.refutes(np.full(len(asked), middle), asked)
            best[asked[shown]] = middle
            if not shown.all():
                # The rows that hold the largest margin up.
                low, open_rows = middle, asked[~shown]
        return best
