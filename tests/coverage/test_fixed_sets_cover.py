"""Claims about exactly these instances are wrong no more often than they may be, and planted errors are caught.

Duels are tested where the hypothesis is exactly true, by an omniscient reader that knows every utility and picks the
best length of the prefix: a superset of every captime, order of completion, stopping rule and schedule. Whole races are
tested with 1, 8 and 64 workers. A count fails when it exceeds what is left with probability 1e-4 under the allowed
rate.
"""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binom

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.bounds.betting import sine_nodes
from captime.bounds.mixture import PairedBets
from captime.certificate import Certificate, Population
from captime.drive import drive
from captime.evidence import Evidence
from captime.executors.virtual import VirtualExecutor
from captime.live import drive_parallel
from captime.procedures import Problem
from captime.procedures.fixed_set import FixedSetRace
from captime.procedures.set_schedule import pilot_size
from captime.sources import RuntimeTable
from captime.sources.replay import Replay
from captime.sources.window import FixedOrder
from captime.utilities import parse_utility

LEVEL = 0.2
FEW, MANY = 400, 2000
_NODES = sine_nodes(12)

Pair = tuple[FloatArray, FloatArray]
"""Utilities of a challenger and of a leader on every instance of a set."""


def limit(repetitions: int, rate: float) -> int:
    """Return the count that is exceeded with probability at most 1e-4 under that rate."""
    return int(binom.isf(1e-4, repetitions, rate))


# ------------------------------------------------------------------ duels


def atoms(size: int) -> Pair:
    """Return utilities of 0 and 1: the challenger wins on a third, the leader on a fifth of the instances."""
    place = np.arange(size)
    return (place % 3 == 0).astype(np.float64), (place % 5 == 1).astype(np.float64)


def alike(size: int) -> Pair:
    """Return equal utilities: the difference is 0 everywhere."""
    values = np.linspace(0.1, 0.9, size)
    return values, values.copy()


def opposed(size: int) -> Pair:
    """Return utilities that are equal on average and opposed on every instance."""
    values = np.linspace(0.0, 1.0, size)
    return values, values[::-1].copy()


def one_large(size: int) -> Pair:
    """Return a challenger that is better on one instance, by all there is, and a little worse elsewhere."""
    challenger, leader = np.full(size, 0.45), np.full(size, 0.5)
    challenger[0], leader[0] = 1.0, 0.0
    return challenger, leader


def ahead(size: int) -> Pair:
    """Return a challenger that is ahead by the same amount everywhere, with a spread that both share."""
    values = np.linspace(0.0, 0.7, size)
    return values + 0.3, values


WORLDS: dict[str, Callable[[int], Pair]] = {each.__name__: each for each in (atoms, alike, opposed, one_large, ahead)}


def orders(size: int, repetitions: int, seed: int) -> IntArray:
    """Return uniformly random orders, one row each."""
    rng = np.random.default_rng(seed)
    return rng.permuted(np.broadcast_to(np.arange(size), (repetitions, size)), axis=1)


def refuted(differences: FloatArray, margin: float, size: int, start: int = 0, level: float = LEVEL) -> BoolArray:
    """Return in which repetitions a lead of `margin` is refuted at some length; only if the margin could matter."""
    counts = np.broadcast_to(np.arange(differences.shape[1]) >= start, differences.shape)
    log_inverse = np.full(len(differences), -np.log(level))
    bets = PairedBets.on_set(differences, size, counts, log_inverse, _NODES)
    return bets.refutes(np.full(len(differences), margin))


def _gap(pair: Pair) -> float:
    return float((pair[0] - pair[1]).mean())


def _duel_failures(name: str, size: int, repetitions: int, start: int) -> int:
    challenger, leader = WORLDS[name](size)
    order = orders(size, repetitions, size + start)
    # A little below the truth: at the truth itself, the last position leaves nothing to chance but rounding.
    gap = _gap((challenger, leader)) - 1e-9
    return int(refuted((challenger - leader)[order], gap, size, start).sum())


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("size", [5, 20, 60])
def test_duels_hold(name: str, size: int) -> None:
    """A lead that is real is refuted with probability at most the level, whatever the length of the prefix."""
    for start in (0, pilot_size(size)):
        assert _duel_failures(name, size, FEW, start) <= limit(FEW, LEVEL)


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("size", [5, 20, 60])
def test_duels_hold_at_full_size(name: str, size: int, record_property: Callable[[str, object], None]) -> None:
    """The same with more repetitions."""
    for start in (0, pilot_size(size)):
        wrong = _duel_failures(name, size, 10 * MANY, start)
        record_property(f"duels from position {start}", wrong / (10 * MANY))
        assert wrong <= limit(10 * MANY, LEVEL)


