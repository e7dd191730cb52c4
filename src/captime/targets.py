"""Standing orders: what a procedure wants to know, never which run to make.

One order reads: *know configuration `config` on its first `n` stream positions at captime level `level`*. Orders are
parallel arrays, because a lockstep procedure places a thousand of them at once.
"""

from dataclasses import dataclass

import numpy as np

from captime.arrays import IntArray


@dataclass(frozen=True, slots=True)
class Targets:
    """Parallel arrays of orders, one entry per configuration named.

    Attributes:
        config: Configuration indices, each at most once.
        n: How many positions of the stream, counted from its start. Only ever grows for a configuration.
        level: Level of the captime plan. Only ever grows for a configuration.
        first: Positions below it that a configuration has not run yet are skipped for ever; None skips nothing. Whether
            a position is skipped must not depend on anything seen on it or after it.
    """

    config: IntArray
    n: IntArray
    level: IntArray
    first: IntArray | None = None

    def __len__(self) -> int:
        return len(self.config)


def no_targets() -> Targets:
    """Nothing to order now: the procedure is done, or waits for what is under way."""
    empty = np.empty(0, dtype=np.int64)
    return Targets(empty, empty, empty)
