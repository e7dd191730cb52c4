"""Runtime distributions that are known exactly, chosen to hurt: a tool that measures utility must survive all of them.

Every distribution has finitely many atoms, so the expected utility of every configuration is a finite sum and no test
has to estimate the truth it compares with. Continuous laws stand here as a thousand of their quantiles.

A law is a function of `place`: one number from 0 to 1 per configuration, which says how good it is among its rivals.
Equal places give configurations with equal distributions, the hardest case for a union over configurations.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from captime.arrays import FloatArray, IntArray
from captime.plans import Ladder
from captime.sources.table import MAX_SECONDS, RuntimeTable
from captime.sources.window import FixedOrder
from captime.utilities import Utility, parse_utility

NEVER = math.inf
CAPS: FloatArray = np.ldexp(1.0, np.arange(10))
"""The captimes that UP orders when it starts at 1 s: 1, 2, 4, …, 512."""

_QUANTILES: FloatArray = (np.arange(1000) + 0.5) / 1000


@dataclass(frozen=True, eq=False)
class World:
    """Some configurations with known runtime distributions, and a utility.

    Attributes:
        utility: What answers are worth.
        seconds: Possible runtimes, one row per configuration.
        chance: How likely each of them is, one row per configuration.
        shared: One draw per instance decides for all configurations, so an instance is hard for all or for none.
        goal: The epsilon to ask for; 0 to continue until the instances end.
        truth: Expected utility of every configuration.
    """

    utility: Utility
    seconds: FloatArray
    chance: FloatArray
    shared: bool = False
    goal: float = 0.0
    truth: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        np.testing.assert_allclose(self.chance.sum(axis=1), 1.0, rtol=1e-12)
        worth = self.chance * self.utility(self.seconds)
        object.__setattr__(self, "truth", np.array([math.fsum(row) for row in worth]))

    @property
    def n_configs(self) -> int:
        """How many configurations there are."""
        return len(self.seconds)

    def draw(self, rng: np.random.Generator, n_instances: int) -> FloatArray:
        """Runtimes on independent instances, shape (configurations, instances)."""
        luck = np.broadcast_to(
            rng.random((1 if self.shared else self.n_configs, n_instances)), (self.n_configs, n_instances)
        )
        # The last cumulated chance may be rounded below 1, so it is left out of the search.
        atom = [
            np.searchsorted(row, mine, side="right")
            for row, mine in zip(self.chance.cumsum(axis=1)[:, :-1], luck, strict=True)
        ]
        return np.take_along_axis(self.seconds, np.array(atom), axis=1)


def table_of(seconds: FloatArray, limit: float = NEVER) -> RuntimeTable:
    """A table of these runtimes; what is longer than the limit is recorded as the limit."""
    n_configs, n_instances = seconds.shape
    late = (seconds > limit) | ((seconds == NEVER) & (limit < NEVER))
    return RuntimeTable(
        "drawn",
        tuple(f"c{config}" for config in range(n_configs)),
        tuple(f"i{instance}" for instance in range(n_instances)),
        np.where(late, limit, seconds),
        limit,
        np.arange(n_instances),
    )


def in_order(n_instances: int) -> FixedOrder:
    """The stream that meets the instances of a freshly drawn table as they come."""
    return FixedOrder(np.arange(n_instances))


def _row_each(place: FloatArray, values: npt.ArrayLike) -> FloatArray:
    """The same row for every configuration."""
    row = np.asarray(values, dtype=np.float64)
    return np.tile(row, (len(place), 1))


def _two_valued(place: FloatArray, good: FloatArray | float, fast: float, slow: float) -> tuple[FloatArray, FloatArray]:
    """Runtime `fast` with chance `good`, else `slow`."""
    likely = np.broadcast_to(np.asarray(good, dtype=np.float64), place.shape)
    return _row_each(place, [fast, slow]), np.column_stack((likely, 1.0 - likely))


def _equally_likely(seconds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Every atom with the same chance; beyond what a table may hold, a run never finishes."""
    known = np.where(seconds > MAX_SECONDS, NEVER, seconds)
    return known, np.full(seconds.shape, 1.0 / seconds.shape[1])


def _log_normal_atoms(place: FloatArray, median: float, sigma: float) -> FloatArray:
    """Quantiles of log-normal runtimes; the best place is ten times faster than the worst."""
    return np.exp(math.log(median) - place[:, None] * math.log(10.0) + sigma * ndtri(_QUANTILES))


def coin(place: FloatArray) -> World:
    """Done at once or never, half and half, and known after the first captime: where Hoeffding is least generous."""
    return World(parse_utility("step(1)"), *_two_valued(place, 0.5, 0.25, NEVER))


def two_point(place: FloatArray) -> World:
    """Half a second, or a thousand."""
    return World(parse_utility("log-laplace(60, 1)"), *_two_valued(place, 0.3 + 0.4 * place, 0.5, 1000.0))


def rare_disaster(place: FloatArray) -> World:
    """One run in a hundred takes thirty years."""
    seconds = np.column_stack((10.0 - 9.0 * place, np.full(len(place), 1e9)))
    return World(parse_utility("uniform(60)"), seconds, _row_each(place, [0.99, 0.01]))


def _near_the_caps(place: FloatArray, factor: float, utility: str) -> World:
    """All mass on the captimes times a factor; better places weigh the short ones more."""
    weight = np.exp(-np.arange(len(CAPS)) * place[:, None])
    return World(parse_utility(utility), _row_each(place, CAPS * factor), weight / weight.sum(axis=1, keepdims=True))


