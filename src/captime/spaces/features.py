"""Configurations as vectors for the model: numbers on their own scale, choices as marks, inactive ones apart."""

import numpy as np

from captime.arrays import FloatArray
from captime.spaces.parameters import Categorical
from captime.spaces.space import Space

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
