"""The terms of the race: how its delta is shared out, at which epsilons duels are weighed, which options make sense."""

from typing import Literal, get_args

import numpy as np

from captime.arrays import FloatArray
from captime.errors import ScenarioError

Mode = Literal["selection", "simultaneous"]

# Shares of delta: upper bound of the best configuration, duels, lower bounds, the upper end of the interval shown, and
# the scout's lower bound.
UPPER, PAIRED, LOWER, SHOWN, SCOUT = 0.41, 0.41, 0.1, 0.04, 0.04
SHARES = (("upper", UPPER), ("paired", PAIRED), ("lower", LOWER), ("shown", SHOWN), ("scout", SCOUT))


def margins(aim: float) -> FloatArray:
    """The epsilons at which duels are weighed: the goal itself, and ever coarser steps above it."""
    steps = [aim]
    while steps[-1] < 0.9:
        steps.append(1.12 * steps[-1] + 0.002)
    return np.array([step for step in steps if step < 0.95] or [aim])


def check_options(boost: float, mode: str, first_runs: int, growth: float, shares: dict[str, float]) -> None:
    """Refuse options of the race that make no sense, each with what would."""
    if not 1.0 <= boost <= 100.0:
        raise ScenarioError(f"boost is {boost!r}, but it has to be between 1 and 100; 1.25 is a good choice")
    if mode not in get_args(Mode):
        raise ScenarioError(f"race has no mode {mode!r}; there are {', '.join(get_args(Mode))}")
    if first_runs < 1:
        raise ScenarioError(f"first_runs is {first_runs}, but everyone has to run at least once")
    if not 0.0 < growth <= 10.0:
        raise ScenarioError(f"growth is {growth!r}, but it has to be a positive share, such as 0.1")
    for name, share in shares.items():
        if not 0.0 < share < 1.0:
            raise ScenarioError(f"{name} is {share!r}, but it has to be a share between 0 and 1, such as 0.1")
