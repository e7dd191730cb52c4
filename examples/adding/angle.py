"""A bound that measures distance by angles: wider than Hoeffding's in the middle, tighter near 0 and 1."""

from typing import ClassVar

import numpy as np

from captime.arrays import FloatArray, IntArray


class Angle:
    """Chernoff's bound, with the divergence replaced by a smaller one that can be inverted by hand.

    Write a mean p as the angle arcsin(√p). Chernoff: the mean p of n values in [0, 1] with expectation q lies on one
    given side of q with n·kl(p, q) >= a only with probability exp(-a). Rényi's divergence of order ½ is never larger
    than kl and equals -2·ln cos of the difference of the two angles; so the angles differ by more than
    arccos(exp(-a / 2n)) on that side with probability at most exp(-a).
    """

    monotone: ClassVar[bool] = True
    time_uniform: ClassVar[bool] = False
    needs: ClassVar[str] = "sums"
    summary: ClassVar[str] = "Chernoff's bound in closed form: sums only, tighter than hoeffding near 0 and 1"

    def __call__(
        self, n: IntArray, low: FloatArray, high: FloatArray, log_inverse: FloatArray, floor: FloatArray, /
    ) -> tuple[FloatArray, FloatArray]:
        """See the protocol."""
        turn = np.arccos(np.exp(-log_inverse / (2.0 * n)))
        lower = _square_of_sine(_angle(low / n) - turn)
        # High ends lie in [floor, 1]: stretch them to [0, 1], bound their mean there, and shrink it back. Where the
        # floor is 1 (a captime before which nothing is lost) every high end is 1, and so is the bound.
        room = 1.0 - floor
        stretched = (high / n - floor) / np.where(room > 0, room, 1.0)
        upper = floor + room * _square_of_sine(_angle(stretched) + turn)
        return lower, upper


def _angle(mean: FloatArray) -> FloatArray:
    # Sums of floating-point numbers may leave [0, 1] by a rounding error.
    angle: FloatArray = np.arcsin(np.sqrt(np.clip(mean, 0.0, 1.0)))
    return angle


def _square_of_sine(angle: FloatArray) -> FloatArray:
    square: FloatArray = np.sin(np.clip(angle, 0.0, np.pi / 2.0)) ** 2
    return square
