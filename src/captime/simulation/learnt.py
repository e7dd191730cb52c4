"""Simulated targets on a space: what one is, and one that is learnt from recorded runs."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import ndtri

from captime.arrays import FloatArray, IntArray
from captime.errors import MissingExtra, ScenarioError
from captime.sources import RuntimeTable
from captime.sources.window import stream_of
from captime.spaces import Settings, Space
from captime.spaces.features import Basis, features
from captime.utilities import Utility

# What stands for the program when a campaign on a space is simulated: it answers for every configuration.
#
# A target's law is known exactly, so a simulation can say what its answer is really worth. The same seed, settings
# and position give the same runtime, whatever other runs are asked for.

# Keeps random configurations that are never run apart from the draws of any pool.
APART = 0xA9A27
# Random numbers of a configuration come in blocks of this many positions, so that the order of asking changes none.
_BLOCK = 1024


class Target(Protocol):
    """Runtimes of configurations that become known one by one.

    Attributes:
        name: What to call it in reports.
        limit: Nothing is known of runs beyond this; infinity if there is no such limit.
        length: How many positions the stream has; None if it is endless.
        population: `stream` or `finite`, as of a table's.
        n_instances: Recorded instances behind it; 0 if there are none.
        law: What it rests on, in a sentence for people.
    """

    name: str
    limit: float
    length: int | None
    population: str
    n_instances: int
    law: str

    def add(self, settings: Settings) -> None:
        """One more configuration, with the next index."""
        ...

    def seconds(self, config: int, first: int, last: int) -> FloatArray:
        """Return how long it takes on positions first, …, last - 1, without a captime."""
        ...

    def worths(self, settings: Sequence[Settings], utility: Utility) -> FloatArray:
        """What configurations are truly worth: their expected utilities by the target's own law."""
        ...

    def random_settings(self, count: int) -> list[Settings]:
        """Return `count` random configurations, of no concern to the pool: to see how an answer compares."""
        ...


