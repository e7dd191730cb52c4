"""The statement about an endless space, (epsilon, gamma, delta), is wrong no more often than delta allows.

Whole campaigns on spaces whose law of utilities is known, and every process behind them at its worst moment. The
reduced sizes run always; with `-m slow` the same at full size. test_pool_planted_errors.py shows that these looks would
see an error.
"""

import numpy as np
import pytest

from captime.procedures.pool_gamma import GammaBets
from captime.procedures.pool_terms import PoolTerms
from pool_harness import CLOSE, LUCKY_FEW, SHARE, STAIRS, STRANGERS, TWINS, Campaigns, Omniscient
from race_harness import limit_for

WITH_MODEL = PoolTerms(2, model=True, limit=200)
IN_BATCHES = PoolTerms(1, model=True, limit=200, singly=1)
CAMPAIGNS = {
    "lucky few": (Campaigns(LUCKY_FEW, 0.05), 160),
    "stairs": (Campaigns(STAIRS, 0.2), 40),
    "strangers": (Campaigns(STRANGERS, 0.2), 40),
    "stairs, many draws": (Campaigns(STAIRS, 0.2, gamma=0.1), 20),
    "a model that has seen everything": (Campaigns(LUCKY_FEW, 0.1, terms=WITH_MODEL, listed=(0.4, 0.3)), 50),
    "the same in batches": (Campaigns(LUCKY_FEW, 0.1, gamma=0.1, terms=IN_BATCHES, listed=(0.4,)), 40),
    "a good model": (Campaigns(STAIRS, 0.2, terms=WITH_MODEL, listed=(0.5, 0.3), proposed=0.93), 40),
    "best bets named at once": (Campaigns(STRANGERS, 0.2, effort="search"), 40),
    "a search with a model that has seen everything": (
        Campaigns(LUCKY_FEW, 0.1, terms=WITH_MODEL, listed=(0.4, 0.3), effort="search"),
        40,
    ),
    "few newcomers": (Campaigns(STAIRS, 0.2, effort="certify"), 20),
}


def check(name: str, repetitions: int) -> None:
    """No kind of statement fails more often than its share of delta, and no certificate more often than delta."""
    campaigns, _ = CAMPAIGNS[name]
    for kind, wrong in campaigns.fail(repetitions, seed=11).items():
        level = campaigns.delta * SHARE.get(kind, 1.0)
        assert wrong.sum() <= limit_for(repetitions, level), kind


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_whole_campaigns_are_wrong_no_more_often_than_delta_allows(name: str) -> None:
    """At every moment of every campaign, against the pool so far and against the space."""
    check(name, CAMPAIGNS[name][1])


@pytest.mark.slow
@pytest.mark.parametrize("name", CAMPAIGNS)
def test_many_whole_campaigns_are_wrong_no_more_often_than_delta_allows(name: str) -> None:
    """The same, twenty times as often and at least two thousand times."""
    check(name, max(2000, 5 * CAMPAIGNS[name][1]))


@pytest.mark.parametrize("space", [TWINS, CLOSE, STAIRS], ids=["twins", "close", "stairs"])
def test_no_moment_is_worse_than_the_shares_allow(space: object) -> None:
    """Upper bounds of all who were ever the best, lower bounds of all draws, and the duels between them."""
    adversary = Omniscient(space, 0.9)  # type: ignore[arg-type]  # one of the spaces above
    for kind, wrong in adversary.fail(60, seed=3).items():
        assert wrong.sum() <= limit_for(60, SHARE[kind] * adversary.delta), kind


@pytest.mark.slow
@pytest.mark.parametrize("space", [TWINS, CLOSE, STAIRS], ids=["twins", "close", "stairs"])
@pytest.mark.parametrize("expected", [6, 24, 96])
def test_no_moment_is_worse_than_the_shares_allow_whatever_was_expected(space: object, expected: int) -> None:
    """The same, with more, as many and fewer draws than expected."""
    adversary = Omniscient(space, 0.9, expected=expected)  # type: ignore[arg-type]  # one of the spaces above
    for kind, wrong in adversary.fail(2000, seed=4).items():
        assert wrong.sum() <= limit_for(2000, SHARE[kind] * adversary.delta), kind


@pytest.mark.parametrize("goal", [0.0, 0.1, 0.02])
@pytest.mark.parametrize("alpha", [0.02, 0.3])
def test_gamma_holds_at_all_numbers_of_draws_at_once(goal: float, alpha: float) -> None:
    """How lucky the luckiest draw is, as a share of the space, is uniform: compared at every number of draws."""
    repetitions, draws = 4000, 600
    luck = np.random.default_rng(8).random((repetitions, draws))
    gammas = GammaBets(alpha, goal)
    said = np.array([gammas.after(n + 1) for n in range(draws)])
    missed = (np.minimum.accumulate(luck, axis=1) > said).any(axis=1)
    assert missed.sum() <= limit_for(repetitions, alpha)
