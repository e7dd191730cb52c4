"""Running extremes computed on the bits of the numbers equal those computed on the numbers."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from captime.arrays import FloatArray
from captime.intervals import _run

RAW = arrays(np.float64, (3, 7), elements=st.floats(-3.0, 3.0))


@given(RAW)
def test_running_lower_ends_are_the_running_maxima(raw: FloatArray) -> None:
    """Raw lower ends may be negative; each row begins at a number that is not."""
    raw[:, 0] = np.maximum(raw[:, 0], 0.0)
    expected = np.maximum.accumulate(raw, axis=1)
    _run(np.maximum, raw)
    np.testing.assert_array_equal(raw, expected)


@given(RAW)
def test_running_upper_ends_are_the_running_minima(raw: FloatArray) -> None:
    """Upper ends are never negative."""
    ends = np.abs(raw)
    expected = np.minimum.accumulate(ends, axis=1)
    _run(np.minimum, ends)
    np.testing.assert_array_equal(ends, expected)
