"""All parameters that have an order, as columns between 0 and 1 and back: numbers by their scale, ordinals by rank.

The parameters can do this one by one; a model asks for thousands of configurations at a time.
"""

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.spaces.parameters import Choice, Float, Ordinal
from captime.spaces.space import Space


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
