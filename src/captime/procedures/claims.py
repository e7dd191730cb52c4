"""What may be claimed of configurations on drawn instances: bounds, duels with the leader, and what follows from them.

One engine makes these claims for the race on a list and for the pool that grows. Everything here is about truth and
nothing about schedules: in whatever order the runs are made and come back, these statements hold together with
probability 1 - delta. They differ in one table, which says at which level each statement is made: by rank in a warm
start and with a reserve for late configurations (docs/random-captimes.md, steps 4 to 9), or by arrival (docs/pools.md).
"""

import math
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.certificate import Certificate
from captime.procedures.agenda import Agenda
from captime.procedures.board import Board
from captime.procedures.duels import Duels, difference_step, margins
from captime.procedures.problem import Problem
from captime.tally import Tally


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
