"""Structured Procrastination, with and without confidence bounds: hard instances are put off, never forgotten.

Both look for the smallest mean runtime, not for the largest utility. Every configuration has a queue of instances, each
with a captime of its own; an instance that was cut goes to the end of the queue with twice the captime.
"""

import heapq
import math
from bisect import bisect_left, insort
from collections import deque

import numpy as np

from captime.errors import ScenarioError
from captime.procedures.baselines import Bench, Guess, Guesses

# Lower confidence bounds depend on the number of steps through its logarithm only, so all of them are computed afresh
# when it has grown by a half. A configuration's own is computed when a hundredth of its runs are new; the published
# code waits for up to 1000 steps.
_REFRESH, _FRESH_RUNS = 1.5, 0.01
# A guess is written down so often, in steps.
_STEPS_A_GUESS = 16


def structured_procrastination(
    bench: Bench, *, epsilon: float = 0.25, zeta: float = 0.05, captime_first: float | None = None
) -> Guesses:
    """The configuration with the smallest mean runtime so far makes the next run in its queue.

    Args:
        bench: Where runs are made.
        epsilon: How far from the optimal mean runtime the answer may be, as a share of it.
        zeta: Allowed probability of failure.
        captime_first: Captime of a first try, in CPU seconds. Left out: a thousandth of the longest.
    """
    if not (epsilon > 0 and 0 < zeta < 1):
        raise ScenarioError(f"epsilon is {epsilon:g} and zeta {zeta:g}; expected above 0, and between 0 and 1")
    first = _first(bench, captime_first)
    n_configs = bench.n_configs
    doublings = max(1.0, math.log2(bench.longest / first))

    def queue_length(distinct: int) -> int:
        return math.ceil(12.0 / epsilon**2 * math.log(3.0 * doublings * n_configs * distinct**2 / zeta))

    queues = [deque((position, first) for position in range(queue_length(1))) for _ in range(n_configs)]
    opened = [len(queue) for queue in queues]
    distinct, total, step = [0] * n_configs, [0.0] * n_configs, 0
    latest: list[dict[int, float]] = [{} for _ in range(n_configs)]
    waiting = [(0.0, config) for config in range(n_configs)]
    while True:
        _, config = heapq.heappop(waiting)
        position, captime = queues[config].popleft()
        seconds, completed = bench.run(config, position, captime)
        distinct[config] += position not in latest[config]
        total[config] += seconds - latest[config].get(position, 0.0)
        latest[config][position] = seconds
        if not completed and captime < bench.longest:
            queues[config].append((position, 2.0 * captime))
        while len(queues[config]) < queue_length(distinct[config]):
            queues[config].appendleft((opened[config], captime))
            opened[config] += 1
        heapq.heappush(waiting, (total[config] / distinct[config], config))
        step += 1
        if step % _STEPS_A_GUESS == 0:
            # The one on which most time was spent: the others were found to be worse, or not looked at for long.
            yield Guess(max(range(n_configs), key=total.__getitem__), n_configs)


class _Runtimes:
    """The latest capped runtimes of one configuration, sorted, and a lower confidence bound on their mean."""

    def __init__(self) -> None:
        self.values: list[float] = []
        self._latest: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self.values)

    def record(self, position: int, seconds: float) -> None:
        """This is how long that instance was seen to take."""
        if position in self._latest:
            del self.values[bisect_left(self.values, self._latest[position])]
        self._latest[position] = seconds
        insort(self.values, seconds)

    def lower_bound(self, step: int) -> float:
        """The area under a lower bound of the survival function."""
        values, count = np.array(self.values), len(self.values)
        # Survival just before each value: who is not done yet.
        share = 1.0 - np.arange(count) / count
        halvings = np.floor(-np.log2(share))
        # [SPC] The logarithm is of k·t; with k = 0 the published code takes ln t.
        radius = np.sqrt(9.0 * 2.0**halvings * np.log(np.maximum(2.0, np.maximum(1.0, halvings) * step)) / count)
        height = np.where(radius <= 0.5, share / (1.0 + radius), 0.0)
        return float(np.diff(values, prepend=0.0) @ height)


def spc(bench: Bench, *, captime_first: float | None = None) -> Guesses:
    """The configuration with the smallest lower bound on its mean runtime runs next; no goal is needed beforehand.

    Args:
        bench: Where runs are made.
        captime_first: Captime of a first try, in CPU seconds. Left out: a thousandth of the longest.
    """
    first = _first(bench, captime_first)
    n_configs = bench.n_configs
    queues: list[deque[tuple[int, float]]] = [deque() for _ in range(n_configs)]
    active, captimes = [0] * n_configs, [first] * n_configs
    known = [_Runtimes() for _ in range(n_configs)]
    waiting = [(0.0, config) for config in range(n_configs)]
    bounds, fresh = [0.0] * n_configs, [0] * n_configs
    step, refresh = 0, 2.0
    while True:
        step += 1
        _, config = heapq.heappop(waiting)
        many = active[config]
        target = 25 if many <= 1 or step <= 1 else math.ceil(25.0 * math.log2(step * math.log2(many)))
        if len(queues[config]) < target:
            position, captime = many, captimes[config]
            active[config] += 1
        else:
            position, captime = queues[config].popleft()
            captimes[config] = captime
        seconds, completed = bench.run(config, position, captime)
        known[config].record(position, seconds)
        if not completed and captime < bench.longest:
            queues[config].append((position, 2.0 * captime))
        fresh[config] += 1
        if fresh[config] >= _FRESH_RUNS * len(known[config]):
            bounds[config], fresh[config] = known[config].lower_bound(step), 0
        heapq.heappush(waiting, (bounds[config], config))
        if step >= refresh:
            refresh *= _REFRESH
            bounds = [each.lower_bound(step) if len(each) else 0.0 for each in known]
            waiting = [(bounds[other], other) for other in range(n_configs)]
            heapq.heapify(waiting)
        if step % _STEPS_A_GUESS == 0:
            yield Guess(max(range(n_configs), key=active.__getitem__), n_configs)


def _first(bench: Bench, captime_first: float | None) -> float:
    first = bench.longest / 1000.0 if captime_first is None else captime_first
    if not 0 < first <= bench.longest < math.inf:
        raise ScenarioError(
            f"the first captime is {first:g} s and the longest {bench.longest:g} s; expected 0 < first <= longest, and "
            "a longest one that is finite: declare the table's timeout"
        )
    return first