def on_the_caps(place: FloatArray) -> World:
    """Every runtime is exactly a captime, and so cut by it."""
    return _near_the_caps(place, 1.0, "log-laplace(60, 1)")


def above_the_caps(place: FloatArray) -> World:
    """Every run is cut a moment before it is done."""
    return _near_the_caps(place, 1.0 + 1e-7, "exponential(60)")


def below_the_caps(place: FloatArray) -> World:
    """Every run is done a moment before it is cut."""
    return _near_the_caps(place, 1.0 - 1e-7, "exponential(60)")


def cliff_on_a_cap(place: FloatArray) -> World:
    """The worth falls from 1 to 0 exactly at a captime that many runs take."""
    return _near_the_caps(place, 1.0, "step(64)")


def crashes(place: FloatArray) -> World:
    """Three runs in ten never finish."""
    body = _log_normal_atoms(place, 1.0, 1.0)
    chance = np.column_stack((np.full(body.shape, 0.7 / body.shape[1]), np.full(len(place), 0.3)))
    return World(parse_utility("exponential(60)"), np.column_stack((body, np.full(len(place), NEVER))), chance)


def log_normal(place: FloatArray) -> World:
    """Runtimes over ten orders of magnitude."""
    return World(parse_utility("log-laplace(60, 1)"), *_equally_likely(_log_normal_atoms(place, 60.0, 3.0)))


def pareto(place: FloatArray) -> World:
    """Tail index one half: even the mean runtime is infinite."""
    return World(
        parse_utility("uniform(60)"), *_equally_likely((4.0 - 3.0 * place[:, None]) * (1.0 - _QUANTILES) ** -2.0)
    )


def at_once(place: FloatArray) -> World:
    """No configuration needs any time at all."""
    return World(parse_utility("uniform(60)"), np.zeros((len(place), 1)), np.ones((len(place), 1)))


def never(place: FloatArray) -> World:
    """No run ever finishes."""
    return World(parse_utility("log-laplace(60, 1)"), np.full((len(place), 1), NEVER), np.ones((len(place), 1)))


def _near_the_goal(place: FloatArray, stretch: float) -> World:
    """The best beats all the others by the goal times a factor."""
    goal = 0.4
    good = np.where(np.arange(len(place)) == len(place) - 1, 0.3 + goal * stretch, 0.3)
    return World(parse_utility("step(1)"), *_two_valued(place, good, 0.25, NEVER), goal=goal)


def gap_above_goal(place: FloatArray) -> World:
    """To certify any but the best at the goal would be wrong, by one percent."""
    return _near_the_goal(place, 1.01)


def gap_below_goal(place: FloatArray) -> World:
    """To certify any but the best at the goal is right, by one percent."""
    return _near_the_goal(place, 0.99)


def late_bloomer(place: FloatArray) -> World:
    """The best never finishes within 64 s, where all the others look better."""
    best = (np.arange(len(place)) == len(place) - 1)[:, None]
    seconds = np.where(best, [96.0, NEVER], [2.0, NEVER])
    return World(parse_utility("log-laplace(600, 1)"), seconds, np.where(best, [0.9, 0.1], [0.3, 0.7]))


def same_for_all(place: FloatArray) -> World:
    """An instance that is hard for one is hard for all."""
    return World(
        parse_utility("log-laplace(60, 1)"), *_equally_likely(_log_normal_atoms(place, 60.0, 2.0)), shared=True
    )


def deadline(place: FloatArray) -> World:
    """Half of the runs just make the deadline, half just miss it."""
    return World(parse_utility("step(64)"), *_equally_likely(_log_normal_atoms(place, 100.0, 1.0)))


LAWS: dict[str, Callable[[FloatArray], World]] = {
    law.__name__: law
    for law in (
        coin,
        two_point,
        rare_disaster,
        on_the_caps,
        above_the_caps,
        below_the_caps,
        cliff_on_a_cap,
        crashes,
        log_normal,
        pareto,
        at_once,
        never,
        gap_above_goal,
        gap_below_goal,
        late_bloomer,
        same_for_all,
        deadline,
    )
}


def alike(n_configs: int) -> FloatArray:
    """Places of configurations with one and the same distribution."""
    return np.full(n_configs, 0.5)


def mixed(n_configs: int) -> FloatArray:
    """Places from the worst to the best."""
    return np.linspace(0.0, 1.0, n_configs)


def by_size(seconds: FloatArray) -> IntArray:
    """Positions of the instances from the easiest to the hardest: an order no stream may have."""
    return np.argsort(np.minimum(seconds, MAX_SECONDS).sum(axis=0), kind="stable")


def done_only_before_captimes(ladder: Ladder) -> bool:
    """The boundary table: on every rung, the last moment before the captime is done, the captime itself is not."""
    level, first = np.arange(len(ladder.rungs)), np.zeros(1, dtype=np.int64)

    def done(seconds: FloatArray) -> bool | None:
        """What all rungs say; None if they disagree."""
        completed, low, high = ladder.settled(seconds, ladder.utility(seconds), level, first)
        expected_high = np.where(completed, ladder.utility(seconds), ladder.utility(ladder.rungs))
        if (low != ladder.utility(seconds) * completed).any() or (high != expected_high).any():
            return None
        return bool(completed[0]) if (completed == completed[0]).all() else None

    before, after = np.nextafter(ladder.rungs, 0.0), np.nextafter(ladder.rungs, np.inf)
    return [done(moment) for moment in (before, ladder.rungs, after)] == [True, False, False]
