"""Shares of the failure probability for the configurations of a growing pool; fixed at arrival, never made again.

Two kinds of statements need shares. *As the best*: some configuration is better than the leader, and must not be
cleared. *As the leader*: a configuration is said to be nearly as good as the best. The sums, at most 1 each, are in
docs/engine.md. In short: let b_1, b_2, … sum to 1. The i-th random draw is the best of the first i with probability at
most 1/i, whatever the instances do, so as the best it may have i·b_i instead of b_i. And its rank among the first i by
pilot scores is any of 0, …, i - 1 with probability 1/i each, so as a leader it may have i·b_i times a weight of that
rank, where the weights of all ranks sum to 1. Those proposed by a model know the data, and so may those that the user
adds later; they have b_k.
"""

import math
from typing import assert_never

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.procedures.pool_terms import (
    LOWER,
    ON_SET_LOWER,
    ON_SET_PAIRED,
    ON_SET_SHOWN,
    PAIRED,
    SHARES,
    SHOWN,
    UPPER,
    Origin,
    PoolTerms,
)

# Of everything: to the listed ones, and, if there is a model, to its proposals. The draws have the rest. Without a
# model a little is kept for those who are added later.
_LISTED, _MODEL, _LATE = 0.1, 0.35, 0.02
# The first block of arrivals, those that are expected, shares this much; each later block, twice as long, less.
_EXPECTED = 0.85


