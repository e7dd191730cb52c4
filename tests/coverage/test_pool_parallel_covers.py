"""Growing pools with several runs at a time: who comes back when depends on the runtimes, runs are lost, goals change.

What holds for pools that are told one run after the other has to hold here, at every moment.
"""

import pytest

from captime.procedures.pool_terms import PoolTerms
from pool_harness import LUCKY_FEW, SHARE, STRANGERS, TWINS, AtOnce
from race_harness import limit_for

# A model that has seen everything, in batches from the second proposal on.
TERMS = PoolTerms(1, model=True, limit=120, singly=1)
CAMPAIGNS = {
    "lucky few": (AtOnce(LUCKY_FEW, 0.2, terms=TERMS, listed=(0.4,)), 24),
    "twins": (AtOnce(TWINS, 0.4, epsilon=0.2, terms=TERMS, listed=(0.5,), proposed=0.3, workers=7), 6),
    "given up for good": (
        AtOnce(STRANGERS, 0.4, epsilon=0.25, terms=TERMS, listed=(0.5,), repeatable=False, workers=3),
        4,
    ),
}


def check(name: str, repetitions: int) -> None:
    """No kind of statement fails more often than its share of delta, and no certificate more often than delta."""
    campaigns, _ = CAMPAIGNS[name]
    for kind, wrong in campaigns.fail(repetitions, seed=21).items():
        assert wrong.sum() <= limit_for(repetitions, campaigns.delta * SHARE.get(kind, 1.0)), kind


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_many_at_once_are_wrong_no_more_often_than_delta_allows(name: str) -> None:
    """A few of each, always."""
    check(name, CAMPAIGNS[name][1])


@pytest.mark.slow
@pytest.mark.parametrize("name", CAMPAIGNS)
def test_many_more_at_once_are_wrong_no_more_often_than_delta_allows(name: str) -> None:
    """The same, four hundred times."""
    check(name, 400)
