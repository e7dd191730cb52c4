"""The harness of `test_procedures_cover.py` has teeth: errors planted on purpose are caught, honest twins are not.

Each error sits in one replaceable part, and each is one that has been made or could be made. Errors of the budget that
no simulation of affordable size can see (the natural logarithm for the rung, seconds below 1) are caught exactly in
`test_budget_exact.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from campaigns import Planted, Setting, limit_for, wrong_campaigns
from captime.arrays import BoolArray, FloatArray, IntArray
from captime.bounds import Bound, Hoeffding
from captime.budget import FailureBudget, SingleLookBudget
from captime.plans import Ladder, Plan
from runtime_laws import CAPS, World, alike, by_size, coin, crashes, done_only_before_captimes, mixed, two_point


class ThirdOfTheRadius(Hoeffding):
    """Hoeffding's bound, three times too sure."""

    def __call__(
        self, n: IntArray, low: FloatArray, high: FloatArray, log_inverse: FloatArray, floor: FloatArray, /
    ) -> tuple[FloatArray, FloatArray]:
        """Radius / 3."""
        return super().__call__(n, low, high, log_inverse / 9.0, floor)


class WithoutTheCappingTerm(Ladder):
    """A cut run counts u(κ) at its low end too, although it may be worth nothing."""

    def settled(
        self, seconds: FloatArray, worth: FloatArray, level: IntArray, position: IntArray
    ) -> tuple[BoolArray, FloatArray, FloatArray]:
        """Low ends are high ends."""
        completed, _, high = super().settled(seconds, worth, level, position)
        return completed, high.copy(), high


class CapAsFinish(Ladder):
    """A cut run is taken for one that finished at its captime, and is never made again."""

    def completes(self, seconds: FloatArray, level: IntArray, position: IntArray) -> BoolArray:
        """Always."""
        return np.ones(np.broadcast_shapes(seconds.shape, level.shape), dtype=np.bool_)

    def settled(
        self, seconds: FloatArray, worth: FloatArray, level: IntArray, position: IntArray
    ) -> tuple[BoolArray, FloatArray, FloatArray]:
        """The worth of having finished by the captime."""
        seen = self.utility(np.minimum(seconds, self.rungs.take(level)))
        return self.completes(seconds, level, position), seen.copy(), seen


class CrashAsZero(Ladder):
    """A crash is worth 0 at its high end, outside the range that the upper radius was shortened to."""

    def settled(
        self, seconds: FloatArray, worth: FloatArray, level: IntArray, position: IntArray
    ) -> tuple[BoolArray, FloatArray, FloatArray]:
        """0 at both ends, known at once."""
        completed, low, high = super().settled(seconds, worth, level, position)
        return completed, low, np.where(np.isinf(seconds), 0.0, high)


class AtTheCapIsDone(Ladder):
    """`<=` where `<` belongs."""

    def completes(self, seconds: FloatArray, level: IntArray, position: IntArray) -> BoolArray:
        """At the captime or before."""
        return seconds <= self.rungs.take(level)


def built_as(kind: type[Ladder]) -> Callable[[Plan], Plan]:
    """The same ladder with that error."""

    def spoiled(honest: Plan) -> Plan:
        assert isinstance(honest, Ladder)
        return kind(honest.utility, honest.rungs)

    return spoiled


def third_of_the_radius(honest: Bound) -> Bound:
    """The bound that is three times too sure."""
    assert isinstance(honest, Hoeffding)
    return ThirdOfTheRadius()


def one_look_only(honest: FailureBudget) -> FailureBudget:
    """The radius for one n fixed beforehand, although every n is looked at."""
    return SingleLookBudget(honest.delta, N_FIXED)


def as_if_alone(honest: FailureBudget) -> FailureBudget:
    """The whole delta for each of the configurations."""
    return SingleLookBudget(honest.delta, 1)


def crash_as_finish(drawn: FloatArray) -> FloatArray:
    """A run that crashed after 0.1 s is taken for one that was done after 0.1 s."""
    return np.where(np.isinf(drawn), 0.1, drawn)


def in_circles(drawn: FloatArray) -> IntArray:
    """Fifty instances, met over and over as if they were new."""
    return np.arange(drawn.shape[1]) % 50


N_FIXED = 5
UP, NAIVE = Setting(), Setting(procedure="naive", epsilon=0.45)


@dataclass(frozen=True)
class Trap:
    """An error with a world in which it shows.

    Attributes:
        planted: The error.
        world: Where it shows.
        setting: How campaigns are run there.
        repetitions: How many are needed to tell.
    """

    planted: Planted
    world: World
    setting: Setting = UP
    repetitions: int = 100


TRAPS = {
    "fixed-m radius at every look": Trap(
        Planted(budget=one_look_only), coin(alike(N_FIXED)), replace(UP, n_instances=2000), 400
    ),
    "no union over configurations": Trap(
        Planted(budget=as_if_alone), coin(alike(200)), replace(NAIVE, n_instances=100)
    ),
    "lower bound without the capping term": Trap(Planted(plan=built_as(WithoutTheCappingTerm)), two_point(mixed(2))),
    "cap as finish": Trap(Planted(plan=built_as(CapAsFinish)), two_point(mixed(2))),
    "crash as finish": Trap(Planted(seconds=crash_as_finish), crashes(mixed(2))),
    "crash worth 0 in a range that ends at u(captime)": Trap(Planted(plan=built_as(CrashAsZero)), crashes(mixed(2))),
    "at the cap is done, at a table's timeout": Trap(
        Planted(plan=built_as(AtTheCapIsDone)), two_point(mixed(2)), replace(UP, limit=8.0)
    ),
    "instances sorted by size": Trap(Planted(order=by_size), replace(coin(alike(2)), shared=True)),
    "instances used again and again": Trap(
        Planted(order=in_circles), coin(alike(N_FIXED)), replace(UP, n_instances=2000)
    ),
    "a third of the radius": Trap(Planted(bound=third_of_the_radius), coin(alike(N_FIXED)), repetitions=400),
}


@pytest.mark.parametrize("trap", TRAPS.values(), ids=TRAPS.keys())
def test_a_planted_error_is_caught_and_its_honest_twin_is_not(trap: Trap) -> None:
    """The same campaigns with the same luck, with and without the error."""
    limit, seed = limit_for(trap.repetitions, trap.setting.delta), 20231210
    spoiled = replace(trap.setting, planted=trap.planted)
    assert wrong_campaigns(trap.world, spoiled, trap.repetitions, seed) > limit
    assert wrong_campaigns(trap.world, trap.setting, trap.repetitions, seed) <= limit


def test_the_boundary_table_tells_less_from_less_or_equal() -> None:
    """A runtime of exactly the captime is not done, and a ladder that thinks so is found out without any sampling."""
    utility, rungs = two_point(alike(2)).utility, CAPS
    assert done_only_before_captimes(Ladder(utility, rungs))
    assert not done_only_before_captimes(AtTheCapIsDone(utility, rungs))
