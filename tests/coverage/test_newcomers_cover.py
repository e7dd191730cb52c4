"""Configurations that are added after a look, and models that were taught elsewhere: nothing becomes wrong so.

The adversary knows every run so far: whatever it adds has done well in all of them, and is no good. Two ways of
looking, as elsewhere: whole campaigns, watched by an observer that knows the truth; and every process behind the
statements about newcomers at its worst moment. Each error that could be made is planted, and caught.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

from captime.arrays import FloatArray, IntArray
from captime.campaign.transfer import EarlierCampaign
from captime.certificate import Orders
from captime.evidence import Evidence
from captime.executors import VirtualExecutor
from captime.live import drive_parallel
from captime.procedures import Problem
from captime.procedures import race_claims as late
from captime.procedures.pool_shares import PoolShares
from captime.procedures.pool_terms import LOWER, UPPER, PoolTerms
from captime.procedures.race import Race
from captime.procedures.race_claims import SHARES as RACE_SHARES
from captime.procedures.race_claims import Latecomers
from captime.spaces import Settings
from pool_harness import LUCKY_FEW, SHARE, STAIRS, TWINS, UTILITY, Campaigns, WatchedPool
from race_harness import limit_for, log_evidence
from runtime_laws import NEVER, in_order, table_of

_ROUNDING = 1e-9
BAD = 0.2
"""What the adversary's configurations are worth."""


# ---------------------------------------------------------------------------- the purse


@pytest.mark.parametrize("n", [1, 2, 8, 1000])
def test_latecomers_of_a_race_are_paid_from_what_its_leaders_left_over(n: int) -> None:
    """Exactly: all levels of step 8, with the weights of n ranks, and all levels of step 9 make no more than delta."""
    share = {name: Fraction(str(value)) for name, value in RACE_SHARES}
    ranks = sum(Fraction(1, (rank + 1) * (rank + 2)) for rank in range(n))
    begun = share["upper"] + ranks * (share["paired"] + share["lower"]) + share["shown"] + share["scout"]
    parts = [late.LATE_UPPER, late.LATE_PAIRED, late.LATE_LEADS, late.LATE_AMONG, late.LATE_LOWER, late.LATE_SHOWN]
    assert sum(Fraction(str(part)) for part in parts) == 1
    assert begun + (share["paired"] + share["lower"]) / (n + 1) == 1
    assert late.reserve(n) == pytest.approx(float(1 - begun), rel=1e-12)


def test_the_levels_of_latecomers_sum_to_their_purse() -> None:
    """Every statement about fifty latecomers, as the race prices it: together no more than what is kept for them."""
    n, count, delta = 4, 50, 0.1
    levels, members = Latecomers(n, delta), np.arange(n, n + count)
    nothing = np.zeros(count)
    spent = sum(
        np.exp(-levels.level(part, members, nothing)).sum()
        for part in (late.LATE_UPPER, late.LATE_LOWER, late.LATE_SHOWN)
    )
    pi = [1.0 / ((rank + 1) * (rank + 2)) for rank in range(n)]
    for leader, weight in enumerate(pi):
        own = -math.log(weight * dict(RACE_SHARES)["paired"] * delta)
        spent += np.exp(-levels.duels(leader, members, own)).sum()
        assert levels.duels(leader, np.arange(n), own).tolist() == [own] * n
    for leader in members.tolist():
        # Of those from the beginning only the best can do harm: one fixed index.
        spent += np.exp(-levels.duels(leader, np.array([0]), np.inf)).sum()
        spent += np.exp(-levels.duels(leader, members[members != leader], np.inf)).sum()
    assert 0.8 * late.reserve(n) * delta < spent <= late.reserve(n) * delta * (1 + 1e-12)


@pytest.mark.parametrize("terms", [PoolTerms(2), PoolTerms(1, model=True), PoolTerms(limit=12), PoolTerms(limit=60)])
def test_shares_of_a_pool_sum_to_one_with_everybody_who_is_added(terms: PoolTerms) -> None:
    """As the best: one listed one, draws weighed by 1/i, every proposal and every added one; and as shown, all."""
    shares = PoolShares(terms, 20)
    assert shares.takes_late
    for index in range(160):
        if index % 3 == 2 or not shares.terms.room(index):
            shares.terms = shares.terms.joined(index, 1)
        shares.arrive()
    best, shown = np.exp(-np.array(shares.log_best)), np.exp(-np.array(shares.log_shown))
    kinds = np.array(shares.origin)
    draws = np.cumsum(kinds == "random")
    listed = best[:1].sum() if terms.n_listed else 0.0
    total = listed + (best / np.maximum(draws, 1))[kinds == "random"].sum() + best[kinds == "model"].sum()
    assert total <= 1.0 + 1e-12
    assert shown.sum() <= 1.0 + 1e-12


# ---------------------------------------------------------------------------- every process at its worst moment


