"""LeapsAndBounds: guess the best mean runtime, double the guess until a configuration is shown to be below it."""

import math
from dataclasses import dataclass

from captime.errors import ScenarioError
from captime.procedures.baselines import Bench, Guess, Guesses
from captime_research.baselines.bernstein import Running, radius


def leaps_and_bounds(
    bench: Bench,
    *,
    epsilon: float = 0.25,
    gamma: float = 0.2,
    zeta: float = 0.05,
    captime_first: float | None = None,
    multiplier: float = 2.0,
) -> Guesses:
    """Every configuration gets the time that the guess allows; who stays within it proves the guess right.

    The stopping rule is the one corrected in the CapsAndRuns paper: radius at most epsilon·mean / (2 + 2·epsilon).

    Args:
        bench: Where runs are made.
        epsilon: How far from the optimal mean runtime the answer may be, as a share of it.
        gamma: Share of instances that may be cut (the papers call it delta).
        zeta: Allowed probability of failure.
        captime_first: The first guess of the best mean runtime, in CPU seconds. Left out: a 10,000th of the longest.
        multiplier: By how much the guess grows from phase to phase.
    """
    if not (epsilon > 0 and 0 < gamma < 1 and 0 < zeta < 1 and multiplier > 1):
        raise ScenarioError(
            f"epsilon {epsilon:g}, gamma {gamma:g}, zeta {zeta:g}, multiplier {multiplier:g}: expected epsilon above "
            "0, gamma and zeta between 0 and 1, a multiplier above 1"
        )
    n_configs, goal = bench.n_configs, _Goal(epsilon, gamma)
    guess = 16.0 / 7.0 * (bench.longest / 1e4 if captime_first is None else captime_first)
    best, phase = 0, 0
    while True:
        phase += 1
        share = zeta / (120.0 * n_configs * phase * (phase + 1))
        most = math.ceil(44.0 * math.log(1.0 / share) / (gamma * epsilon**2))
        means = []
        for config in range(n_configs):
            means.append(_estimate(bench, config, goal, _Phase(guess, most, share)))
            best = min(range(len(means)), key=means.__getitem__)
            yield Guess(best if means[best] < guess else 0, n_configs)
        # Beyond the longest captime that is known a larger guess would change nothing.
        if means[best] < guess or guess * 4.0 / (3.0 * gamma) >= bench.longest * multiplier:
            return
        guess *= multiplier


@dataclass(frozen=True, slots=True)
class _Goal:
    epsilon: float
    gamma: float


@dataclass(frozen=True, slots=True)
class _Phase:
    """The guess of a phase, most runs a configuration makes in it, and its share of the failure probability."""

    guess: float
    most: int
    share: float


def _estimate(bench: Bench, config: int, goal: _Goal, phase: _Phase) -> float:
    """The mean capped runtime if it can be told to be below the guess, or the guess."""
    guess, epsilon = phase.guess, goal.epsilon
    left, captime = phase.most * guess, min(4.0 * guess / (3.0 * goal.gamma), bench.longest)
    seen = Running()
    for position in range(phase.most):
        allowed = min(left, captime)
        if allowed <= 0:
            return guess
        seconds, completed = bench.run(config, position, allowed)
        left -= seconds
        if not completed and allowed < captime:
            return guess
        seen.add(seconds)
        if seen.count < 2:
            continue
        off = radius(seen, captime, phase.share)
        if (1.0 + 3.0 * epsilon / 7.0) * (seen.mean - off) > guess:
            return guess
        enough = math.ceil(32.0 * math.log((seen.count - 1) * seen.count / phase.share) / goal.gamma)
        if seen.count >= enough and off <= epsilon * seen.mean / (2.0 + 2.0 * epsilon):
            break
    return seen.mean
