"""AC-Band: random configurations race in groups, instance by instance; those with the most wins advance."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from captime.arrays import IntArray
from captime.errors import ScenarioError
from captime.procedures.baselines import Bench, Guess, Guesses


def ac_band(
    bench: Bench,
    *,
    cores: int = 4,
    alpha: float = 0.05,
    zeta: float = 0.05,
    instances: int | None = None,
    captime: float | None = None,
) -> Guesses:
    """Groups of as many configurations as there are cores start together; the first to finish gets the point.

    Points are counted by wins. (The variant with utilities in a published comparison credits the winner's utility to
    all members of the group, so that all tie; it is not followed.)

    Args:
        bench: Where runs are made.
        cores: How many run at the same time.
        alpha: With probability 1 - zeta one of the best `alpha` share of configurations is among those drawn.
        zeta: See alpha.
        instances: Budget, counted in instances that a group races on. Left out: 2000.
        captime: Every run is cut here, in CPU seconds. Left out: the longest that is known.
    """
    if cores < 2 or not (0 < alpha < 1 and 0 < zeta < 1):
        raise ScenarioError(
            f"cores is {cores}, alpha {alpha:g}, zeta {zeta:g}; expected 2 cores or more, shares between 0 and 1"
        )
    budget = 2000 if instances is None else instances
    captime = bench.longest if captime is None else captime
    drawn = math.ceil(math.log(zeta) / math.log(1.0 - alpha))
    sizes, shares = epochs(drawn, cores)
    fresh = iter(_without_end(bench))
    incumbent, position = next(fresh), 0
    for epoch, (size, share) in enumerate(zip(sizes, shares, strict=True), start=1):
        contenders = [incumbent]
        while len(contenders) < min(size, bench.n_configs):
            other = next(fresh)
            if other not in contenders:
                contenders.append(other)
        rules = _Rules(cores, math.log2((epoch + cores - 1) / epoch), int(budget * share), captime)
        for survivors, used in _elimination(bench, np.array(contenders), rules, position):
            incumbent, position = int(survivors[0]), used
            yield Guess(incumbent, len(survivors))


def epochs(drawn: int, cores: int) -> tuple[list[int], list[float]]:
    """Configurations in each epoch, and its share of the instances; the shares add up to 1.

    >>> epochs(59, 4)[0]
    [31, 16, 9, 5, 3, 2]
    """
    most = drawn + 1
    n_epochs = math.ceil(math.log2(most))
    base = math.log(1.0 + (cores - 1) / n_epochs)
    c1, c2, c3 = math.log(2.0) / base, 1.0 + math.log(most + 4.0 * most) / base, math.log(cores) / base
    total = c1 * n_epochs - (2.0**n_epochs - 1.0) * (2.0 * c1 - c2 - c3)
    sizes = [math.ceil(most / 2**epoch) + 1 for epoch in range(1, n_epochs + 1)]
    shares = [2.0**n_epochs * (-epoch * c1 + c2 + c3) / (2.0**epoch * total) for epoch in range(1, n_epochs + 1)]
    return sizes, shares


@dataclass(frozen=True, slots=True)
class _Rules:
    """One epoch: size of a group, how sharply it is cut (2^-rho stay), instances to race on, and the captime."""

    cores: int
    rho: float
    instances: int
    captime: float

    def survivors(self, size: int) -> int:
        """Return how many of a group advance; always fewer than there are, so that it ends."""
        return max(1, min(size - 1, math.floor(size / math.pow(2.0, self.rho))))

    def rounds(self, size: int) -> int:
        """How many rounds it takes until one is left."""
        count = 0
        while size > 1:
            full, rest = divmod(size, self.cores)
            size = self.survivors(size) if size <= self.cores else full * self.survivors(self.cores) + rest
            count += 1
        return max(1, count)


def _elimination(bench: Bench, alive: IntArray, rules: _Rules, position: int) -> Iterator[tuple[IntArray, int]]:
    """Combinatorial successive elimination: who survives each round, and the next fresh instance."""
    rounds = rules.rounds(len(alive))
    while len(alive) > 1:
        groups = [alive[start : start + rules.cores] for start in range(0, len(alive), rules.cores)]
        racing = [group for group in groups if len(group) == rules.cores] or groups[:1]
        each = max(1, rules.instances // (len(racing) * rounds))
        kept: list[IntArray] = []
        for group in groups:
            if len(group) < rules.cores and len(groups) > 1:
                kept.append(group)  # an incomplete group passes untouched
                continue
            wins = dict.fromkeys(group.tolist(), 0)
            for _ in range(each):
                winner = bench.race(group, position, rules.captime)
                position += 1
                if winner is not None:
                    wins[winner] += 1
            order = sorted(group.tolist(), key=wins.__getitem__, reverse=True)
            kept.append(np.array(order[: rules.survivors(len(group))]))
        alive = np.concatenate(kept)
        yield alive, position


def _without_end(bench: Bench) -> Iterator[int]:
    """Configurations in random order; when all have been drawn, again."""
    while True:
        yield from bench.rng.permutation(bench.n_configs).tolist()
