"""A target learnt from a table: it answers for every configuration with runs of similar recorded ones.

A forest of scikit-learn's learns which recorded configurations a new one resembles: those that share its leaves, each
with the share of trees in which they do. A run of the new one on an instance is then the recorded run of one of them on
that instance, drawn by these shares. So nothing is smoothed away: runs are as spread, as correlated over instances and
as often cut as they were recorded; a configuration that is in the table behaves as it did; and what a configuration is
worth is known exactly: the mean of the recorded worths by these shares.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.errors import MissingExtra
from captime.simulation.target import APART, Luck
from captime.sources import RuntimeTable
from captime.sources.sampling import stream_of
from captime.spaces import Settings, Space
from captime.spaces.features import features
from captime.utilities import Utility

_TREES = 50
# The forest learns what sets configurations apart: so many leading directions of their logarithmic runtimes.
_DIRECTIONS = 8
# Runtimes below this are all alike to the forest.
_SHORTEST = 1e-3
_DONORS = 0xD0505


class Learnt:
    """See above; the attributes are those of the protocol.

    Args:
        space: The space.
        table: Recorded runtimes of some configurations of the space.
        settings: Theirs, in the order of the table.
        sampling: In which order instances are met, as on a table; `replace` has no end.
        seed: Of the order, of the forest and of all runs.
    """

    def __init__(
        self,
        space: Space,
        table: RuntimeTable,
        settings: Sequence[Settings],
        *,
        sampling: str = "replace",
        seed: int = 0,
    ) -> None:
        self.name = f"{table.name}, learnt"
        self.limit = table.limit
        self.n_instances = table.n_instances
        self.law = (
            f"Runtimes are drawn from those of similar configurations among the {table.n_configs:,} recorded in "
            f"{table.name}; what is true of them need not be true of the program."
        )
        self._space = space
        self._table = table
        self._stream = stream_of(sampling, table.groups, seed)
        self.length = self._stream.length
        self.population = self._stream.population
        self._seed = seed
        self._inputs = features(space, np.array([space.codes(each) for each in settings]))
        self._forest = _grown(self._inputs, _directions(table), seed)
        self._leaves: IntArray = self._forest.apply(self._inputs)
        self._shares: list[FloatArray] = []
        self._luck: list[Luck] = []

    def add(self, settings: Settings) -> None:
        """See the protocol."""
        self._shares.append(np.cumsum(self.resemblance([settings])[0]))
        self._luck.append(Luck(_DONORS, self._seed, settings))

    def resemblance(self, settings: Sequence[Settings]) -> FloatArray:
        """How much configurations resemble each recorded one; rows sum to 1."""
        inputs = features(self._space, np.array([self._space.codes(each) for each in settings]))
        found = np.zeros((len(inputs), len(self._leaves)))
        for own, leaves in zip(self._leaves.T, self._forest.apply(inputs).T, strict=True):
            together = leaves[:, None] == own
            found += together / together.sum(axis=1, keepdims=True)
        return np.asarray(found / self._leaves.shape[1])

    def seconds(self, config: int, first: int, last: int) -> FloatArray:
        """See the protocol."""
        luck = self._luck[config].at(first, last)
        # A sum of shares may miss 1 by a rounding error.
        donor = np.minimum(np.searchsorted(self._shares[config], luck, side="right"), self._table.n_configs - 1)
        seconds: FloatArray = self._table.seconds[donor, self._stream.rows(first, last)]
        return seconds

    def worths(self, settings: Sequence[Settings], utility: Utility) -> FloatArray:
        """See the protocol. A run recorded at the timeout counts as never finishing."""
        recorded = np.where(self._table.seconds < self.limit, utility(self._table.seconds), 0.0).mean(axis=1)
        return np.asarray(self.resemblance(settings) @ recorded)

    def anyone(self, count: int) -> list[Settings]:
        """See the protocol."""
        rng = np.random.default_rng([APART, self._seed])
        return [self._space.settings(row) for row in self._space.drawn(rng, count)]


def _directions(table: RuntimeTable) -> FloatArray:
    """What sets the configurations apart, in a few numbers each."""
    finite = table.seconds[np.isfinite(table.seconds)]
    longest = table.limit if np.isfinite(table.limit) else 10.0 * float(finite.max(initial=1.0))
    logs = np.log(np.clip(table.seconds, _SHORTEST, longest))
    centred = logs - logs.mean(axis=0)
    left, strength, _ = np.linalg.svd(centred, full_matrices=False)
    directions: FloatArray = (left * strength)[:, :_DIRECTIONS]
    return directions


def _grown(inputs: FloatArray, outputs: FloatArray, seed: int) -> Any:
    try:
        # Imported here: it is optional, and takes a second.
        from sklearn.ensemble import ExtraTreesRegressor  # noqa: PLC0415 (see above)
    except ImportError:
        raise MissingExtra("a target learnt from a table", "model") from None
    forest = ExtraTreesRegressor(_TREES, random_state=seed % 2**32)
    return forest.fit(inputs, outputs)
