"""Configurations as vectors for the model: what each parameter may do to the outcome, in a few terms of its own.

A number has waves over its range, from a slope to a dip in the middle and finer ones that count less; a switch has a
sign, a choice a mark per value. A parameter that is inactive does nothing: all its terms are 0.
"""

from collections.abc import Sequence

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.spaces.parameters import Categorical
from captime.spaces.ranges import Ranges
from captime.spaces.space import Space

# Terms of a number: half a wave, a whole one, one and a half. Each is drawn as strongly as one over its number.
_WAVES = 3


class Basis:
    """From configurations to terms, all of them at once: asking parameter by parameter would take most of the time.

    Args:
        space: The space.

    Attributes:
        owners: To which parameter each term belongs, by place.
    """

    def __init__(self, space: Space) -> None:
        switches: list[int] = []
        marks: list[tuple[int, int, int]] = []
        waves: list[tuple[int, int]] = []
        for place, parameter in enumerate(space.parameters):
            if not isinstance(parameter, Categorical):
                waves += [(place, wave) for wave in range(1, _waves(parameter.size) + 1)]
            elif len(parameter.choices) == 2:
                switches.append(place)
            elif len(parameter.choices) > 2:
                marks += [(place, value, len(parameter.choices)) for value in range(len(parameter.choices))]
        self._ranges = Ranges(space)
        self._switches = np.array(switches, dtype=np.int64)
        self._marked, self._values, self._counts = _columns(marks, 3)
        waved, self._waves = _columns(waves, 2)
        self._column = np.searchsorted(self._ranges.places, waved)
        owners = np.concatenate([self._switches, self._marked, waved])
        # A space of constants still has one term: nothing to learn, but nothing to stumble over.
        self.owners: IntArray = owners if len(owners) else np.zeros(1, dtype=np.int64)

    def __call__(self, codes: FloatArray) -> FloatArray:
        """The terms of each configuration of a matrix: a row each."""
        chosen = codes[:, self._marked]
        marks = ((chosen == self._values) - 1.0 / self._counts) * np.sqrt(self._counts)
        waves = np.sqrt(2.0) / self._waves * np.cos(np.pi * self._waves * self._ranges.units(codes)[:, self._column])
        terms = np.concatenate(
            [2.0 * codes[:, self._switches] - 1.0, np.where(np.isnan(chosen), 0.0, marks), waves], axis=1
        )
        return np.nan_to_num(terms) if terms.shape[1] else np.zeros((len(codes), 1))


def _columns(rows: Sequence[tuple[int, ...]], width: int) -> list[IntArray]:
    return list(np.array(rows, dtype=np.int64).reshape(-1, width).T)


def _waves(size: int | None) -> int:
    """Two values have one difference, three have two."""
    return _WAVES if size is None else min(_WAVES, size - 1)
