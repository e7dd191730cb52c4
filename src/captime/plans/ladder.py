"""The paper's plan: one captime for all positions, raised from level to level, scores as they are."""

from dataclasses import dataclass, field

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.errors import ScenarioError
from captime.utilities.protocol import Utility

# 2^60 times any first captime is beyond every clock: a ladder without a top needs no more rungs.
_ENOUGH_RUNGS = 60


@dataclass(frozen=True, slots=True)
class Ladder:
    """Captimes on fixed rungs, level 0 the shortest.

    Args:
        utility: What an answer is worth.
        rungs: Captimes in CPU seconds, strictly increasing, fixed before the first run. The last may be infinite.
    """

    utility: Utility
    rungs: FloatArray
    worth_at_rung: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rising = bool(np.all(np.diff(self.rungs) > 0)) and not np.isnan(self.rungs).any()
        if len(self.rungs) == 0 or not self.rungs[0] > 0 or not rising:
            raise ScenarioError(
                f"the captimes of the ladder are {self.rungs.tolist()}, but they have to be positive and strictly "
                "increasing"
            )
        object.__setattr__(self, "worth_at_rung", self.utility(self.rungs))

    @property
    def repeats(self) -> bool:
        """With more than one rung, yes."""
        return len(self.rungs) > 1

    @classmethod
    def doubling(cls, utility: Utility, first: float, top: float = np.inf) -> "Ladder":
        """Captimes first, 2·first, 4·first, …, the last one standing exactly at `top`.

        Args:
            utility: What an answer is worth.
            first: Captime of level 0, in CPU seconds.
            top: The moment after which a longer captime is pure waste (`utility.zero_at`) or unknowable (the timeout
                of a recorded table), whichever comes first; infinite for none.
        """
        if not (np.isfinite(first) and first > 0):
            raise ScenarioError(
                f"the first captime is {first!r} s, but it has to be a positive number of seconds; try 1"
            )
        doubled = np.ldexp(first, np.arange(_ENOUGH_RUNGS))
        if np.isfinite(top):
            return cls(utility, np.concatenate((doubled[doubled < top], np.array([top]))))
        return cls(utility, doubled)

    def captime(self, level: IntArray, position: IntArray) -> FloatArray:  # noqa: ARG002 (the same for every position)
        """See the protocol."""
        return self.rungs.take(level)

    def floor(self, level: IntArray) -> FloatArray:
        """u(κ) at that level."""
        return self.worth_at_rung.take(level)

    def completes(self, seconds: FloatArray, level: IntArray, position: IntArray) -> BoolArray:  # noqa: ARG002 (as above)
        """See the protocol. Completed means strictly before the captime, here and nowhere else."""
        return seconds < self.rungs.take(level)

    def settled(
        self,
        seconds: FloatArray,
        worth: FloatArray,
        level: IntArray,
        position: IntArray,
    ) -> tuple[BoolArray, FloatArray, FloatArray]:
        """See the protocol."""
        completed = self.completes(seconds, level, position)
        low = worth * completed
        # A run that is not done by κ, a crash included, counts u(κ) at its high end: see Hoeffding on the range.
        high = ~completed * self.worth_at_rung.take(level)
        high += low
        return completed, low, high

    def alive(self, seconds: FloatArray, level: IntArray, position: IntArray) -> FloatArray:  # noqa: ARG002 (as above)
        """See the protocol. Never below u(κ), where the range of the high ends at this level stops."""
        return self.utility(np.minimum(seconds, self.rungs.take(level)))

    def can_rise(self, level: IntArray) -> BoolArray:
        """See the protocol."""
        return level < len(self.rungs) - 1


@dataclass(frozen=True, slots=True)
class UtilityLadder(Ladder):
    """The same rungs where utilities themselves are bounded: a run that failed is known to be worth 0.

    The high end of a failed run is 0 and not u(κ), so that everything is known exactly once every run has ended.
    """

    def settled(
        self,
        seconds: FloatArray,
        worth: FloatArray,
        level: IntArray,
        position: IntArray,
    ) -> tuple[BoolArray, FloatArray, FloatArray]:
        """See the protocol."""
        completed = self.completes(seconds, level, position)
        low = worth * completed
        hidden = ~completed & np.isfinite(seconds)
        return completed, low, low + hidden * self.worth_at_rung.take(level)
