"""The least these tests could cost: who knows every runtime distribution, and only has to show it.

For the best configuration a and every other i, with random captimes (boost B): the growth rate of a bet per sample is
known, so the number of samples until the evidence reaches its level is about ln(1 / level) / rate, with the best bet,
no price for having to find it. Each i is cleared the cheaper way, by its own upper bound (the leader's utility taken as
known) or by the duel; the leader runs as many positions as the longest duel. No warm start, no search for a leader.
"""

import math

import numpy as np

from captime import RuntimeTable, Utility
from captime.arrays import FloatArray
from captime.plans.random_captimes import RandomCaptimes, Schedule

BOOST = 1.25
_SAMPLES = 4_000
_BETS = np.concatenate((np.geomspace(0.005, 0.5, 24), np.linspace(0.55, 0.995, 16)))


def cheapest_certificate(table: RuntimeTable, utility: Utility, epsilon: float, delta: float) -> float:
    """CPU seconds of the cheapest certificate, estimated from a few thousand draws of the table."""
    rng = np.random.default_rng(20231)
    rows = rng.integers(table.n_instances, size=_SAMPLES)
    longest = min(table.limit, utility.zero_at, float(utility.inverse(np.array(0.1 * epsilon))))
    plan = RandomCaptimes(utility, 5, Schedule(BOOST), Schedule(longest))
    position = np.arange(_SAMPLES)
    captime = plan.captime(np.zeros(1, dtype=np.int64), position)
    truth = np.array([float((utility(row) * (row < table.limit)).mean()) for row in table.seconds])
    best = int(truth.argmax())
    scores, costs = [], []
    for row in table.seconds:
        seconds = row[rows]
        _, low, high = plan.settled(seconds, utility(seconds), np.zeros(1, dtype=np.int64), position)
        scores.append(0.5 * (low + high))
        costs.append(float(np.minimum(seconds, captime).mean()))
    total, longest_duel = 0.0, 0.0
    for i in range(table.n_configs):
        if i == best:
            continue
        # Levels of the race: 0.41 delta for upper bounds; 0.41 delta times the prior 1/2 for the first leader's duels.
        own = _samples(1.0 - scores[i], 1.0 - min(1.0, truth[best] + epsilon), math.log(1 / (0.41 * delta)))
        duel = _samples(0.5 * (1.0 + scores[best] - scores[i]), 0.5 * (1.0 - epsilon), math.log(2 / (0.41 * delta)))
        total += min(own, duel) * costs[i]
        if duel < own:
            longest_duel = max(longest_duel, duel)
    return total + longest_duel * costs[best]


def _samples(values: FloatArray, mean: float, level: float) -> float:
    """How many samples until the best bet against "the mean is at most `mean`" has grown to exp(level)."""
    if mean <= 0.0:
        return 1.0
    growth = np.log1p(_BETS[:, None] * (values / mean - 1.0)).mean(axis=1).max()
    return max(1.0, level / growth) if growth > 0 else math.inf
