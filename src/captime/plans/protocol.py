"""What a captime plan looks like."""

from typing import Protocol

from captime.arrays import BoolArray, FloatArray, IntArray


class Plan(Protocol):
    """A function from (level, stream position) to a captime, and from what a run did to the interval of its score."""

    @property
    def repeats(self) -> bool:
        """Whether levels can rise, so that a cut run is made again and has to take the same time then."""
        ...

    def captime(self, level: IntArray, position: IntArray) -> FloatArray:
        """How many CPU seconds a run on that position may take in all, at that level."""
        ...

    def floor(self, level: IntArray) -> FloatArray:
        """The smallest value of a high end at that level, u(κ) on a ladder: the range of high ends is [floor, 1]."""
        ...

    def completes(self, seconds: FloatArray, level: IntArray, position: IntArray) -> BoolArray:
        """Return whether runs that take `seconds` without a captime are done before their captimes."""
        ...

    def settled(
        self, seconds: FloatArray, worth: FloatArray, level: IntArray, position: IntArray
    ) -> tuple[BoolArray, FloatArray, FloatArray]:
        """Completed?, low end and high end of the scores of runs that were made up to their captimes.

        Args:
            seconds: How long each run takes without a captime; infinite if it never finishes.
            worth: u(seconds), computed once where the runtimes are kept.
            level: Level of the plan, per run.
            position: Stream position, per run.
        """
        ...

    def alive(self, seconds: FloatArray, level: IntArray, position: IntArray) -> FloatArray:
        """Return high ends of the scores of runs last seen unfinished after `seconds` CPU seconds; low ends are 0.

        Such a run is in flight, was stopped before its captime, or is to be run again at a higher level. For a run that
        has not started these are 0 seconds, and its high end is 1.
        """
        ...

    def can_rise(self, level: IntArray) -> BoolArray:
        """Whether the next level allows any run more time than this one."""
        ...
