"""Configurations as vectors: all ordered parameters between 0 and 1, and the terms that the model learns from."""

from collections.abc import Sequence

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.spaces.parameters import Categorical, Choice, Float, Ordinal
from captime.spaces.space import Space

# All parameters that have an order, as columns between 0 and 1 and back: numbers by their scale, ordinals by rank.
#
# The parameters can do this one by one; a model asks for thousands of configurations at a time.


class Ranges:
    """The ranges of a space.

    Args:
        space: The space.

    Attributes:
        places: Which parameters these are: those with an order and more than one value.
    """

    def __init__(self, space: Space) -> None:
        ordered = [
            (place, parameter)
            for place, parameter in enumerate(space.parameters)
            if parameter.size != 1 and (isinstance(parameter, Ordinal) or not isinstance(parameter, Choice))
        ]
        self.places: IntArray = np.array([place for place, _ in ordered], dtype=np.int64)
        ends = [
            (0.0, parameter.size - 1.0, False) if isinstance(parameter, Choice) else _ends(parameter)
            for _, parameter in ordered
        ]
        low, high, log = np.array(ends, dtype=np.float64).reshape(-1, 3).T
        self._log = log > 0.0
        self._low = np.log(low, out=low.copy(), where=self._log)
        self._span = np.log(high, out=high.copy(), where=self._log) - self._low
        self._parameters = [parameter for _, parameter in ordered]
        # Not by its size: a float that is rounded has one too.
        self._whole = np.array([not isinstance(parameter, Float) for _, parameter in ordered], dtype=np.bool_)
        self._ends = low, high

    def units(self, codes: FloatArray) -> FloatArray:
        """Where the values of these parameters lie in their ranges; not a number where they are inactive."""
        values = codes[:, self.places]
        scaled = np.log(values, out=values.copy(), where=self._log & (values > 0.0))
        return np.asarray((scaled - self._low) / self._span)

    def values(self, units: FloatArray) -> FloatArray:
        """The nearest values that these parameters can take."""
        scaled = self._low + self._span * units
        values = np.exp(scaled, out=scaled.copy(), where=self._log)
        np.rint(values, out=values, where=self._whole)
        for column, parameter in enumerate(self._parameters):
            if isinstance(parameter, Float) and parameter.digits is not None:
                values[:, column] = parameter.rounded(values[:, column])
        return np.clip(values, *self._ends)


def _ends(parameter: object) -> tuple[float, float, bool]:
    return (float(parameter.low), float(parameter.high), bool(parameter.log))  # type: ignore[attr-defined] # a number


# Configurations as vectors for the model.

# Configurations as vectors for the model: what each parameter may do to the outcome, in a few terms of its own.
#
# A number has waves over its range, from a slope to a dip in the middle and finer ones that count less; a switch has
# a sign, a choice a mark per value. A parameter that is inactive does nothing: all its terms are 0.

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


# Configurations as vectors for the model: numbers on their own scale, choices as marks, inactive ones apart.

# Below every place on a scale from 0 to 1: a tree can split it off with one question.
_INACTIVE = -1.0


def features(space: Space, codes: FloatArray) -> FloatArray:
    """A row of features for each configuration of a matrix.

    A number is where it lies between its ends (by the logarithm if it has one), an ordinal value its rank, both from
    0 to 1; a choice among three or more gets a mark per value. An inactive parameter is -1, or has no mark.
    """
    columns: list[FloatArray] = []
    for parameter, column in zip(space.parameters, codes.T, strict=True):
        if isinstance(parameter, Categorical) and len(parameter.choices) > 2:
            columns += [(column == place).astype(np.float64) for place in range(len(parameter.choices))]
        elif parameter.size != 1:
            columns.append(np.nan_to_num(parameter.unit(column), nan=_INACTIVE))
    # A space of constants still has one feature: nothing to learn, but nothing to stumble over.
    return np.stack(columns, axis=1) if columns else np.zeros((len(codes), 1))
