"""Claims of growing pools about exactly these instances: wrong no more often than they may be, planted errors caught.

Each kind of statement is held to its share of delta. A count fails when it exceeds what is left with probability 1e-4
under the allowed rate. The reduced sizes run always; with `-m slow` the same at full size.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from captime.arrays import FloatArray, IntArray
from captime.bounds.betting import sine_nodes
from captime.bounds.mixture import PairedBets
from captime.procedures.pool_shares import PoolShares, by_rank
from captime.procedures.pool_terms import PoolTerms
from captime.procedures.set_schedule import pilot_size
from race_harness import limit_for
from set_pool_harness import (
    ALIKE,
    CLOSE,
    LUCKY_FEW,
    SHARE,
    STAIRS,
    STRANGERS,
    Campaigns,
    Omniscient,
    Space,
    WatchedSetPool,
)

WITH_MODEL = PoolTerms(1, model=True, limit=60)
IN_BATCHES = PoolTerms(1, model=True, limit=60, singly=1)
CAMPAIGNS = {
    "all alike": Campaigns(ALIKE),
    "all alike, 5 instances": Campaigns(ALIKE, size=5),
    "stairs": Campaigns(STAIRS, size=60),
    "strangers": Campaigns(STRANGERS),
    "lucky few": Campaigns(LUCKY_FEW, delta=0.1),
    "a model that has seen everything": Campaigns(STRANGERS, terms=WITH_MODEL, listed=(0.4,)),
    "the same in batches": Campaigns(LUCKY_FEW, terms=IN_BATCHES, listed=(0.4,), size=60),
    "8 workers": Campaigns(STRANGERS, terms=WITH_MODEL, listed=(0.4,), workers=8),
    "64 workers": Campaigns(ALIKE, terms=WITH_MODEL, listed=(0.5,), workers=64),
    "captimes that rise, 8 workers": Campaigns(STAIRS, gamma=0.5, workers=8, utility="log-laplace(10, 1)"),
}


def check(name: str, repetitions: int) -> dict[str, int]:
    """No kind of statement fails more often than its share of delta, and no certificate more often than delta."""
    campaigns, counts = CAMPAIGNS[name], {}
    for kind, wrong in campaigns.fail(repetitions, seed=31).items():
        counts[kind] = int(wrong.sum())
        if campaigns.utility != "uniform(60)" and kind in ("draws", "certificate"):
            continue  # the law of the space is not that of the rows any longer
        assert counts[kind] <= limit_for(repetitions, campaigns.delta * SHARE.get(kind, 1.0)), kind
    return counts


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_whole_campaigns_are_wrong_no_more_often_than_delta_allows(name: str) -> None:
    """At every moment of every campaign, against the pool so far and against the space."""
    check(name, 8)


@pytest.mark.slow
@pytest.mark.parametrize("name", CAMPAIGNS)
def test_many_whole_campaigns_are_wrong_no_more_often_than_delta_allows(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    """The same with 2,000 campaigns each."""
    for kind, count in check(name, 2000).items():
        record_property(kind, count / 2000)


@pytest.mark.parametrize("space", [ALIKE, STAIRS, STRANGERS], ids=["alike", "stairs", "strangers"])
@pytest.mark.parametrize("size", [5, 20, 60])
def test_no_length_is_worse_than_the_shares_allow(space: Space, size: int) -> None:
    """Duels of all draws with all that were ever the best, at the length that suits best."""
    adversary = Omniscient(space, size=size)
    assert adversary.fail(60, seed=3).sum() <= limit_for(60, SHARE["paired"] * adversary.delta)


@pytest.mark.slow
@pytest.mark.parametrize("space", [ALIKE, STAIRS, STRANGERS], ids=["alike", "stairs", "strangers"])
@pytest.mark.parametrize("size", [5, 20, 60])
def test_no_length_is_worse_than_the_shares_allow_at_full_size(
    space: Space, size: int, record_property: Callable[[str, object], None]
) -> None:
    """The same with 2,000 repetitions."""
    adversary = Omniscient(space, size=size)
    wrong = int(adversary.fail(2000, seed=4).sum())
    record_property("paired", wrong / 2000)
    assert wrong <= limit_for(2000, SHARE["paired"] * adversary.delta)


# ------------------------------------------------------------------ planted errors


class CountsProposals(WatchedSetPool):
    """Planted: what a model proposed counts as a random draw for gamma."""

    def _admit(self) -> None:
        super()._admit()
        if self.shares.origin[-1] == "model":
            self.shares.draws += 1
            self._draws[-1] += 1


class BetsFromTheFront(WatchedSetPool):
    """Planted: bets on proposals begin behind the pilot, on positions that their model has seen."""

    def _fix_begins(self, new: IntArray) -> None:
        """Begin where random draws begin."""


class BeginsWithTheBatchBefore(WatchedSetPool):
    """Planted: bets on proposals begin where those of the batch before began."""

    def _fix_begins(self, new: IntArray) -> None:
        before = dict(self._of_set.begins)
        super()._fix_begins(new)
        last = max(before.values(), default=self._pilot)
        for table in (self._of_set, self._of_draws):
            table.begins.update({config: last for config in table.begins if config not in before})


def test_proposals_that_count_for_gamma_are_caught() -> None:
    """A model that proposes nothing of use makes the space look searched."""
    planted = Campaigns(LUCKY_FEW, 0.02, 5, epsilon=0.6, terms=WITH_MODEL, listed=(0.4,), kind=CountsProposals)
    limit = limit_for(200, SHARE["draws"] * planted.delta)
    assert planted.fail(200, seed=5, limits={"draws": limit})["draws"].sum() > limit


def test_bets_on_what_the_model_has_seen_are_caught() -> None:
    """A model that has seen the runs can propose what would have done well in them, or badly, and better later."""
    honest = Campaigns(STRANGERS, delta=0.05, size=60, terms=IN_BATCHES, listed=(0.4,))
    limit = limit_for(12, SHARE["paired"] * honest.delta)
    assert honest.fail(12, seed=6)["paired"].sum() <= limit
    for kind in (BetsFromTheFront, BeginsWithTheBatchBefore):
        planted = replace(honest, kind=kind)
        assert planted.fail(12, seed=6, limits={"paired": limit})["paired"].sum() > limit, kind.__name__


def test_positions_before_a_proposal_left_out_of_the_sums_are_caught() -> None:
    """A proposal that solves exactly what is gone, and nothing that is left: its lead is refuted, and it is real."""
    size, seen = 60, 42
    proposal, leader = (np.arange(size) < seen).astype(np.float64), np.full(size, 0.5)
    gap = float((proposal - leader).mean()) - 1e-9
    differences = (proposal - leader)[None]
    level, nodes = np.full(1, -np.log(0.1)), sine_nodes(12)
    behind = differences[:, seen:]
    alone = PairedBets.on_set(behind, size, np.ones(behind.shape, dtype=np.bool_), level, nodes)
    assert alone.refutes(np.full(1, gap)).all()
    counts = np.broadcast_to(np.arange(size) >= seen, differences.shape)
    assert not PairedBets.on_set(differences, size, counts, level, nodes).refutes(np.full(1, gap)).any()


def full_share(shares: PoolShares, rows: FloatArray) -> FloatArray:
    """Planted: every arrival has the whole share, as if it were the one fixed best, or the one fixed leader."""
    assert len(shares.origin) == len(rows)
    return np.zeros(len(rows))


def current_rank(shares: PoolShares, rows: FloatArray) -> FloatArray:
    """Planted: the share of a leader follows its rank on the positions that its bets use."""
    assert len(shares.origin) == len(rows)
    half = rows[:, : rows.shape[1] // 2].mean(axis=1)
    weights = np.empty(len(rows))
    weights[np.argsort(-half, kind="stable")] = [by_rank(rank, len(rows)) for rank in range(len(rows))]
    return -np.log(weights)


def test_wrong_shares_at_arrival_are_caught() -> None:
    """Full shares for every arrival, and ranks that are made from the positions that are bet on."""
    adversary, repetitions = Omniscient(CLOSE, 0.1, size=60, draws=40), 200
    level = limit_for(repetitions, SHARE["paired"] * adversary.delta)
    assert adversary.fail(repetitions, seed=1).sum() <= level
    assert adversary.fail(repetitions, seed=1, leader=full_share).sum() > level
    assert adversary.fail(repetitions, seed=1, best=full_share, leader=full_share).sum() > level
    assert adversary.fail(repetitions, seed=1, best=full_share, leader=current_rank).sum() > level


def test_a_fresh_order_for_every_leader_is_caught() -> None:
    """Each duel is weighed in the order of several that suits it best."""
    size, tries, repetitions = 20, 12, 200
    rng = np.random.default_rng(10)
    challenger, leader = np.arange(size) % 2 * 1.0, np.full(size, 0.5)
    difference = challenger - leader
    order = rng.permuted(np.broadcast_to(np.arange(size), (repetitions * tries, size)), axis=1)
    counts = np.broadcast_to(np.arange(size) >= pilot_size(size), order.shape)
    bets = PairedBets.on_set(difference[order], size, counts, np.full(len(order), -np.log(0.2)), sine_nodes(12))
    wrong = bets.refutes(np.full(len(order), -1e-9)).reshape(repetitions, tries)
    assert wrong[:, 0].sum() <= limit_for(repetitions, 0.2)
    assert wrong.any(axis=1).sum() > limit_for(repetitions, 0.2)
