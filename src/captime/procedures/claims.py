"""What may be claimed of configurations on drawn instances: bounds, duels with the leader, and what follows from them.

A duel sets the leader against another configuration on the positions that both have run.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, Protocol

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.bounds.mixture import PairedMixture, sine_nodes
from captime.certificate import Certificate
from captime.procedures.agenda import Agenda
from captime.procedures.board import Board, grown, joined, with_rows
from captime.procedures.problem import Problem
from captime.tally import Tally

FRACTIONS = 16
"""Number of shares of the wealth that are bet in duels."""
COARSEST_STEP = 1.0 / 256.0
"""Differences of scores are rounded up to multiples of this, or of less; ledgers that name no step have this one."""
# A finer step than this would save less than a thousandth of the CPU time and cost more memory than it is worth.
_FINEST_STEP = 1.0 / 4096.0
# Rounding up costs about half a step of every difference, and the runs that takes grow with its share of epsilon.
_STEP_SHARE = 1.0 / 16.0


@lru_cache(maxsize=8)
def _bets(margins: tuple[float, ...], step: float, least: float) -> PairedMixture:
    """Return the bets on differences of scores; tables never change, so all duels with these margins share them."""
    return PairedMixture(difference_grid(step, least), np.array(margins), sine_nodes(FRACTIONS))


class Duels:
    """Paired evidence against each challenger of one leader.

    Args:
        n_configs: How many configurations.
        margins: The epsilons at which evidence is weighed, increasing.
        step: Differences of two scores are rounded up to multiples of this.
        least: The smallest positive score, 1/B.
    """

    def __init__(self, n_configs: int, margins: FloatArray, step: float = COARSEST_STEP, least: float = 0.0) -> None:
        self._mixture = _bets(tuple(margins.tolist()), step, least)
        self._counts: IntArray = np.zeros((n_configs, len(self._mixture.differences)), dtype=np.int64)
        # Up to which position differences are in the counts, and how many were known when a duel was last weighed.
        self._common: IntArray = np.zeros(n_configs, dtype=np.int64)
        self._weighed: IntArray = np.zeros(n_configs, dtype=np.int64)

    def enter(self, count: int) -> None:
        """Make room for `count` more configurations."""
        nothing: IntArray = np.zeros(count, dtype=np.int64)
        self._common, self._weighed = np.append(self._common, nothing), np.append(self._weighed, nothing)
        self._counts = with_rows(self._counts, len(self._common))

    def restart(self, board: Board, leader: int) -> None:
        """Another leader: what was shown against the old one does not count for the new one.

        Args:
            board: Has the first position that counts of each configuration; a duel begins at the later of the two.
            leader: The configuration that leads.
        """
        self._counts[:] = 0
        self._common = _later(board, leader)
        self._weighed[:] = 0

    def forget(self, board: Board, leader: int, challenger: int) -> None:
        """Weigh a challenger anew: longer captimes have changed its scores."""
        self._counts[challenger] = 0
        self._common[challenger] = _later(board, leader)[challenger]
        self._weighed[challenger] = 0

    def due(self, board: Board, leader: int, longest: float = np.inf) -> IntArray:
        """Return the challengers with noticeably more evidence than when their duel was last weighed.

        Args:
            board: The scores.
            leader: The configuration that leads.
            longest: Length of the stream. A challenger that was ordered to run all of it is always weighed.
        """
        now = np.maximum(np.minimum(board.sure, board.sure[leader]) - _later(board, leader), 0)
        now[leader] = 0
        due = np.flatnonzero(grown(now, self._weighed) | ((now > self._weighed) & (board.ends >= longest)))
        self._weighed[due] = now[due]
        return due

    def with_news(self, board: Board, leader: int) -> IntArray:
        """Return the challengers with positions in common with the leader that are not in the counts, open or not."""
        news = np.minimum(board.ends, board.ends[leader]) > np.maximum(self._common, _later(board, leader))
        news[leader] = False
        return np.flatnonzero(news)

    def margins(self, board: Board, leader: int, challengers: IntArray, log_inverse: float | FloatArray) -> FloatArray:
        """By how much each challenger may be ahead of the leader at most; 1 where nothing is shown yet.

        Evidence is right at every length of the prefix, so it is weighed at several: with settled runs only, and with
        more or less of what is known now of the runs behind them, as the intervals they are.
        """
        self._common = np.maximum(self._common, _later(board, leader))
        settled = np.minimum(board.settled[challengers], board.settled[leader])
        for place in (settled > self._common[challengers]).nonzero()[0].tolist():
            challenger, last = int(challengers[place]), int(settled[place])
            self._counts[challenger] += self._counted(board, leader, challenger, last)
            self._common[challenger] = last
        places, behind = self._behind(board, leader, challengers, settled)
        level = np.broadcast_to(log_inverse, challengers.shape)
        margin = self._mixture.smallest_margin(*joined(self._counts[challengers], level, places, behind))
        shown = margin[: len(challengers)]
        if places:
            np.minimum.at(shown, places, margin[len(challengers) :])
        return shown

    def _behind(
        self, board: Board, leader: int, challengers: IntArray, settled: IntArray
    ) -> tuple[list[int], list[IntArray]]:
        """By place, differences on common positions behind the settled ones, in bins, at several lengths."""
        places: list[int] = []
        counts: list[IntArray] = []
        ends = np.minimum(board.ends[challengers], board.ends[leader])
        for place in (ends > settled).nonzero()[0].tolist():
            challenger, first, last = int(challengers[place]), int(settled[place]), int(ends[place])
            for length in board.cuts((challenger, leader), first, last):
                places.append(place)
                counts.append(self._counted(board, leader, challenger, first + length))
        return places, counts

    def _counted(self, board: Board, leader: int, challenger: int, last: int) -> IntArray:
        """Binned differences on common positions from those already taken in up to `last`."""
        first = int(self._common[challenger])
        last = max(first, last)
        worst = board.high(challenger, first, last) - board.low(leader, first, last)
        return np.bincount(self._mixture.bin_up(worst), minlength=self._counts.shape[1])


def _later(board: Board, leader: int) -> IntArray:
    """Where the later of each and the leader begins to count."""
    later: IntArray = np.maximum(board.counted, board.counted[leader])
    return later


# At which epsilons duels are weighed, and how finely differences are rounded. Any choice is valid.


def margins(aim: float) -> FloatArray:
    """The epsilons at which duels are weighed: the goal itself, and ever coarser steps above it."""
    steps = [aim]
    while steps[-1] < 0.9:
        steps.append(1.12 * steps[-1] + 0.002)
    return np.array([step for step in steps if step < 0.95] or [aim])


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


# What may be claimed of configurations on drawn instances: bounds, duels with the leader, and what follows from them.
#
# One engine makes these claims for the race on a list and for the pool that grows. Everything here is about truth and
# nothing about schedules: in whatever order the runs are made and come back, these statements hold together with
# probability 1 - delta. They differ in one table, which says at which level each statement is made: by rank in a warm
# start and with a reserve for late configurations (docs/engine.md, steps 4 to 9), or by arrival
# (steps 11 to 16).


class Levels(Protocol):
    """The table of shares: at which level each statement is made, as ln(1 / failure probability).

    A level is infinite where no statement can be made yet.
    """

    @property
    def named(self) -> tuple[tuple[str, float], ...]:
        """The shares of delta, as certificates name them."""
        ...

    def upper(self, config: IntArray) -> FloatArray:
        """Of upper bounds, which clear a configuration."""
        ...

    def lower(self, config: IntArray) -> FloatArray:
        """Of lower bounds of leaders."""
        ...

    def duels(self, leader: int, challengers: IntArray) -> FloatArray:
        """Of the duels of a leader."""
        ...

    def shown(self, config: IntArray) -> FloatArray:
        """Of the upper end of the interval that is shown."""
        ...


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How captimes and orders are made; it touches only the cost.

    Attributes:
        boost: B of the random captimes.
        growth: How much of its past a configuration repeats at a time.
        leader_share: The leader gets at least this share of all CPU time while that still narrows its interval.
        truncation: Runs are stopped where u has fallen to this share of epsilon.
        smallest: With an unknown or tiny goal, captimes and margins are made for this epsilon.
        paired: Also compare with the leader on the same instances.
    """

    boost: float
    growth: float
    leader_share: float
    truncation: float
    smallest: float
    paired: bool = True


