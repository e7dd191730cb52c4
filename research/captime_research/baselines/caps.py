"""CapsAndRuns and its impatient form: first find each configuration's own cap, then race at these caps.

A configuration is stopped as soon as it has worked more than the best upper bound on a mean runtime allows.
"""

import heapq
import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from captime.errors import ScenarioError
from captime.procedures.baselines import Bench, Guess, Guesses
from captime_research.baselines.bernstein import Running, radius

# A guess is written down so often, in steps.
_STEPS_A_GUESS = 16
# Phase I looks so often, in runs, whether it has worked too much already.
_CHUNK = 64


@dataclass
class _Runner:
    """One configuration on its way through both phases."""

    config: int
    cap: float = 0.0
    captime: float = 0.0
    work: float = 0.0
    seen: Running = field(default_factory=Running)
    phase: str = "cap"
    off: float = math.inf


@dataclass
class Race:
    """The shared state of a CapsAndRuns race: the smallest upper bound on the best mean runtime.

    Args:
        bench: Where runs are made.
        n_configs: Among how many configurations the failure probability is shared.
        epsilon: How far from the optimal mean runtime the answer may be, as a share of it.
        gamma: Share of instances that may be cut (the papers call it delta).
        zeta: Allowed probability of failure.

    Attributes:
        limit: T, the smallest upper bound so far.
        samples: b, the instances of phase I.
    """

    bench: Bench
    n_configs: int
    epsilon: float
    gamma: float
    zeta: float
    limit: float = math.inf
    runners: dict[int, _Runner] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # The improved constants (CAR++): b = ⌈26 ln(2n/ζ)/δ⌉ and a work limit of 1.5 b T.
        self.samples = math.ceil(26.0 * math.log(2.0 * self.n_configs / self.zeta) / self.gamma)

    def advance(self, configs: Iterable[int], pause: float = math.inf) -> Guesses:
        """Run the configuration with the least work, until all are done or have made `pause` runs of phase II."""
        for config in configs:
            self.runners.setdefault(config, _Runner(config))
        waiting = [(each.work, each.config) for each in self.runners.values() if self._wants(each, pause)]
        heapq.heapify(waiting)
        step = 0
        while waiting:
            runner = self.runners[heapq.heappop(waiting)[1]]
            if runner.phase == "cap":
                self._find_cap(runner)
            else:
                self._compare(runner)
            if not waiting and not math.isfinite(pause) and self._alone(runner):
                runner.phase = "accepted"
            if self._wants(runner, pause):
                heapq.heappush(waiting, (runner.work, runner.config))
            step += 1
            if step % _STEPS_A_GUESS == 0 or not waiting:
                yield Guess(self.best(), len(waiting))

    def _wants(self, runner: _Runner, pause: float) -> bool:
        return runner.phase not in ("rejected", "accepted") and runner.seen.count < pause

    def best(self) -> int:
        """The accepted configuration with the smallest mean, or the one with the smallest upper bound so far."""
        accepted = [each for each in self.runners.values() if each.phase == "accepted"]
        if accepted:
            return min(accepted, key=lambda each: each.seen.mean).config
        started = [each for each in self.runners.values() if each.seen.count and each.phase != "rejected"]
        if started:
            return min(started, key=lambda each: each.seen.mean + min(each.off, each.cap)).config
        alive = [each.config for each in self.runners.values() if each.phase != "rejected"]
        return alive[0] if alive else 0

    def _alone(self, runner: _Runner) -> bool:
        """Return whether no other can have a smaller mean: all others are accepted with larger ones, or rejected."""
        others = [each for each in self.runners.values() if each is not runner]
        return all(each.phase == "rejected" or each.seen.mean - each.off > self.limit for each in others)

    def _find_cap(self, runner: _Runner) -> None:
        """Phase I: run the first b instances with growing captimes until all but 3δ/4 of them complete."""
        bench = self.bench
        runner.captime = min(max(2.0 * runner.captime, bench.longest / 2.0**14), bench.longest)
        work, ended = 0.0, []
        for first in range(0, self.samples, _CHUNK):
            last = min(self.samples, first + _CHUNK)
            seconds, completed = bench.prefix(runner.config, first, last, runner.captime)
            work += float(seconds.sum())
            ended += seconds[completed].tolist()
            # Runs are resumed where they stopped: the work of a configuration is what it ran on each instance.
            runner.work = max(runner.work, work)
            if runner.work >= 1.5 * self.samples * self.limit:
                runner.phase = "rejected"
                return
        needed = math.ceil(self.samples * (1.0 - 0.75 * self.gamma))
        if len(ended) >= needed:
            runner.cap, runner.phase = sorted(ended)[needed - 1], "race"
        elif runner.captime >= bench.longest:
            # Too many instances are unknown even at the longest captime: that is the cap that is known.
            runner.cap, runner.phase = bench.longest, "race"

    def _compare(self, runner: _Runner) -> None:
        """Phase II: one fresh instance at the cap, a Bernstein bound, and the best upper bound so far."""
        # A run that takes exactly the cap counts as completed: the cap is the runtime of one that did.
        captime = float(np.nextafter(runner.cap, np.inf))
        seconds, _ = self.bench.run(runner.config, self.samples + runner.seen.count, captime)
        runner.seen.add(min(seconds, runner.cap))
        runner.work += seconds
        runner.off = radius(runner.seen, runner.cap, self.zeta / self.n_configs)
        mean, off = runner.seen.mean, runner.off
        self.limit = min(self.limit, mean + off)
        if mean - off > self.limit:
            runner.phase = "rejected"
        elif off <= self.epsilon / 3.0 * (2.0 * mean - off):
            runner.phase = "accepted"