class Luck:
    """Random numbers between 0 and 1 by position, that belong to one configuration.

    Args:
        stream: Keeps different uses apart.
        seed: Of the simulation.
        settings: The configuration's; None for numbers that all configurations share.
    """

    def __init__(self, stream: int, seed: int, settings: Settings | None) -> None:
        text = json.dumps(settings, sort_keys=True).encode()
        own = 0 if settings is None else int.from_bytes(hashlib.sha256(text).digest()[:8])
        self._key = (stream, seed, own)
        self._blocks: list[FloatArray] = []

    def at(self, first: int, last: int) -> FloatArray:
        """Of positions first, …, last - 1."""
        while len(self._blocks) * _BLOCK < last:
            self._blocks.append(np.random.default_rng([*self._key, len(self._blocks)]).random(_BLOCK))
        blocks = self._blocks[first // _BLOCK : -(-last // _BLOCK)]
        if not blocks:
            return np.empty(0)
        start = first // _BLOCK * _BLOCK
        return np.concatenate(blocks)[first - start : last - start]


# A made-up target on any space: a few parameters matter, alone and in pairs, and instances differ in hardness.
#
# Runtimes are exp(effect of the configuration + hardness of the instance + noise) seconds: what a configuration is
# worth is an integral over a normal law, and known.
#
# If asked for, there are cliffs: beyond them runs take so long that they are worth next to nothing, as if the program
# failed there. They lie on the fast side, as they do in life: what is faster does less, until it does not do the job.

# About eight parameters matter, and four pairs of them besides.
_MATTER, _PAIRS = 8, 4
# Standard deviations on the logarithmic scale: of configurations, of instances, of what is left.
_SPREAD, _HARDNESS, _NOISE = 0.8, 1.0, 0.4
_LANDSCAPE, _INSTANCES, _RUNS = 0x5CA9E, 0x1257, 0x2025
# Places at which the normal law is cut into equal shares, to take means over it.
_SHARES = 400
_CALIBRATION = 500
# Beyond a cliff runs take exp(this) times as long. Where it lies is a matter of speed, to this extent, and of another
# direction.
_DEEP, _FAST_SIDE = 5.0, 0.7


class MadeUp:
    """See above; the attributes are those of the protocol.

    Args:
        space: The space.
        typical: Seconds that the default configuration takes on an instance of middling hardness.
        seed: Of everything.
        cliffs: Share of random configurations that lie beyond a cliff.
    """

    limit: float = np.inf
    length: int | None = None
    population: str = "stream"
    n_instances: int = 0

    def __init__(self, space: Space, typical: float, *, seed: int = 0, cliffs: float = 0.0) -> None:
        self.name = f"made-up target, seed {seed}"
        self.law = "Runtimes are made up from the seed; they say nothing about any program."
        self._space = space
        self._basis = Basis(space)
        self._seed = seed
        rng = np.random.default_rng([_LANDSCAPE, seed])
        columns = len(self._basis.owners)
        matter = rng.choice(columns, min(_MATTER, columns), replace=False)
        self._weights = np.zeros(columns)
        self._weights[matter] = rng.standard_normal(len(matter))
        self._pairs = rng.choice(matter, (_PAIRS, 2))
        self._pair_weights = 0.7 * rng.standard_normal(_PAIRS)
        self._scale, self._shift = 1.0, 0.0
        # Scaled so that random configurations are spread as said, and shifted so that the default is typical.
        drawn = space.drawn(rng, _CALIBRATION)
        effects = self._effects(drawn)
        self._scale = _SPREAD / max(float(effects.std()), 1e-9)
        self._shift = float(np.log(typical) - self._effects(space.codes(space.default)[np.newaxis])[0])
        self._middle = float(self._effects(drawn).mean())
        self._other_way = rng.standard_normal(columns)
        self._other_way /= max(float((self._basis(drawn) @ self._other_way).std()), 1e-9)
        self._edge = float(np.quantile(self._recklessness(drawn), 1.0 - cliffs)) if cliffs > 0.0 else np.inf
        self._hardness = Luck(_INSTANCES, seed, None)
        self._log_speed: list[float] = []
        self._luck: list[Luck] = []

    def _effects(self, codes: FloatArray) -> FloatArray:
        terms = self._basis(codes)
        together = terms[:, self._pairs[:, 0]] * terms[:, self._pairs[:, 1]]
        return np.asarray(self._shift + self._scale * (terms @ self._weights + together @ self._pair_weights))

    def add(self, settings: Settings) -> None:
        """See the protocol."""
        self._log_speed.append(float(self._log_speeds([settings])[0]))
        self._luck.append(Luck(_RUNS, self._seed, settings))

    def _recklessness(self, codes: FloatArray) -> FloatArray:
        """How near to a cliff configurations are: the faster the nearer, and some ways more than others."""
        fast = (self._middle - self._effects(codes)) / _SPREAD
        other_way = self._basis(codes) @ self._other_way
        return np.asarray(_FAST_SIDE * fast + np.sqrt(1.0 - _FAST_SIDE**2) * other_way)

    def _log_speeds(self, settings: Sequence[Settings]) -> FloatArray:
        codes = np.array([self._space.codes(each) for each in settings])
        return np.asarray(self._effects(codes) + _DEEP * (self._recklessness(codes) > self._edge))

    def seconds(self, config: int, first: int, last: int) -> FloatArray:
        """See the protocol."""
        hardness = _HARDNESS * ndtri(self._hardness.at(first, last))
        noise = _NOISE * ndtri(self._luck[config].at(first, last))
        return np.asarray(np.exp(self._log_speed[config] + hardness + noise))

    def worths(self, settings: Sequence[Settings], utility: Utility) -> FloatArray:
        """See the protocol."""
        shares = (np.arange(_SHARES) + 0.5) / _SHARES
        logs = self._log_speeds(settings)[:, None] + np.hypot(_HARDNESS, _NOISE) * ndtri(shares)
        return np.asarray(utility(np.exp(logs)).mean(axis=1))

    def random_settings(self, count: int) -> list[Settings]:
        """See the protocol."""
        rng = np.random.default_rng([APART, self._seed])
        return [self._space.settings(row) for row in self._space.drawn(rng, count)]


# A target learnt from a table: it answers for every configuration with runs of similar recorded ones.
#
# A forest of scikit-learn's learns which recorded configurations a new one resembles: those that share its leaves,
# each with the share of trees in which they do. A run of the new one on an instance is then the recorded run of one
# of them on that instance, drawn by these shares. That is a quantile forest whose outcome is a whole row of the
# table: nothing is smoothed away. Runs are as spread, as correlated over instances and as often cut as they were
# recorded; a configuration that is in the table behaves as it did; and what a configuration is worth is known
# exactly: the mean of the recorded worths by these shares. `Learnt.validated` says how well held-out rows are met.

_TREES = 50
# Each split looks at this share of the features. On held-out rows of recorded tables predictions are then spread as
# much as they should be; with all features they are spread too much where there are few rows.
_LOOKED_AT = 0.4
# The forest learns what sets configurations apart: this many leading directions of their logarithmic runtimes.
_DIRECTIONS = 8
# Runtimes below this are all alike to the forest.
_SHORTEST = 1e-3
_DONORS = 0xD0505
_FOLDS = 5
# Calibration is looked at on this many instances of each fold.
_LOOKED_AT_INSTANCES = 40
_MIDDLE = 0.8


@dataclass(frozen=True, slots=True)
class ModelValidation:
    """How well rows that the forest had not seen are met.

    Attributes:
        rows: How many rows were held out, a fifth of them at a time.
        rank_correlation: Spearman's, of what held-out configurations are worth and of what was expected.
        slope: By how much the worth of a held-out configuration rises where the expected one rises by 1.
        covered: The share of held-out runs inside the middle 80 % of what was expected of that run.
    """

    rows: int
    rank_correlation: float
    slope: float
    covered: float

    def __str__(self) -> str:
        """Return a sentence for people."""
        return (
            f"On {self.rows:,} held-out rows, a fifth at a time: rank correlation {self.rank_correlation:.2f}, slope "
            f"{self.slope:.2f} (1 is right), {self.covered:.0%} of runs inside their middle {_MIDDLE:.0%}."
        )


class Learnt:
    """See above; the attributes are those of the protocol.

    Args:
        space: The space.
        table: Recorded runtimes of some configurations of the space.
        settings: Theirs, in the order of the table.
        sampling: In which order instances are met, as on a table; `replace` has no end.
        seed: Of the order, of the forest and of all runs.
        instances: Columns of the table that are met; left out, all of them. The forest learns from all.
        forest_seed: Of the forest, where different seeds are to meet the same landscape; left out, `seed`.
        forest: Of another target that was learnt from the same table; left out, one is grown.
    """

    def __init__(
        self,
        space: Space,
        table: RuntimeTable,
        settings: Sequence[Settings],
        *,
        sampling: str = "replace",
        seed: int = 0,
        instances: IntArray | None = None,
        forest_seed: int | None = None,
        forest: "_Forest | None" = None,
    ) -> None:
        self.name = f"{table.name}, learnt"
        self.limit = table.limit
        self._met: IntArray = np.arange(table.n_instances) if instances is None else np.asarray(instances)
        if not len(self._met):
            raise ScenarioError("a target learnt from a table has no instances to meet; name at least one column")
        self.n_instances = len(self._met)
        self.law = (
            f"Runtimes are drawn from those of similar configurations among the {table.n_configs:,} recorded in "
            f"{table.name}; what is true of them need not be true of the program."
        )
        self._space = space
        self._table = table
        self._stream = stream_of(sampling, table.groups[self._met], seed)
        self.length = self._stream.length
        self.population = self._stream.population
        self._seed = seed
        self._inputs = self._features(settings)
        grown_from = seed if forest_seed is None else forest_seed
        self.forest = _Forest(self._inputs, _directions(table), grown_from) if forest is None else forest
        self._shares: list[FloatArray] = []
        self._luck: list[Luck] = []

    def _features(self, settings: Sequence[Settings]) -> FloatArray:
        return features(self._space, np.array([self._space.codes(each) for each in settings]))

    def add(self, settings: Settings) -> None:
        """See the protocol."""
        self._shares.append(np.cumsum(self.resemblance([settings])[0]))
        self._luck.append(Luck(_DONORS, self._seed, settings))

    def resemblance(self, settings: Sequence[Settings]) -> FloatArray:
        """How much configurations resemble each recorded one; rows sum to 1."""
        return self.forest.resemblance(self._features(settings))

    def seconds(self, config: int, first: int, last: int) -> FloatArray:
        """See the protocol."""
        luck = self._luck[config].at(first, last)
        # A sum of shares may miss 1 by a rounding error.
        donor = np.minimum(np.searchsorted(self._shares[config], luck, side="right"), self._table.n_configs - 1)
        seconds: FloatArray = self._table.seconds[donor, self._met[self._stream.rows(first, last)]]
        return seconds

    def worths(self, settings: Sequence[Settings], utility: Utility) -> FloatArray:
        """See the protocol. A run recorded at the timeout counts as never finishing."""
        return self.worths_on(settings, utility, self._met)

    def worths_on(self, settings: Sequence[Settings], utility: Utility, instances: IntArray) -> FloatArray:
        """What configurations are worth on these columns of the table, whether they are met or held out."""
        return np.asarray(self.resemblance(settings) @ _worth(self._table.seconds[:, instances], self.limit, utility))

    def random_settings(self, count: int) -> list[Settings]:
        """See the protocol."""
        rng = np.random.default_rng([APART, self._seed])
        return [self._space.settings(row) for row in self._space.drawn(rng, count)]

    def validated(self, utility: Utility) -> ModelValidation | None:
        """Hold out a fifth of the rows at a time, and compare them with what a forest of the others expects.

        None if there are too few rows to hold any out.
        """
        table, count = self._table, self._table.n_configs
        if count < 2 * _FOLDS:
            return None
        rng = np.random.default_rng([APART, self._seed])
        order = rng.permutation(count)
        worth = _worth(table.seconds, self.limit, utility)
        expected, inside = np.empty(count), []
        for fold in range(_FOLDS):
            out = order[fold::_FOLDS]
            kept = np.setdiff1d(order, out)
            learnt = _Forest(self._inputs[kept], _directions(table, kept), self._seed)
            shares = learnt.resemblance(self._inputs[out])
            expected[out] = shares @ worth[kept]
            columns = rng.choice(table.n_instances, min(_LOOKED_AT_INSTANCES, table.n_instances), replace=False)
            for column in columns.tolist():
                recorded, seen = table.seconds[kept, column], table.seconds[out, column][:, None]
                # Where a run stands among those expected; ties, such as timeouts, count by half.
                place = np.sum(shares * ((recorded < seen) + 0.5 * (recorded == seen)), axis=1)
                inside.append(np.abs(place - 0.5) <= _MIDDLE / 2.0)
        spread = float(np.var(expected))
        slope = float(np.cov(expected, worth, bias=True)[0, 1] / spread) if spread > 0.0 else 0.0
        # scipy.stats is a third of the time that every command needs to start, and only this figure needs it.
        from scipy.stats import spearmanr  # noqa: PLC0415

        ranks = float(spearmanr(expected, worth).statistic) if spread > 0.0 and np.ptp(worth) > 0.0 else 0.0
        return ModelValidation(count, ranks, slope, float(np.concatenate(inside).mean()))


class _Forest:
    """Trees as flat arrays: looking a configuration up takes a fraction of a millisecond, and no scikit-learn."""

    def __init__(self, inputs: FloatArray, outputs: FloatArray, seed: int) -> None:
        forest = _grown(inputs, outputs, seed)
        trees = [each.tree_ for each in forest.estimators_]
        starts = np.cumsum([0, *(tree.node_count for tree in trees)])
        self._roots: IntArray = starts[:-1].astype(np.int64)
        self._split: IntArray = np.concatenate([np.maximum(tree.feature, 0) for tree in trees])
        self._at: FloatArray = np.concatenate([tree.threshold for tree in trees])
        # A leaf is its own child, so that going down further does not matter.
        sides = []
        for side in ("children_left", "children_right"):
            children = [getattr(tree, side) for tree in trees]
            own = [np.arange(len(each)) for each in children]
            sides.append(
                np.concatenate(
                    [
                        start + np.where(each < 0, itself, each)
                        for start, each, itself in zip(starts, children, own, strict=False)
                    ]
                )
            )
        self._sides: IntArray = np.stack(sides)
        self._depth = max(tree.max_depth for tree in trees)
        leaves = self._leaves(inputs)
        size = np.bincount(leaves.ravel(), minlength=int(starts[-1]))
        rows = np.repeat(np.arange(len(inputs)), len(trees))
        share = 1.0 / size[leaves.ravel()]
        self._donors = csr_matrix((share, (leaves.ravel(), rows)), shape=(int(starts[-1]), len(inputs)))

    def _leaves(self, inputs: FloatArray) -> IntArray:
        # Trees split numbers of single precision.
        numbers = inputs.astype(np.float32).astype(np.float64)
        rows = np.arange(len(inputs))[:, None]
        node = np.broadcast_to(self._roots, (len(inputs), len(self._roots)))
        for _ in range(self._depth):
            right = numbers[rows, self._split[node]] > self._at[node]
            node = self._sides[right.astype(np.int64), node]
        return np.asarray(node)

    def resemblance(self, inputs: FloatArray) -> FloatArray:
        """The share of trees that put each of these together with each recorded row."""
        leaves = self._leaves(inputs)
        places = np.repeat(np.arange(len(inputs)), leaves.shape[1])
        chosen = csr_matrix(
            (np.ones(leaves.size), (places, leaves.ravel())), shape=(len(inputs), self._donors.shape[0])
        )
        return np.asarray((chosen @ self._donors).toarray() / leaves.shape[1])


def _worth(seconds: FloatArray, limit: float, utility: Utility) -> FloatArray:
    return np.asarray(np.where(seconds < limit, utility(seconds), 0.0).mean(axis=1))


def _directions(table: RuntimeTable, rows: IntArray | None = None) -> FloatArray:
    """What sets the configurations apart, in a few numbers each."""
    seconds = table.seconds if rows is None else table.seconds[rows]
    finite = seconds[np.isfinite(seconds)]
    longest = table.limit if np.isfinite(table.limit) else 10.0 * float(finite.max(initial=1.0))
    logs = np.log(np.clip(seconds, _SHORTEST, longest))
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
    forest = ExtraTreesRegressor(_TREES, max_features=_LOOKED_AT, random_state=seed % 2**32)
    return forest.fit(inputs, outputs)
