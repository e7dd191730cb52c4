"""The numbers of docs/engine.md, recomputed."""

import itertools
import math

import numpy as np
import pytest

from captime.procedures.pool_gamma import GammaBets
from captime.procedures.pool_shares import PoolShares, by_arrival, by_rank
from captime.procedures.pool_terms import LOWER, PAIRED, PoolTerms

PILOTS = (2.0, 3.0, 1.0, 3.0, 4.0)


def leader_shares(order: tuple[int, ...]) -> list[float]:
    """π of the five draws of the example, in that order."""
    shares = PoolShares(PoolTerms(), 10)
    for place, draw in enumerate(order):
        shares.arrive()
        shares.rank(place, PILOTS[draw])
    return [math.exp(-share) for share in shares.log_leader]


def test_the_table_of_shares() -> None:
    """Ranks at arrival, ties behind, weights and shares."""
    assert by_arrival(1, 10) == pytest.approx(0.085)
    assert [by_rank(*case) for case in ((0, 1), (0, 2), (2, 3), (1, 4), (0, 5))] == pytest.approx(
        [1.0, 0.75, 0.1111, 0.2083, 0.6], abs=5e-5
    )
    shares = leader_shares((0, 1, 2, 3, 4))
    assert shares == pytest.approx([0.0850, 0.1275, 0.0283, 0.0708, 0.2550], abs=5e-5)
    assert sum(shares) == pytest.approx(0.5667, abs=5e-5)
    assert sum(leader_shares((4, 3, 1, 0, 2))) == pytest.approx(0.1941, abs=5e-5)
    price = [math.exp(-share) for share in np.log([by_arrival(1, 33) * place for place in range(1, 34)])]
    assert math.exp(float(np.mean(np.log(price)))) == pytest.approx(3.0, abs=0.1)
    over_all = np.mean([sum(leader_shares(order)) for order in itertools.permutations(range(5))])
    assert over_all == pytest.approx(0.3931, abs=5e-5)


def test_the_levels() -> None:
    """Of the leader's lower bound and of its duel with the second draw."""
    assert pytest.approx(0.00255) == LOWER * 0.1 * 0.255
    duel = PAIRED * 0.1 * 0.255 * 0.17
    assert duel == pytest.approx(0.000997, abs=5e-7)
    assert 1.0 / duel == pytest.approx(1003, abs=0.5)


def test_the_gammas() -> None:
    """By bets, by a union over numbers of draws, and at a single look."""
    gammas = GammaBets(0.04, 0.3)
    assert [gammas.after(draws) for draws in (5, 8)] == pytest.approx([0.9, 0.6561])
    assert gammas.after(9) > 0.3 == gammas.after(10)
    assert 0.7**9 > 0.8 * 0.04 > 0.7**10
    assert union(0.3, 0.04) == 28
    assert (GammaBets(0.04, 0.1).draws_for(0.1), union(0.1, 0.04)) == (33, 122)
    assert math.ceil(math.log(0.04) / math.log(0.9)) == 31


def union(gamma: float, alpha: float) -> int:
    """How many draws the usual way needs."""
    return next(n for n in itertools.count(1) if (1.0 - gamma) ** n <= alpha / (n * (n + 1)))
