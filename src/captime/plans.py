"""What a captime plan looks like."""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.errors import ScenarioError
from captime.utilities.formula import Utility


class Plan(Protocol):
    """A function from (level, stream position) to a captime, and from what a run did to the interval of its score."""

    @property
    def repeats(self) -> bool:
        """Whether levels can rise, so that a cut run is made again and has to take the same time then."""
        ...

    def captime(self, level: IntArray, position: IntArray) -> FloatArray:
        """How many CPU seconds a run on that position may take in all, at that level."""
        ...

    def floor(self, level: IntArray) -> FloatArray:
        """The smallest value of a high end at that level, u(κ) on a ladder: the range of high ends is [floor, 1]."""
        ...

    def completes(self, seconds: FloatArray, level: IntArray, position: IntArray) -> BoolArray:
        """Return whether runs that take `seconds` without a captime are done before their captimes."""
        ...

    def settled(
        self, seconds: FloatArray, worth: FloatArray, level: IntArray, position: IntArray
    ) -> tuple[BoolArray, FloatArray, FloatArray]:
        """Completed?, low end and high end of the scores of runs that were made up to their captimes.

        Args:
            seconds: How long each run takes without a captime; infinite if it never finishes.
            worth: u(seconds), computed once where the runtimes are kept.
            level: Level of the plan, per run.
            position: Stream position, per run.
        """
        ...

    def alive(self, seconds: FloatArray, level: IntArray, position: IntArray) -> FloatArray:
        """Return high ends of the scores of runs last seen unfinished after `seconds` CPU seconds; low ends are 0.

        Such a run is in flight, was stopped before its captime, or is to be run again at a higher level. For a run that
        has not started these are 0 seconds, and its high end is 1.
        """
        ...

    def can_rise(self, level: IntArray) -> BoolArray:
        """Whether the next level allows any run more time than this one."""
        ...


# The paper's plan: one captime for all positions, raised from level to level, scores as they are.

# 2^60 times any first captime is beyond every clock: a ladder without a top needs no more rungs.
_ENOUGH_RUNGS = 60


@dataclass(frozen=True, slots=True)
class Ladder:
    """Captimes on fixed rungs, level 0 the shortest.

    Args:
        utility: What an answer is worth.
        rungs: Captimes in CPU seconds, strictly increasing, fixed before the first run. The last may be infinite.
    """

    utility: Utility
    rungs: FloatArray
    worth_at_rung: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rising = bool(np.all(np.diff(self.rungs) > 0)) and not np.isnan(self.rungs).any()
        if len(self.rungs) == 0 or not self.rungs[0] > 0 or not rising:
            raise ScenarioError(
                f"the captimes of the ladder are {self.rungs.tolist()}, but they have to be positive and strictly "
                "increasing"
            )
        object.__setattr__(self, "worth_at_rung", self.utility(self.rungs))

    @property
    def repeats(self) -> bool:
        """With more than one rung, yes."""
        return len(self.rungs) > 1

    @classmethod
    def doubling(cls, utility: Utility, first: float, top: float = np.inf) -> "Ladder":
        """Captimes first, 2·first, 4·first, …, the last one standing exactly at `top`.

        Args:
            utility: What an answer is worth.
            first: Captime of level 0, in CPU seconds.
            top: The moment after which a longer captime is pure waste (`utility.zero_at`) or unknowable (the timeout
                of a recorded table), whichever comes first; infinite for none.
        """
        if not (np.isfinite(first) and first > 0):
            raise ScenarioError(
                f"the first captime is {first!r} s, but it has to be a positive number of seconds; try 1"
            )
        doubled = np.ldexp(first, np.arange(_ENOUGH_RUNGS))
        if np.isfinite(top):
            return cls(utility, np.concatenate((doubled[doubled < top], np.array([top]))))
        return cls(utility, doubled)

    def captime(self, level: IntArray, position: IntArray) -> FloatArray:  # noqa: ARG002 (the same for every position)
        """See the protocol."""
        return self.rungs.take(level)

    def floor(self, level: IntArray) -> FloatArray:
        """u(κ) at that level."""
        return self.worth_at_rung.take(level)

    def completes(self, seconds: FloatArray, level: IntArray, position: IntArray) -> BoolArray:  # noqa: ARG002 (as above)
        """See the protocol. Completed means strictly before the captime, here and nowhere else."""
        return seconds < self.rungs.take(level)

    def settled(
        self,
        seconds: FloatArray,
        worth: FloatArray,
        level: IntArray,
        position: IntArray,
    ) -> tuple[BoolArray, FloatArray, FloatArray]:
        """See the protocol."""
        completed = self.completes(seconds, level, position)
        low = worth * completed
        return completed, low, low + self._hidden(seconds, completed) * self.worth_at_rung.take(level)

    def _hidden(self, seconds: FloatArray, completed: BoolArray) -> BoolArray:  # noqa: ARG002 (for those that look)
        """Return which runs count u(κ) at their high end: those that are not done by κ, crashes included.

        See Hoeffding on the range.
        """
        return ~completed

    def alive(self, seconds: FloatArray, level: IntArray, position: IntArray) -> FloatArray:  # noqa: ARG002 (as above)
        """See the protocol. Never below u(κ), where the range of the high ends at this level stops."""
        return self.utility(np.minimum(seconds, self.rungs.take(level)))

    def can_rise(self, level: IntArray) -> BoolArray:
        """See the protocol."""
        return level < len(self.rungs) - 1


