"""Who stands where in a growing pool, and what is certain: the half of `pool` on which its guarantee rests.

Nothing here decides what to run, when to add a configuration or when to stop; that is pool.py. Every statement is made
at a level that was fixed when a configuration arrived (pool_shares.py); docs/pools.md has the proofs.
"""

import math
from collections.abc import Iterable

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.certificate import Certificate
from captime.procedures.pool_board import PoolBoard
from captime.procedures.pool_gamma import GammaBets
from captime.procedures.pool_shares import PoolShares
from captime.procedures.pool_terms import DRAWS, LOWER, PAIRED, SHARES, SHOWN, UPPER, PoolTerms
from captime.tally import Tally

# Without a goal for gamma, this many draws are expected.
_EXPECTED_DRAWS = 50


class PoolStanding:
    """The members of a pool with their bounds and duels.

    Args:
        terms: Who comes when.
        delta: Allowed probability of a wrong certificate.
        gamma: The gamma that is wanted; 0 for none.
        board: Where scores are kept.

    Attributes:
        leader: The recommended configuration.
        lower: Lower bounds, leaders' only.
        upper: Upper bounds.
        shares: Who gets which share of delta.
        gammas: gamma by number of draws.
    """

    def __init__(self, terms: PoolTerms, delta: float, gamma: float, board: PoolBoard) -> None:
        self.terms = terms
        self.leader = 0
        self.gammas = GammaBets(DRAWS * delta, gamma)
        expected = self.gammas.draws_for(gamma) if gamma > 0.0 else _EXPECTED_DRAWS
        self.shares = PoolShares(terms, min(expected, terms.limit or expected))
        self.lower: FloatArray = np.empty(0)
        self.upper: FloatArray = np.empty(0)
        self._delta = delta
        self._board = board
        self._margin: FloatArray = np.empty(0)
        self._unfought = True
        self._draws: IntArray = np.empty(0, dtype=np.int64)

    @property
    def size(self) -> int:
        """How many configurations have come."""
        return len(self.upper)

    def _admit(self) -> None:
        """Admit one more configuration: its shares are fixed now, and those of all others stay as they are."""
        self.shares.arrive()
        self._board.enter()
        self.lower, self.upper = np.append(self.lower, 0.0), np.append(self.upper, 1.0)
        self._margin = np.append(self._margin, 1.0)
        self._draws = np.append(self._draws, self.shares.draws)

    # ------------------------------------------------------------------ what became known

    def _take_in(self, tally: Tally, config: int) -> bool:
        """Read a configuration's new scores; False if there is nothing to judge."""
        board = self._board
        first, last, ends = board.known(config), int(tally.settled[config]), int(tally.n[config])
        if last > first:
            board.settle(config, *tally.samples(config, first, last))
        still_open = ends > last >= board.start(config)
        if still_open:
            board.open(config, *tally.samples(config, last, ends))
        return last > first or still_open

    def _rank_newcomers(self) -> None:
        """In the order of arrival, each by its pilot scores among those before it."""
        while (config := self.shares.next_unranked) is not None and self._board.known(config) >= self._board.pilot:
            self.shares.rank(config, self._board.pilot_sum(config))

    def _tighten(self, fresh: list[int]) -> None:
        """Bounds of those with new scores, and their duels with the leader. They only ever become tighter."""
        level = -math.log(UPPER * self._delta)
        for config in fresh:
            bound = self._board.upper(config, level + self.shares.log_best[config])
            self.upper[config] = min(self.upper[config], bound)
        if self.leader in fresh:
            self._raise_lower()
        # Without news of the leader, only challengers with news can change, unless its duels were not looked at yet.
        self._fight(None if self.leader in fresh or self._unfought else fresh)

    def _lower_level(self) -> float:
        """ln(1 / failure probability) of the leader's lower bound; infinite while its rank is not known."""
        return self.shares.log_leader[self.leader] - math.log(LOWER * self._delta)

    def _raise_lower(self) -> None:
        level = self._lower_level()
        if math.isfinite(level):
            self.lower[self.leader] = max(self.lower[self.leader], self._board.lower(self.leader, level))

    def _fight(self, challengers: Iterable[int] | None = None) -> None:
        """Duels on positions that the leader and others have in common since the last time.

        Args:
            challengers: The configurations with news; None for all, if the leader has news or is new.
        """
        level = self.shares.log_leader[self.leader] - math.log(PAIRED * self._delta)
        self._unfought = math.isinf(level)
        if self._unfought:
            return
        fresh = self._board.with_news()
        for config in (fresh if challengers is None else fresh[np.isin(fresh, list(challengers))]).tolist():
            shown = self._board.margin(config, level + self.shares.log_best[config])
            self._margin[config] = min(self._margin[config], shown)

    def _crown(self, config: int) -> None:
        """Make another configuration the leader. Clearing belongs to one leader: all others are cleared afresh."""
        self.leader = config
        self._margin[:] = 1.0
        self._board.lead(config)
        self._raise_lower()
        self._fight()

    # ------------------------------------------------------------------ what is certain

    def _epsilons(self) -> FloatArray:
        """By how much each configuration may be better than the leader, by own bounds or by duel."""
        epsilon: FloatArray = np.minimum(np.maximum(self.upper - self.lower[self.leader], 0.0), self._margin)
        epsilon[self.leader] = 0.0
        return epsilon

    def _statements(self) -> tuple[FloatArray, FloatArray]:
        """Return epsilon and gamma of all that holds now: about the first 1, 2, … of the pool, and about all there are.

        Utilities are at most 1, so the leader's lower bound alone covers every configuration, drawn or not: gamma 0.
        """
        gamma = self.gammas.after_each(self._draws)
        epsilon = np.maximum.accumulate(self._epsilons())
        of_any = max(0.0, 1.0 - float(self.lower[self.leader]))
        return np.append(epsilon, of_any), np.append(gamma, 0.0)

    def _statement(self, epsilon: float, gamma: float, count: int) -> Certificate:
        """Make the statement about the leader and the first `count` of the pool; about all there are if gamma is 0."""
        each = self._epsilons()[:count]
        worst = int(each.argmax())
        level = self.shares.log_shown[self.leader] - math.log(SHOWN * self._delta)
        low = float(self.lower[self.leader])
        return Certificate(
            config=self.leader,
            epsilon=min(1.0, epsilon),
            delta=self._delta,
            n_configs=count,
            utility_low=low,
            utility_high=max(low, self._board.upper(self.leader, level)),
            gamma=gamma,
            challenger=worst if gamma > 0.0 and epsilon < 1.0 and each[worst] > 0.0 else None,
            mode="selection",
            shares=SHARES,
        )
