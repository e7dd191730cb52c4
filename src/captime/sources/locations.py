"""Places in a table and values in a message, said the same way by every reader."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from captime.arrays import BoolArray

# Large tables are looked through in pieces of this many cells, so that what a test makes of them stays small.
_CELLS_AT_A_TIME = 1 << 17


def shown(text: object, width: int = 80) -> str:
    r"""Return a value for a message: quoted, control characters escaped, never longer than a line.

    >>> shown("a\tb")
    "'a\\tb'"
    """
    if isinstance(text, str) and len(text) > width:
        return repr(text[:width]) + f"… ({len(text)} characters)"
    return repr(text)


def pieces(size: int) -> Iterator[slice]:
    """Return slices that together cover `size` cells."""
    return (slice(start, start + _CELLS_AT_A_TIME) for start in range(0, size, _CELLS_AT_A_TIME))


def first_place(test: Callable[..., BoolArray], *tables: npt.NDArray[Any]) -> tuple[int, int] | None:
    """Return the first (configuration, instance) that a test finds, row by row as in the files, or None.

    Args:
        test: Takes a piece of each table, flattened, and marks the cells it is looking for.
        tables: Arrays of one shape, configurations x instances.
    """
    flat = [table.ravel() for table in tables]
    for piece in pieces(flat[0].size):
        found = test(*(cells[piece] for cells in flat))
        first = int(np.argmax(found))
        if found[first]:
            config, instance = divmod(piece.start + first, tables[0].shape[1])
            return config, instance
    return None


def where(name: str, configs: Sequence[str], instances: Sequence[str], place: tuple[int, int]) -> str:
    """Names and numbers of a place; counted from 1, rows are configurations as in the files."""
    config, instance = place
    return (
        f"{name}: configuration {shown(configs[config])} (row {config + 1}), "
        f"instance {shown(instances[instance])} (column {instance + 1})"
    )
