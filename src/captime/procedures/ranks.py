"""Who stands where among many, the lower index first among equals."""

import numpy as np

from captime.arrays import FloatArray, IntArray


def two_largest(values: FloatArray) -> tuple[int, int]:
    """Where the two largest stand; there are at least two.

    >>> two_largest(np.array([0.5, 0.9, 0.9]))
    (1, 2)
    """
    first = int(values.argmax())
    rest = values.copy()
    rest[first] = -np.inf
    return first, int(rest.argmax())


def largest(values: FloatArray, count: int) -> IntArray:
    """Where the largest stand, in falling order; none for a count of 0, all of them for more than there are.

    >>> largest(np.array([0.5, 1.0, 0.7, 1.0]), 3).tolist()
    [1, 3, 2]
    """
    if count <= 0:
        return np.empty(0, dtype=np.int64)
    if count == 1:
        return np.array([values.argmax()])
    if 2 * count >= len(values):
        return np.argsort(-values, kind="stable")[:count]
    last = np.partition(values, len(values) - count)[len(values) - count]
    above = np.flatnonzero(values > last)
    chosen = np.concatenate((above, np.flatnonzero(values == last)[: count - len(above)]))
    return chosen[np.argsort(-values.take(chosen), kind="stable")]
