"""Mixture betting on binned scores: many configurations in one stroke, at a cost that does not grow with n."""

from typing import ClassVar

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.bounds.betting import check_nodes, sine_nodes
from captime.bounds.wealth_table import WealthTable, bins_above, bins_below, rising


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
