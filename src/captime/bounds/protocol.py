"""What a bound looks like, what it is computed from, and which procedures may use it.

Members of the family import nothing of it: fitting a shape is enough.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.errors import ScenarioError


class Moments(NamedTuple):
    """How many scores there are, their sum and the sum of their squares. Arrays of any shapes that broadcast."""

    n: IntArray
    total: FloatArray
    squares: FloatArray

    @classmethod
    def of(cls, scores: FloatArray) -> "Moments":
        """The moments of scores along the last axis."""
        return cls(np.full(scores.shape[:-1], scores.shape[-1]), scores.sum(axis=-1), np.square(scores).sum(axis=-1))

    def mirrored(self) -> "Moments":
        """The moments of 1 - x: an upper bound is a lower bound seen from the other side."""
        return Moments(self.n, self.n - self.total, self.n - 2.0 * self.total + self.squares)


class Declared(Protocol):
    """What every bound says about itself, as class attributes: `check_fit` says which procedures may use it.

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


# A bound says what it can do; a procedure says what it will do; here the two are compared.

_SUPPLIES = {
    "sums": "the sums of the scores",
    "moments": "the sums of the scores and of their squares",
    "samples": "the scores one by one",
    "bins": "counts of rounded scores",
    "pairs": "the scores of two configurations on the same positions",
}


@dataclass(frozen=True, slots=True)
class Use:
    """What a procedure does with a bound.

    Attributes:
        procedure: Its name, for messages.
        supplies: What it computes bounds from, in the words of `Declared.needs`.
        looks_often: It looks at more than one sample size.
        pays_for_looks: Its budget has a share for every sample size, so that a bound need not cover them all at once.
        intervals: Scores may be known as intervals only, and their captimes may depend on what was seen: open runs,
            cut runs made again in an order of the procedure's choice, captimes that differ between positions.
    """

    procedure: str
    supplies: frozenset[str]
    looks_often: bool
    pays_for_looks: bool
    intervals: bool


def misfits(bound: type[Declared], use: Use) -> list[str]:
    """Why this bound would make that procedure's certificates wrong or impossible; empty if nothing speaks against it.

    Each reason is a clause that says what was found and what to do.
    """
    reasons = []
    if bound.needs not in use.supplies:
        held = " and ".join(_SUPPLIES[kind] for kind in sorted(use.supplies))
        reasons.append(
            f"it is computed from {_SUPPLIES.get(bound.needs, bound.needs)}, and the procedure keeps {held}; choose a "
            f"bound that needs {' or '.join(sorted(use.supplies))}"
        )
    if use.looks_often and not use.pays_for_looks and not bound.time_uniform:
        reasons.append(
            "it holds at one sample size only, and the procedure looks at many without paying for each; choose a "
            "time-uniform bound"
        )
    if use.intervals and not bound.monotone:
        reasons.append(
            "it can rise when a score falls, so an open or cut run may not stand in by the end of its interval, and "
            "captimes may not follow the data; choose a monotone bound"
        )
    return reasons


def check_fit(name: str, bound: type[Declared], use: Use) -> None:
    """Refuse an invalid combination of a bound and a procedure, with the reasons.

    Args:
        name: The bound's name in the register.
        bound: The bound.
        use: What the procedure does with it.
    """
    if reasons := misfits(bound, use):
        raise ScenarioError(
            f"the bound {name!r} does not fit the procedure {use.procedure!r}: {'; and '.join(reasons)}"
        )