def ever_wrong(levels: FloatArray, repetitions: int, seed: int) -> int:
    """How often the upper bound of one of several newcomers is wrong at some moment, each judged by its own luck."""
    rng, wrong = np.random.default_rng(seed), 0
    for _ in range(repetitions):
        score = (rng.random((len(levels), 100)) < 0.5).astype(np.float64)
        wrong += bool((log_evidence(1.0 - score, 0.5).max(axis=-1) >= levels).any())
    return wrong


def test_upper_bounds_of_many_newcomers_hold_and_a_full_share_for_each_is_caught() -> None:
    """Forty are added to a race, or to a pool. With the level of configurations from the start they fail."""
    delta, count, repetitions = 0.9, 40, 60
    of_race = Latecomers(8, delta).level(late.LATE_UPPER, np.arange(8, 8 + count), np.zeros(count))
    shares = PoolShares(PoolTerms(1, model=True).joined(1, count), 24)
    for _ in range(1 + count):
        shares.arrive()
    of_pool = np.array(shares.log_best[1:]) - math.log(UPPER * delta)
    assert ever_wrong(of_race, repetitions, 1) <= limit_for(repetitions, late.LATE_UPPER * late.reserve(8) * delta)
    assert ever_wrong(of_pool, repetitions, 2) <= limit_for(repetitions, UPPER * delta)
    full = np.full(count, -math.log(UPPER * delta))
    assert ever_wrong(full, repetitions, 1) > limit_for(repetitions, UPPER * delta)


# ---------------------------------------------------------------------------- whole races


class AtTheStart(Race):
    """Planted: who joins is judged on all positions of the race, those included that were run before."""

    def _let_in(self) -> None:
        ordered = self._agenda.ordered
        self._agenda.ordered = np.minimum(ordered, self._start or 0)
        super()._let_in()
        self._agenda.ordered = np.maximum(ordered, self._agenda.ordered)


def meddled_races(kind: type[Race], repetitions: int, seed: int, *, delta: float = 0.2) -> int:
    """How many races showed anything false while configurations were added that had done well so far."""
    rng, wrong, n, most, length = np.random.default_rng(seed), 0, 3, 6, 110
    for _ in range(repetitions):
        truth = np.array([0.5, 0.5, 0.35] + [BAD] * (most - n))
        table = table_of(np.where(rng.random((most, length)) < truth[:, None], 1.0, NEVER))
        table.seconds.flags.writeable = True
        race = kind(Problem(n, UTILITY, delta, 0.1, n_instances=length, seed=int(rng.integers(1 << 30))), growth=0.5)
        evidence = Evidence(n, race.plan, UTILITY)
        meddler = Meddler(race, evidence, table.seconds, truth, np.random.default_rng(int(rng.integers(1 << 30))))
        drive_parallel(race, VirtualExecutor(table, in_order(length), 2), evidence, observer=meddler.look)
        wrong += meddler.wrong
    return wrong


class Meddler:
    """Watches a race with the truth at hand, and adds a configuration now and then."""

    def __init__(
        self, race: Race, evidence: Evidence, seconds: FloatArray, truth: FloatArray, rng: np.random.Generator
    ) -> None:
        self.race, self.evidence, self.seconds, self.truth, self.rng = race, evidence, seconds, truth, rng
        self.wrong = False

    def look(self, *_: object) -> None:
        """Compare with the truth, then meddle."""
        race = self.race
        held, n = race.certificate(), race.problem.n_configs
        truth, leader = self.truth[:n], race.leader
        bests = np.array([int(truth[:3].argmax()), *range(3, n)])
        others = bests[bests != leader]
        self.wrong |= bool(
            truth[: held.n_configs].max() - truth[held.config] > held.epsilon + _ROUNDING
            or race.lower[leader] > truth[leader] + _ROUNDING
            or (race.upper[bests] < truth[bests] - _ROUNDING).any()
            or (race._margin[others] < truth[others] - truth[leader] - _ROUNDING).any()
            or held.utility_high < truth[held.config] - _ROUNDING
        )
        seen = int(race._agenda.ordered.max())
        if n < len(self.truth) and seen > 25 and self.rng.random() < 0.15:
            # Whatever was run so far, this one would have done it at once.
            self.seconds[n, :seen] = 1.0
            assert race.newcomers(1) == n
            self.evidence.grow(n + 1)


@pytest.mark.parametrize("repetitions", [15, pytest.param(1200, marks=pytest.mark.slow)])
def test_a_race_that_is_meddled_with_is_wrong_no_more_often_than_delta_allows(repetitions: int) -> None:
    """Three newcomers that would have been perfect so far, at moments that were chosen."""
    assert meddled_races(Race, repetitions, 5) <= limit_for(repetitions, 0.2)


def test_newcomers_of_a_race_who_are_judged_on_the_past_are_caught() -> None:
    """The same race, but they begin where it began."""
    assert meddled_races(AtTheStart, 20, 5) > limit_for(20, 0.2)


# ---------------------------------------------------------------------------- whole pools