@dataclass(frozen=True, slots=True)
class UtilityLadder(Ladder):
    """The same rungs where utilities themselves are bounded: a run that failed is known to be worth 0.

    The high end of a failed run is 0 and not u(κ), so that everything is known exactly once every run has ended.
    """

    def _hidden(self, seconds: FloatArray, completed: BoolArray) -> BoolArray:
        """See `Ladder`: a failed run is not among them."""
        return ~completed & np.isfinite(seconds)


# Random captimes: chance draws how long a run may take, from the user's own utility, so that no utility is hidden.
#
# u is the survival function of a random deadline. If the captime K of a run is drawn beforehand with P(K > t) = u(t),
# then "finished before K" is a 0/1 sample whose mean *is* the expected utility, although the run may have been cut. A
# boost B >= 1 lets more runs finish: P(K > t) = min(1, B·u(t)), and a finished run counts max(u(t), 1/B). The mean is
# the same for every B (docs/engine.md has the proof); larger B costs more time a run and varies less.
#
# Position j of the stream carries one draw v_j for all configurations. It comes from a generator of its own, keyed by
# the position, and knows nothing of instances, seeds or runtimes.
#
# A run may be stopped before K_j, at any moment and for any reason: its score is then known as an interval, and the
# bounds take the end that is safe (docs/engine.md, step 10). The plan offers levels of such stops. A
# configuration that is hopeless against the leader is cleared at a low level, for a fraction of the CPU time.

# Draws are made this many positions at a time, each block from its own key, so that the order of looking changes none.
_BLOCK = 4096
# Keeps the draws apart from everything else that is derived from the same seed.
_KEY = 0x63617074


class Schedule:
    """A number per stream position that may only be changed for positions that have not been reached yet."""

    def __init__(self, value: float) -> None:
        self._starts: list[int] = [0]
        self._values: list[float] = [value]

    def change_from(self, position: int, value: float) -> None:
        """From this position on the number is `value`; earlier positions keep theirs for ever."""
        if position <= self._starts[-1]:
            raise ScenarioError(f"position {position} has its value already; the last change was at {self._starts[-1]}")
        self._starts.append(position)
        self._values.append(value)

    def at(self, position: IntArray) -> FloatArray:
        """The numbers of these positions."""
        if len(self._values) == 1:
            return np.array(self._values)
        return np.array(self._values)[np.searchsorted(self._starts, position, side="right") - 1]

    @property
    def last_change(self) -> int:
        """From which position on the newest number holds."""
        return self._starts[-1]


@dataclass(frozen=True, slots=True)
class Stops:
    """Levels of captimes below the drawn one.

    At a level, a run whose drawn captime is at most `reach` runs until its draw; every other run is stopped at `stop`.

    Attributes:
        stop: CPU seconds by level, never falling.
        reach: The longest drawn captime that a run may use up, by level, never falling; infinite at the last level.
    """

    stop: FloatArray
    reach: FloatArray

    @classmethod
    def none(cls) -> "Stops":
        """Return the only level at which every run may use up its draw."""
        return cls(np.array([np.inf]), np.array([np.inf]))

    @classmethod
    def doubling(cls, utility: Utility, boost: float, longest: float) -> "Stops":
        """Return stops that double up to the last one that shows anything, then ever longer draws.

        A run stopped at c is worth at most max(u(c), 1/B): a stop between u⁻¹(1/B) and the drawn captime costs time and
        shows nothing.

        Args:
            utility: What an answer is worth.
            boost: B.
            longest: The longest captime there is.
        """
        last = _last_stop(utility, boost, longest)
        if last is None:
            return cls.none()
        stop = [last * 0.5**k for k in range(_STOPS - 1, -1, -1)]
        reach = [0.0] * len(stop)
        while len(reach) < _LEVELS_AT_MOST and (further := last * 2.0 ** (len(reach) - _STOPS + 1)) < longest:
            stop.append(last)
            reach.append(further)
        return cls(np.array([*stop, last]), np.array([*reach, np.inf]))

    @classmethod
    def one(cls, utility: Utility, boost: float, longest: float) -> "Stops":
        """Return two levels: runs are stopped at u⁻¹(1/B), or use up their draws.

        The arguments are those of `doubling`.
        """
        last = _last_stop(utility, boost, longest)
        if last is None:
            return cls.none()
        return cls(np.array([last, last]), np.array([0.0, np.inf]))

    @property
    def top(self) -> int:
        """The last level, at which every run may use up its draw."""
        return len(self.stop) - 1

    def applied(self, drawn: FloatArray, level: IntArray) -> FloatArray:
        """Return the captimes of runs with these drawn ones, at these levels."""
        return np.where(drawn <= self.reach[level], drawn, np.minimum(drawn, self.stop[level]))


