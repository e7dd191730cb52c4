"""Estimate the least that a certificate could cost: all runtime distributions are known, and only have to be shown.

For the best configuration a and every other i the growth rate of a bet per run is known. The number of runs until the
evidence reaches its level is then about ln(1 / level) / rate, with the best bet and no price for having to find it.

- Captimes are free: an own bound uses the captime that costs least, stops below the draw included.
- An own bound refutes "U_i is at least q" with q = U_a - s + epsilon. Here s is what the lower bound of the leader
  leaves open. The leader's runs that show U_a - s are paid for. The s with the smallest total is taken.
- Each i is cleared the cheaper way, by its own bound or by a duel. The leader runs as far as the longest duel.

There is no warm start and no search for a leader.
"""

import math

import numpy as np

from captime import RuntimeTable, Utility
from captime.arrays import FloatArray
from captime.plans import RandomCaptimes, Schedule

BOOST = 1.25
_SAMPLES = 1_000
_BETS = np.concatenate((np.geomspace(0.005, 0.5, 16), np.linspace(0.55, 0.995, 10)))
_SLACKS = (0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.25)
_STOPPED_AT = (0.98, 0.95, 0.9, 0.8, 0.65, 0.5, 0.35, 0.2, 0.1)


def cheapest_certificate(table: RuntimeTable, utility: Utility, epsilon: float, delta: float) -> float:
    """Return CPU seconds of the cheapest certificate, estimated from draws of the table."""
    rng = np.random.default_rng(20231)
    rows = rng.integers(table.n_instances, size=_SAMPLES)
    longest = min(table.limit, utility.zero_at, float(utility.inverse(np.array(0.1 * epsilon))))
    plan = RandomCaptimes(utility, 5, Schedule(BOOST), Schedule(longest))
    level, position = np.zeros(1, dtype=np.int64), np.arange(_SAMPLES)
    captime = plan.captime(level, position)
    truth = np.array([float((utility(row) * (row < table.limit)).mean()) for row in table.seconds])
    best = int(truth.argmax())
    # Captimes by what an answer is then worth, up to the longest.
    stops = sorted({min(longest, float(utility.inverse(np.array(worth)))) for worth in _STOPPED_AT} | {longest})

    def scored(config: int) -> tuple[FloatArray, FloatArray, float]:
        seconds = table.seconds[config][rows]
        _, low, high = plan.settled(seconds, utility(seconds), level, position)
        return low, high, float(np.minimum(seconds, captime).mean())

    lowest, _, leader_cost = scored(best)
    own: list[list[tuple[FloatArray, float]]] = []
    duels: list[tuple[float, float]] = []
    for config in (each for each in range(table.n_configs) if each != best):
        seconds = table.seconds[config][rows]
        _, high, cost = scored(config)
        # Levels of the race: 0.41 delta for upper bounds; 0.41 delta times the prior 1/2 for the first leader's duels.
        runs = _samples(0.5 * (1.0 + lowest - high), 0.5 * (1.0 - epsilon), math.log(2 / (0.41 * delta)))
        duels.append((runs, runs * cost))
        ways = [(1.0 - high, cost)]
        for stop in stops:
            answered = (seconds < stop) & (seconds < table.limit)
            worth = np.where(answered, utility(seconds), utility(np.array(stop)))
            ways.append((1.0 - worth, float(np.minimum(seconds, stop).mean())))
        own.append(ways)
    return min(
        _total(own, duels, slack, (lowest, leader_cost), (float(truth[best]), epsilon, delta)) for slack in _SLACKS
    )


def _total(
    own: list[list[tuple[FloatArray, float]]],
    duels: list[tuple[float, float]],
    slack: float,
    leader: tuple[FloatArray, float],
    question: tuple[float, float, float],
) -> float:
    """CPU seconds if the leader's lower bound is this far below its utility."""
    utility, epsilon, delta = question
    scores, cost = leader
    level, refuted = math.log(1 / (0.41 * delta)), utility - slack + epsilon
    total, runs = 0.0, 0.0
    for ways, (duel_runs, duel) in zip(own, duels, strict=True):
        by_bound = 0.0
        if refuted < 1.0:
            by_bound = min(_samples(losses, 1.0 - refuted, level) * each for losses, each in ways)
        total += min(by_bound, duel)
        if duel < by_bound:
            runs = max(runs, duel_runs)
    shown = _samples(scores, utility - slack, math.log(2 / (0.1 * delta)))
    return total + max(runs, shown) * cost


def _samples(values: FloatArray, mean: float, level: float) -> float:
    """How many samples until the best bet against "the mean is at most `mean`" has grown to exp(level)."""
    if mean <= 0.0:
        return 1.0
    growth = np.log1p(_BETS[:, None] * (values / mean - 1.0)).mean(axis=1).max()
    return max(1.0, level / growth) if growth > 0 else math.inf