def by_arrival(number: int, expected: int) -> float:
    """b_i of arrival i = 1, 2, …; over all arrivals these sum to 1.

    Args:
        number: i.
        expected: How many are expected. They share evenly; later ones in blocks that double.

    >>> by_arrival(3, 10)
    0.085
    """
    if number <= expected:
        return _EXPECTED / expected
    block, end = 1, 2 * expected
    while number > end:
        block, end = block + 1, 2 * end
    return (1.0 - _EXPECTED) / (block * (block + 1)) / (end // 2)


def by_rank(rank: int, among: int) -> float:
    """Return the weight of rank 0, 1, … among `among` configurations; over all ranks these sum to 1."""
    return (among + 1) / (among * (rank + 1) * (rank + 2))


class PoolShares:
    """The shares of every arrival, as ln(1/share).

    Args:
        terms: Who comes when.
        expected: How many random draws are expected; a wrong guess costs runs, not validity.

    Attributes:
        terms: As given; those who are added late are entered there before they arrive.
        origin: Where each arrival comes from.
        log_best: ln(1/share) of each arrival as the best.
        log_leader: ln(1/share) of each arrival as a leader; infinite until the draw's rank is known.
        log_shown: ln(1/share) of each arrival for the upper end that is shown beside the certificate.
        draws: Random draws among the arrivals so far.
    """

    def __init__(self, terms: PoolTerms, expected: int) -> None:
        self.terms = terms
        self._expected = max(1, expected)
        listed = _LISTED if terms.n_listed else 0.0
        model = _MODEL if terms.model else _LATE if listed else 0.0
        self._of: dict[Origin, float] = {"listed": listed, "model": model, "random": 1.0 - listed - model}
        if not model and terms.limit is not None:
            # No configuration is drawn beyond the limit: the shares of such draws are free for those added later.
            drawn = math.fsum(by_arrival(number, self._expected) for number in range(1, terms.limit + 1))
            self._of["model"] = max(0.0, 1.0 - drawn)
        self.origin: list[Origin] = []
        self.log_best: list[float] = []
        self.log_leader: list[float] = []
        self.log_shown: list[float] = []
        self.draws = 0
        self._proposed = 0
        self._number: list[int] = []
        self._pilots: list[float] = []
        # Every configuration before this one has a rank, or needs none.
        self._ranked = 0

    @property
    def takes_late(self) -> bool:
        """Whether anything is kept for those who are added late."""
        return self._of["model"] > 0.0

    def arrive(self) -> None:
        """One more."""
        origin = self.terms.origin(len(self.origin))
        whole = self._of[origin]
        self.origin.append(origin)
        match origin:
            case "listed":
                # The best of those listed is one fixed configuration; leaders may be any of them.
                self._number.append(len(self.origin))
                best, leader = whole, whole / self.terms.n_listed
                shown = leader
            case "random":
                self.draws += 1
                self._number.append(self.draws)
                shown = whole * by_arrival(self.draws, self._expected)
                best, leader = self.draws * shown, 0.0
            case "model":
                self._proposed += 1
                self._number.append(self._proposed)
                best = leader = shown = whole * by_arrival(self._proposed, self._expected)
            case _:
                assert_never(origin)
        self.log_best.append(-math.log(best))
        self.log_leader.append(-math.log(leader) if leader else math.inf)
        self.log_shown.append(-math.log(shown))

    @property
    def next_unranked(self) -> int | None:
        """The first random draw whose rank is not known yet; ranks are given in the order of arrival."""
        while self._ranked < len(self.log_leader) and math.isfinite(self.log_leader[self._ranked]):
            self._ranked += 1
        return self._ranked if self._ranked < len(self.log_leader) else None

    def rank(self, config: int, pilot: float) -> None:
        """The pilot scores of `next_unranked` are known: its share as a leader is fixed, for ever.

        Args:
            config: Who.
            pilot: Sum of its pilot scores.
        """
        number = self._number[config]
        # Equal scores: the newcomer stands behind, or else ranks would not be spread evenly.
        better = sum(earlier >= pilot for earlier in self._pilots)
        self._pilots.append(pilot)
        share = number * by_arrival(number, self._expected) * by_rank(better, number)
        self.log_leader[config] = -math.log(self._of["random"] * share)


class ArrivalLevels:
    """The table of shares of a growing pool on drawn instances: by arrival and by rank at arrival.

    Args:
        shares: The share of every arrival.
        delta: Allowed probability of a wrong certificate.

    Attributes:
        named: The shares of delta, as certificates name them.
    """

    named = SHARES

    def __init__(self, shares: PoolShares, delta: float) -> None:
        self._shares = shares
        self._delta = delta

    def upper(self, config: IntArray) -> FloatArray:
        """Of upper bounds, at the share of each arrival as the best."""
        return -math.log(UPPER * self._delta) + _taken(self._shares.log_best, config)

    def lower(self, config: IntArray) -> FloatArray:
        """Of lower bounds of leaders; infinite while their ranks are not known."""
        return _taken(self._shares.log_leader, config) - math.log(LOWER * self._delta)

    def duels(self, leader: int, challengers: IntArray) -> FloatArray:
        """Of the duels of a leader, at the share of each challenger as the best."""
        lead = self._shares.log_leader[leader] - math.log(PAIRED * self._delta)
        return lead + _taken(self._shares.log_best, challengers)

    def shown(self, config: IntArray) -> FloatArray:
        """Of the upper end of the interval that is shown."""
        return _taken(self._shares.log_shown, config) - math.log(SHOWN * self._delta)


def _taken(values: list[float], config: IntArray) -> FloatArray:
    return np.array([values[each] for each in config.tolist()])


class ArrivalTable:
    """The table of shares of a growing pool on a fixed set of instances: by arrival and by rank at arrival.

    Args:
        shares: The share of every arrival.
        pilot: Bets on listed configurations and random draws begin behind the pilot.
        earliest: No bet begins before this position.

    Attributes:
        begins: The first position that counts, by configuration. A proposal gets it when it is ordered for the first
            time: the first position that no configuration had been ordered to run by then.
        earliest: As given.
    """

    def __init__(self, shares: PoolShares, pilot: int, earliest: int = 0) -> None:
        self._shares = shares
        self.pilot = pilot
        self.earliest = earliest
        self.begins: dict[int, int] = {}

    def starts(self, n_configs: int) -> IntArray:
        """Return the first position that counts, by configuration."""
        starts = np.full(n_configs, self.pilot, dtype=np.int64)
        for config, position in self.begins.items():
            starts[config] = position
        return np.maximum(starts, self.earliest)

    def log_inverse(self, leader: int, challengers: IntArray, delta: float) -> FloatArray:
        """Return ln(1 / failure probability) of the duels of a leader; infinite while its rank is not known."""
        lead = self._shares.log_leader[leader] - math.log(ON_SET_PAIRED * delta)
        levels: FloatArray = lead + np.array(self._shares.log_best)[challengers]
        return levels

    def log_ends(self, leader: int, delta: float) -> tuple[float, float]:
        """Return ln(1 / failure probability) of the lower and of the upper end of the leader's interval."""
        lower = self._shares.log_leader[leader] - math.log(ON_SET_LOWER * delta)
        return lower, self._shares.log_shown[leader] - math.log(ON_SET_SHOWN * delta)
