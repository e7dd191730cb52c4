"""Parameters of configurations, read from their names: by these, searchers tell which configurations are neighbours.

A name such as `-luby -rfirst=30 --seed 7` is a list of settings. Where names say nothing (`c17`), every configuration
has one setting of its own, and all configurations are neighbours of each other.
"""

from collections.abc import Sequence

import numpy as np

from captime.arrays import IntArray
from captime.simulation.rows import settings_of


def distances(names: Sequence[str]) -> IntArray:
    """In how many settings any two configurations differ; a setting that a name lacks differs from any value."""
    made = [settings_of(name) for name in names]
    keys = sorted({key for each in made for key in each})
    apart: IntArray = np.zeros((len(names), len(names)), dtype=np.int64)
    for key in keys:
        values = sorted({each.get(key, "") for each in made})
        column = np.array([values.index(each.get(key, "")) for each in made])
        apart += column[:, None] != column
    return apart
