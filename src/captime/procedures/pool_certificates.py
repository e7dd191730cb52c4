"""What a growing pool claims beside the shared claims: which of all statements that hold is shown, and its goals.

Every statement is made at a level that was fixed when a configuration arrived (pool_shares.py); docs/engine.md has the
proofs. Nothing here decides what to run, when to add a configuration or when to stop; that is pool.py.
"""

import math
from dataclasses import dataclass

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.certificate import Certificate
from captime.procedures.board import ALL_OPEN, Board
from captime.procedures.claims import Claims, EngineOptions
from captime.procedures.pool_gamma import GammaBets
from captime.procedures.pool_shares import ArrivalLevels, PoolShares
from captime.procedures.pool_terms import DRAWS, PoolTerms, Stop, checked_stop
from captime.procedures.problem import Problem
from captime.tally import Tally

# If epsilon is the only goal, a certificate has to cover at least this many draws.
_FEWEST_DRAWS = 16
# Without a goal for gamma, this many draws are expected.
_EXPECTED_DRAWS = 50


@dataclass(frozen=True, slots=True)
class PoolGoals:
    """What is asked of a certificate about a growing pool.

    Attributes:
        epsilon: Goal for epsilon.
        gamma: Goal for gamma; 0 for "as small as it gets".
        stop: Which of the two count.
    """

    epsilon: float
    gamma: float
    stop: Stop

    def distance(self, epsilon: FloatArray, gamma: FloatArray) -> FloatArray:
        """Return how far statements are from the goals; among those that reach them, how much they leave open."""
        near, wide = np.maximum(epsilon - self.epsilon, 0.0), np.maximum(gamma - self.gamma, 0.0)
        # With gamma as the only goal, a statement still has to say something about the pool.
        beyond = {"both": near + wide, "epsilon": near, "gamma": wide + np.where(epsilon >= 1.0, 1.0, 0.0)}[self.stop]
        return np.asarray(beyond + 1e-6 * (epsilon + gamma))

    def nearest(
        self, epsilon: FloatArray, gamma: FloatArray, least: int, held: Certificate | None, leader: int
    ) -> tuple[int, float]:
        """Return the place of the statement to show, and its distance, which is infinite if none can be shown.

        Args:
            epsilon: Epsilons of the statements about the first 1, 2, … of the pool, and about all there can be.
            gamma: Gammas of the same.
            least: A statement has to be about at least this many of the pool.
            held: The certificate that is shown now.
            leader: The configuration that all of these are about.
        """
        distance = self.distance(epsilon, gamma)
        distance[gamma >= 1.0] = np.inf
        # Every added configuration is part of the question.
        distance[: max(0, least - 1)] = np.inf
        # The statement about all possible configurations may say less than the one about the pool; if held, renew it.
        renewed = held is not None and held.gamma == 0.0 and held.config == leader
        says_less = np.isfinite(distance[:-1]).any() and epsilon[-1] > max(self.epsilon, float(epsilon[-2]))
        if epsilon[-1] >= 1.0 or (says_less and not renewed):
            distance[-1] = np.inf
        place = int(np.flatnonzero(distance == distance.min())[-1])
        return place, float(distance[place])

    def keeps(self, held: Certificate, nearest: float, leader: int, draws: int) -> bool:
        """Return whether the certificate held is nearer to the goals than the best that could be shown now.

        What was said about a former leader is still true, but is not kept: the present leader is the better bet, with
        a looser statement. A statement that reaches the goals is held, whichever configuration leads.
        """
        if held.gamma is None or not (held.config == leader or self.reached(held, draws)):
            return False
        return bool(nearest > self.distance(np.array([held.epsilon]), np.array([held.gamma]))[0])

    def reached(self, held: Certificate | None, draws: int) -> bool:
        """Return whether a certificate is as good as these goals want it, in a pool with that many random draws."""
        if held is None:
            return False
        near, wide = held.epsilon <= self.epsilon, held.gamma is not None and held.gamma <= self.gamma
        match checked_stop(self.stop):
            case "epsilon":
                return near and (wide or draws >= _FEWEST_DRAWS)
            case "gamma":
                return wide and held.epsilon < 1.0
            case "both":
                return near and wide