class MeddledPool(WatchedPool):
    """A pool to which, now and then, what would have done well in all that was run so far is added."""

    most = 5
    patience = 8

    def ask(self, slots: int) -> Orders:
        """What the pool asks, after the meddling."""
        enough = self._frontier() > self.patience and self.rounds % 7 == 0
        if self.rounds and enough and len(self.terms.late) < self.most:
            seen, rng = self._frontier(), np.random.default_rng(self.rounds + self.problem.seed)
            config = self.newcomers(1, seen)
            self.truth[config] = BAD
            self.seconds[config] = np.where(rng.random(self.seconds.shape[1]) < BAD, 1.0, NEVER)
            self.seconds[config, :seen] = 1.0
        return super().ask(slots)


class FavouritesAtTheFront(MeddledPool):
    """Planted: who is added later is judged on positions that were run before."""

    patience = 40

    def _next(self, config: int, least: int) -> int:
        if self._agenda.ordered[config] == 0 and config in self.terms.late:
            return max(least, self._pilot)
        return super()._next(config, least)


POOLS = {
    "lucky few": Campaigns(LUCKY_FEW, 0.1, kind=MeddledPool, terms=PoolTerms(1, limit=200), listed=(0.4,)),
    "stairs": Campaigns(STAIRS, 0.2, kind=MeddledPool, terms=PoolTerms(limit=200)),
    "twins": Campaigns(TWINS, 0.2, epsilon=0.2, gamma=0.6, kind=MeddledPool, terms=PoolTerms(limit=200)),
}


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("repetitions", [25, pytest.param(1500, marks=pytest.mark.slow)])
def test_a_pool_that_is_meddled_with_is_wrong_no_more_often_than_delta_allows(name: str, repetitions: int) -> None:
    """No kind of statement more often than its share, no certificate more often than delta; newcomers included."""
    campaigns = POOLS[name]
    for kind, wrong in campaigns.fail(repetitions, seed=17).items():
        assert wrong.sum() <= limit_for(repetitions, campaigns.delta * SHARE.get(kind, 1.0)), kind


def test_favourites_judged_on_the_past_are_caught() -> None:
    """The same pool, but they begin at the front."""
    planted = Campaigns(TWINS, 0.2, epsilon=0.2, gamma=0.6, kind=FavouritesAtTheFront, terms=PoolTerms(limit=200))
    wrong = planted.fail(20, seed=17)
    assert wrong["certificate"].sum() > limit_for(20, 0.2)
    assert wrong["lower"].sum() > limit_for(20, SHARE["lower"] * 0.2)


# ---------------------------------------------------------------------------- what a model may have learnt elsewhere


def taught(repetitions: int, seed: int, *, holds_back: bool, adapts: bool = False) -> int:
    """How often a lower bound of what a model proposed is wrong at some moment.

    An earlier campaign has run all candidates on the very instances that this stream brings, and the program repeats
    itself. All candidates are alike; the model proposes the one that did best in what it was shown.

    Args:
        repetitions: How many campaigns.
        seed: Fixes them.
        holds_back: Whether runs on instances that are still to come are held back.
        adapts: Whether the earlier campaign looked at all its runs when it chose what to run on the first positions.
    """
    rng, wrong, start, length, candidates = np.random.default_rng(seed), 0, 15, 120, 500
    level = -math.log(LOWER * 0.9)
    which: IntArray = np.repeat(np.arange(candidates), length)
    place: IntArray = np.tile(np.arange(length), candidates)
    order = np.argsort(place, kind="stable")
    for _ in range(repetitions):
        score = (rng.random((candidates, length)) < 0.5).astype(np.float64)
        of = which[order]
        if adapts:
            # It went through them all, and kept those who had done best; run by run, nothing here is of the future.
            of = np.argsort(-score.mean(axis=1), kind="stable")[of % 3]
        low = score[of, place[order]]
        settings: tuple[Settings, ...] = tuple({"number": number} for number in range(candidates))
        course = EarlierCampaign("old.ledger", "old", "", settings, of, place[order], low, low, ())
        known = course.until(start if holds_back else length)
        chosen = max(known, key=lambda each: each.low).settings["number"]
        assert isinstance(chosen, int)
        wrong += bool(log_evidence(score[chosen, start:][None], 0.5).max() >= level)
    return wrong


def test_a_model_taught_by_the_past_is_no_danger_and_one_taught_by_the_future_is_caught() -> None:
    """The same lessons, with and without those on instances that are still to come."""
    assert taught(60, 8, holds_back=True) <= limit_for(60, LOWER * 0.9)
    assert taught(60, 8, holds_back=False) > limit_for(60, LOWER * 0.9)


def test_holding_back_single_runs_only_is_caught() -> None:
    """The choices of an earlier campaign are a lesson about everything it had seen: so runs have the last place of all.

    That is why `EarlierCampaign.place` counts everything that had been begun before a run came back.
    """
    assert taught(60, 8, holds_back=True, adapts=True) > limit_for(60, LOWER * 0.9)
