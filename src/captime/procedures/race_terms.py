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


COARSEST_STEP = 1.0 / 256.0
"""Differences of scores are rounded up to multiples of this, or of less; ledgers that name no step have this one."""
# A finer step than this would save less than a thousandth of the CPU time and cost more memory than it is worth.
_FINEST_STEP = 1.0 / 4096.0
# Rounding up costs about half a step of every difference, and the runs that takes grow with its share of epsilon.
_STEP_SHARE = 1.0 / 16.0


def difference_step(aim: float) -> float:
    """Return the step to which differences of scores are rounded up: a power of two, a small share of the goal.

    Any step is valid, and it may change on the way: the differences that are bet on are never below the true ones.

    >>> [round(1.0 / difference_step(aim)) for aim in (0.3, 0.0625, 0.05, 0.02, 0.005)]
    [256, 256, 512, 1024, 4096]
    """
    step = COARSEST_STEP
    while step > _STEP_SHARE * aim and step > _FINEST_STEP:
        step *= 0.5
    return step


def difference_grid(step: float, least: float) -> FloatArray:
    """Return the values to which differences of two scores are rounded up.

    Args:
        step: The distance between neighbours.
        least: The smallest positive score. Scores are 0 or at least that large, so that their differences are near -1,
            0 or 1; between these there need not be any value.
    """
    steps = round(1.0 / step)
    grid: FloatArray = np.linspace(-1.0, 1.0, 2 * steps + 1)
    if step >= COARSEST_STEP:
        return grid
    size = np.abs(grid)
    return grid[(size <= 1.0 - least + step) | (size >= least - step)]


def check_options(boost: float, mode: str, first_runs: int, growth: float, shares: dict[str, float]) -> None:
    """Refuse options of the race that make no sense, each with what would."""
    if not 1.0 <= boost <= 100.0:
        raise ScenarioError(f"boost is {boost!r}, but it has to be between 1 and 100; 1.25 is a good choice")
    if mode not in get_args(Mode):
        raise ScenarioError(f"race has no mode {mode!r}; there are {', '.join(get_args(Mode))}")
    if first_runs < 1:
        raise ScenarioError(f"first_runs is {first_runs}, but every configuration has to run at least once")
    if not 0.0 < growth <= 10.0:
        raise ScenarioError(f"growth is {growth!r}, but it has to be a positive share, such as 0.1")
    for name, share in shares.items():
        if not 0.0 < share < 1.0:
            raise ScenarioError(f"{name} is {share!r}, but it has to be a share between 0 and 1, such as 0.1")
