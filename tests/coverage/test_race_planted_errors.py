"""The harness of `test_race_covers.py` has teeth: each error planted here breaks the guarantee, and is seen to.

Every trap is an error together with a world in which it shows; many worlds hide it. In most traps one statement is
watched, at level 0.2, at every length of the prefix; the honest twin has the same luck and stays within its level.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from captime.arrays import BoolArray, FloatArray
from captime.bounds.binned_mixture import BinnedMixture
from captime.bounds.fit import Use, misfits
from captime.bounds.mixture import mixture_lower_finite, mixture_upper_finite
from captime.bounds.paired_mixture import PairedMixture
from captime.bounds.plug_in_betting import PlugInBetting
from captime.plans.random_captimes import RandomCaptimes
from captime.utilities import Utility, parse_utility
from race_harness import (
    DELTA,
    NODES,
    SHARES,
    Racing,
    limit_for,
    log_evidence,
    log_paired_evidence,
    lower_wrong,
    paired_wrong,
    plan_for,
    race_failures,
    scores,
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
from race_worlds import RaceWorld, staircase, tosses

U60 = parse_utility("uniform(60)")
ONLY_LEVEL = np.zeros(1, dtype=np.int64)
Verdicts = tuple[BoolArray, BoolArray]
"""Whether the faulty and the honest one were wrong, per repetition."""


@dataclass(frozen=True)
class Trap:
    """An error in a world where it shows.

    Attributes:
        spring: From luck and a number of repetitions to verdicts.
        repetitions: How many are needed to tell.
        level: How often the honest one may be wrong.
    """

    spring: Callable[[np.random.Generator, int], Verdicts]
    repetitions: int = 400
    level: float = DELTA


def drawn(rng: np.random.Generator, size: int, worths: tuple[float, ...], chance: tuple[float, ...]) -> FloatArray:
    """Runtimes that are worth so much under `uniform(60)`, with these chances."""
    return U60.inverse(np.array(worths))[rng.choice(len(worths), size=size, p=chance)]


def zero_one(rng: np.random.Generator, *shape: int, mean: float = 0.5) -> FloatArray:
    """Independent scores 0 or 1."""
    return (rng.random(shape) < mean).astype(np.float64)


# ---------------------------------------------------------------------------- scores


def faulty_plan(  # one signature per way in which a plan can be wrong
    kind: type[RandomCaptimes],
    *,
    side: str,
    worths: tuple[float, ...] = (0.7, 0.3),
    utility: Utility = U60,
    seconds: tuple[float, ...] | None = None,
    boost: float = 1.0,
    longest: float = math.inf,
    positions: int = 400,
) -> Trap:
    """Runtimes that are equally likely, scored by the faulty plan and by the honest one, seen from one side."""

    def spring(rng: np.random.Generator, repetitions: int) -> Verdicts:
        atoms = utility.inverse(np.array(worths)) if seconds is None else np.array(seconds)
        runtimes = atoms[rng.integers(len(atoms), size=repetitions * positions)]
        truth = float(utility(atoms).mean())
        verdicts = []
        for made in (kind, RandomCaptimes):
            plan = plan_for(utility, boost=boost, longest=longest, seed=repetitions, kind=made)
            low, high = scores(plan, runtimes, repetitions)
            verdicts.append(lower_wrong(low, truth) if side == "lower" else upper_wrong(high, truth))
        return verdicts[0], verdicts[1]

    return Trap(spring)


def in_flight(kind: type[RandomCaptimes], *, boost: float, believed: float = 2.9, honest: float = 2.9) -> Trap:
    """Every run takes 3 s and was last seen alive before; upper bounds count what it may still be worth."""

    def spring(_: np.random.Generator, repetitions: int) -> Verdicts:
        utility, positions = parse_utility("uniform(6)"), 100
        place = np.arange(repetitions * positions)
        verdicts = []
        for made, seen in ((kind, believed), (RandomCaptimes, honest)):
            high = plan_for(utility, boost=boost, kind=made).alive(np.full(len(place), seen), ONLY_LEVEL, place)
            verdicts.append(upper_wrong(high.reshape(repetitions, positions), 0.5))
        return verdicts[0], verdicts[1]

    return Trap(spring)


def in_flight_challengers_look_bad(rng: np.random.Generator, repetitions: int) -> Verdicts:
    """The best is in flight everywhere; its low ends stand in for its high ends."""
    shape = (repetitions, 100)
    low = np.zeros(shape)
    place = np.arange(math.prod(shape))
    high = plan_for(U60).alive(np.full(len(place), 3.0), ONLY_LEVEL, place).reshape(shape)
    leader = zero_one(rng, *shape)
    return paired_wrong(low - leader, 0.2), paired_wrong(high - leader, 0.2)


def started_again(limit: float, again: tuple[float, ...], *, crash: bool) -> Trap:
    """A run that was stopped, or that crashed, gets a second chance with a fresh seed."""

    def spring(rng: np.random.Generator, repetitions: int) -> Verdicts:
        size, plan = repetitions * 300, plan_for(U60, longest=limit)
        first, second = (rng.choice(np.array(again), size=size) for _ in range(2))
        over = np.isinf(first) if crash else (first >= limit)
        truth = float(U60(np.array(again)).mean())
        honest, _ = scores(plan, first, repetitions)
        faulty, _ = scores(plan, np.where(over, second, first), repetitions)
        return lower_wrong(faulty, truth), lower_wrong(honest, truth)

    return Trap(spring)


def answers_at(rng: np.random.Generator, repetitions: int, positions: int) -> tuple[FloatArray, FloatArray, float]:
    """Two-point runtimes of 1 s and 50 s: scores, when each run has ended, and the truth."""
    plan, runtimes = plan_for(U60), rng.choice(np.array([1.0, 50.0]), size=repetitions * positions)
    low, _ = scores(plan, runtimes, repetitions)
    ended = np.minimum(runtimes, plan.captime(ONLY_LEVEL, np.arange(len(runtimes))))
    return low, ended.reshape(low.shape), float(U60(np.array([1.0, 50.0])).mean())


def unfinished_dropped(rng: np.random.Generator, repetitions: int) -> Verdicts:
    """After 20 s, the bound is computed from what has ended."""
    low, ended, truth = answers_at(rng, repetitions, 100)
    return lower_wrong(low, truth, used=ended < 20.0), lower_wrong(low * (ended < 20.0), truth)


def by_completion(rng: np.random.Generator, repetitions: int) -> Verdicts:
    """Scores count in the order in which they come in."""
    low, ended, truth = answers_at(rng, repetitions, 100)
    arrived = np.take_along_axis(low, np.argsort(ended, axis=1, kind="stable"), axis=1)
    return lower_wrong(arrived, truth), lower_wrong(low, truth)


# ---------------------------------------------------------------------------- which positions count


def skipped_after_seeing(rng: np.random.Generator, repetitions: int) -> Verdicts:
    """One position in five on which a look-alike has failed is not run at all."""
    score = zero_one(rng, repetitions, 500)
    skipped = (score == 0.0) & (rng.random(score.shape) < 0.2)
    blind = rng.random(score.shape) < 0.2
    return lower_wrong(score, 0.5, used=~skipped), lower_wrong(score, 0.5, used=~blind)


def late_start(rng: np.random.Generator, repetitions: int) -> Verdicts:
    """The race is said to have begun where its scores are best from."""
    score = zero_one(rng, repetitions, 200)
    started = [lower_wrong(score[:, start:], 0.5) for start in range(0, 120, 5)]
    return np.logical_or.reduce(started), started[4]


def late_gaps(rng: np.random.Generator, repetitions: int) -> Verdicts:
    """Which of the first 60 positions were skipped is decided at the end, among 15 possibilities."""
    score = zero_one(rng, repetitions, 100)
    gaps = rng.random((15, score.shape[1])) < 0.5 * (np.arange(score.shape[1]) < 60)
    wrong = [upper_wrong(score, 0.5, used=np.broadcast_to(~gap, score.shape)) for gap in gaps]
    return np.logical_or.reduce(wrong), wrong[0]


# ---------------------------------------------------------------------------- choices made too late


def boost_after_the_draw(rng: np.random.Generator, repetitions: int) -> Verdicts:
    """B is 1 or 2, whichever suits the captime that was drawn."""
    runtimes = drawn(rng, repetitions * 200, (0.6, 0.2), (0.5, 0.5))
    one, two = (scores(plan_for(U60, boost=boost), runtimes, repetitions)[0] for boost in (1.0, 2.0))
    return lower_wrong(np.maximum(one, two), 0.4), lower_wrong(two, 0.4)


def best_looking_boost(rng: np.random.Generator, repetitions: int) -> Verdicts:
    """The pilot is scored again under seven values of B, and the lowest upper bound is kept."""
    worths, chance = (0.9, 0.4, 0.15, 0.05), (0.1, 0.2, 0.3, 0.4)
    runtimes, truth = drawn(rng, repetitions * 150, worths, chance), float(np.dot(worths, chance))
    boosts = (1.0, 1.5, 2.0, 3.0, 5.0, 9.0, 20.0)
    wrong = [upper_wrong(scores(plan_for(U60, boost=b), runtimes, repetitions)[1], truth) for b in boosts]
    return np.logical_or.reduce(wrong), wrong[0]


def best_looking_bet(rng: np.random.Generator, repetitions: int) -> Verdicts:
    """The share that is bet is chosen from the scores it is bet on."""
    score = zero_one(rng, repetitions, 300)
    single = [log_evidence(score, 0.5, nodes=NODES[[k]]).max(axis=1) for k in range(len(NODES))]
    return np.max(single, axis=0) >= -math.log(DELTA), lower_wrong(score, 0.5)


def ranked_on_the_same(rng: np.random.Generator, repetitions: int) -> Verdicts:
    """The prior over leaders is made from the positions on which their lower bounds stand."""
    score = zero_one(rng, 40, repetitions, 120)
    verdicts = []
    for judged in (score, zero_one(rng, 40, repetitions, 120)):
        rank = np.argsort(np.argsort(-judged.sum(axis=2), axis=0, kind="stable"), axis=0)
        level = DELTA / ((rank + 1.0) * (rank + 2.0))
        verdicts.append(np.logical_or.reduce([lower_wrong(score[k], 0.5, level[k]) for k in range(40)]))
    return verdicts[0], verdicts[1]


# ---------------------------------------------------------------------------- who is covered by what


PAIRED = SHARES["paired"] * DELTA


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
    """Evidence about four hundred configurations, each at its own best moment, is averaged."""
    peeked, together = np.zeros(repetitions), np.zeros((repetitions, 300))
    for _ in range(400):
        wealth = np.exp(log_evidence(zero_one(rng, repetitions, 300), 0.5, NODES[8:9]))
        peeked += wealth.max(axis=1) / 400.0
        together += wealth / 400.0
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
        grid = board(0.8)._below.grid
        inside = 1e-6 if side == "lower" else -1e-6
        values = grid[[10, 20]] + inside
        verdicts = []
        for made in (kind, BinnedMixture):
            judged = board(0.8, made)
            wrong = np.zeros(repetitions, dtype=np.bool_)
            for k in range(repetitions):
                chosen = values[rng.integers(2, size=3000)]
                judged._low_counts[:] = judged._loss_counts[:] = 0
                judged.count[:] = judged.total[:] = 0
                judged.add(0, chosen, chosen, race=True)
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
            both.add(0, leader, leader, race=True)
            both.add(1, leader + gap, leader + gap, race=True)
            who = judged.catch_up(both, 0)
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
        wrong = [race_failures(world, racing, repetitions, seed)["any"] for racing in (faulty, honest)]
        return wrong[0], wrong[1]

    return Trap(spring, repetitions)


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
    "positions skipped after a look at somebody else": Trap(skipped_after_seeing),
    "start chosen late": Trap(late_start),
    "gaps chosen late": Trap(late_gaps),
    "boost chosen after the draw": Trap(boost_after_the_draw),
    "pilot scored again under the best-looking boost": Trap(best_looking_boost, repetitions=2000),
    "bet chosen from the same positions": Trap(best_looking_bet, repetitions=2000),
    "prior ranked on the same positions": Trap(ranked_on_the_same, repetitions=200),
    "duels without a prior over leaders": Trap(no_prior, level=PAIRED),
    "all pairs read as covered": Trap(all_pairs),
    "all upper bounds read as simultaneous": Trap(all_upper_bounds),
    "evidence at peeked cuts multiplied": Trap(multiplied),
    "evidence restarted when it looks bad": Trap(restarted),
    "evidence at peeked cuts averaged": Trap(averaged, repetitions=50),
    "draws keyed by the instance, 20 of them": one_draw_per_instance(20),
    "draws keyed by the instance, 60 of them": one_draw_per_instance(60),
    "sums of scores on a finite set": Trap(sums_of_scores, repetitions=150, level=2 * DELTA),
    "low ends rounded up": rounded(RoundsUp, side="lower"),
    "high ends rounded down": rounded(RoundsDown, side="upper"),
    "differences rounded down": Trap(rounded_duels, repetitions=50),
    "a bound that is not monotone under captimes that follow the data": Trap(restless_bound),
    "clearing inherited by a new leader": raced(Racing(1500, ClearingIsInherited), Racing(1500, RelayRace), STEPS),
    "smallest epsilon shown with whoever leads now": raced(
        Racing(1500, SmallestEpsilonWithWhoeverLeads), Racing(1500, BestFirst), STEPS
    ),
    "a race over finished runs only": raced(
        Racing(300, FinishedRunsOnly), Racing(300), tosses(np.array([0.3, 0.6]), goal=0.1)
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
