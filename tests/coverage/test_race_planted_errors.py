"""The harness of `test_race_covers.py` has teeth: each error planted here breaks the guarantee, and is seen to.

Every trap is an error together with a world in which it shows; many worlds hide it. In most traps one statement is
watched, at level 0.2, at every length of the prefix; the honest twin has the same luck and stays within its level.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest

from captime.arrays import BoolArray
from captime.bounds.betting import BinnedMixture, PairedMixture
from captime.bounds.mixture import mixture_lower_finite, mixture_upper_finite
from captime.bounds.protocol import Use, misfits
from captime.plans import RandomCaptimes
from captime.utilities import parse_utility
from captime_research.bounds import PlugInBetting
from race_harness import (
    DELTA,
    NODES,
    SHARE,
    Racing,
    limit_for,
    log_evidence,
    log_paired_evidence,
    lower_wrong,
    paired_wrong,
    race_failures,
    upper_wrong,
)
from race_mutants import (
    AliveCountsItsWorth,
    AliveCountsTheFloor,
    AtTheCaptimeIsDone,
    BestFirst,
    ClearingIsInherited,
    DecidedByTheCaptime,
    DuelsRoundDown,
    FinishedRunsOnly,
    Inclusive,
    LateIsAccepted,
    LateIsClipped,
    RelayRace,
    RoundsDown,
    RoundsUp,
    SmallestEpsilonWithWhoeverLeads,
    StoppedCountsNothing,
    TargetKnowsItsCaptime,
    board,
    captimes_for_the_restless,
    duels,
    restless_evidence,
)
from race_traps import (
    Trap,
    Verdicts,
    best_looking_bet,
    best_looking_boost,
    boost_after_the_draw,
    by_completion,
    champion_judged_on_its_choice,
    faulty_plan,
    in_flight,
    in_flight_challengers_look_bad,
    late_gaps,
    late_start,
    ranked_by_the_fast,
    ranked_on_the_same,
    skipped_after_seeing,
    started_again,
    unfinished_dropped,
    zero_one,
)
from race_worlds import RaceWorld, staircase, tosses

# ---------------------------------------------------------------------------- who is covered by what


PAIRED = SHARE["paired"] * DELTA


def no_prior(rng: np.random.Generator, repetitions: int) -> Verdicts:
    """Every leader gets the whole share for duels. The best never varies, so that leaders err one by one."""
    best = np.full((repetitions, 200), 0.5)
    leaders = zero_one(rng, 20, repetitions, 200)
    rank = np.arange(20)
    reached = np.exp([log_paired_evidence(best - leader, 0.0).max(axis=1) for leader in leaders]).T
    return reached.max(axis=1) * PAIRED >= 1.0, (reached / ((rank + 1.0) * (rank + 2.0))).max(axis=1) * PAIRED >= 1.0


def all_pairs(rng: np.random.Generator, repetitions: int) -> Verdicts:
    """Duels between any two of six configurations are read as covered; those with the best are."""
    score = zero_one(rng, 6, repetitions, 200)
    wrong = {
        (a, b): paired_wrong(score[b] - score[a], 0.0, DELTA / (1.0 if b else 5.0))
        for a in range(6)
        for b in range(6)
        if a != b
    }
    with_the_best = np.logical_or.reduce([verdict for (_, b), verdict in wrong.items() if b == 0])
    return np.logical_or.reduce(list(wrong.values())), with_the_best


def all_upper_bounds(rng: np.random.Generator, repetitions: int) -> Verdicts:
    """The upper bounds of twenty configurations are read as simultaneous; only that of the best is covered."""
    wrong = [upper_wrong(score, 0.5) for score in zero_one(rng, 20, repetitions, 200)]
    return np.logical_or.reduce(wrong), wrong[0]


# ---------------------------------------------------------------------------- evidence put together wrongly


def multiplied(rng: np.random.Generator, repetitions: int) -> Verdicts:
    """Evidence of five stretches, each stopped where it looked best, is multiplied."""
    parts = np.array([log_evidence(zero_one(rng, repetitions, 40), 0.5) for _ in range(5)])
    enough = -math.log(DELTA)
    return parts.max(axis=2).sum(axis=0) >= enough, parts[:, :, -1].sum(axis=0) >= enough


def restarted(rng: np.random.Generator, repetitions: int) -> Verdicts:
    """Evidence starts again from 1 whenever it has fallen below."""
    evidence = log_evidence(zero_one(rng, repetitions, 400), 0.5, NODES[4:5])
    fallen = np.minimum(np.minimum.accumulate(evidence, axis=1), 0.0)
    enough = -math.log(DELTA)
    return (evidence - fallen).max(axis=1) >= enough, evidence.max(axis=1) >= enough


def averaged(rng: np.random.Generator, repetitions: int) -> Verdicts:
    """Evidence about twenty configurations, each at its own best moment, is averaged."""
    # A small bet for a long time: its wealth comes near to every level that it ought to reach, and seldom far beyond.
    bet, positions, many = 0.1, 3000, 20
    peeked, together = np.zeros(repetitions), np.zeros((repetitions, positions))
    for _ in range(many):
        wealth = np.exp(np.log1p(bet * (2.0 * zero_one(rng, repetitions, positions) - 1.0)).cumsum(axis=1))
        peeked += wealth.max(axis=1) / many
        together += wealth / many
    return peeked >= 1.0 / DELTA, together.max(axis=1) >= 1.0 / DELTA


# ---------------------------------------------------------------------------- few instances


def one_draw_per_instance(n_instances: int) -> Trap:
    """Instances come back, and bring their old captime with them."""

    def spring(rng: np.random.Generator, repetitions: int) -> Verdicts:
        worth = (np.arange(n_instances) + 0.5) / n_instances
        instance = rng.integers(n_instances, size=(repetitions, 1500))
        kept = rng.random((repetitions, n_instances))
        cached = np.take_along_axis(kept, instance, axis=1) < worth[instance]
        fresh = rng.random(instance.shape) < worth[instance]
        return lower_wrong(cached.astype(np.float64), 0.5), lower_wrong(fresh.astype(np.float64), 0.5)

    return Trap(spring)


def sums_of_scores(rng: np.random.Generator, repetitions: int) -> Verdicts:
    """A fixed set of 24 instances: what is left is computed from lotteries instead of utilities, on either side."""
    worth, log_inverse = np.tile([0.8, 0.5, 0.2], 8), -math.log(DELTA)
    faulty, honest = np.zeros(repetitions, dtype=np.bool_), np.zeros(repetitions, dtype=np.bool_)
    for k in range(repetitions):
        order = rng.permutation(worth)
        score = (rng.random(len(order)) < order).astype(np.float64)
        known = np.concatenate(([0.0], order.cumsum()))
        for m in (12, 24):
            for verdict, sums in ((faulty, None), (honest, known[: m + 1])):
                low = mixture_lower_finite(score[:m], 24, log_inverse, sums)
                high = mixture_upper_finite(score[:m], 24, log_inverse, sums)
                verdict[k] |= low > 0.5 + 1e-9 or high < 0.5 - 1e-9
    return faulty, honest


# ---------------------------------------------------------------------------- bins, bounds


def rounded(kind: type[BinnedMixture], *, side: str) -> Trap:
    """Scores on the wrong side of the bins, by as much as can be."""

    def spring(rng: np.random.Generator, repetitions: int) -> Verdicts:
        grid = board(0.8)._bets.grid
        inside = 1e-6 if side == "lower" else -1e-6
        values = grid[[10, 20]] + inside
        verdicts = []
        for made in (kind, BinnedMixture):
            judged = board(0.8, made)
            wrong = np.zeros(repetitions, dtype=np.bool_)
            for k in range(repetitions):
                chosen = values[rng.integers(2, size=3000)]
                judged.forget(0)
                judged.settle(0, chosen, chosen)
                log_inverse = np.array([-math.log(DELTA)])
                lower, upper = judged.lower(np.array([0]), log_inverse), judged.upper(np.array([0]), log_inverse)
                wrong[k] = bool(lower[0] > values.mean() if side == "lower" else upper[0] < values.mean())
            verdicts.append(wrong)
        return verdicts[0], verdicts[1]

    return Trap(spring, repetitions=100)


def rounded_duels(rng: np.random.Generator, repetitions: int) -> Verdicts:
    """The best is ahead by a little more than a bin, and the duel sees the bin."""
    gap = 25.999 / 256.0
    verdicts = []
    for made in (DuelsRoundDown, PairedMixture):
        wrong = np.zeros(repetitions, dtype=np.bool_)
        for k in range(repetitions):
            judged, both = duels(np.array([gap - 1e-6]), made), board(0.8)
            leader = 0.8 + 0.09 * rng.random(3000)
            both.settle(0, leader, leader)
            both.settle(1, leader + gap, leader + gap)
            who = judged.due(both, 0)
            wrong[k] = bool(judged.margins(both, 0, who, -math.log(DELTA))[0] < gap)
        verdicts.append(wrong)
    return verdicts[0], verdicts[1]


def restless_bound(rng: np.random.Generator, repetitions: int) -> Verdicts:
    """A bound that is not monotone, right on the scores themselves, with captimes that follow the data."""
    score = zero_one(rng, repetitions, 300, mean=0.7)
    enough = -math.log(DELTA)
    faulty = restless_evidence(captimes_for_the_restless(score), 0.7).max(axis=1) >= enough
    return faulty, restless_evidence(score, 0.7).max(axis=1) >= enough


def mixture_under_the_same_captimes(rng: np.random.Generator, repetitions: int) -> BoolArray:
    """The monotone mixture, with the captimes that ruin the restless bound."""
    return lower_wrong(captimes_for_the_restless(zero_one(rng, repetitions, 300, mean=0.7)), 0.7)


# ---------------------------------------------------------------------------- whole races


def raced(faulty: Racing, honest: Racing, world: RaceWorld, repetitions: int = 40) -> Trap:
    """Whole races in which anything was wrong at any moment."""

    def spring(rng: np.random.Generator, repetitions: int) -> Verdicts:
        seed = int(rng.integers(1 << 31))
        wrong = race_failures(world, faulty, repetitions, seed, enough=limit_for(repetitions, DELTA))
        return wrong["any"], race_failures(world, honest, repetitions, seed)["any"]

    return Trap(spring, repetitions)


STRIDES = {"growth": 0.5}
STEPS = staircase(np.array([0.7, 0.8, 0.9]), goal=0.15)


TRAPS = {
    "done at the captime, at a jump of u": faulty_plan(
        AtTheCaptimeIsDone, side="lower", utility=parse_utility("step(64)"), seconds=(1.0, 64.0), positions=100
    ),
    "u left-continuous, decided by the captime": faulty_plan(
        DecidedByTheCaptime, side="upper", utility=Inclusive(64.0), seconds=(1.0, 64.0, 99.0), positions=100
    ),
    "late answers accepted": faulty_plan(LateIsAccepted, side="lower", worths=(0.5, 0.3)),
    "late answers clipped to the captime": faulty_plan(LateIsClipped, side="lower", worths=(0.5, 0.3)),
    "the target adapts to its captime": faulty_plan(TargetKnowsItsCaptime, side="lower"),
    "stopped runs count 0 at both ends": faulty_plan(StoppedCountsNothing, side="upper", longest=30.0),
    "in flight: 1/B although u is larger": in_flight(AliveCountsTheFloor, boost=4.0),
    "in flight: u although 1/B is larger": in_flight(AliveCountsItsWorth, boost=1.25),
    "in flight: elapsed on the wall clock": in_flight(RandomCaptimes, boost=1.25, believed=4.8, honest=1.2),
    "in flight: now minus start of a run that has ended": in_flight(RandomCaptimes, boost=1.25, believed=4.0),
    "in flight: low ends of challengers in duels": Trap(in_flight_challengers_look_bad),
    "stopped runs started again with a fresh seed": started_again(20.0, (10.0, 50.0), crash=False),
    "crashes tried again": started_again(60.0, (10.0, 20.0, math.inf), crash=True),
    "unfinished runs dropped": Trap(unfinished_dropped),
    "stream in order of completion": Trap(by_completion),
    "positions skipped after a look at another configuration": Trap(skipped_after_seeing),
    "start chosen late": Trap(late_start),
    "gaps chosen late": Trap(late_gaps),
    "boost chosen after the draw": Trap(boost_after_the_draw),
    "pilot scored again under the best-looking boost": Trap(best_looking_boost, repetitions=1000),
    "bet chosen from the same positions": Trap(best_looking_bet, repetitions=2000),
    "prior ranked on the same positions": Trap(ranked_on_the_same, repetitions=200),
    "prior ranked by the fast, on the same positions": Trap(ranked_by_the_fast, repetitions=200),
    "scout's champion judged on the positions of its choice": Trap(champion_judged_on_its_choice),
    "duels without a prior over leaders": Trap(no_prior, level=PAIRED),
    "all pairs read as covered": Trap(all_pairs),
    "all upper bounds read as simultaneous": Trap(all_upper_bounds),
    "evidence at peeked cuts multiplied": Trap(multiplied),
    "evidence restarted when it looks bad": Trap(restarted),
    "evidence at peeked cuts averaged": Trap(averaged, repetitions=400),
    "draws keyed by the instance, 20 of them": one_draw_per_instance(20),
    "draws keyed by the instance, 60 of them": one_draw_per_instance(60),
    "sums of scores on a finite set": Trap(sums_of_scores, repetitions=150, level=2 * DELTA),
    "low ends rounded up": rounded(RoundsUp, side="lower"),
    "high ends rounded down": rounded(RoundsDown, side="upper"),
    "differences rounded down": Trap(rounded_duels, repetitions=50),
    "a bound that is not monotone under captimes that follow the data": Trap(restless_bound),
    "clearing inherited by a new leader": raced(
        Racing(1500, STRIDES, ClearingIsInherited), Racing(1500, STRIDES, RelayRace), STEPS
    ),
    "smallest epsilon shown with the present leader": raced(
        Racing(1500, STRIDES, SmallestEpsilonWithWhoeverLeads), Racing(1500, STRIDES, BestFirst), STEPS
    ),
    "a race over finished runs only": raced(
        Racing(300, STRIDES, FinishedRunsOnly),
        Racing(300, STRIDES),
        tosses(np.array([0.3, 0.6]), goal=0.1),
    ),
}


@pytest.mark.parametrize("name", TRAPS)
def test_a_planted_error_is_caught_and_its_honest_twin_is_not(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    """The same luck, with and without the error."""
    trap = TRAPS[name]
    faulty, honest = trap.spring(np.random.default_rng(20231210), trap.repetitions)
    limit = limit_for(trap.repetitions, trap.level)
    record_property("faulty", float(faulty.mean()))
    record_property("honest", float(honest.mean()))
    told = f"{name}: faulty {faulty.mean():.3f}, honest {honest.mean():.3f}, limit {limit / trap.repetitions:.3f}"
    print(told)  # noqa: T201 (the table of observed rates, shown under -s)
    assert int(faulty.sum()) > limit, told
    assert int(honest.sum()) <= limit, told


def test_the_mixture_holds_under_the_captimes_that_ruin_the_restless_bound() -> None:
    """What is monotone does not care who chose the captimes, or why."""
    wrong = mixture_under_the_same_captimes(np.random.default_rng(3), 400)
    assert int(wrong.sum()) <= limit_for(400, DELTA)


def test_a_bound_that_is_not_monotone_is_refused_where_captimes_follow_the_data() -> None:
    """What the trap shows is why the register asks every bound whether it is monotone."""
    use = Use("race", supplies=frozenset({"samples"}), looks_often=True, pays_for_looks=False, intervals=True)
    assert any("monotone" in reason for reason in misfits(PlugInBetting, use))
