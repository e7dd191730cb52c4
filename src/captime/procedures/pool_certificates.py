"""Which of all statements that hold about a growing pool is shown, and whether it is good enough.

Every one of them is true (pool_standing.py); which is shown is a matter of goals.
"""

from dataclasses import dataclass

import numpy as np

from captime.arrays import FloatArray
from captime.certificate import Certificate
from captime.procedures.pool_board import PoolBoard
from captime.procedures.pool_standing import PoolStanding
from captime.procedures.pool_terms import PoolTerms, Stop, checked_stop
from captime.procedures.problem import Problem

# If epsilon is the only goal, a certificate has to cover at least this many draws.
_FEWEST_DRAWS = 16


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


class PoolCertificates(PoolStanding):
    """A pool with goals.

    Args:
        problem: The question.
        gamma: Goal: the best fraction of the space that may be missed; 0 for "as small as it gets".
        stop: Content when `both` goals are reached, or with `epsilon` or `gamma` alone.
        board: Where scores are kept.

    Attributes:
        problem: The question, with the goal for epsilon.
    """

    def __init__(self, problem: Problem, gamma: float, stop: Stop, board: PoolBoard) -> None:
        terms = PoolTerms(limit=problem.n_configs) if problem.pool is None else problem.pool
        super().__init__(terms, problem.delta, gamma, board)
        self.problem = problem
        self._gamma = gamma
        self._stop: Stop = stop
        self._best: Certificate | None = None

    @property
    def _goals(self) -> PoolGoals:
        return PoolGoals(self.problem.epsilon, self._gamma, self._stop)

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
