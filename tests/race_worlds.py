"""Where the race is tried: configurations whose runtimes depend on each other in every hurtful way, with known truth.

A world here is a finite list of things that can happen on one stream position, each with its runtimes for *all*
configurations. So ties, opposition and exact distances are exact, and expected utilities are finite sums.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from captime.arrays import FloatArray
from captime.utilities import Utility, parse_utility
from runtime_laws import LAWS, NEVER, World, alike, mixed


class RaceWorld(Protocol):
    """What the harness needs to know of a world; `runtime_laws.World` fits too."""

    @property
    def utility(self) -> Utility:
        """What answers are worth."""
        ...

    @property
    def truth(self) -> FloatArray:
        """Expected utility of every configuration."""
        ...

    @property
    def goal(self) -> float:
        """The epsilon to ask for."""
        ...

    @property
    def n_configs(self) -> int:
        """How many configurations there are."""
        ...

    def draw(self, rng: np.random.Generator, n_instances: int) -> FloatArray:
        """Runtimes on independent positions, shape (configurations, positions)."""
        ...


@dataclass(frozen=True, eq=False)
class JointWorld:
    """Configurations that share their luck in a given way.

    Attributes:
        utility: What answers are worth.
        seconds: Runtimes, one row per thing that can happen, one column per configuration.
        chance: How likely each row is.
        goal: The epsilon to ask for; 0 to continue until the instances end.
        truth: Expected utility of every configuration.
    """

    utility: Utility
    seconds: FloatArray
    chance: FloatArray
    goal: float = 0.0
    truth: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        assert math.isclose(math.fsum(self.chance), 1.0, rel_tol=1e-12)
        worth = self.chance[:, None] * self.utility(self.seconds)
        object.__setattr__(self, "truth", np.array([math.fsum(column) for column in worth.T]))

    @property
    def n_configs(self) -> int:
        """How many configurations there are."""
        return int(self.seconds.shape[1])

    def draw(self, rng: np.random.Generator, n_instances: int) -> FloatArray:
        """Runtimes on independent positions, shape (configurations, positions)."""
        # The last cumulated chance may be rounded below 1, so it is left out of the search.
        happened = np.searchsorted(self.chance.cumsum()[:-1], rng.random(n_instances), side="right")
        return np.ascontiguousarray(self.seconds[happened].T)


def tosses(good: FloatArray, goal: float = 0.0) -> World:
    """Done at once or never, independently, configuration i with chance good[i]; a deadline of 1 s."""
    seconds = np.tile(np.array([0.25, NEVER]), (len(good), 1))
    return World(parse_utility("step(1)"), seconds, np.column_stack((good, 1.0 - good)), goal=goal)


def tied(n_configs: int) -> World:
    """All are equally good, so every lead is luck."""
    return tosses(np.full(n_configs, 0.5))


def tied_in_lockstep(n_configs: int) -> JointWorld:
    """All always score the same: differences are 0 for ever."""
    seconds = np.tile(np.array([[0.25], [NEVER]]), (1, n_configs))
    return JointWorld(parse_utility("step(1)"), seconds, np.array([0.5, 0.5]), goal=0.05)


def exactly_epsilon_apart(n_configs: int) -> World:
    """The best beats all others by the goal exactly: to certify another at the goal is right, below it wrong."""
    good = np.full(n_configs, 0.375)
    good[-1] = 0.625
    return tosses(good, goal=0.25)


def opposed(n_configs: int) -> JointWorld:
    """What half of them can do the other half cannot: differences are as large as can be. One half is better."""
    first = np.arange(n_configs) < n_configs / 2
    seconds = np.where(np.stack((first, ~first)), 0.25, NEVER)
    return JointWorld(parse_utility("step(1)"), seconds, np.array([0.45, 0.55]), goal=0.08)


def opposed_slowly(n_configs: int) -> JointWorld:
    """The same with every answer worth something, so that captimes are drawn and cut."""
    first = np.arange(n_configs) < n_configs / 2
    seconds = np.where(np.stack((first, ~first)), 5.0, 80.0)
    return JointWorld(parse_utility("exponential(60)"), seconds, np.array([0.4, 0.6]))


def staircase(good: FloatArray, goal: float = 0.0) -> JointWorld:
    """Configuration i solves a share good[i], increasing; what one of them solves all later ones solve too."""
    steps = np.diff(np.concatenate(([0.0], good, [1.0])))
    solved = np.arange(len(good)) >= np.arange(len(good) + 1)[:, None]
    return JointWorld(parse_utility("step(1)"), np.where(solved, 0.25, NEVER), steps, goal)


def rare_success(n_configs: int) -> JointWorld:
    """Hardly anything is ever solved; scores are as skewed as they can be."""
    return staircase(np.linspace(0.02, 0.06, n_configs))


def one_hard_instance_in_three(n_configs: int) -> JointWorld:
    """What is hard is hard for all; the better a configuration, the sooner it is done with the rest."""
    quick = np.linspace(40.0, 10.0, n_configs)
    seconds = np.stack((quick, quick * 4.0, np.full(n_configs, NEVER)))
    return JointWorld(parse_utility("uniform(60)"), seconds, np.array([1.0, 1.0, 1.0]) / 3.0)


def late_bloomers(n_configs: int) -> JointWorld:
    """The best needs 50 s for what the others do at once, but does it always; most captimes cut it."""
    best = np.arange(n_configs) == n_configs - 1
    seconds = np.stack((np.where(best, 50.0, 0.5), np.where(best, 50.0, NEVER)))
    return JointWorld(parse_utility("log-laplace(60, 1)"), seconds, np.array([0.4, 0.6]))


def one_excellent(n_configs: int) -> JointWorld:
    """One answers nearly everything at once; the others need minutes, or never answer."""
    best = np.arange(n_configs) == n_configs // 2
    slow = np.linspace(150.0, 600.0, n_configs)
    seconds = np.stack((np.where(best, 0.5, slow), np.where(best, 3.0, NEVER), np.where(best, 250.0, slow)))
    return JointWorld(parse_utility("log-laplace(60, 1)"), seconds, np.array([0.5, 0.45, 0.05]), goal=0.1)


def near_ties(n_configs: int) -> JointWorld:
    """All take nearly the same time, whatever the instance; half of them are exactly alike."""
    pace = np.where(np.arange(n_configs) % 2 == 0, 1.0, np.linspace(0.95, 1.05, n_configs))
    hardness = np.array([1.0, 8.0, 30.0, 90.0])
    return JointWorld(parse_utility("uniform(60)"), hardness[:, None] * pace, np.full(4, 0.25), goal=0.02)


def best_ranks_last(n_configs: int) -> JointWorld:
    """The others are done sooner with what they can do; the best, listed last, does much more, but slowly."""
    best = np.arange(n_configs) == n_configs - 1
    seconds = np.stack((np.where(best, 18.0, 0.5), np.where(best, 18.0, NEVER), np.full(n_configs, NEVER)))
    return JointWorld(parse_utility("uniform(60)"), seconds, np.array([0.4, 0.5, 0.1]), goal=0.1)


def _by_place(law: str, *, same: bool) -> Callable[[int], RaceWorld]:
    return lambda n_configs: LAWS[law](alike(n_configs) if same else mixed(n_configs))


WORLDS: dict[str, Callable[[int], RaceWorld]] = {
    **{law: _by_place(law, same=False) for law in LAWS},
    **{
        world.__name__: world
        for world in (
            tied,
            tied_in_lockstep,
            exactly_epsilon_apart,
            opposed,
            opposed_slowly,
            rare_success,
            one_hard_instance_in_three,
            late_bloomers,
        )
    },
    "identical two_point": _by_place("two_point", same=True),
    "identical log_normal": _by_place("log_normal", same=True),
}
"""Worlds by name, each for any number of configurations."""

CONFIGURED: dict[str, Callable[[int], RaceWorld]] = {
    world.__name__: world for world in (one_excellent, near_ties, best_ranks_last)
}
"""Worlds like tables of many configurations of one solver, where runs begin with short captimes."""
