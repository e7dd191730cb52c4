"""What a bound looks like."""

from typing import ClassVar, Protocol

from captime.arrays import FloatArray, IntArray


class Bound(Protocol):
    """From the sums of score ends to an interval for the expected utility. Arrays of any shapes that broadcast.

    Class attributes say what the bound may be used for:

    Attributes:
        monotone: Neither end ever falls when a score rises. Only then may a run that is still open, or cut, stand in
            by the end of its interval, and only then may captimes differ from position to position.
        time_uniform: One event covers all sample sizes. A bound without it needs a budget that pays for each n.
        summary: One line for listings.
    """

    monotone: ClassVar[bool]
    time_uniform: ClassVar[bool]
    summary: ClassVar[str]

    def __call__(
        self, n: IntArray, low: FloatArray, high: FloatArray, log_inverse: FloatArray, floor: FloatArray, /
    ) -> tuple[FloatArray, FloatArray]:
        """Lower and upper end, each failing with probability at most exp(-log_inverse).

        Args:
            n: Number of samples.
            low: Sums of the low ends.
            high: Sums of the high ends.
            log_inverse: ln(1 / failure probability).
            floor: No high end is smaller than this; the range of high ends is [floor, 1].
        """
        ...