def caps_and_runs(bench: Bench, *, epsilon: float = 0.25, gamma: float = 0.2, zeta: float = 0.05) -> Guesses:
    """All configurations advance together; one that works more than the best bound allows is stopped.

    Args:
        bench: Where runs are made.
        epsilon: How far from the optimal mean runtime the answer may be, as a share of it.
        gamma: Share of instances that may be cut (the papers call it delta).
        zeta: Allowed probability of failure.
    """
    _check(epsilon, gamma, zeta)
    yield from Race(bench, bench.n_configs, epsilon, gamma, zeta).advance(range(bench.n_configs))


def impatient_caps_and_runs(
    bench: Bench, *, epsilon: float = 0.25, gamma: float = 0.2, zeta: float = 0.05, pool: float = 0.02
) -> Guesses:
    """Look at few configurations first, and let later ones in only if a short check does not rule them out.

    Args:
        bench: Where runs are made.
        epsilon: How far from the optimal mean runtime the answer may be, as a share of it.
        gamma: Share of instances that may be cut (the papers call it delta).
        zeta: Allowed probability of failure.
        pool: Share of the best configurations that are left out of the comparison (the paper's gamma).
    """
    _check(epsilon, gamma, zeta)
    if not 0 < pool < 0.5:
        raise ScenarioError(f"pool is {pool:g}; expected a share between 0 and 0.5")
    stages = max(1, math.ceil(math.log2(0.5 / pool)))
    share = zeta / 12.0
    order = bench.rng.permutation(bench.n_configs).tolist()
    sizes = [
        min(len(order), math.ceil(math.log(share / stages) / math.log(1.0 - pool * 2.0**stage)))
        for stage in range(stages - 1, -1, -1)
    ]
    race = Race(bench, max(sizes), epsilon, gamma, zeta)
    handled, survivors = 0, []
    for number, size in enumerate(sizes):
        fresh = order[handled:size]
        handled = max(handled, size)
        admitted = [config for config in fresh if number == 0 or _passes(race, config, stages, share)]
        survivors += admitted
        yield from race.advance(admitted, pause=race.samples)
    kept = [config for config in survivors if _passes(race, config, stages, share)]
    yield from race.advance(kept or survivors)


def _passes(race: Race, config: int, stages: int, share: float) -> bool:
    """A short check: find a cap that 80 % reach, run as many fresh instances, reject who is clearly slower."""
    bench, limit = race.bench, race.limit
    if not math.isfinite(limit):
        return True
    few = math.ceil(32.1 * math.log(2.0 * stages / share))
    captime = bench.longest / 2.0**14
    while True:
        captime = min(2.0 * captime, bench.longest)
        seconds, completed = bench.prefix(config, 0, few, captime)
        if int(np.count_nonzero(completed)) >= math.ceil(0.8 * few):
            break
        if float(seconds.sum()) >= 1.9 * few * limit:
            return False
        if captime >= bench.longest:
            break
    cap = float(np.sort(seconds)[math.ceil(0.8 * few) - 1])
    seen = Running()
    for position in range(few, 2 * few):
        seen.add(bench.run(config, position, float(np.nextafter(cap, np.inf)))[0])
        if seen.mean * seen.count > 2.99 * few * limit:
            return False
    x = math.log(3.0 * stages / share)
    off = math.sqrt(2.0 * seen.variance * x / few) + 3.0 * cap * x / few
    return seen.mean - off <= limit


def _check(epsilon: float, gamma: float, zeta: float) -> None:
    if not (epsilon > 0 and 0 < gamma < 1 and 0 < zeta < 1):
        raise ScenarioError(
            f"epsilon is {epsilon:g}, gamma {gamma:g}, zeta {zeta:g}; expected epsilon above 0, gamma and zeta between "
            "0 and 1"
        )
