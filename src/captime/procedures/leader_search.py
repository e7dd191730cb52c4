"""Search for a leader that needs no challengers: which runs are made next, and what a better leader would save.

Utilities are at most 1, so a lower bound of 1 - epsilon certifies a leader against all others at once. In a long
list the warm start may miss the configurations that are good enough for that: after two short runs most of a list looks
alike. A race therefore keeps looking, as long as one of them may be good enough and the search is likely to save more
than it costs.

Everything here is an estimate from measured times. It decides which runs are made first and which configuration leads.
A certificate rests on bounds and duels alone, and these hold for every order of runs and every choice of leaders
(docs/engine.md, steps 6 to 10).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.plans import RandomCaptimes
from captime.tally import Tally

# ---------------------------------------------------------------------- what configurations seem to be worth

# Passes of the fit of configurations and positions.
_PASSES = 4
# How many of its own runs a configuration needs until their spread counts as much as the spread of all.
_POOLED = 6.0
# The worth of a stopped run is uncertain by this share of what an answer at its stop is worth: a uniform law.
_UNSURE = 1.0 / math.sqrt(12.0)
# Utilities of the configurations of a list vary at least this much, although their first runs may look alike.
_LEAST_VARIANCE = 0.01


@dataclass(frozen=True, slots=True)
class Estimates:
    """What configurations seem to be worth, by configuration.

    Attributes:
        mean: Estimated utility.
        spread: Variance of one run around it.
        exposed: How many runs on positions of middle difficulty its runs amount to.
        runs: How many runs it has.
        cut: Share of these that were stopped.
        hidden: Standard deviation of the mean that comes from what stopped runs would have been worth.
        between: Variance of utilities over the list.
    """

    mean: FloatArray
    spread: FloatArray
    exposed: FloatArray
    runs: IntArray
    cut: FloatArray
    hidden: FloatArray
    between: float

    def variance(self, which: IntArray, exposed: FloatArray, hidden: FloatArray) -> FloatArray:
        """Variance of the estimates of some configurations, with this many runs and this much hidden."""
        noise = self.spread[which] / np.maximum(exposed, 1e-9) + hidden**2
        return self.between * noise / (self.between + noise)

    def deviation(self, which: IntArray) -> FloatArray:
        """Standard deviation of the estimates of some configurations, as they are."""
        deviation: FloatArray = np.sqrt(self.variance(which, self.exposed[which], self.hidden[which]))
        return deviation


@dataclass(frozen=True, slots=True)
class _TimedRuns:
    """The runs of a configuration: positions, CPU seconds, which have ended, and what an answer just then is worth."""

    position: IntArray
    seconds: FloatArray
    ended: BoolArray
    worth: FloatArray


class Measurements:
    """Estimates of utilities from all measured times, with the difficulty of positions taken out.

    Args:
        plan: Has the utility.
    """

    def __init__(self, plan: RandomCaptimes) -> None:
        self._utility = plan.utility
        self._kept: dict[int, tuple[tuple[int, int], _TimedRuns]] = {}
        # The product limit of all runs together: times, the share of runs that takes longer, and what these are worth.
        self._times: FloatArray = np.zeros(1)
        self._longer: FloatArray = np.ones(1)
        self._later: FloatArray = np.full(1, 0.5)

    def estimates(self, tally: Tally) -> Estimates:
        """Fit a rate of losses for each configuration and a difficulty for each position.

        The expected loss of a run is the product of the two. Rates are drawn to the mean of all rates, the more the
        less is known of them.
        """
        n_configs = len(tally.n)
        parts = [self._runs(tally, config) for config in range(n_configs)]
        runs = np.array([len(each.position) for each in parts])
        config, known = np.repeat(np.arange(n_configs), runs), runs > 0
        position = np.concatenate([each.position for each in parts])
        seconds, ended = (
            np.concatenate([each.seconds for each in parts]),
            np.concatenate([each.ended for each in parts]),
        )
        full = np.concatenate([each.worth for each in parts])
        self._pool(seconds, ended, full)
        loss = 1.0 - np.where(ended, full, np.minimum(self._worth_later(seconds), full))
        unsure = _UNSURE * np.bincount(config, ~ended * full, n_configs)
        total, at = np.bincount(config, loss, n_configs), np.bincount(position)
        hard = np.ones(len(at))
        rate = np.full(n_configs, max(float(loss.mean()), 1e-3))
        for _ in range(_PASSES):
            exposed = np.maximum(np.bincount(config, hard[position], n_configs), 1e-9)
            own = total / exposed
            squares = (loss - own[config] * hard[position]) ** 2
            within = max(float(squares.sum()) / max(1.0, float(np.maximum(runs - 1, 0).sum())), 1e-4)
            centre = max(float(own[known].mean()), 1e-3)
            luck = within * runs / exposed**2
            between = max(float(own[known].var()) - float(luck[known].mean()), _LEAST_VARIANCE)
            keep = known * between / (between + luck + (unsure / exposed) ** 2)
            rate = np.clip(centre + keep * (own - centre), 1e-3, 1.0)
            expected = np.bincount(position, rate[config], len(at))
            hard = (np.bincount(position, loss, len(at)) + centre) / (expected + centre)
            hard = hard / max(float(hard[at > 0].mean()), 1e-9)
        squares = (loss - rate[config] * hard[position]) ** 2
        return Estimates(
            mean=1.0 - rate,
            spread=(np.bincount(config, squares, n_configs) + _POOLED * within) / (runs + _POOLED),
            exposed=exposed,
            runs=runs,
            cut=np.bincount(config, ~ended, n_configs) / np.maximum(runs, 1),
            hidden=unsure / exposed,
            between=between,
        )

    def unfinished(self, seconds: FloatArray) -> FloatArray:
        """Return which share of all runs takes longer than this."""
        place = np.searchsorted(self._times, seconds, side="right") - 1
        return np.where(place < 0, 1.0, self._longer[np.maximum(place, 0)])

    def _runs(self, tally: Tally, config: int) -> _TimedRuns:
        n, level = int(tally.n[config]), int(tally.level[config])
        kept = self._kept.get(config)
        if kept is not None and kept[0] == (n, level) and not tally.open[config]:
            return kept[1]
        if tally.times is None:
            raise AssertionError("a search for leaders needs measured times")
        seconds, ended = tally.times(config, n)
        made = np.flatnonzero(~np.isnan(seconds))
        seconds, ended = seconds[made], ended[made]
        failed = np.isinf(seconds)
        runs = _TimedRuns(made, seconds, ended, np.where(failed, 0.0, self._utility(np.where(failed, 0.0, seconds))))
        if tally.open[config]:
            self._kept.pop(config, None)
        else:
            self._kept[config] = (n, level), runs
        return runs

    def _pool(self, seconds: FloatArray, ended: BoolArray, worth: FloatArray) -> None:
        order = np.argsort(seconds, kind="stable")
        answers = ended[order] & np.isfinite(seconds[order])
        longer = np.cumprod(1.0 - answers / (np.arange(len(order), 0, -1) + 1.0), dtype=np.float64)
        steps = (np.concatenate((np.ones(1), longer[:-1])) - longer) * worth[order]
        # What takes longer than the longest run is worth half of what it could be.
        rest = 0.5 * longer[-1] * worth[order][-1] + np.cumsum(steps[::-1])[::-1] - steps
        self._times, self._longer = seconds[order], longer
        self._later = rest / np.maximum(longer, 1e-9)

    def _worth_later(self, seconds: FloatArray) -> FloatArray:
        """What a run that is unfinished after these seconds is worth in the mean of all runs."""
        place = np.searchsorted(self._times, seconds, side="right") - 1
        return self._later[np.clip(place, 0, len(self._times) - 1)]


# ---------------------------------------------------------------------- what is left to do

# Bets that are looked at in the estimate of what it takes to clear a challenger.
_BETS = (0.15, 0.3, 0.5, 0.7, 0.85, 0.95)
# Answers are worth about this much, and runs that are unfinished at the last stop about this much in the end; an answer
# takes about this share of the last stop, and a run that is cut before it this share of its captime.
_ANSWERED, _UNANSWERED, _QUICK = 0.97, 0.3, 0.15
# What mixing over bets costs, in nats: in bounds, and in duels and lower bounds.
_MIXING, _MIXING_PAIRED = 1.2, 1.5
# The leader's runs are looked ahead, as multiples of those it has, but of at least this many.
_AHEAD = np.array([1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0, 34.0, 55.0])
_LEAST_RUNS = 8.0


@dataclass(frozen=True, slots=True)
class Rest:
    """What is left to do until all challengers are cleared, in CPU seconds; an estimate.

    Attributes:
        mean: Estimated utilities of the challengers.
        stop: The last stop, u⁻¹(1/B).
        drawn: Mean drawn captime.
        least: 1/B.
        wanted: The logarithm that a bet on a challenger's losses has to reach.
        epsilon: The goal.
    """

    mean: FloatArray
    stop: float
    drawn: float
    least: float
    wanted: float
    epsilon: float

    def price(self, mean: FloatArray) -> FloatArray:
        """CPU seconds of a run with the drawn captime, of a configuration with this utility."""
        price: FloatArray = self._unanswered(mean) * self.drawn + _QUICK * self.stop
        return price

    def to_go(self, mean: FloatArray, runs: FloatArray, level: FloatArray, duels: FloatArray) -> FloatArray:
        """What it takes to certify each of some leaders, their own further runs included.

        Args:
            mean: Utilities of the leaders.
            runs: Runs they have.
            level: The logarithm that the bets of their lower bounds have to reach.
            duels: The same for their duels.
        """
        mean = np.clip(mean, 0.01, 0.995)
        count = np.maximum(runs, _LEAST_RUNS)[:, None] * _AHEAD[None, :]
        spread = 0.8 * mean * (1.0 - mean) + 0.003
        slack = np.sqrt(2.0 * spread[:, None] * level[:, None] / count) + 0.5 * level[:, None] / count
        own = self.price(mean)[:, None] * (count - runs[:, None])
        total: FloatArray = (self._challengers(mean, slack, duels) + own).min(axis=1)
        return total

    def _unanswered(self, mean: FloatArray) -> FloatArray:
        """Share of the runs that are unfinished at the last stop, of a configuration with this utility."""
        return np.clip((_ANSWERED - mean) / (_ANSWERED - _UNANSWERED), 0.01, 1.0)

    def _challengers(self, leader: FloatArray, slack: FloatArray, duels: FloatArray) -> FloatArray:
        """What it takes to clear all challengers of leaders whose lower bounds are this far below their utilities."""
        m = np.broadcast_to(leader[:, None], slack.shape).ravel()[:, None]
        level = np.broadcast_to(duels[:, None], slack.shape).ravel()[:, None]
        q = np.minimum(m - slack.ravel()[:, None] + self.epsilon, 1.0)
        mean = np.clip(self.mean, 0.01, 0.995)[None, :]
        cut, room = self._unanswered(mean), np.maximum(1.0 - q, 1e-9)
        # Growth of the best bet for each run, stopped at the last stop or not.
        stopped = drawn = np.zeros(np.broadcast(q, mean).shape)
        for bet in _BETS:
            at_stop = np.log1p(bet * ((1.0 - self.least) / room - 1.0))
            stopped = np.maximum(stopped, cut * at_stop + (1.0 - cut) * np.log1p(bet * (0.02 / room - 1.0)))
            unanswered = np.log1p(bet * (1.0 / room - 1.0))
            drawn = np.maximum(drawn, (1.0 - mean) * unanswered + mean * math.log1p(-bet))
        quick = _QUICK * self.stop * (1.0 - cut)
        with np.errstate(divide="ignore"):
            short = np.maximum(self.wanted / stopped, 1.0) * (cut * self.stop + quick)
            long = np.maximum(self.wanted / drawn, 1.0) * (cut * self.drawn + quick)
        gap = np.maximum(self.epsilon + m - mean, 0.3 * self.epsilon)
        spread = 0.4 * (m * (1.0 - m) + mean * (1.0 - mean)) + 0.01
        duel = 2.0 * level * (spread / gap**2 + 0.5 / gap) * (cut * self.drawn + quick)
        total: FloatArray = np.where(q >= 1.0, 0.0, np.minimum(np.minimum(short, long), duel)).sum(axis=1)
        return total.reshape(slack.shape)


# ---------------------------------------------------------------------- the search

# A configuration may be good enough if its estimate and this many standard deviations reach 1 - epsilon.
_HOPE = 2.0
# The search may cost this share of what the most promising configuration would save.
_BUDGET = 0.15
# Runs of a search are worth this share of their cost beside what they tell about leaders: they count for clearing too.
_NET = 0.7
# Runs of this many configurations are ordered at a time, or of one in ten of those that are worth it.
_TOGETHER, _ONE_IN = 4, 10
# Weigh again after this growth of all runs: while runs of the search are made, and when none was worth it.
_SOON, _LATER = 1.01, 1.05
# Another one leads if it has enough runs, and seems to leave less than this share of what the leader leaves to do even
# if it is worth two standard deviations less than it seems: the best of many estimates is a lucky one. The
# best few are considered.
_ENOUGH_TO_LEAD, _CHEAPER, _CAUTION, _CONSIDERED = 16, 0.7, 2.0, 8
# By how much a leader may be better, in the table of what that would save, and the rank whose levels it would have.
_STEPS = np.array([0.0, 0.01, 0.02, 0.04, 0.07, 0.12, 0.2, 0.4])
_RANK = 8
# Quadrature of the normal distribution.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


@dataclass(frozen=True, slots=True)
class RaceStanding:
    """How a race stands; arrays by configuration.

    Attributes:
        leader: The configuration that leads.
        rivals: Those that it has not cleared.
        more: Which have positions left to run.
        raced: How many runs of each count for lower bounds.
        scored: How many scores of each are known.
        level: Level of captimes that each was ordered at.
        lower: ln(1 / failure probability) of the lower bound of each as a leader.
        duels: The same for its duels.
        upper: The same for upper bounds.
        drawn: Mean drawn captime in use.
        epsilon: The goal.
        slots: How many runs can be made at a time.
    """

    leader: int
    rivals: IntArray
    more: BoolArray
    raced: IntArray
    scored: IntArray
    level: IntArray
    lower: FloatArray
    duels: FloatArray
    upper: float
    drawn: float
    epsilon: float
    slots: int = 1


@dataclass(frozen=True, slots=True)
class NextRuns:
    """What a look came to.

    Attributes:
        leader: The configuration that should lead.
        config: Configurations whose runs are likely to save more than they cost.
        runs: How many more runs each should have.
        level: At which level of captimes.
    """

    leader: int
    config: IntArray
    runs: IntArray
    level: IntArray


class LeaderSearch:
    """Looks for a leader that needs no challengers.

    Args:
        plan: The captimes.
        last_stop: The last level at which every run is stopped.
        least: 1/B.
    """

    def __init__(self, plan: RandomCaptimes, last_stop: int, least: float) -> None:
        self._plan, self._last_stop, self._least = plan, last_stop, least
        self._measured = Measurements(plan)
        # How many runs there have to be until the next look, and the estimated cost of all runs of the search so far.
        self._next_look = 0.0
        self._booked = 0.0

    def due(self, tally: Tally) -> bool:
        """Whether there are enough runs for another look."""
        return tally.times is not None and float(tally.runs.sum()) >= self._next_look

    def look(self, tally: Tally, standing: RaceStanding) -> NextRuns:
        """Which configuration should lead, and which ones should run further."""
        runs = float(tally.runs.sum())
        self._next_look = _LATER * runs
        estimates = self._measured.estimates(tally)
        all_configs = np.arange(len(estimates.mean))
        hope = estimates.mean + _HOPE * estimates.deviation(all_configs)
        hope[standing.leader] = 0.0
        nothing: IntArray = np.empty(0, dtype=np.int64)
        if not len(standing.rivals) or hope.max() < 1.0 - standing.epsilon:
            return NextRuns(standing.leader, nothing, nothing, nothing)
        rest = Rest(
            mean=estimates.mean[standing.rivals],
            stop=float(self._plan.stops.stop[-1]),
            drawn=standing.drawn,
            least=self._least,
            wanted=standing.upper + _MIXING,
            epsilon=standing.epsilon,
        )
        leader = self._best_leader(estimates, standing, rest)
        found = self._worth_running(estimates, standing, rest, leader)
        if len(found.config):
            self._next_look = max(_SOON * runs, runs + float(found.runs.sum()) + 1.0)
        return found

    def _forecasts(
        self, estimates: Estimates, standing: RaceStanding, rest: Rest, config: IntArray, caution: float
    ) -> FloatArray:
        """What each of some leaders leaves to do, if it is worth `caution` standard deviations less than it seems."""
        return rest.to_go(
            estimates.mean[config] - caution * estimates.deviation(config),
            standing.raced[config].astype(np.float64),
            standing.lower[config] + _MIXING_PAIRED,
            standing.duels[config] + _MIXING_PAIRED,
        )

    def _best_leader(self, estimates: Estimates, standing: RaceStanding, rest: Rest) -> int:
        best = np.argsort(-estimates.mean, kind="stable")[:_CONSIDERED]
        best = best[(standing.scored[best] >= _ENOUGH_TO_LEAD) & (best != standing.leader)]
        if not len(best):
            return standing.leader
        forecast = self._forecasts(estimates, standing, rest, best, _CAUTION)
        now = float(self._forecasts(estimates, standing, rest, np.array([standing.leader]), 0.0)[0])
        return int(best[int(forecast.argmin())]) if forecast.min() < _CHEAPER * now else standing.leader

    def _saving(self, estimates: Estimates, standing: RaceStanding, rest: Rest, leader: int) -> FloatArray:
        """What leaders that are better by `_STEPS` save; they have their runs still to make."""
        now = float(self._forecasts(estimates, standing, rest, np.array([leader]), 0.0)[0])
        typical = np.argsort(standing.lower, kind="stable")[min(_RANK, len(standing.lower) - 1)]
        same = np.ones(len(_STEPS))
        then = rest.to_go(
            np.minimum(float(estimates.mean[leader]) + _STEPS, 0.995),
            _LEAST_RUNS * same,
            (float(standing.lower[typical]) + _MIXING_PAIRED) * same,
            (float(standing.duels[typical]) + _MIXING_PAIRED) * same,
        )
        saving = np.maximum(np.maximum.accumulate(now - then), 0.0)
        saving[0] = 0.0
        return saving

    def _worth_running(self, estimates: Estimates, standing: RaceStanding, rest: Rest, leader: int) -> NextRuns:
        """Weigh, for each configuration, more runs and longer captimes by what they save per second."""
        saving = self._saving(estimates, standing, rest, leader)
        others = np.flatnonzero(standing.more & (np.arange(len(estimates.mean)) != leader))
        gap = estimates.mean[others] - float(estimates.mean[leader])
        exposed, hidden = estimates.exposed[others], estimates.hidden[others]
        level, runs, cut = standing.level[others], estimates.runs[others], estimates.cut[others]
        before = estimates.variance(others, exposed, hidden)

        def saved(found: FloatArray) -> FloatArray:
            return np.interp(found, _STEPS, saving)

        best = _Moves.none(level)
        # More runs at the same level.
        more = np.maximum(2, runs // 2)
        after = estimates.variance(others, exposed + more, hidden)
        seconds = self._seconds(level, standing.drawn)
        cost = more * (0.1 + 0.9 * cut) * seconds
        best.take(expected_saving(gap, before - after, saved), cost, more, level)
        # Longer captimes for the runs there are.
        for target in (level + 2, np.full(len(level), self._last_stop), np.full(len(level), self._plan.stops.top)):
            target = np.where(level < self._last_stop, np.minimum(target, self._last_stop), self._plan.stops.top)  # noqa: PLW2901
            longer = self._seconds(target, standing.drawn)
            unfinished = self._measured.unfinished(longer) / np.maximum(self._measured.unfinished(seconds), 1e-9)
            still = np.minimum(unfinished, 1.0)
            worth = self._plan.utility(longer) / np.maximum(self._plan.utility(seconds), 1e-9)
            after = estimates.variance(others, exposed, hidden * still * worth)
            gain = np.where((target > level) & (cut > 0.0), expected_saving(gap, before - after, saved), 0.0)
            best.take(gain, cut * runs * 0.5 * (1.0 + still) * longer, np.zeros_like(level), target)
        most = float(saved((gap + _HOPE * np.sqrt(before)).max(initial=0.0, keepdims=True))[0])
        index = best.gain / (_NET * best.cost + 1e-9)
        order = np.argsort(-index, kind="stable")
        order = order[: max(_TOGETHER, standing.slots, int(np.count_nonzero(index > 1.0)) // _ONE_IN)]
        order = order[(index[order] > 1.0) & (np.cumsum(best.cost[order]) <= _BUDGET * most - self._booked)]
        self._booked += float(best.cost[order].sum())
        return NextRuns(leader, others[order], best.runs[order], best.level[order])

    def _seconds(self, level: IntArray, drawn: float) -> FloatArray:
        """Captimes of runs at these levels, about."""
        return np.where(level >= self._plan.stops.top, drawn, self._plan.stops.stop[level])


@dataclass(slots=True)
class _Moves:
    """For each configuration what to do next: the move that saves most per second so far."""

    gain: FloatArray
    cost: FloatArray
    runs: IntArray
    level: IntArray

    @classmethod
    def none(cls, level: IntArray) -> "_Moves":
        return cls(np.zeros(len(level)), np.ones(len(level)), np.zeros_like(level), level.copy())

    def take(self, gain: FloatArray, cost: FloatArray, runs: IntArray, level: IntArray) -> None:
        better = gain * self.cost > self.gain * (cost + 1e-9)
        for mine, other in ((self.gain, gain), (self.cost, cost), (self.runs, runs), (self.level, level)):
            mine[better] = other[better]


def expected_saving(gap: FloatArray, variance: FloatArray, saved: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """What is saved on average if a configuration turns out to be better than the leader.

    Args:
        gap: By how much each seems to be better.
        variance: How far more runs may move that.
        saved: What a leader saves, by how much it is better; 0 where it is not better.
    """
    found = gap[:, None] + np.sqrt(np.maximum(variance, 0.0))[:, None] * _NODES[None, :]
    saving: FloatArray = (saved(found.ravel()).reshape(found.shape) * _WEIGHTS).sum(axis=1)
    return saving
