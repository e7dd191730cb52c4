"""The order of turns of an optimist, as a merge of falling sequences."""

from dataclasses import dataclass

import numpy as np

from captime.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Merged:
    """Turns in their order.

    Attributes:
        row: Whose lane moves.
        step: To which of its positions.
        value: The upper end that made it its turn, the largest of all at that moment.
    """

    row: IntArray
    step: IntArray
    value: FloatArray

    def first(self, count: int) -> "Merged":
        """Only the first turns."""
        return Merged(self.row[:count], self.step[:count], self.value[:count])

    def holds(self, lanes: int) -> tuple[IntArray, IntArray]:
        """The first turn of each lane, and for each turn the next one of its lane; the number of turns if none."""
        count = len(self.row)
        first = np.full(lanes, count)
        first[self.row[::-1]] = np.arange(count)[::-1]
        order = np.argsort(self.row, kind="stable")
        following = np.append(order[1:], count)
        same = np.append(self.row[order[1:]] == self.row[order[:-1]], False)
        after = np.empty(count, dtype=np.int64)
        after[order] = np.where(same, following, count)
        return first, after


def merge(standing: FloatArray, config: IntArray, upper: FloatArray, length: IntArray) -> Merged:
    """Return the turns that are certain: those before the first turn of a configuration without a lane left to walk.

    The largest upper end goes first, the lower index first among equals. Upper ends never rise along a lane, so sorting
    by the upper end *before* each turn puts the turns of all lanes in order.

    Args:
        standing: Upper ends of all configurations before the first turn.
        config: Whose lanes, shape (A,).
        upper: Upper ends after each position, shape (A, K).
        length: How many positions of each lane can be walked, shape (A,).
    """
    lanes = np.arange(len(config))
    along = np.concatenate((standing[config, None], upper), axis=1)
    end = along[lanes, length]
    rest = standing.copy()
    rest[config] = end
    # The first turn that cannot be shown: its configuration has no lane, or is at the end of it.
    wall = int(rest.argmax())
    before = along[:, :-1]
    due = (before > rest[wall]) | ((before == rest[wall]) & (config <= wall)[:, None])
    due &= np.arange(before.shape[1]) < length[:, None]
    row, step = np.nonzero(due)
    value = before[due]
    order = np.lexsort((config.take(row), -value))
    return Merged(row[order], step[order], value[order])


def next_rival(who: IntArray, value: FloatArray, leader: IntArray) -> FloatArray:
    """Return the largest upper end of all configurations but the leader, after each turn.

    Args:
        who: After each turn, the configuration with the largest upper end, then one more: the runner-up at the end.
        value: Those upper ends.
        leader: The leader after each turn.
    """
    changes = np.flatnonzero(who[1:] != who[:-1]) + 1
    turns = np.arange(len(leader))
    # The configuration due after the leader's own turns has had the largest upper end of the others all the while.
    beyond = changes[np.searchsorted(changes, turns, side="right")]
    return np.where(who[:-1] == leader, value[beyond], value[:-1])
