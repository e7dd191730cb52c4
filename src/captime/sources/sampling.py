"""In which order the instances of a recorded table are met: the stream all configurations share.

The order is fixed by the seed before the first run and depends on nothing else. Bounds speak about prefixes of it.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from captime.arrays import IntArray
from captime.errors import ScenarioError

# Draws are made in blocks of this size, so that the stream does not depend on how far one looked at a time.
_BLOCK = 4096


class RowStream(Protocol):
    """A fixed, possibly endless sequence of table rows."""

    @property
    def length(self) -> int | None:
        """How many positions there are; None for an endless stream."""
        ...

    @property
    def population(self) -> str:
        """`stream`: the distribution the instances were drawn from. `finite`: exactly these instances."""
        ...

    def rows(self, start: int, stop: int) -> IntArray:
        """Table rows at positions start, …, stop - 1."""
        ...


class FixedOrder:
    """Every instance once, in a given order."""

    population = "stream"

    def __init__(self, order: IntArray) -> None:
        self._order = order
        self.length = len(order)

    def rows(self, start: int, stop: int) -> IntArray:
        """See the protocol."""
        return self._order[start:stop]


class WithReplacement:
    """Independent uniform draws from the rows of the table, without end: its means are the truth."""

    population = "finite"
    length = None

    def __init__(self, n_rows: int, rng: np.random.Generator) -> None:
        self._n_rows = n_rows
        self._rng = rng
        self._drawn: IntArray = np.empty(0, dtype=np.int64)

    def rows(self, start: int, stop: int) -> IntArray:
        """See the protocol."""
        if stop > len(self._drawn):
            # Growing by at least half keeps the copying linear over a long run.
            blocks = -(-(max(stop, len(self._drawn) * 3 // 2) - len(self._drawn)) // _BLOCK)
            fresh = [self._rng.integers(self._n_rows, size=_BLOCK) for _ in range(blocks)]
            self._drawn = np.concatenate((self._drawn, *fresh))
        return self._drawn[start:stop]


def _shuffle(groups: IntArray, rng: np.random.Generator) -> RowStream:
    """Each instance once in random order; of repeated measurements of one instance, one at random.

    Repetitions of one instance are not independent draws of instances, so a second one must not count as a sample.
    """
    shuffled = rng.permutation(len(groups))
    _, first_seen = np.unique(groups[shuffled], return_index=True)
    return FixedOrder(shuffled[np.sort(first_seen)])


def _given(groups: IntArray, rng: np.random.Generator) -> RowStream:  # noqa: ARG001 (nothing is random here)
    """Each instance once in recorded order; of repeated measurements the first."""
    _, first_seen = np.unique(groups, return_index=True)
    return FixedOrder(np.sort(first_seen))


def _replace(groups: IntArray, rng: np.random.Generator) -> RowStream:
    return WithReplacement(len(groups), rng)


SAMPLING: dict[str, Callable[[IntArray, np.random.Generator], RowStream]] = {
    "shuffle": _shuffle,
    "given": _given,
    "replace": _replace,
}


def stream_of(kind: str, groups: IntArray, seed: int) -> RowStream:
    """Return the stream of that kind over table rows whose instance identities are `groups`."""
    if kind not in SAMPLING:
        raise ScenarioError(f"sampling is {kind!r}; there are {', '.join(SAMPLING)}")
    return SAMPLING[kind](groups, np.random.default_rng(seed))
