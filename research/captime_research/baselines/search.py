"""Two searchers in the manner of well-known configurators, small: local search and a genetic search with two genders.

Neither promises anything. They walk among the configurations of a table, or of a pool drawn from a space; which of them
are neighbours is read from the settings in the configurations' names.
"""

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.errors import ScenarioError
from captime.procedures.baselines import Bench, Guess, Guesses, NoMoreInstances
from captime_research.baselines.halving import usual_captime
from captime_research.baselines.settings import distances


def local_search(
    bench: Bench, *, captime: float | None = None, steps: int = 200, restart: float = 0.01, kick: int = 3
) -> Guesses:
    """Iterated local search in the manner of ParamILS (its FocusedILS form).

    A challenger is compared with the incumbent on the instances it has run, one by one, until it has run as many; it
    loses as soon as it is behind. An incumbent that wins earns a bonus of further instances.

    Args:
        bench: Where runs are made.
        captime: Every run is cut here, in CPU seconds. Left out: where an answer has lost nine tenths of its worth.
        steps: Local optima to visit.
        restart: Probability of starting anywhere after a local optimum.
        kick: Random steps away from a local optimum.
    """
    if steps < 1 or kick < 1 or not 0 <= restart <= 1:
        raise ScenarioError(f"steps {steps}, kick {kick}, restart {restart:g}: expected 1 or more, and a probability")
    search = _Search(bench, usual_captime(bench) if captime is None else captime)
    near = search.neighbours()
    best = here = int(bench.rng.integers(bench.n_configs))
    search.extend(best, 1)
    for _ in range(steps):
        improved = True
        while improved:
            improved = False
            for other in bench.rng.permutation(near[here]).tolist():
                if search.beats(other, here):
                    here, improved = other, True
                    break
            yield Guess(best, bench.n_configs)
        if here != best and search.beats(here, best):
            best = here
        yield Guess(best, bench.n_configs)
        here = best
        for _ in range(kick):
            here = int(bench.rng.choice(near[here]))
        if bench.rng.random() < restart:
            here = int(bench.rng.integers(bench.n_configs))


class _Search:
    """Scores of configurations on prefixes of the stream, for comparisons instance by instance."""

    def __init__(self, bench: Bench, captime: float) -> None:
        self._bench = bench
        self._captime = captime
        self._scores: list[FloatArray] = [np.empty(0) for _ in range(bench.n_configs)]

    def neighbours(self) -> list[IntArray]:
        """Return, for each configuration, those that differ in one setting; if there are none, in the fewest."""
        bench = self._bench
        apart = distances(bench.names or tuple(map(str, range(bench.n_configs))))
        np.fill_diagonal(apart, np.iinfo(np.int64).max)
        return [np.flatnonzero(row == max(1, row.min())) for row in apart]

    def extend(self, config: int, last: int) -> bool:
        """Run it on the first `last` instances; False if there are fewer."""
        have = len(self._scores[config])
        if last > have:
            try:
                more = self._bench.utilities(config, have, last, self._captime)
            except NoMoreInstances:
                return False
            self._scores[config] = np.concatenate((self._scores[config], more))
        return True

    def beats(self, challenger: int, incumbent: int) -> bool:
        """Whether the challenger is at least as good on every prefix it is compared on; the winner earns a bonus."""
        if len(self._scores[incumbent]) == 0:
            self.extend(incumbent, 1)
        target = len(self._scores[incumbent])
        # Every visit begins one instance further on, so that bad luck on the first ones is not for ever.
        n = min(len(self._scores[challenger]) + 1, target)
        while True:
            self.extend(challenger, n)
            if self._scores[challenger][:n].mean() < self._scores[incumbent][:n].mean():
                self.extend(incumbent, target + 1)
                return False
            if n >= target:
                break
            n = min(2 * n, target)
        self.extend(challenger, target + max(1, target // 10))
        return True


def genetic_search(
    bench: Bench,
    *,
    captime: float | None = None,
    population: int = 20,
    generations: int = 30,
    group: int = 5,
    mutation: float = 0.1,
) -> Guesses:
    """A genetic search in the manner of GGA: half of the population competes, the other half only passes genes on.

    Those who compete race in groups on as many instances as the generation allows; the winners of the groups mate with
    random others. A child takes each setting from one of its parents, or another value by mutation; since only the
    configurations of the table can be run, it becomes the nearest one of them.

    Args:
        bench: Where runs are made.
        captime: Every run is cut here, in CPU seconds. Left out: where an answer has lost nine tenths of its worth.
        population: Individuals of both genders together.
        generations: How many.
        group: Competitors that race against each other.
        mutation: Probability that a child becomes a random configuration instead.
    """
    if population < 4 or group < 2 or generations < 1 or not 0 <= mutation <= 1:
        raise ScenarioError(
            f"population {population}, group {group}, generations {generations}, mutation {mutation:g}: expected at "
            "least 4, 2 and 1, and a probability"
        )
    captime = usual_captime(bench) if captime is None else captime
    apart = distances(bench.names or tuple(map(str, range(bench.n_configs))))
    half = population // 2
    draw = bench.rng.permutation(bench.n_configs)
    competing, waiting = draw[:half].tolist(), draw[half:population].tolist() or draw[:half].tolist()
    best = int(competing[0])
    for generation in range(generations):
        # From few instances to many, as the population improves.
        n = round(np.interp(generation, (0, max(1, generations - 1)), (4, 64)))
        n = n if bench.length is None else min(n, bench.length)
        scores = {each: float(bench.utilities(each, 0, n, captime).mean()) for each in sorted({*competing, best})}
        best = max(scores, key=lambda each: (scores[each], -each))
        yield Guess(best, len({*competing, *waiting}))
        bench.rng.shuffle(competing)
        groups = [competing[start : start + group] for start in range(0, len(competing), group)]
        winners = [max(each, key=lambda config: scores[config]) for each in groups]
        children = [
            _child(bench, apart, int(bench.rng.choice(winners)), int(bench.rng.choice(waiting)), mutation)
            for _ in range(half)
        ]
        # Children replace losers and, in the other gender, those who have waited longest.
        competing = [*winners, *children[: half - len(winners)]]
        waiting = [*children[half - len(winners) :], *waiting][:half]


def _child(bench: Bench, apart: IntArray, one: int, other: int, mutation: float) -> int:
    """A configuration of the table between its parents: nearest to both, as near to either as chance decides."""
    if bench.rng.random() < mutation:
        return int(bench.rng.integers(bench.n_configs))
    share = bench.rng.random()
    stretch = share * apart[one] + (1.0 - share) * apart[other]
    nearest = np.flatnonzero(stretch <= stretch[[one, other]].max())
    return int(bench.rng.choice(nearest))