class PoolClaims(Claims):
    """The state of knowledge of a growing pool, and its goals.

    Args:
        problem: The question, with the goal for epsilon.
        gamma: Goal: the best fraction of the space that may be missed; 0 for "as small as it gets".
        stop: Content when `both` goals are reached, or with `epsilon` or `gamma` alone.
        pilot: Positions on which newcomers are ranked; lower bounds and duels use later ones only.
        options: How captimes and orders are made.

    Attributes:
        terms: The order of arrivals.
        shares: Who gets which share of delta.
        gammas: gamma by number of draws.
    """

    def __init__(self, problem: Problem, gamma: float, stop: Stop, pilot: int, options: EngineOptions) -> None:
        self.terms = PoolTerms(limit=problem.n_configs) if problem.pool is None else problem.pool
        self.gammas = GammaBets(DRAWS * problem.delta, gamma)
        expected = self.gammas.draws_for(gamma) if gamma > 0.0 else _EXPECTED_DRAWS
        self.shares = PoolShares(self.terms, min(expected, self.terms.limit or expected))
        board = Board(0, 1.0 / options.boost, pilot=pilot, open_shares=ALL_OPEN)
        super().__init__(problem, ArrivalLevels(self.shares, problem.delta), board, options)
        self._agenda.skipping = True
        self._gamma = gamma
        self._stop: Stop = stop
        self._pilot = pilot
        self._unfought = True
        self._draws: IntArray = np.empty(0, dtype=np.int64)

    def _admit(self) -> None:
        """Admit one more configuration: its shares are fixed now, and those of all others stay as they are."""
        self.shares.arrive()
        self._enter(1)
        self._draws = np.append(self._draws, self.shares.draws)

    # ------------------------------------------------------------------ what became known

    def _take_in(self, tally: Tally, config: int) -> bool:
        """Read a configuration's new scores; False if there is nothing to judge."""
        board = self._board
        first, last, ends = int(board.settled[config]), int(tally.settled[config]), int(tally.n[config])
        if last > first:
            board.settle(config, *tally.samples(config, first, last))
        still_open = ends > last >= board.start[config]
        if still_open:
            board.open(config, *tally.samples(config, last, ends))
        return bool(last > first or still_open)

    def _rank_newcomers(self) -> None:
        """In the order of arrival, each by its pilot scores among those before it."""
        while (config := self.shares.next_unranked) is not None and self._board.settled[config] >= self._pilot:
            self.shares.rank(config, float(self._board.low(config, 0, self._pilot).sum()))

    def _due(self, fresh: IntArray | None) -> IntArray:
        """Without news of the leader only challengers with news can change, unless no duel was looked at yet."""
        some = fresh is not None and not self._unfought and self.leader not in fresh
        self._unfought = math.isinf(self.shares.log_leader[self.leader])
        if self._unfought:
            return np.empty(0, dtype=np.int64)
        news = self._duels.with_news(self._board, self.leader)
        return news[np.isin(news, fresh)] if some and fresh is not None else news

    # ------------------------------------------------------------------ what is certain

    @property
    def _goals(self) -> PoolGoals:
        return PoolGoals(self.problem.epsilon, self._gamma, self._stop)

    def _statements(self) -> tuple[FloatArray, FloatArray]:
        """Return epsilon and gamma of all that holds now: about the first 1, 2, … of the pool, and about all there are.

        Utilities are at most 1, so the leader's lower bound alone covers every configuration, drawn or not: gamma 0.
        """
        gamma = self.gammas.after_each(self._draws)
        epsilon = np.maximum.accumulate(self._epsilons())
        of_any = max(0.0, 1.0 - float(self.lower[self.leader]))
        return np.append(epsilon, of_any), np.append(gamma, 0.0)

    def _statement(self, epsilon: float, gamma: float, count: int) -> Certificate:
        """Make the statement about the leader and the first `count` of the pool; about all there are if gamma is 0."""
        each = self._epsilons()[:count]
        worst = int(each.argmax())
        challenger = worst if gamma > 0.0 and epsilon < 1.0 and each[worst] > 0.0 else None
        return self._claim(self.leader, epsilon, challenger, count, gamma)

    def _certify(self) -> None:
        """Of all statements about the leader that hold now, and the one held, keep the one nearest to the goals."""
        epsilon, gamma = self._statements()
        least = max(self.terms.late, default=-1) + 1
        place, distance = self._goals.nearest(epsilon, gamma, least, self._best, self.leader)
        if self._best is not None and self._goals.keeps(self._best, distance, self.leader, self.shares.draws):
            return
        if np.isfinite(distance):
            count = min(place + 1, self.size)
            self._best = self._statement(float(epsilon[place]), float(gamma[place]), count)

    def certificate(self) -> Certificate:
        """The best statement so far; a leader is always named, with epsilon 1 before anything is shown."""
        if self._best is None:
            return self._statement(1.0 if self.size > 1 else 0.0, 1.0, self.size)
        return self._best

    def reached(self, epsilon: float, gamma: float, stop: str) -> bool:
        """Whether the certificate held is as good as these goals want it."""
        return PoolGoals(epsilon, gamma, checked_stop(stop)).reached(self._best, self.shares.draws)
