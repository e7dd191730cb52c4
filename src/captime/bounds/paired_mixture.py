"""Is a challenger better than the leader by more than a margin? Betting on their differences, position by position."""

from typing import ClassVar

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.bounds.betting import check_nodes, sine_nodes
from captime.bounds.wealth_table import WealthTable, bins_above, rising


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