@pytest.mark.parametrize("size", [5, 20, 60])
def test_any_captime_is_safe(size: int) -> None:
    """Intervals that an adversary chooses, with a look at both utilities, refute no more often than exact values."""
    challenger, leader = opposed(size)
    order = orders(size, FEW, 3)
    exact = (challenger - leader)[order]
    # The challenger's bad results are hidden, the leader's good ones too, at random and where it hurts.
    rng = np.random.default_rng(4)
    hidden = (rng.random(exact.shape) < 0.3) | (exact < -0.5)
    cut = np.where(hidden, np.maximum(exact, 0.4), exact)
    gap = _gap((challenger, leader)) - 1e-9
    wrong, by_exact = refuted(cut, gap, size), refuted(exact, gap, size)
    assert not (wrong & ~by_exact).any()


# ------------------------------------------------------------------ planted errors


def test_sums_of_scores_are_caught() -> None:
    """Lottery scores in the sums refute what is true too often."""
    size, repetitions = 20, MANY
    challenger, leader = np.full(size, 0.5), np.full(size, 0.5)
    rng = np.random.default_rng(6)
    scores = [(rng.random((repetitions, size)) < each).astype(np.float64) for each in (challenger, leader)]
    assert int(refuted(scores[0] - scores[1], -1e-9, size).sum()) > limit(repetitions, LEVEL)


def test_positions_left_out_of_the_sums_are_caught() -> None:
    """Positions on which the leader did badly are stepped over, in bets and sums."""
    size, repetitions = 20, FEW
    challenger, leader = atoms(size)
    difference = (challenger - leader)[orders(size, repetitions, 7)]
    gap = _gap((challenger, leader)) - 1e-9
    kept = np.sort(difference, axis=1)[:, : size - 4]
    rng = np.random.default_rng(8)
    assert int(refuted(rng.permuted(kept, axis=1), gap, size).sum()) > limit(repetitions, LEVEL)


def test_a_pilot_left_out_of_the_sums_is_caught() -> None:
    """The sums begin with 0 behind the pilot, although its positions are gone from what is left."""
    size, pilot, repetitions = 20, 8, MANY
    challenger, leader = opposed(size)
    difference = (challenger - leader)[orders(size, repetitions, 9)]
    gap = _gap((challenger, leader)) - 1e-9
    behind = difference[:, pilot:]
    left = (size - np.arange(pilot, size)).astype(np.float64)
    before = np.cumsum(behind, axis=1) - behind
    planted = PairedBets(
        (1.0 - behind) / 2.0,
        0.5 + 0.5 * before / left,
        0.5 * size / left,
        np.ones(behind.shape, dtype=np.bool_),
        np.full(repetitions, -np.log(LEVEL)),
        _NODES,
    )
    assert int(planted.refutes(np.full(repetitions, gap)).sum()) > limit(repetitions, LEVEL)
    assert int(refuted(difference, gap, size, pilot).sum()) <= limit(repetitions, LEVEL)


def test_a_fresh_permutation_after_a_look_is_caught() -> None:
    """Several orders, of which the one that suits is kept."""
    size, tries = 20, 12
    challenger, leader = one_large(size)
    order = orders(size, tries * FEW, 10)
    gap = max(_gap((challenger, leader)), 0.0) - 1e-9
    wrong = refuted((challenger - leader)[order], gap, size).reshape(FEW, tries)
    assert int(wrong.any(axis=1).sum()) > limit(FEW, LEVEL)
    assert int(wrong[:, 0].sum()) <= limit(FEW, LEVEL)


def test_an_extended_run_with_fresh_luck_is_caught() -> None:
    """Runs of the leader that did badly get a second chance with another seed."""
    size = 20
    rng = np.random.default_rng(11)
    first = (rng.random((FEW, size)) < 0.5).astype(np.float64)
    second = (rng.random((FEW, size)) < 0.5).astype(np.float64)
    challenger = np.full((FEW, size), 0.5)
    wrong = 0
    for row in range(FEW):
        difference = challenger[row] - first[row]
        gap = float(difference.mean()) - 1e-9
        lucky = challenger[row] - np.maximum(first[row], second[row])
        wrong += int(gap > 0.0 and refuted(lucky[None], gap, size)[0])
    assert wrong > limit(FEW, LEVEL)


def test_the_high_end_of_the_leader_is_caught() -> None:
    """A leader whose runs are stopped early counts as if it had answered just then."""
    size = 20
    challenger, leader = np.full(size, 0.5), np.where(np.arange(size) % 2 == 0, 0.8, 0.0)
    order = orders(size, FEW, 12)
    gap = _gap((challenger, leader)) - 1e-9
    high = np.where(leader == 0.0, 0.6, leader)
    assert int(refuted((challenger - high)[order], gap, size).sum()) > limit(FEW, LEVEL)


