"""Errors planted into a growing pool on purpose: each is caught where the right pool passes."""

from dataclasses import replace

import numpy as np
import pytest

from captime.arrays import FloatArray
from captime.procedures.pool_gamma import GammaBets
from captime.procedures.pool_shares import PoolShares, by_rank
from captime.procedures.pool_terms import PoolTerms
from pool_harness import CLOSE, LUCKY_FEW, SHARE, TWINS, Campaigns, Omniscient, WatchedPool
from race_harness import limit_for

WITH_MODEL = PoolTerms(1, model=True, limit=200)


class CountsProposals(WatchedPool):
    """Planted: what a model proposed counts as a random draw for gamma."""

    def _admit(self) -> None:
        super()._admit()
        if self.shares.origin[-1] == "model":
            self.shares.draws += 1
            self._draws[-1] += 1


class ProposalsBeginAtTheFront(WatchedPool):
    """Planted: what a model proposed is judged on positions that the model has seen."""

    def _next(self, config: int, least: int) -> int:
        if self._agenda.ordered[config] == 0:
            return max(least, self._pilot)
        return super()._next(config, least)


class BeginsWithTheBatchBefore(WatchedPool):
    """Planted: proposals begin where the batch before them began, which their model has seen by now."""

    def _next(self, config: int, least: int) -> int:
        if self._agenda.ordered[config] or self.terms.origin(config) != "model":
            return super()._next(config, least)
        fronts = self.__dict__.setdefault("fronts", [])
        if self._frontier() not in fronts:
            fronts.append(self._frontier())
        self._board.begin_at(config, fronts[max(0, len(fronts) - 2)])
        return int(self._board.start[config]) + max(least, self._pilot)


COUNTING = Campaigns(LUCKY_FEW, 0.02, terms=WITH_MODEL, listed=(0.4,), kind=CountsProposals)


def test_proposals_that_count_for_gamma_are_caught() -> None:
    """A model that proposes nothing of use makes the space look searched."""
    limit = limit_for(120, SHARE["draws"] * COUNTING.delta)
    assert COUNTING.fail(120, seed=5, limits={"draws": limit})["draws"].sum() > limit


def test_proposals_that_count_for_gamma_are_caught_in_a_search() -> None:
    """The same where the best bet is named at every moment and most of the time goes to newcomers."""
    limit = limit_for(120, SHARE["draws"] * COUNTING.delta)
    wrong = replace(COUNTING, effort="search").fail(120, seed=5, limits={"draws": limit})
    assert wrong["draws"].sum() > limit


@pytest.mark.slow
def test_certificates_with_proposals_that_count_for_gamma_are_caught() -> None:
    """The same error as a user would meet it: in certificates, against the whole of delta."""
    assert COUNTING.fail(1500, seed=7)["certificate"].sum() > limit_for(1500, COUNTING.delta)


def test_proposals_judged_on_what_the_model_has_seen_are_caught() -> None:
    """A model that has seen the runs can propose what would have done well in them."""
    planted = Campaigns(LUCKY_FEW, 0.05, terms=WITH_MODEL, listed=(0.4,), kind=ProposalsBeginAtTheFront)
    limits = {"certificate": limit_for(60, 0.05), "lower": limit_for(60, SHARE["lower"] * 0.05)}
    wrong = planted.fail(60, seed=6, limits=limits)
    assert all(wrong[kind].sum() > most for kind, most in limits.items())


def test_batches_that_begin_too_early_are_caught() -> None:
    """Proposals may begin together only where no run had been started when all of them were made."""
    terms = replace(WITH_MODEL, singly=1)
    planted = Campaigns(LUCKY_FEW, 0.05, gamma=0.1, terms=terms, listed=(0.4,), kind=BeginsWithTheBatchBefore)
    limit = limit_for(40, SHARE["lower"] * 0.05)
    assert planted.fail(40, seed=8, limits={"lower": limit})["lower"].sum() > limit


def test_gamma_without_a_union_is_caught() -> None:
    """Each number of draws at the full level: right at any one of them, wrong at all of them together."""
    alpha, repetitions = 0.2, 2000
    luck = np.random.default_rng(9).random((repetitions, 400))
    best, n = np.minimum.accumulate(luck, axis=1), np.arange(1, 401)
    planted = 1.0 - alpha ** (1.0 / n)
    assert (best > planted)[:, 99].sum() <= limit_for(repetitions, alpha)
    assert (best > planted).any(axis=1).sum() > limit_for(repetitions, alpha)


def test_gamma_from_all_of_the_pool_is_caught() -> None:
    """Half of the pool is proposed, and gamma counts it: the luckiest of the draws is not lucky enough."""
    alpha, repetitions, goal = 0.05, 2000, 0.1
    gammas = GammaBets(alpha, goal)
    pool = gammas.draws_for(goal)
    best = np.random.default_rng(10).random((repetitions, pool)).min(axis=1)
    assert (best > goal).sum() <= limit_for(repetitions, alpha)
    half = np.random.default_rng(10).random((repetitions, pool // 2)).min(axis=1)
    assert (half > goal).sum() > limit_for(repetitions, alpha)


def full_share(shares: PoolShares) -> FloatArray:
    """Planted: every arrival has the whole share of upper bounds, as in a race whose pool is fixed."""
    return np.zeros(len(shares.origin))


def current_rank(shares: PoolShares, score: FloatArray) -> FloatArray:
    """Planted: the share of a leader follows its rank as it is now, on the scores its statements are made from."""
    order = np.argsort(-score.mean(axis=1), kind="stable")
    weights = np.empty(len(score))
    weights[order] = [by_rank(rank, len(score)) for rank in range(len(score))]
    assert len(shares.origin) == len(score)
    return -np.log(weights)


def test_the_full_share_for_every_arrival_is_caught() -> None:
    """Several were the best for a while, and each of their upper bounds gets its chance to be wrong."""
    adversary = Omniscient(CLOSE, 0.9, draws=40, expected=40, kinds=("upper",))
    level = SHARE["upper"] * adversary.delta
    assert adversary.fail(300, seed=1)["upper"].sum() <= limit_for(300, level)
    assert adversary.fail(300, seed=1, best_levels=full_share)["upper"].sum() > limit_for(300, level)


def test_shares_by_current_rank_are_caught() -> None:
    """The configuration that looks best gets the largest share, on the very scores that make it look best."""
    adversary = Omniscient(TWINS, 0.9, draws=60, expected=60, kinds=("lower",))
    level = SHARE["lower"] * adversary.delta
    assert adversary.fail(150, seed=2)["lower"].sum() <= limit_for(150, level)
    assert adversary.fail(150, seed=2, leader_levels=current_rank)["lower"].sum() > limit_for(150, level)
