"""Whole procedures on freshly drawn tables, again and again, counting how often anything they said was wrong.

The event counted is the strongest one the proof speaks about: *any* bound of *any* configuration wrong at *any* look,
or any certificate of the story false. A deliberate error can be planted in every place where a real one could sit; the
product itself has no switch for that.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.stats import binom

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.bounds import Bound
from captime.budget import FailureBudget
from captime.drive import Outcome, drive
from captime.intervals import IntervalEnds, Intervals
from captime.plans import Plan
from captime.procedures import PROCEDURES, Problem
from captime.procedures.lockstep import Lockstep, _Rounds
from captime.procedures.naive import Naive
from captime.sources.replay import Replay
from captime.sources.window import FixedOrder
from captime.tally import Outlook
from runtime_laws import LAWS, World, mixed, table_of
from turn_by_turn import Question

# Truths and means are sums of a thousand floats; nothing smaller than this is an error of the bounds.
_ROUNDING = 1e-9


def limit_for(repetitions: int, delta: float) -> int:
    """More wrong campaigns than this have probability at most 1e-4 if each is wrong with probability delta."""
    return int(binom.isf(1e-4, repetitions, delta))


@dataclass(frozen=True)
class Planted:
    """What stands in for an honest part; by default, nothing does."""

    budget: Callable[[FailureBudget], FailureBudget] = lambda honest: honest
    bound: Callable[[Bound], Bound] = lambda honest: honest
    plan: Callable[[Plan], Plan] = lambda honest: honest
    seconds: Callable[[FloatArray], FloatArray] = lambda drawn: drawn
    order: Callable[[FloatArray], IntArray] = lambda drawn: np.arange(drawn.shape[1])

    def spoil(self, intervals: Intervals) -> Intervals:
        """The same intervals with the planted parts."""
        return Intervals(
            intervals.n_configs,
            self.bound(intervals.bound),
            self.budget(intervals.budget),
            self.plan(intervals.plan),
            running=intervals.running,
        )


HONEST = Planted()


@dataclass(frozen=True)
class Setting:
    """Everything about a campaign but the world and its luck.

    Attributes:
        n_instances: Length of the stream.
        procedure: Name in the register.
        options: Options of the procedure.
        delta: Allowed probability of anything wrong.
        epsilon: Goal; left out, the world's own.
        captime_first: First captime in seconds.
        limit: Timeout of the table.
        planted: A deliberate error.
    """

    n_instances: int = 300
    procedure: str = "up"
    options: Mapping[str, object] = field(default_factory=dict)
    delta: float = 0.2
    epsilon: float | None = None
    captime_first: float = 1.0
    limit: float = np.inf
    planted: Planted = HONEST


class _WatchedLockstep(Lockstep):
    """A lockstep procedure whose bounds are compared with the truth at every cell it looks at."""

    def __init__(self, inner: Lockstep, truth: FloatArray) -> None:
        super().__init__(inner.problem, inner.intervals, inner._rules, pays=inner.pays)
        self.truth = truth
        self.wrong = False

    def _judge(self, outlook: Outlook, rounds: _Rounds) -> tuple[IntArray, BoolArray, FloatArray]:
        self.wrong |= _any_wrong(self.truth[outlook.config, None], rounds.lower, rounds.upper)
        return super()._judge(outlook, rounds)


def _any_wrong(truth: FloatArray, lower: FloatArray, upper: FloatArray) -> bool:
    return bool((lower > truth + _ROUNDING).any() or (upper < truth - _ROUNDING).any())


def went_wrong(world: World, setting: Setting, rng: np.random.Generator) -> bool:
    """One campaign on a fresh table; whether anything it said was wrong."""
    planted = setting.planted
    drawn = world.draw(rng, setting.n_instances)
    table = table_of(planted.seconds(drawn), setting.limit)
    problem = Problem(
        n_configs=world.n_configs,
        utility=world.utility,
        delta=setting.delta,
        epsilon=world.goal if setting.epsilon is None else setting.epsilon,
        captime_first=setting.captime_first,
        captime_limit=setting.limit,
        n_instances=setting.n_instances,
    )
    made = PROCEDURES[setting.procedure](problem, **setting.options)
    if not isinstance(made, Lockstep | Naive):
        raise TypeError(f"nothing is random about {setting.procedure}")
    made.intervals = planted.spoil(made.intervals)
    procedure = _WatchedLockstep(made, world.truth) if isinstance(made, Lockstep) else made
    replay = Replay(
        table, FixedOrder(planted.order(drawn)), procedure.intervals.plan, world.utility, pays=procedure.pays
    )
    outcome = drive(procedure, replay)
    if isinstance(procedure, _WatchedLockstep):
        bounds_wrong = procedure.wrong
    else:
        bounds_wrong = _any_wrong(world.truth, procedure.intervals.lower, procedure.intervals.upper)
    return bounds_wrong or false_certificate(outcome, world.truth)


def false_certificate(outcome: Outcome, truth: FloatArray) -> bool:
    """Whether any decision of the story claimed too much."""
    made = outcome.trace.decisions()
    return bool((truth.max() - truth[made.config] > made.epsilon + _ROUNDING).any())


def wrong_campaigns(world: World, setting: Setting, repetitions: int, seed: int) -> int:
    """How many of this many independent campaigns went wrong."""
    rng = np.random.default_rng(seed)
    return sum(went_wrong(world, setting, rng) for _ in range(repetitions))


def wrong_stories(
    procedure: str, n_instances: int, repetitions: int, *, seed: int, delta: float, every_upper: bool = True
) -> int:
    """Stories, this many for each law, in which an end that delta covers or any certificate was wrong.

    For procedures that keep the tightest ends: those remember the worst of all looks.

    Args:
        procedure: Name in the register.
        n_instances: Length of the stream.
        repetitions: Fresh tables for each law.
        seed: Of the tables.
        delta: Allowed probability of anything wrong.
        every_upper: Whether delta covers the upper ends of all; if not, only that of the best.
    """
    rng, wrong = np.random.default_rng(seed), 0
    for law in LAWS.values():
        world = law(mixed(4))
        counted = np.arange(world.n_configs) if every_upper else world.truth.argmax()
        for _ in range(repetitions):
            question = Question(world.draw(rng, n_instances), procedure, utility=str(world.utility), delta=delta)
            outcome, made = question.run()
            ends = getattr(made, "intervals", None)
            assert isinstance(ends, IntervalEnds)
            upper = np.ones(world.n_configs)
            upper[counted] = ends.upper[counted]
            wrong += _any_wrong(world.truth, ends.lower, upper) or false_certificate(outcome, world.truth)
    return wrong
