"""The report of benchmarks/search.py: what is compared with what."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from search_report import ALL, points_of


def cell(target: str, method: str, seed: int, worth: float, landscape: float) -> dict[str, Any]:
    """A search on record."""
    return {
        "target": target,
        "method": method,
        "seed": seed,
        "landscape": landscape,
        "hours": [1.0],
        "worths": [worth],
    }


def test_searches_are_compared_on_the_same_seeds_and_landscapes() -> None:
    """A landscape that another machine grew from the same table is another target."""
    cells = [
        cell("easy", "captime", 1, 0.8, 0.5),
        cell("easy", "random", 1, 0.7, 0.5),
        cell("easy", "captime", 2, 0.6, 0.5),
        cell("easy", "random", 2, 0.1, 0.4),  # the default is worth something else there
        cell("hard", "captime", 1, 0.4, 0.2),
        cell("hard", "random", 1, 0.1, 0.2),
        cell("hard", "random", 3, 0.9, 0.2),  # without a search of captime's
    ]
    points = {(point.target, point.method): point for point in points_of(cells)}
    assert points["easy", "captime"].seeds == 2
    assert points["easy", "random"].seeds == 1
    assert points["easy", "random"].ahead == pytest.approx(0.1)
    assert points["hard", "random"].seeds == 1
    assert points[ALL, "random"].ahead == pytest.approx(0.2)
