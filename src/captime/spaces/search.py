"""Where a model thinks good configurations are: candidates bred from the best known and from random ones.

Children take after two parents and change a few parameters, some to a fresh value and some to one nearby; what the
model thinks most of has children next. One-at-a-time steps would take sixty of them where sixty parameters wait.
"""

import math

import numpy as np

from captime.arrays import FloatArray
from captime.spaces.features import Ranges
from captime.spaces.model import FLOOR, Surrogate
from captime.spaces.space import Space

# The search begins with the 12 best known and 150 random ones; each of 8 generations has 150 children; 30 survive.
_KNOWN, _RANDOM, _CHILDREN, _GENERATIONS, _PARENTS = 12, 150, 150, 8, 30
# A child of two parents takes each parameter from the second with this probability.
_MIXED, _FROM_SECOND = 0.7, 0.3
# A child changes about this many parameters, drawn from this list; half of the numbers move to a value nearby.
_CHANGES = (1.0, 2.0, 5.0)
_NEARBY, _SPREAD = 0.5, 0.15
# A variation is the very best with this share of its parameters changed, or a mixture of two with this share changed.
_ALONE, _CHANGED, _CHANGED_OF_MIXED = 0.5, 0.2, 0.05
# This many fresh values of each parameter are drawn for a whole search.
_FRESH = 64
# This many candidates are kept to be given out until there is a new model.
_KEPT = 300


class Search:
    """Candidates that a model thinks well of.

    Args:
        model: The model.
        rng: Of random candidates and of their children.

    Attributes:
        candidates: A row each.
        mean: What the model expects of them.
        doubt: Its standard deviation, less what each of those who were given out will tell. What two of them tell alike
            is taken off twice, so it is rather too little: a preference for what is new, and no more than that.
    """

    def __init__(self, model: Surrogate, rng: np.random.Generator) -> None:
        space = model.space
        # Each search has its own taste for doubt, and every later choice among its candidates another.
        taste = rng.exponential()
        nursery = Nursery(space, rng)
        known_mean, _ = model.expected(model.rows)
        best_known = model.rows[np.argsort(-known_mean, kind="stable")[:_KNOWN]]
        here = np.concatenate([best_known, space.drawn(rng, _RANDOM)])
        mean, doubt = model.expected(here)
        for _ in range(_GENERATIONS):
            order = np.argsort(-(mean + taste * doubt), kind="stable")
            children = nursery.children(here[order[:_PARENTS]], rng, _CHILDREN)
            more, unsure = model.expected(children)
            kept = order[:_KEPT]
            here = np.concatenate([here[kept], children])
            mean, doubt = np.append(mean[kept], more), np.append(doubt[kept], unsure)
        self._place = {key: place for place, key in enumerate(keys(here))}
        self.candidates: FloatArray = here
        self.mean: FloatArray = mean
        self.doubt: FloatArray = doubt
        self._shared_doubt = model.shared_doubt(here)

    def best(self, taken: FloatArray, rng: np.random.Generator) -> FloatArray | None:
        """The best candidate that is not in the pool; None if there is none left.

        Each proposal weighs high expectation and doubt differently, and a candidate that is given out will be known
        soon, so that its neighbours have less to tell: many proposals of one model spread out.
        """
        gone = set(keys(taken))
        free = np.array([place for key, place in self._place.items() if key not in gone], dtype=np.int64)
        if not len(free):
            return None
        worth = self.mean[free] + rng.exponential() * self.doubt[free]
        place = int(free[int(worth.argmax())])
        chosen: FloatArray = self.candidates[place]
        told = self._shared_doubt(place) ** 2 / (self.doubt[place] ** 2 + FLOOR)
        self.doubt = np.sqrt(np.maximum(self.doubt**2 - told, 0.0))
        return chosen


class Nursery:
    """Makes children of configurations.

    Args:
        space: The space.
        rng: Draws the values that children may change to, once.
    """

    def __init__(self, space: Space, rng: np.random.Generator) -> None:
        self._space = space
        self._ranges = Ranges(space)
        shares = rng.random((_FRESH, len(space.parameters)))
        self._fresh: FloatArray = np.stack(
            [parameter.at(share) for parameter, share in zip(space.parameters, shares.T, strict=True)], axis=1
        )

    def children(self, parents: FloatArray, rng: np.random.Generator, count: int) -> FloatArray:
        """Children of these configurations, the first being the best: those of them that may be run."""
        space, shape = self._space, (count, len(self._space.parameters))
        # The square prefers the best; defaults stand in for what is inactive in a parent and may not be in the child.
        first = parents[(rng.random(count) ** 2 * len(parents)).astype(np.int64)]
        second = parents[rng.integers(len(parents), size=count)]
        child = np.where(np.isnan(first), space.default_row, first)
        mixed = (rng.random((count, 1)) < _MIXED) & (rng.random(shape) < _FROM_SECOND) & ~np.isnan(second)
        child = np.where(mixed, second, child)
        changed = rng.random(shape) < rng.choice(_CHANGES, size=(count, 1)) / shape[1]
        child = space.deactivated(np.where(changed, self._others(child, rng), child))
        return child[space.allowed(child)]

    def variations(self, best: FloatArray, rng: np.random.Generator, count: int) -> FloatArray:
        """Configurations that are unlike each other and not too unlike the best: those of them that may be run.

        One in two is the very best with a fifth of its parameters changed. The others take each parameter from one of
        two of the best, and a few fresh values.

        Args:
            best: The best known, the very best first.
            rng: Draws them.
            count: How many are made.
        """
        space, shape = self._space, (count, len(self._space.parameters))
        full = np.where(np.isnan(best), space.default_row, best)
        first, second = full[rng.integers(len(full), size=count)], full[rng.integers(len(full), size=count)]
        mixed = np.where(rng.random(shape) < 0.5, first, second)
        alone = rng.random((count, 1)) < _ALONE
        ranks = rng.random(shape).argsort(axis=1).argsort(axis=1)
        changed = np.where(alone, ranks < math.ceil(_CHANGED * shape[1]), rng.random(shape) < _CHANGED_OF_MIXED)
        child = np.where(alone, full[:1], mixed)
        child = space.deactivated(np.where(changed, self._others(child, rng), child))
        return child[space.allowed(child)]

    def _others(self, codes: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Other values: by the laws of the parameters, or near the ones there are."""
        fresh = np.take_along_axis(self._fresh, rng.integers(_FRESH, size=codes.shape), axis=0)
        units = self._ranges.units(codes)
        near = self._ranges.values(_reflected(units + _SPREAD * rng.standard_normal(units.shape)))
        places = self._ranges.places
        fresh[:, places] = np.where(rng.random(units.shape) < _NEARBY, near, fresh[:, places])
        return fresh


def keys(rows: FloatArray) -> list[bytes]:
    """Configurations as something to look up; not-a-numbers have but one form here, and minus zero is zero."""
    return [row.tobytes() for row in rows + 0.0]


def _reflected(units: FloatArray) -> FloatArray:
    """Places beyond an end, folded back: a normal step that never leaves the range, without drawing again."""
    folded = np.abs(units) % 2.0
    return np.where(folded > 1.0, 2.0 - folded, folded)
