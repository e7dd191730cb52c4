"""A claim about drawn instances, proved again from the rows: one check for the race on a list and for a growing pool.

For every other configuration there is one of two reasons why it cannot be better by more than epsilon: its own upper
bound, or a duel with the recommended one. The two differ in one table, which says where bets begin and which share of
delta pays for each statement. Bets are the documented ones, every rounding is on the safe side.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

import numpy as np

from captime.arrays import FloatArray
from captime.errors import LedgerDamaged
from captime.skeptic.check import Check
from captime.skeptic.directed import Bets, above
from captime.skeptic.lottery import Ends, Lottery

MEANS, LEADS = Bets.documented(24), Bets.documented(16)
"""The bets of bounds, and those of duels."""
_BOOST = 1.25


class ShareTable(Protocol):
    """Where bets begin, and which share of delta pays for each statement; None where no share does."""

    def begin(self, config: int) -> int:
        """Return the first position that counts for lower bounds and duels of a configuration."""
        ...

    def upper(self, config: int) -> Fraction:
        """Return the share of delta that pays for an upper bound, which clears a configuration."""
        ...

    def duel(self, leader: int, config: int) -> Fraction | None:
        """Return the share of delta that pays for a duel."""
        ...

    def ends(self, leader: int) -> tuple[Fraction | None, Fraction]:
        """Return the shares of delta that pay for the two ends of the interval."""
        ...


@dataclass(slots=True)
class ClaimCheck(Check):
    """A check of one certificate about drawn instances, with the table of shares of a list or of a pool."""

    _lottery: Lottery = field(init=False)
    _ends: dict[int, Ends] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._lottery = Lottery(self.question.utility, self.question.seed, self._boost)

    @property
    def _boost(self) -> float:
        return float(self.question.options.get("boost", _BOOST))

    def _of(self, config: int) -> Ends:
        """Return the runs of a configuration with the two ends of their scores, worked out once."""
        if config not in self._ends:
            story = self.books.story(config)
            self._ends[config] = Ends(story, *self._lottery.intervals(story))
        return self._ends[config]

    def _check_captimes(self) -> None:
        """Check that no run was given more time than was drawn for its position."""
        for config in range(self.books.n_configs):
            self._lottery.check_captimes(config, self._of(config).story)
        runs = sum(map(len, self.books.runs))
        self.account.append(f"no run was given more time than the draw of its position allows ({runs:,} runs)")

    def _check_delta(self, shares: Mapping[str, Fraction]) -> None:
        """Check that delta is the one that was asked for, and is shared out as documented."""
        held = self.held
        if Fraction(held.delta) != self.question.delta:
            raise LedgerDamaged(f"the certificate's delta is {held.delta}, but {float(self.question.delta)} was asked")
        if {name: Fraction(repr(share)) for name, share in held.shares} != shares:
            raise LedgerDamaged(f"the certificate shares delta out as {dict(held.shares)}, which is not documented")

    # ------------------------------------------------------------------ the claim

    def _level(self, share: Fraction) -> Fraction:
        """1 / failure probability of a statement."""
        return 1 / (share * self.question.delta)

    def _lower(self, table: ShareTable) -> float:
        """What is shown of the leader alone."""
        leader = self.held.config
        share = table.ends(leader)[0]
        if share is None:
            return 0.0
        return MEANS.lower_bound(self._of(leader).since(table.begin(leader)).low, self._level(share))

    def _scouted(self) -> float:
        """What is shown of the leader alone before others were run; 0 where there is no scout."""
        return 0.0

    def _near_the_best_possible(self, lower: float) -> bool:
        """Return whether a lower bound alone is within epsilon of the largest utility there is, 1."""
        if np.nextafter(lower + self.held.epsilon, -1.0) < 1.0:
            return False
        self.account.append(
            f"the recommended configuration is within epsilon of the best possible, 1: at least {lower:.4f}"
        )
        return True

    def _check_everyone(self, table: ShareTable, lower: float, others: str) -> None:
        """Check that none of the configurations of the claim is better by more than epsilon.

        Args:
            table: The table of shares.
            lower: What is shown of the leader alone.
            others: The configurations of the claim, in words.
        """
        held = self.held
        bound = float(np.nextafter(lower + held.epsilon, -1.0))
        by_bound, by_duel = 0, 0
        for config in range(held.n_configs):
            if config == held.config:
                continue
            known = config < self.books.n_configs
            if bound >= 1.0 or (known and self._shown_below(table, config, bound)):
                by_bound += 1
            elif known and self._wins_duel(table, config):
                by_duel += 1
            elif self._near_the_best_possible(self._scouted()):
                return
            else:
                raise LedgerDamaged(
                    f"the certificate says that none of {others} is better than number {held.config} by more than "
                    f"{held.epsilon!r}, but the rows do not show it for configuration {config}"
                )
        self.account.append(
            f"number {held.config} is within {held.epsilon:.6g} of {others}: {by_bound:,} shown by bounds, "
            f"{by_duel:,} by duels"
        )

    def _shown_below(self, table: ShareTable, config: int, bound: float) -> bool:
        return MEANS.shows_at_most(self._of(config).high, bound, self._level(table.upper(config)))

    def _wins_duel(self, table: ShareTable, config: int) -> bool:
        share = table.duel(self.held.config, config)
        if share is None:
            return False
        begin = max(table.begin(config), table.begin(self.held.config))
        challenger, leader = self._of(config).since(begin), self._of(self.held.config).since(begin)
        # A position that one of them has not run yet counts from 0 to 1, like every run without an outcome.
        longest = max(len(challenger.high), len(leader.low))
        differences = np.minimum(above(_padded(challenger.high, 1.0, longest) - _padded(leader.low, 0.0, longest)), 1.0)
        return LEADS.shows_no_lead(differences, self.held.epsilon, self._level(share))

    def _check_interval(self, table: ShareTable, lower: float) -> None:
        held = self.held
        if held.utility_low > max(lower, 0.0) and held.utility_low > self._scouted():
            raise LedgerDamaged(
                f"the certificate says that number {held.config} is worth at least {held.utility_low!r}; the rows show "
                f"{lower!r}"
            )
        if not MEANS.shows_at_most(
            self._of(held.config).high, held.utility_high, self._level(table.ends(held.config)[1])
        ):
            raise LedgerDamaged(
                f"the certificate says that number {held.config} is worth at most {held.utility_high!r}, which the "
                "rows do not show"
            )
        self.account.append(f"its expected utility is between {held.utility_low:.6g} and {held.utility_high:.6g}")


def _padded(values: FloatArray, unknown: float, length: int) -> FloatArray:
    """Return values with as many unknown ones behind them as there are positions left."""
    return np.concatenate((values, np.full(length - len(values), unknown)))
