"""Which of all statements that hold about a growing pool is shown, and whether it is good enough.

Every one of them is true (pool_standing.py); which is shown is a matter of goals.
"""

import numpy as np

from captime.arrays import FloatArray
from captime.certificate import Certificate
from captime.procedures.pool_board import PoolBoard
from captime.procedures.pool_standing import PoolStanding
from captime.procedures.pool_terms import PoolTerms, Stop, checked_stop
from captime.procedures.problem import Problem

# If epsilon is the only goal, a certificate has to cover at least this many draws.
_FEWEST_DRAWS = 16


class PoolCertificates(PoolStanding):
    """A pool with goals.

    Args:
        problem: The question.
        gamma: Goal: the share of luckiest configurations that may be missed; 0 for "as small as it gets".
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

    def _certify(self) -> None:
        """Of all statements about the leader that hold now, and the one held, keep the one nearest to the goals.

        What was said about a former leader is still true, but is not kept: the present leader is the better bet, with
        a looser statement. A statement that reaches the goals is held, whichever configuration leads.
        """
        epsilon, gamma = self._statements()
        distance = self._distance(epsilon, gamma)
        distance[gamma >= 1.0] = np.inf
        # Every added configuration is part of the question.
        distance[: max(self.terms.late, default=0)] = np.inf
        # The statement about all possible configurations may say less than the one about the pool; if held, renew it.
        renewed = self._best is not None and self._best.gamma == 0.0 and self._best.config == self.leader
        says_less = np.isfinite(distance[:-1]).any() and epsilon[-1] > max(self.problem.epsilon, float(epsilon[-2]))
        if epsilon[-1] >= 1.0 or (says_less and not renewed):
            distance[-1] = np.inf
        place = int(np.flatnonzero(distance == distance.min())[-1])
        if self._best is not None and self._best.gamma is not None and self._still_counts(self._best):
            held = self._distance(np.array([self._best.epsilon]), np.array([self._best.gamma]))
            if distance[place] > held[0]:
                return
        if np.isfinite(distance[place]):
            count = min(place + 1, self.size)
            self._best = self._statement(float(epsilon[place]), float(gamma[place]), count)

    def _still_counts(self, held: Certificate) -> bool:
        return held.config == self.leader or self.reached(self.problem.epsilon, self._gamma, self._stop)

    def _distance(self, epsilon: FloatArray, gamma: FloatArray) -> FloatArray:
        """How far a statement is from the goals that count; among those that reach them, how much it leaves open."""
        near, wide = np.maximum(epsilon - self.problem.epsilon, 0.0), np.maximum(gamma - self._gamma, 0.0)
        # With gamma as the only goal, a statement still has to say something about the pool.
        beyond = {"both": near + wide, "epsilon": near, "gamma": wide + np.where(epsilon >= 1.0, 1.0, 0.0)}[self._stop]
        return np.asarray(beyond + 1e-6 * (epsilon + gamma))

    def certificate(self) -> Certificate:
        """The best statement so far; a leader is always named, with epsilon 1 before anything is shown."""
        if self._best is None:
            return self._statement(1.0 if self.size > 1 else 0.0, 1.0, self.size)
        return self._best

    def reached(self, epsilon: float, gamma: float, stop: str) -> bool:
        """Whether the certificate held is as good as these goals want it."""
        held = self._best
        if held is None:
            return False
        near, wide = held.epsilon <= epsilon, held.gamma is not None and held.gamma <= gamma
        match checked_stop(stop):
            case "epsilon":
                return near and (wide or self.shares.draws >= _FEWEST_DRAWS)
            case "gamma":
                return wide and held.epsilon < 1.0
            case "both":
                return near and wide
