"""Seeds by position: for the target program, and for the generator of instances, each from a generator of its own.

They are keyed by the campaign's seed and the position, and by nothing else. The draws of captimes have another key, so
that no program can guess from its seed how long it will be allowed to run.
"""

import secrets

import numpy as np

TARGET = 0x74617267
"""Key of the seeds that target programs are given."""
GENERATOR = 0x67656E65
"""Key of the seeds that instance generators are given."""
ORDER = 0x6F726472
"""Key of the order of finite sets of instances."""

_BLOCK = 4096
_LARGEST = 2**31 - 1


def fresh_seed() -> int:
    """Draw the seed of a campaign that was given none, from the system's source of randomness.

    A seed that is the same for all, or that was chosen after a look at results, is no randomness: for any fixed seed
    there are configurations that suit its draws.
    """
    return secrets.randbelow(_LARGEST)


class Seeds:
    """Numbers from 1 to 2³¹ - 1, one per position; drawn in blocks, so that looking ahead does not change them.

    Args:
        key: What the seeds are for.
        seed: The campaign's.

    >>> Seeds(TARGET, 1).at(70_000) == Seeds(TARGET, 1).at(70_000) != Seeds(GENERATOR, 1).at(70_000)
    True
    """

    def __init__(self, key: int, seed: int) -> None:
        self._key = (key, seed)
        self._blocks: dict[int, list[int]] = {}

    def at(self, position: int) -> int:
        """Return the seed of that position."""
        block, offset = divmod(position, _BLOCK)
        if block not in self._blocks:
            rng = np.random.default_rng((*self._key, block))
            self._blocks[block] = rng.integers(1, _LARGEST, size=_BLOCK, endpoint=True).tolist()
        return self._blocks[block][offset]