class Claims:
    """The state of knowledge of a race or of a pool.

    Args:
        problem: The question.
        levels: The table of shares.
        board: Where scores are kept.
        options: How captimes and orders are made.

    Attributes:
        problem: The question, with the goal that is in force.
        levels: As given.
        leader: The recommended configuration.
        rounds: How often news has come.
        lower: Lower bounds, leaders' only.
        upper: Upper bounds.
        mode: What delta covers.
    """

    bound = "mixture"
    pays = True
    mode: Literal["selection", "simultaneous"] = "selection"

    def __init__(self, problem: Problem, levels: Levels, board: Board, options: EngineOptions) -> None:
        n_configs = len(board.start)
        self.problem = problem
        self.levels = levels
        self.leader = 0
        self.rounds = 0
        self.lower: FloatArray = np.zeros(n_configs)
        self.upper: FloatArray = np.ones(n_configs)
        self._options = options
        self._aim = max(problem.epsilon, options.smallest)
        self._available = math.inf if problem.n_instances is None else problem.n_instances
        self._board = board
        self._agenda = Agenda(board, options.growth, self._available)
        self._duels = self._fresh_duels()
        self._margin: FloatArray = np.ones(n_configs)
        self._tally: Tally | None = None
        self._best: Certificate | None = None

    @property
    def size(self) -> int:
        """How many configurations have come."""
        return len(self.upper)

    def _enter(self, count: int) -> None:
        """Make room for `count` more configurations; their shares, and those of all others, are fixed by now."""
        self.lower, self.upper = np.append(self.lower, np.zeros(count)), np.append(self.upper, np.ones(count))
        self._margin = np.append(self._margin, np.ones(count))
        self._board.enter(count)
        self._duels.enter(count)
        self._agenda.enter(count)

    # ------------------------------------------------------------------ bounds and leaders

    def _tighten(self, fresh: IntArray) -> None:
        """Bounds of those with new scores, and their duels with the leader. They only ever become tighter."""
        if len(fresh):
            self.upper[fresh] = np.minimum(self.upper[fresh], self._board.upper(fresh, self.levels.upper(fresh)))
            self._raise_lower(fresh[fresh == self.leader] if self.mode == "selection" else fresh)
        self._fight(fresh)

    def _raise_lower(self, config: IntArray) -> None:
        level = self.levels.lower(config)
        config, level = config[np.isfinite(level)], level[np.isfinite(level)]
        if len(config):
            self.lower[config] = np.maximum(self.lower[config], self._board.lower(config, level))

    def _due(self, fresh: IntArray | None) -> IntArray:
        """Return the challengers whose duels with the leader are to be weighed.

        Args:
            fresh: Those with news; None for all, if there are other reasons.
        """
        raise NotImplementedError

    def _fight(self, fresh: IntArray | None = None) -> None:
        """Duels on positions that leader and challengers have in common since the last time."""
        fought = self._due(fresh) if self._options.paired else np.empty(0, dtype=np.int64)
        if len(fought):
            level = self.levels.duels(self.leader, fought)
            shown = self._duels.margins(self._board, self.leader, fought, level)
            self._margin[fought] = np.minimum(self._margin[fought], shown)

    def _crown(self, config: int) -> None:
        """Make a configuration the leader. Clearing belongs to one leader: all others are cleared afresh."""
        self.leader = config
        self._margin[:] = 1.0
        self._duels.restart(self._board, config)
        self._raise_lower(np.array([config]))
        self._fight()

    def _epsilons(self) -> FloatArray:
        """By how much each configuration may be better than the leader, by own bounds or by duel."""
        epsilon: FloatArray = np.minimum(np.maximum(self.upper - self.lower[self.leader], 0.0), self._margin)
        epsilon[self.leader] = 0.0
        return epsilon

    def _claim(
        self, config: int, epsilon: float, challenger: int | None, n_configs: int, gamma: float | None = None
    ) -> Certificate:
        """Return the claim about a configuration and `n_configs` of the others, with the interval shown beside it."""
        which = np.array([config])
        low, shown = float(self.lower[config]), float(self._board.upper(which, self.levels.shown(which))[0])
        return Certificate(
            config=config,
            epsilon=min(1.0, epsilon),
            delta=self.problem.delta,
            n_configs=n_configs,
            utility_low=low,
            utility_high=max(low, shown),
            gamma=gamma,
            challenger=challenger,
            mode=self.mode,
            shares=self.levels.named,
        )

    # ------------------------------------------------------------------ the goal and the stream

    def _fresh_duels(self) -> Duels:
        """Return duels in which nothing has been weighed, at the margins and steps that the goal needs."""
        step = difference_step(self._aim) if self.problem.duel_step is None else self.problem.duel_step
        return Duels(len(self._board.start), margins(self._aim), step, 1.0 / self._options.boost)

    def _aim_at(self, epsilon: float) -> None:
        """Take another goal. Bounds stay; duels are weighed at other margins, which are right at all of them."""
        self.problem = replace(self.problem, epsilon=epsilon)
        self._aim = max(epsilon, self._options.smallest)
        self._duels = self._fresh_duels()
        self._duels.restart(self._board, self.leader)

    def _longest(self, epsilon: float) -> float:
        """The longest captime that an epsilon needs: what lies behind it is a small share of that epsilon."""
        needed = float(self.problem.utility.inverse(np.array(self._options.truncation * epsilon)))
        return min(self.problem.captime_top, needed)

    def more_instances(self, length: int) -> None:
        """The stream has become longer at its end; positions that were there stay what they were."""
        self.problem = replace(self.problem, n_instances=length)
        self._available = length
        self._agenda.lengthen(length)

    def _leader_pays(self, rivals: int, seconds: FloatArray) -> bool:
        """Whether a second spent on the leader narrows the rest more than one spent on a challenger.

        Args:
            rivals: How many configurations are not cleared yet.
            seconds: CPU seconds so far, by configuration.
        """
        if rivals < 2 or not self._board.raced(self.leader):
            return False
        slack = self._board.mean(self.leader) - float(self.lower[self.leader])
        enough = self._options.leader_share * float(seconds.sum())
        return slack > 0.125 * self._aim and float(seconds[self.leader]) < enough
