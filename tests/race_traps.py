"""Errors of scoring, of what counts and of choosing too late, each with a world in which it shows.

A trap springs with given luck and says, per repetition, whether the faulty one and its honest twin were wrong.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from captime.arrays import BoolArray, FloatArray
from captime.plans import RandomCaptimes
from captime.procedures.board import Board
from captime.procedures.scout import Scout
from captime.utilities import Utility, parse_utility
from race_harness import DELTA, NODES, log_evidence, lower_wrong, paired_wrong, plan_for, scores, upper_wrong

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
    """Runtimes that are worth this much under `uniform(60)`, with these chances."""
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
    # Long pilots: the longer the stream, the less do scores under different values of B have to do with each other.
    runtimes, truth = drawn(rng, repetitions * 600, worths, chance), float(np.dot(worths, chance))
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


def ranked_by_the_fast(rng: np.random.Generator, repetitions: int) -> Verdicts:
    """A prior from what had come back after 20 s; lower bounds on the same positions, and, honestly, on later ones."""
    seen = [answers_at(rng, repetitions, 200) for _ in range(40)]
    heard = np.array([(low * (ended < 20.0))[:, :100].sum(axis=1) for low, ended, _ in seen])
    rank = np.argsort(np.argsort(-heard, axis=0, kind="stable"), axis=0)
    level = DELTA / ((rank + 1.0) * (rank + 2.0))
    verdicts = [
        np.logical_or.reduce([lower_wrong(low[:, part], truth, level[k]) for k, (low, _, truth) in enumerate(seen)])
        for part in (slice(0, 100), slice(100, 200))
    ]
    return verdicts[0], verdicts[1]


def champion_judged_on_its_choice(rng: np.random.Generator, repetitions: int) -> Verdicts:
    """A scout's champion whose bound counts the positions on which it was chosen, and the scout as it is.

    At a level of 0.2 instead of the scout's own small share, so that something can be seen.
    """
    faulty, honest = np.zeros(repetitions, dtype=np.bool_), np.zeros(repetitions, dtype=np.bool_)
    board = Board(1, 1.0)
    for k in range(repetitions):
        score = zero_one(rng, 8, 60)
        for verdict, again in ((faulty, True), (honest, False)):
            scout = Scout(8, 1.0, -math.log(DELTA), 10_000, board)
            while scout.champion is None:
                scout.choose(score[:, : scout.wanted[1]].sum(axis=1))
            for place in range(0 if again else scout.start, 60, 4):
                scout.add(score[scout.champion, place : place + 4])
            verdict[k] = scout.lower > 0.5
    return faulty, honest
