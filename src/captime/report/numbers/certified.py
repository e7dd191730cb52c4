"""What was certified when, with the moments at which configurations left the race; thinned for drawing."""

from dataclasses import replace

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.report.story import Progress, Story

_MOST = 500


def certified(story: Story) -> Progress:
    """The staircase of a campaign: first, last and evenly chosen steps on the logarithmic axis between them."""
    made = story.progress
    keep = thinned(made.seconds, _MOST)
    columns = ("seconds", "epsilon", "gamma", "config", "candidates")
    return replace(made, **{name: getattr(made, name)[keep] for name in columns})


def epsilon_at(steps: Progress, seconds: FloatArray) -> FloatArray:
    """What was certified at these moments; 1 before the first certificate."""
    place = np.searchsorted(steps.seconds, seconds, side="right") - 1
    found: FloatArray = np.where(place >= 0, steps.epsilon[np.maximum(place, 0)], 1.0)
    return found


def thinned(seconds: FloatArray, most: int) -> IntArray:
    """Places of at most so many values, spread evenly over the logarithm; all of them if they are few."""
    if len(seconds) <= most:
        return np.arange(len(seconds))
    first = max(float(seconds[0]), float(seconds[-1]) * 1e-6, 1e-9)
    wanted = np.geomspace(first, max(float(seconds[-1]), first), most - 2)
    places = np.searchsorted(seconds, wanted, side="right") - 1
    return np.unique(np.concatenate(([0], np.maximum(places, 0), [len(seconds) - 1])))
