"""UP as a textbook would write it: one run at a time, one dictionary entry per run. Only for comparison.

It takes the same decisions as `captime.procedures.up` (the benchmark checks that) and is deliberately plain: no arrays,
no batching. It is not slowed down on purpose either: sums are kept incrementally and completed runs are not repeated.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass
class LoopResult:
    """What the loop decided."""

    config: int
    epsilon: float
    rounds: int
    candidates: list[int]
    captimes: list[float]
    seconds: float
    runs: int
    eliminations: list[tuple[int, int]] = field(default_factory=list)


def plain_up(  # noqa: C901, PLR0915 (plain on purpose: the textbook has one function too)
    runtime: Callable[[int, int], float],
    n_configs: int,
    n_instances: int,
    utility: Callable[[float], float],
    *,
    delta: float,
    epsilon: float,
    first: float,
    top: float,
) -> LoopResult:
    """UP with running bounds and constant 11, run by run.

    Args:
        runtime: `runtime(config, instance)` in seconds.
        n_configs: How many configurations.
        n_instances: How many instances.
        utility: u(t) of one number.
        delta: Allowed probability of a wrong answer.
        epsilon: Goal.
        first: First captime.
        top: Largest captime.
    """
    outcomes: dict[tuple[int, int], float] = {}  # (config, instance) -> time seen, cut at the captime
    candidates = list(range(n_configs))
    rung = dict.fromkeys(candidates, 1)
    captime = dict.fromkeys(candidates, first)
    stale = dict.fromkeys(candidates, False)
    low = dict.fromkeys(candidates, 0.0)
    high = dict.fromkeys(candidates, 0.0)
    lower = dict.fromkeys(candidates, 0.0)
    upper = dict.fromkeys(candidates, 1.0)
    radius = dict.fromkeys(candidates, 1.0)
    seconds, runs = 0.0, 0
    best, best_epsilon = 0, 1.0
    result_eliminations: list[tuple[int, int]] = []
    m = 0

    def run(config: int, instance: int, cap: float) -> None:
        """One run, booked and scored."""
        nonlocal seconds, runs
        t = min(runtime(config, instance), cap)
        outcomes[config, instance] = t
        seconds += t
        runs += 1
        if t < cap:
            worth = utility(t)
            low[config] += worth
            high[config] += worth
        else:
            high[config] += utility(cap)

    def rerun_cut(config: int, m: int, old: float, cap: float) -> None:
        """After a raise: the runs that were cut are made again; the sums lose what they counted before."""
        worth_before = utility(old)
        for instance in range(m):
            if outcomes[config, instance] >= old:
                high[config] -= worth_before
                run(config, instance, cap)

    previous = dict(captime)
    while m < n_instances and len(candidates) > 1 and best_epsilon > epsilon:
        for i in candidates:
            if stale[i]:
                rerun_cut(i, m, previous[i], captime[i])
                stale[i] = False
            run(i, m, captime[i])
        m += 1
        for i in candidates:
            at_cap = utility(captime[i])
            radius[i] = math.sqrt(math.log(11 * n_configs * m**2 * rung[i] ** 2 / delta) / (2 * m))
            lower[i] = max(lower[i], low[i] / m - radius[i])
            upper[i] = min(upper[i], high[i] / m + (1 - at_cap) * radius[i])
        leader = max(candidates, key=lambda i: (lower[i], high[i], -i))
        for i in list(candidates):
            if upper[i] < lower[leader] and i != leader:
                candidates.remove(i)
                result_eliminations.append((m, i))
        gap = max(0.0, max((upper[i] for i in candidates if i != leader), default=0.0) - lower[leader])
        if gap <= best_epsilon:
            best, best_epsilon = leader, gap
        for i in candidates:
            if 2 * radius[i] <= (high[i] - low[i]) / m and captime[i] < top:
                previous[i] = captime[i]
                captime[i] = min(2 * captime[i], top)
                rung[i] += 1
                stale[i] = True
    final: Sequence[float] = [previous[i] if stale[i] else captime[i] for i in range(n_configs)]
    return LoopResult(best, best_epsilon, m, candidates, list(final), seconds, runs, result_eliminations)