# Stops up to u⁻¹(1/B), each twice the one before, and levels in all.
_STOPS, _LEVELS_AT_MOST = 7, 14


def _last_stop(utility: Utility, boost: float, longest: float) -> float | None:
    """Return u⁻¹(1/B), the last stop that shows anything; None if no stop does."""
    last = min(float(utility.inverse(np.array(1.0 / boost))), longest)
    return last if np.isfinite(last) and last > 0.0 and boost > 1.0 else None


@dataclass(slots=True)
class RandomCaptimes:
    """A captime per stream position, the same for all configurations at one level.

    Args:
        utility: What an answer is worth; right-continuous, as every utility here is.
        seed: Key of the draws.
        boost: B, at least 1, by position.
        longest: No run is given more CPU seconds than this, by position. A run stopped there is known only as "at least
            so long"; its score is an interval.
        stops: Levels below the drawn captimes; none by default, so that every run is made once.
    """

    utility: Utility
    seed: int
    boost: Schedule
    longest: Schedule
    stops: Stops = field(default_factory=Stops.none)
    _draws: FloatArray = field(default_factory=lambda: np.empty(0), init=False, repr=False)

    @property
    def repeats(self) -> bool:
        """Whether there is more than one level."""
        return self.stops.top > 0

    def draws(self, position: IntArray) -> FloatArray:
        """v_j, uniform on [0, 1)."""
        if position.size and int(position.max()) >= len(self._draws):
            self._grow(int(position.max()))
        return self._draws.take(position)

    def _grow(self, last: int) -> None:
        known = len(self._draws) // _BLOCK
        blocks = [
            np.random.default_rng((_KEY, self.seed, block)).random(_BLOCK) for block in range(known, last // _BLOCK + 1)
        ]
        self._draws = np.concatenate((self._draws, *blocks))

    def drawn(self, position: IntArray) -> FloatArray:
        """K, as long as it may be."""
        return self.utility.inverse(self.draws(position) / self.boost.at(position))

    def captime(self, level: IntArray, position: IntArray) -> FloatArray:
        """K cut at the longest captime allowed, and at the stop of the level."""
        captime = np.minimum(self.drawn(position), self.longest.at(position))
        return captime if self.stops.top == 0 else self.stops.applied(captime, level)

    def floor(self, level: IntArray) -> FloatArray:
        """Scores can be 0."""
        return np.zeros(np.shape(level))

    def completes(self, seconds: FloatArray, level: IntArray, position: IntArray) -> BoolArray:
        """See the protocol."""
        return seconds < self.captime(level, position)

    def settled(
        self, seconds: FloatArray, worth: FloatArray, level: IntArray, position: IntArray
    ) -> tuple[BoolArray, FloatArray, FloatArray]:
        """See the protocol. The score is decided from the measured time and the draw, not from the rounded captime."""
        draw, boost = self.draws(position), self.boost.at(position)
        least = 1.0 / boost
        # t < K if and only if u(t) > v/B, jumps, flat parts and ties included.
        finished = draw < boost * worth
        score = np.maximum(worth, least) * finished
        # Stopped although K was longer: anything up to what an answer just then is worth.
        limit = self.longest.at(position)
        if self.stops.top > 0:
            drawn = np.minimum(self.drawn(position), limit)
            limit = np.where(drawn <= self.stops.reach[level], limit, np.minimum(limit, self.stops.stop[level]))
        at_limit = self.utility(limit)
        stopped = (seconds >= limit) & np.isfinite(seconds) & (draw < boost * at_limit)
        low = score * ~stopped
        high = np.where(stopped, np.maximum(at_limit, least), score)
        return finished & ~stopped, low, high

    def can_rise(self, level: IntArray) -> BoolArray:
        """Whether there is a level above; longer captimes than the longest are for later positions only."""
        return np.asarray(level < self.stops.top)

    def alive(self, seconds: FloatArray, level: IntArray, position: IntArray) -> FloatArray:  # noqa: ARG002 (one level)
        """See the protocol."""
        draw, boost = self.draws(position), self.boost.at(position)
        worth = self.utility(seconds)
        # Seen alive at or after K: it is to be killed and counts 0.
        return np.where(draw < boost * worth, np.maximum(worth, 1.0 / boost), 0.0)


# The family of captime plans: the one place that knows how long a run may take and what it is then worth.
#
# A plan is fixed before the first run. Its levels only ever raise captimes. No procedure compares a runtime with a
# captime: that happens here, once per plan, with the strict `<` that defines "completed".

__all__ = ["Ladder", "Plan", "RandomCaptimes", "Schedule"]
