"""What stands for the program when a campaign on a space is simulated: it answers for every configuration.

A target's law is known exactly, so a simulation can say what its answer is really worth. The same seed, settings and
position give the same runtime, whatever other runs are asked for.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from captime.arrays import FloatArray
from captime.spaces import Settings
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

    def anyone(self, count: int) -> list[Settings]:
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
