"""Hoeffding's bound, in the form the paper uses it: one radius for both ends, a shorter range for the upper one."""

from typing import ClassVar

import numpy as np

from captime.arrays import FloatArray, IntArray


def hoeffding_radius(n: IntArray, log_inverse: FloatArray) -> FloatArray:
    """The paper's α: the mean of n values in [0, 1] errs by more with probability at most exp(-log_inverse)."""
    radius: FloatArray = log_inverse / (2.0 * n)
    return np.sqrt(radius, out=radius)


class Hoeffding:
    """The paper's LCB and UCB.

    The low ends lie in [0, 1]. The high ends lie in [u(κ), 1], because a run that is not done by its captime counts
    u(κ) there; so the upper radius is shorter by the factor 1 - u(κ). A crash is a run that never finishes: it must
    count u(κ) at its high end, not 0, or the range would be wrong.
    """

    monotone: ClassVar[bool] = True
    time_uniform: ClassVar[bool] = False
    needs: ClassVar[str] = "sums"
    summary: ClassVar[str] = (
        "the paper's bound, the default of up: sums only, one radius per (n, captime level), paid by a union"
    )

    def __call__(
        self, n: IntArray, low: FloatArray, high: FloatArray, log_inverse: FloatArray, floor: FloatArray, /
    ) -> tuple[FloatArray, FloatArray]:
        """See the protocol."""
        radius = hoeffding_radius(n, log_inverse)
        # [UAC] Lemma 4. mean(low) = Û - u(κ)(1 - F̂) and mean(high) = Û, so these are the paper's LCB and UCB exactly.
        lower, upper = low / n, high / n
        lower -= radius
        upper += (1.0 - floor) * radius
        return lower, upper