def test_a_ranking_from_the_same_positions_is_caught() -> None:
    """The leader is the one that looks best on the positions that are bet on, with the weight of the first rank."""
    size, n_configs, length = 60, 60, 30
    rng = np.random.default_rng(13)
    wrong = honest = 0
    for seed in range(FEW // 4):
        leaders = np.array([rng.permutation(np.arange(size) % 2).astype(np.float64) for _ in range(n_configs)])
        difference = (0.52 - leaders)[:, orders(size, 1, seed)[0]]
        gap = float(difference[0].mean()) - 1e-9
        chosen = int(difference[:, :length].mean(axis=1).argmin())
        pilot = int(difference[:, :8].mean(axis=1).argmin())
        wrong += int(refuted(difference[chosen : chosen + 1, :length], gap, size, 0, LEVEL / 2)[0])
        honest += int(refuted(difference[pilot : pilot + 1, :length], gap, size, 8, LEVEL / 2)[0])
    assert wrong > limit(FEW // 4, LEVEL)
    assert honest <= limit(FEW // 4, LEVEL)


# ------------------------------------------------------------------ whole races


def _runtimes(kind: str, size: int) -> FloatArray:
    """Return four configurations; the best is ahead of the second by a little more than 0.1 under uniform(60)."""
    place = np.arange(size)
    hard = 30.0 + 25.0 * np.sin(place * 2.399)
    if kind == "atoms":
        best = np.where(place % 8 < 5, 0.0, 60.0)
        second = np.where((place + 3) % 8 < 4, 0.0, 60.0)
        return np.array([second, best, np.where(place % 4 == 0, 0.0, 60.0), second])
    if kind == "alike":
        return np.array([hard, hard[::-1], np.roll(hard, 3), hard])
    best = np.clip(hard - 6.5 + 12.0 * np.cos(place * 1.7), 0.0, 60.0)
    return np.array([hard, best, np.roll(hard, size // 3), hard])


def _worth(seconds: FloatArray) -> FloatArray:
    worth: FloatArray = np.clip(1.0 - seconds / 60.0, 0.0, 1.0).mean(axis=1)
    return worth


def _race(seconds: FloatArray, order: IntArray, workers: int, population: FloatArray | None = None) -> bool:
    """Return whether any claim of a race was wrong at any moment; about `population`, if it is given."""
    size = len(order)
    names = [f"c{index}" for index in range(len(seconds))], [f"i{index}" for index in range(seconds.shape[1])]
    table = RuntimeTable.build("set", *names, seconds, timeout=100.0)
    problem = Problem(
        n_configs=len(seconds),
        utility=parse_utility("uniform(60)"),
        delta=LEVEL,
        epsilon=0.05,
        captime_limit=100.0,
        n_instances=size,
        population=Population.THESE,
    )
    race = FixedSetRace(problem)
    held: list[Certificate] = []
    worth = _worth(seconds if population is None else population)

    def watch(*_: object) -> None:
        held.append(race.certificate())

    if workers == 1:
        drive(race, Replay(table, FixedOrder(order), race.plan, problem.utility), observer=watch)
    else:
        executor = VirtualExecutor(table, FixedOrder(order), workers)
        drive_parallel(race, executor, Evidence(len(seconds), race.plan, problem.utility), observer=watch)
    watch()
    claims = held if population is None else [each.other for each in held if each.other is not None]
    return any(
        worth.max() - worth[each.config] > each.epsilon + 1e-9
        or not each.utility_low - 1e-9 <= worth[each.config] <= each.utility_high + 1e-9
        for each in claims
    )


def _race_failures(kind: str, size: int, workers: int, repetitions: int) -> int:
    seconds = _runtimes(kind, size)
    return sum(_race(seconds, order, workers) for order in orders(size, repetitions, size + workers))


@pytest.mark.parametrize("workers", [1, 8, 64])
@pytest.mark.parametrize(("kind", "size"), [("atoms", 20), ("smooth", 20), ("alike", 20), ("atoms", 60)])
def test_races_hold(kind: str, size: int, workers: int) -> None:
    """No claim of a race about the set is wrong too often, at any moment, in any order of completion."""
    assert _race_failures(kind, size, workers, 8) <= limit(8, LEVEL)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 8, 64])
@pytest.mark.parametrize("size", [5, 20, 60])
@pytest.mark.parametrize("kind", ["atoms", "smooth", "alike"])
def test_races_hold_at_full_size(
    kind: str, size: int, workers: int, record_property: Callable[[str, object], None]
) -> None:
    """The same with 2,000 races each."""
    wrong = _race_failures(kind, size, workers, MANY)
    record_property("certificate", wrong / MANY)
    assert wrong <= limit(MANY, LEVEL)


def _drawn_failures(repetitions: int) -> int:
    """Return how often a claim about the distribution was wrong, where instances are drawn from 400."""
    population = _runtimes("smooth", 400)
    rng = np.random.default_rng(14)
    wrong = 0
    for _ in range(repetitions):
        chosen = rng.integers(400, size=40)
        wrong += _race(population[:, chosen], np.arange(40), 1, population)
    return wrong


def test_the_claim_about_the_distribution_holds() -> None:
    """The other claim that a certificate carries is wrong no more often than it may be."""
    assert _drawn_failures(20) <= limit(20, LEVEL)


@pytest.mark.slow
def test_the_claim_about_the_distribution_holds_at_full_size() -> None:
    """The same with 2,000 races."""
    assert _drawn_failures(MANY) <= limit(MANY, LEVEL)
