"""What stands for the program when a campaign on a space is simulated: it answers for every configuration.

A target's law is known exactly, so a simulation can say what its answer is really worth. The same seed, settings and
position give the same runtime, whatever other runs are asked for.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from scipy.special import ndtri

from captime.arrays import FloatArray
from captime.spaces import Settings, Space
from captime.spaces.basis import Basis
from captime.utilities import Utility

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
