"""Successive halving and Hyperband: spend little on every configuration, more on the better part, most on the best."""

import math

import numpy as np

from captime.arrays import IntArray
from captime.errors import ScenarioError
from captime.procedures.baselines import Bench, Guess, Guesses, NoMoreInstances


def successive_halving(bench: Bench, *, captime: float | None = None, runs: int | None = None) -> Guesses:
    """All configurations on a few instances, the better half on more, and so on until one is left.

    Args:
        bench: Where runs are made.
        captime: Every run is cut here, in CPU seconds. Left out: where an answer has lost nine tenths of its worth.
        runs: Budget, counted in runs: every round gets an equal share of it. Left out: 16 a configuration.
    """
    n_configs = bench.n_configs
    rounds = max(1, math.ceil(math.log2(n_configs)))
    budget = 16 * n_configs if runs is None else runs
    if budget < 1:
        raise ScenarioError(f"successive-halving has a budget of {budget} runs; it needs at least 1")
    captime = usual_captime(bench) if captime is None else captime
    alive: IntArray = np.arange(n_configs)
    seen = 0
    for _ in range(rounds):
        # At least one more instance a round, also where the budget is too small for it.
        seen += max(1, budget // (len(alive) * rounds))
        if bench.length is not None:
            seen = min(seen, bench.length)
        means = np.array([bench.utilities(config, 0, seen, captime).mean() for config in alive.tolist()])
        alive = alive[np.argsort(-means, kind="stable")[: -(-len(alive) // 2)]]
        yield Guess(int(alive[0]), len(alive))


def hyperband(bench: Bench, *, captime: float | None = None, resource: float | None = None, eta: int = 3) -> Guesses:
    """Several rounds of successive halving, from many configurations with little time each to few with much.

    The published comparison scored a configuration by one and the same instance over and over; here its resource is
    CPU seconds: it runs instances 1, 2, … until it has used them up, and its score is their mean utility.

    Args:
        bench: Where runs are made.
        captime: Every run is cut here, in CPU seconds. Left out: where an answer has lost nine tenths of its worth.
        resource: Most CPU seconds that one configuration may use. Left out: 100 captimes.
        eta: One configuration in `eta` advances to the next round.
    """
    if eta < 2:
        raise ScenarioError(f"hyperband has eta = {eta}; expected a whole number from 2 on")
    captime = usual_captime(bench) if captime is None else captime
    most = 100 * captime if resource is None else resource
    if not most > 0:
        raise ScenarioError(f"hyperband may use {most:g} s a configuration; expected more than 0")
    # Brackets by integers: a logarithm may be off by one. The smallest share is one captime, so that a run fits in.
    last = 0
    while captime * eta ** (last + 1) <= most:
        last += 1
    fresh = bench.rng.permutation(bench.n_configs)
    best, best_score = int(fresh[0]), -1.0
    for bracket in range(last, -1, -1):
        wanted = math.ceil((last + 1) * eta**bracket / (bracket + 1))
        alive, fresh = fresh[:wanted], fresh[wanted:]
        for step in range(bracket + 1):
            if len(alive) == 0:
                return
            share = most * float(eta) ** (step - bracket)
            scores = np.array([_score_for(bench, config, share, captime) for config in alive.tolist()])
            order = np.argsort(-scores, kind="stable")
            # The final score of a bracket, on the whole resource, is the one that is compared between brackets.
            if step == bracket and scores[order[0]] > best_score:
                best, best_score = int(alive[order[0]]), float(scores[order[0]])
            yield Guess(int(alive[order[0]]) if best_score < 0 else best, len(alive))
            alive = alive[order[: max(1, len(alive) // eta)]]


def _score_for(bench: Bench, config: int, share: float, captime: float) -> float:
    """Mean utility of as many instances as fit into that many seconds; at least one."""
    used, worth, position = 0.0, [], 0
    while used < share:
        try:
            seconds, _ = bench.run(config, position, captime)
        except NoMoreInstances:
            break
        used += max(seconds, 1e-9)
        worth.append(float(bench.utility(np.array(seconds))))
        position += 1
    return float(np.mean(worth))


def usual_captime(bench: Bench) -> float:
    """Where an answer has lost nine tenths of its worth, or the end of what is known."""
    return min(float(bench.utility.inverse(np.array(0.1))), bench.longest)
