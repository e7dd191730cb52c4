"""What a bound looks like. Members of the family import nothing of it: fitting a shape is enough."""

from typing import ClassVar, Protocol

from captime.arrays import FloatArray, IntArray
from captime.bounds.moments import Moments


class Declared(Protocol):
    """What every bound says about itself, as class attributes: see `fit.py` for who may use it.

    Attributes:
        monotone: Neither end ever falls when a score rises. Only then may a run that is still open, or cut, stand in
            by the end of its interval (on scores with the full range [0, 1]), and only then may captimes differ from
            position to position or follow what was seen.
        time_uniform: One event covers all sample sizes. A bound without it needs a budget that pays for each n.
        needs: What it is computed from: `sums` of scores, `moments` (sums and sums of squares), `samples` one by one,
            `bins` (counts of rounded scores) or `pairs` (scores of two configurations on the same positions).
        summary: One line for listings.
    """

    monotone: ClassVar[bool]
    time_uniform: ClassVar[bool]
    needs: ClassVar[str]
    summary: ClassVar[str]


class Bound(Declared, Protocol):
    """From the sums of score ends to an interval for the expected utility (`needs = "sums"`)."""

    def __call__(
        self, n: IntArray, low: FloatArray, high: FloatArray, log_inverse: FloatArray, floor: FloatArray, /
    ) -> tuple[FloatArray, FloatArray]:
        """Lower and upper end, each failing with probability at most exp(-log_inverse).

        Arrays of any shapes that broadcast.

        Args:
            n: Number of samples.
            low: Sums of the low ends.
            high: Sums of the high ends.
            log_inverse: ln(1 / failure probability).
            floor: No high end is smaller than this; the range of high ends is [floor, 1].
        """
        ...


class MomentBound(Declared, Protocol):
    """From sums and sums of squares of score ends to an interval for the expected utility (`needs = "moments"`)."""

    def __call__(self, low: Moments, high: Moments, log_inverse: FloatArray, /) -> tuple[FloatArray, FloatArray]:
        """Lower and upper end, each failing with probability at most exp(-log_inverse).

        Args:
            low: Moments of the low ends.
            high: Moments of the high ends.
            log_inverse: ln(1 / failure probability); broadcasts with the moments.
        """
        ...


class SampleBound(Declared, Protocol):
    """From the score ends of one configuration, one by one, to an interval (`needs = "samples"`)."""

    def __call__(self, low: FloatArray, high: FloatArray, log_inverse: float, /) -> tuple[float, float]:
        """Lower and upper end, each failing with probability at most exp(-log_inverse).

        Args:
            low: Low ends in the order of the stream.
            high: High ends in the order of the stream.
            log_inverse: ln(1 / failure probability).
        """
        ...
