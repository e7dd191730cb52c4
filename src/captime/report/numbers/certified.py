"""What was certified when, with the moments at which configurations left the race; thinned for drawing."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.report.story import Story

_MOST = 500


@dataclass(frozen=True, slots=True)
class Certified:
    """A staircase.

    Attributes:
        seconds: CPU seconds spent.
        epsilon: Certified by then.
        gamma: Likewise; not a number where there is none.
        config: Recommended then.
        candidates: Left then.
        out: (CPU seconds, who) at the moments of elimination.
    """

    seconds: FloatArray
    epsilon: FloatArray
    gamma: FloatArray
    config: IntArray
    candidates: IntArray
    out: Sequence[tuple[float, tuple[int, ...]]]

    def epsilon_at(self, seconds: FloatArray) -> FloatArray:
        """What was certified at these moments; 1 before the first certificate."""
        place = np.searchsorted(self.seconds, seconds, side="right") - 1
        found: FloatArray = np.where(place >= 0, self.epsilon[np.maximum(place, 0)], 1.0)
        return found


def certified(story: Story) -> Certified:
    """The staircase of a campaign: first, last and evenly chosen steps on the logarithmic axis between them."""
    made = story.progress
    keep = thinned(made.seconds, _MOST)
    return Certified(
        made.seconds[keep],
        made.epsilon[keep],
        made.gamma[keep],
        made.config[keep],
        made.candidates[keep],
        list(made.out),
    )


def thinned(seconds: FloatArray, most: int) -> IntArray:
    """Places of at most so many values, spread evenly over the logarithm; all of them if they are few."""
    if len(seconds) <= most:
        return np.arange(len(seconds))
    first = max(float(seconds[0]), float(seconds[-1]) * 1e-6, 1e-9)
    wanted = np.geomspace(first, max(float(seconds[-1]), first), most - 2)
    places = np.searchsorted(seconds, wanted, side="right") - 1
    return np.unique(np.concatenate(([0], np.maximum(places, 0), [len(seconds) - 1])))
