"""Which runs a race orders: the warm start that finds a likely winner, then challengers, how far, with which captimes.

Schedules touch only what a certificate costs, never whether it is true.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.certificate import Orders
from captime.plans import RandomCaptimes
from captime.procedures.board import Board, measured_utility
from captime.tally import Tally
from captime.utilities.formula import Utility

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

    def place(self, config: IntArray, n: IntArray, level: IntArray | None = None) -> Orders:
        """Order these prefixes, as far as the stream goes and as far as they, or their levels, are new."""
        if math.isfinite(self._available):
            n = np.minimum(n, int(self._available))
        n = np.maximum(n, self.ordered[config])
        level = self.level[config] if level is None else np.maximum(level, self.level[config])
        more = (n > self.ordered[config]) | (level > self.level[config])
        config, n, level = config[more], n[more], level[more]
        self.ordered[config], self.level[config] = n, level
        return Orders(config, n, level, self._board.start[config] if self.skipping else None)

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
    ) -> Orders:
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
        self,
        leader: int,
        wanted: list[tuple[int, int, int]],
        level_for: Callable[[int], tuple[int, bool]],
        *,
        no_further: bool = False,
    ) -> Orders:
        """Order these prefixes at these levels, and first the leader as far as the farthest of them.

        Args:
            leader: Who leads.
            wanted: Configurations, each with the end of its prefix and its level.
            level_for: The level of captimes that the leader should be at.
            no_further: Whether the leader stops there. Otherwise it also repeats a share of its past.
        """
        ahead = max((n for _, n, _ in wanted), default=0)
        if self.ordered[leader] < ahead:
            end = ahead if no_further else max(ahead, self.further(leader, 1))
            wanted = [(leader, end, level_for(leader)[0]), *wanted]
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

    @property
    def longest_mean(self) -> float:
        """Mean CPU seconds that a run may take at the last level."""
        return float(self._seconds[-1].mean())

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


# The warm start of a race: successive halving in rungs, to find a likely winner and a prior before anything counts.
#
# A rung is a block of stream positions and the configurations that run all of it. What keeps it honest (docs/random-
# captimes.md, step 7): which configurations take part in a rung, and whether it is lengthened, is decided before any
# run on the positions in question has started. *When* it is decided, and on how much of what is under way, is free.
# So the race does not wait for stragglers: they are counted as what is known of them, and are not left out later on
# either.

# While there are many, most go at once: with half of them the rounds together would cost several times the first.
_MANY, _MANY_KEEP_ONE_IN = 16, 4
# A rung may be judged when this share of the runs it needs have ended.
_HEARD = 0.75
# A rung that offers fewer runs per slot than this is not worth having: the race has work for all slots.
_RUNS_PER_SLOT = 1.0
# How many configurations look for the captime at which runs of the first rung begin to finish, before all are run.
_PROBES = 8
# The first rung has at most this many positions, if its first ones are too hard for all; and this many for the probes
# alone. Where eight probes answer none of these, it may as well be the probes that are bad.
_MOST_FIRST, _MOST_PROBED = 8, 4
# The probes begin with one position. The first rung gets more of them if the captime that the probes found is this many
# doublings below the last stop: there further runs are cheap, and one alone says little.
_SHORT = 2
# Means that agree in this many decimals are equal.
_EQUAL = 10
# Captimes rise until one configuration in this many, and at least two, has finished a run: otherwise the ranking of a
# rung would be chance.
_FINISHERS_ONE_IN = 24


class WarmStart:
    """All configurations run a few positions; the better part runs twice as many; and so on until few are left.

    Nothing is claimed here. The outcome is a ranking, from which the prior over leaders is made; it is final before the
    first run on a later position starts, and is never made again.

    Args:
        n_configs: How many configurations.
        first: Positions of the first rung.
        finalists: Stop halving once no more than this many are left.
        available: Length of the stream; None if it is endless. The warm start takes at most an eighth of it.
        stops: Up to which level runs of the first configurations are stopped early; 0 if none is.
        top: The last level.
        seconds: Captimes of the levels up to `stops`, if the first rung may get more positions before captimes become
            as long as the draws; None if it may not.
        frugal: Whether the probes begin with one position, and the first rung has more of them only where captimes turn
            out to be short, or where its first ones are too hard for all. After that the ranking is final: other rungs
            would cost more than all of the first, for instances that are hard for every configuration.

    Attributes:
        alive: Who takes part in this rung.
        positions: How far they run, counted from the start of the stream.
        level: At which level of captimes.
        estimates: By configuration, what decides between equal means; the order of the list if it is None.
    """

    def __init__(
        self,
        n_configs: int,
        first: int,
        finalists: int,
        available: int | None,
        *,
        stops: int = 0,
        top: int = 0,
        seconds: FloatArray | None = None,
        frugal: bool = False,
    ) -> None:
        self._frugal = frugal
        self._stops, self._top, self._seconds = stops, top, seconds
        self.level = 0 if stops else top
        self._probing = stops > 0 and n_configs > _PROBES
        self._most = math.inf if available is None else max(1, available // 8)
        self._extended = self._widened = False
        self._dropped: list[IntArray] = []
        self._finalists = finalists
        self._first = int(min(first, self._most)) if n_configs > 1 else 0
        self._needed = min(1, self._first) if frugal and self._probing else self._first
        self.alive: IntArray = np.arange(n_configs)
        self.estimates: FloatArray | None = None
        self.positions = self._needed

    @property
    def members(self) -> IntArray:
        """Who has to run the positions of this rung now, at its level."""
        return self.alive[:: max(1, len(self.alive) // _PROBES)][:_PROBES] if self._probing else self.alive

    def without_probes(self) -> None:
        """Begin with all configurations at a middle level: a few probes would keep many workers waiting."""
        if self._probing:
            self._probing, self.level = False, self._stops // 2 + 1
            self.positions = self._needed = self._first

    def longer(self, tally: Tally) -> bool:
        """Raise the level if too few have finished anything at this one; False if the rung can be judged.

        Any captime is valid, and may follow from any result (docs/engine.md, step 10).
        """
        finished = int(np.count_nonzero(tally.completed[self.members]))
        if self._probing:
            if finished == 0 and self._extend():
                return True
            if finished and (self._extended or self._widened):
                # Other positions than the first may have been answered sooner. The lowest level is too short for all.
                least = 1 if self._widened else 0
                self._probing, self.level = False, max(least, self._level_of_fastest(tally))
                return True
            if finished and self._widen():
                return True
            self._probing = finished == 0 and self.level < self._stops
            self.level = min(self.level + 1, self._stops)
            return True
        enough = max(2, len(self.alive) // _FINISHERS_ONE_IN) if self.level < self._stops else 1
        if self.level >= self._top or finished >= enough:
            return False
        if self._extend():
            return True
        # Four times as long, since the runs begin anew.
        self.level += 2 if self.level + 2 <= self._stops else 1
        return True

    def _extend(self) -> bool:
        """Double the positions of the first rung, if captimes would become as long as the draws otherwise.

        The first instances may be hard for all configurations. Others are cheaper to try than ever longer captimes.
        No configuration has been told to run the new positions, so this is decided blindly (step 7).
        """
        limit = _MOST_PROBED if self._frugal and self._probing else _MOST_FIRST
        more = int(min(2 * self.positions, limit, self._most))
        if self._seconds is None or self._dropped or self.level != self._stops or more <= self.positions:
            return False
        self.positions = self._needed = more
        self._extended = True
        return True

    def _widen(self) -> bool:
        """Give the first rung all its positions if captimes are short.

        As in `_extend`, no configuration has been told to run the new positions.
        """
        if self.positions >= self._first or self.level > self._stops - _SHORT:
            return False
        self.positions = self._needed = self._first
        self._widened = True
        return True

    def _level_of_fastest(self, tally: Tally) -> int:
        """Return the level at which runs may take about twice as long as the fastest answer so far."""
        if tally.times is None or self._seconds is None:
            return self._stops
        answers = [seconds[ended] for seconds, ended in (tally.times(each, self.positions) for each in self.members)]
        fastest = float(np.concatenate(answers).min())
        return min(int(np.searchsorted(self._seconds, 2.0 * fastest)), self._stops)

    def heard(self, tally: Tally) -> bool:
        """Whether enough runs of those in this rung have ended to judge it without the others."""
        ended = int((tally.n - tally.open)[self.alive].sum())
        return ended >= _HEARD * len(self.alive) * self._needed

    def means(self, tally: Tally) -> FloatArray:
        """Mean scores on the positions of this rung; a run under way counts as the middle of what it may be worth.

        Some may have run further, as scouts, and are not judged by that.
        """
        means = 0.5 * (tally.utility_low + tally.utility_high) / max(1, self.positions)
        for config in self.alive[tally.n[self.alive] > self.positions].tolist():
            low, high = tally.samples(config, 0, self.positions)
            means[config] = 0.5 * float((low + high).mean())
        return means

    def break_ties(self, tally: Tally, utility: Utility) -> None:
        """Let measured times decide between equal means: scores are lotteries, and the order of a list says nothing.

        Only positions of this rung count, as for the means: so membership stays a function of earlier positions.
        """
        estimates: FloatArray = np.zeros(len(tally.n))
        for config in self.alive.tolist():
            estimates[config] = measured_utility(tally, config, utility, self.positions)
        self.estimates = estimates

    def lengthen(self, runs: int) -> bool:
        """Let this rung's configurations run further, about `runs` runs together; False if the stream is too short."""
        before = self.positions
        self.positions = int(min(before + max(1, runs // len(self.alive)), self._most))
        return self.positions > before

    def judge(self, means: FloatArray, slots: int = 1) -> IntArray | None:
        """Drop the worse part and advance to the next rung (None), or give the final ranking, best first.

        Args:
            means: Mean scores of all configurations, as far as they are known.
            slots: How many runs are under way at a time: a rung that cannot keep them at work is left out.
        """
        order = self._ordered(means)
        kept = _kept(len(order))
        further = max(self.positions, 2 * self._needed)
        too_little = kept * (further - self.positions) < _RUNS_PER_SLOT * slots
        done = self._frugal and self._extended
        if done or len(order) <= self._finalists or 2 * self._needed > self._most or too_little:
            return self.ranking(means)
        self._dropped.append(order[kept:])
        self.alive = order[:kept]
        # Fewer configurations, more positions, longer captimes.
        self.level = min(self.level + 1, self._top)
        self._needed *= 2
        self.positions = further
        return None

    def next_rung(self, means: FloatArray) -> tuple[int, IntArray]:
        """Return the best of this rung, and who would take part in the next one."""
        order = self._ordered(means)
        return int(order[0]), order[: _kept(len(order))]

    def ranking(self, means: FloatArray) -> IntArray:
        """Return all configurations, best first: this rung's by their means, then the dropped ones, the last first."""
        return np.concatenate((self._ordered(means), *self._dropped[::-1]))

    def _ordered(self, means: FloatArray) -> IntArray:
        if self.estimates is None:
            return self.alive[np.argsort(-means[self.alive], kind="stable")]
        by_times = -np.nan_to_num(self.estimates[self.alive], nan=0.0)
        return self.alive[np.lexsort((by_times, -np.round(means[self.alive], _EQUAL)))]


def _kept(members: int) -> int:
    """How many of the members of a rung take part in the next one."""
    return -(-members // (_MANY_KEEP_ONE_IN if members > _MANY else 2))
