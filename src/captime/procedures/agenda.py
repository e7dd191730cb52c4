"""Which runs a race orders next, how far, and with which captimes.

Schedules touch only what a certificate costs, never whether it is true.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.certificate import Targets
from captime.plans import RandomCaptimes
from captime.procedures.board import Board

# One challenger in 32 is run at a time, or one if there are fewer.
_TOGETHER = 32
# Up to this share of the runs that a challenger will need is ordered ahead of results, if there are slots for them; the
# need is a guess from the runs so far, and is trusted up to three times their number.
_IN_FLIGHT, _TRUST = 0.5, 3.0


@dataclass(frozen=True, slots=True)
class Rivals:
    """Challengers that need runs and can have them; parallel arrays.

    Attributes:
        config: Which configurations.
        urgency: Larger first.
        missing: About how many more runs each will need.
        open: Runs of theirs that were ordered and are not settled.
    """

    config: IntArray
    urgency: FloatArray
    missing: FloatArray
    open: IntArray


def runs_missing(epsilon: FloatArray, lead: FloatArray, n: IntArray, goal: float) -> FloatArray:
    """About how many more runs it takes until each is cleared, if widths shrink with the root of their number.

    Args:
        epsilon: By how much each may be better than the leader at most, as shown by n runs.
        lead: By how much each seems to be better; negative if it seems worse.
        n: Runs so far.
        goal: By how much each may be better in the end.
    """
    width = np.maximum(epsilon - lead, 0.0)
    room = np.maximum(goal - lead, 0.1 * goal + 1e-3)
    missing: FloatArray = n * ((width / room) ** 2 - 1.0)
    return missing


class Agenda:
    """Orders placed so far, and the next ones.

    Args:
        board: Has the first position of each configuration, and the first one that counts.
        growth: How much of its past a configuration repeats at a time.
        available: Length of the stream; infinite if it is endless.

    Attributes:
        ordered: Up to which position each configuration was told to run.
        level: Level of captimes that each configuration was ordered at.
        skipping: Whether positions before the first one of a configuration are skipped by now.
    """

    def __init__(self, board: Board, growth: float, available: float) -> None:
        self._board = board
        self._growth = growth
        self._available = available
        self.ordered: IntArray = np.zeros(len(board.start), dtype=np.int64)
        self.level: IntArray = np.zeros(len(board.start), dtype=np.int64)
        self.skipping = False

    def enter(self, count: int) -> None:
        """Make room for `count` more configurations."""
        nothing: IntArray = np.zeros(count, dtype=np.int64)
        self.ordered, self.level = np.append(self.ordered, nothing), np.append(self.level, nothing)

    def begin(self, position: int) -> None:
        """All configurations continue from this position on; those before are skipped by all that have not run them."""
        self.ordered = np.maximum(self.ordered, position)
        self.skipping = True

    def lengthen(self, available: int) -> None:
        """The stream has become longer at its end."""
        self._available = available

    def place(self, config: IntArray, n: IntArray, level: IntArray | None = None) -> Targets:
        """Order these prefixes, as far as the stream goes and as far as they, or their levels, are new."""
        if math.isfinite(self._available):
            n = np.minimum(n, int(self._available))
        n = np.maximum(n, self.ordered[config])
        level = self.level[config] if level is None else np.maximum(level, self.level[config])
        more = (n > self.ordered[config]) | (level > self.level[config])
        config, n, level = config[more], n[more], level[more]
        self.ordered[config], self.level[config] = n, level
        return Targets(config, n, level, self._board.start[config] if self.skipping else None)

    def has_more(self, config: IntArray) -> BoolArray:
        """Whether the stream has positions that these have not been told to run."""
        more: BoolArray = self.ordered[config] < self._available
        return more

    def further(self, config: int, least: int) -> int:
        """Return where this configuration's prefix should end next, at least `least` positions further."""
        have = int(self.ordered[config])
        raced = max(0, have - int(self._board.counted[config]))
        return have + max(least, int(self._growth * raced))

    def for_challengers(
        self, leader: int, rivals: Rivals, slots: int, level_for: Callable[[int], tuple[int, bool]]
    ) -> Targets:
        """The most urgent of those with the least work in hand, and the leader as far as the farthest of them.

        Args:
            leader: Who leads.
            rivals: Challengers that need runs and can have them.
            slots: How many runs are wanted.
            level_for: The level of captimes that a challenger should be at, and whether runs of it are made longer
                by that. If so, no new ones are ordered.
        """
        # How many strides each rival is behind already; an idle rival comes first, then the one with the least to do.
        have = np.maximum(self.ordered[rivals.config] - self._board.start[rivals.config], 0)
        stride = 1.0 + np.maximum(self._growth * have, _IN_FLIGHT * np.clip(rivals.missing, 0.0, _TRUST * have))
        behind = np.ceil(rivals.open / stride)
        # With many challengers, several at a time: all of them need runs, and one decision serves them together.
        together = max(1, slots, np.count_nonzero(rivals.open == 0) // _TOGETHER)
        places = np.lexsort((-rivals.urgency, behind))[:together]
        # With many slots and few challengers, deeper orders.
        share = math.ceil(slots / (len(places) + 1)) if slots > 1 else 1
        least = np.minimum(np.ceil(stride[places]), share).astype(np.int64).tolist()
        chosen = rivals.config[places].tolist()
        wanted: list[tuple[int, int, int]] = []
        for config, runs in zip(chosen, least, strict=True):
            level, longer = level_for(config)
            wanted.append((config, int(self.ordered[config]) if longer else self.further(config, runs), level))
        return self.with_leader(leader, wanted, level_for)

    def with_leader(
        self, leader: int, wanted: list[tuple[int, int, int]], level_for: Callable[[int], tuple[int, bool]]
    ) -> Targets:
        """Order these prefixes at these levels, and first the leader as far as the farthest of them."""
        ahead = max((n for _, n, _ in wanted), default=0)
        if self.ordered[leader] < ahead:
            wanted = [(leader, max(ahead, self.further(leader, 1)), level_for(leader)[0]), *wanted]
        columns = np.array(wanted, dtype=np.int64).reshape(-1, 3).T
        return self.place(columns[0], columns[1], columns[2])


# Which captimes clear a challenger at the least cost: an estimate by level. Validity does not depend on it.
#
# A challenger is cleared by its own upper bound once the bet against "its utility is at least q" has grown enough.
# Here q is the leader's lower bound plus epsilon. A run that is stopped at c multiplies the bet by 1 - b + b(1 -
# u(c)) / (1 - q) and costs c. For q near 1 short captimes are the cheapest evidence; for q below 1/B only drawn
# captimes gain.

# Shares that are bet in the estimate, and quantiles of the draws it looks at.
_BETS: FloatArray = np.array([0.25, 0.5, 0.7, 0.85, 0.95])
_QUANTILES = 24
# What mixing over bets costs, in nats: the best bet is not known beforehand.
_MIXING = 1.2
# A challenger that takes more runs than this is not cleared by its own bound.
_MOST_RUNS = 64
_FEW_RUNS = 16


@dataclass(frozen=True, slots=True)
class Challenger:
    """What is known of a configuration that is to be cleared.

    Attributes:
        position: Its positions so far.
        low: Low ends of its scores there.
        high: High ends.
        level: Its level of captimes.
        wanted: The logarithm that the bet against it has to reach.
    """

    position: IntArray
    low: FloatArray
    high: FloatArray
    level: int
    wanted: float


class LevelCosts:
    """Estimates of what it costs to clear a challenger, by level of the plan.

    Args:
        plan: The captimes.
        boost: B of the plan.
        longest: The longest captime in use.
    """

    def __init__(self, plan: RandomCaptimes, boost: float, longest: float) -> None:
        self._plan = plan
        self._least = 1.0 / boost
        levels = np.arange(plan.stops.top + 1)
        quantile = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
        drawn = np.minimum(plan.utility.inverse(quantile / boost), longest)
        self._seconds: FloatArray = plan.stops.applied(drawn[None, :], levels[:, None])
        self._high: FloatArray = self._ends(self._seconds, drawn[None, :], np.asarray(quantile[None, :]))

    def _ends(self, captime: FloatArray, drawn: FloatArray, draw: FloatArray) -> FloatArray:
        """High ends of runs that are still unfinished at these captimes."""
        worth = self._plan.utility(captime)
        reached = (captime >= drawn) & (draw >= worth / self._least)
        return np.where(reached, 0.0, np.maximum(worth, self._least))

    def _gain(self, high: FloatArray, q: float) -> FloatArray:
        """Logarithms of the factors of bets on these high ends, bets in the last axis."""
        return np.log1p(_BETS * ((1.0 - high) / (1.0 - q) - 1.0))

    def best_level(self, challenger: Challenger, q: float) -> tuple[int, float]:
        """Return the level at which a challenger is likely to be cleared at the least cost, and that cost.

        Args:
            challenger: What is known of it.
            q: What has to be refuted: that its utility is at least this.
        """
        position, low, high = challenger.position, challenger.low, challenger.high
        top = self._plan.stops.top
        levels = np.arange(challenger.level, top + 1)
        open_ended = high > low
        known = self._gain(high[~open_ended, None], q).sum(axis=0)
        cut = position[open_ended]
        drawn = np.minimum(self._plan.drawn(cut), self._plan.longest.at(cut))
        seconds = self._plan.stops.applied(drawn[None, :], levels[:, None])
        ends = self._ends(seconds, drawn[None, :], self._plan.draws(cut)[None, :])
        bet = known + self._gain(ends[..., None], q).sum(axis=1)
        longer = seconds > seconds[0]
        again = np.where(longer, seconds, 0.0).sum(axis=1)
        answered = np.count_nonzero(low > 0.0)
        alive = (len(position) - answered + 0.25) / (len(position) + 0.25)
        scores = low[low > 0.0] if answered else np.ones(1)
        gain = alive * self._gain(self._high[levels][..., None], q).mean(axis=1)
        gain = gain + (1.0 - alive) * self._gain(scores[:, None], q).mean(axis=0)
        # A score above 1/B tells the time of the answer.
        answers = float(self._plan.utility.inverse(scores).mean()) if answered else 0.0
        cost = alive * self._seconds[levels].mean(axis=1) + (1.0 - alive) * answers
        missing = np.maximum(challenger.wanted + _MIXING - bet, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            runs = np.where(gain > 0.0, missing / gain, np.where(missing > 0.0, np.inf, 0.0))
        total = (again[:, None] + runs * cost[:, None]).min(axis=1)
        best = int(total.argmin())
        most = _MOST_RUNS * float(self._seconds[top].mean())
        if total[best] < most:
            return int(levels[best]), float(total[best])
        # Its own bound will not do, as far as can be told. After few runs that is luck, and the last stop shows a loss
        # where there is one; after many a duel has to clear it, with drawn captimes.
        few = len(position) < _FEW_RUNS and q > self._least
        return max(challenger.level, int(np.count_nonzero(self._plan.stops.reach == 0.0)) - 1) if few else top, most
