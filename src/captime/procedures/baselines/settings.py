"""Parameters of configurations, read from their names: what searchers need to know who is next to whom.

A name such as `-luby -rfirst=30 --seed 7` is a list of settings. Where names say nothing (`c17`), every configuration
has one setting of its own, and everybody is everybody's neighbour.
"""

from collections.abc import Sequence

import numpy as np

from captime.arrays import IntArray


def settings_of(name: str) -> dict[str, str]:
    """The settings in a name.

    >>> settings_of("-luby -rfirst=30 --mode fast")
    {'luby': 'yes', 'rfirst': '30', 'mode': 'fast'}
    """
    found: dict[str, str] = {}
    waiting = ""
    for word in name.split():
        if word.startswith("-") or "=" in word:
            key, _, value = word.lstrip("-").partition("=")
            negated = key.startswith("no-") and not value
            key = key.removeprefix("no-") if negated else key
            found[key] = "no" if negated else value or "yes"
            waiting = "" if value or negated else key
        elif waiting:
            found[waiting], waiting = word, ""
        else:
            return {"name": name}
    return found or {"name": name}


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
