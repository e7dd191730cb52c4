"""Every configuration on every instance up to one captime: how tables for simulations are measured.

It decides nothing and certifies nothing. Positions are taken one after the other, all configurations on each before the
next, so that whatever drifts on the machine hits all configurations alike.
"""

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.certificate import Certificate, Orders, no_orders
from captime.errors import ScenarioError
from captime.plans import Ladder
from captime.procedures.problem import Problem
from captime.tally import Tally

SURVEY = "survey"
"""What ledgers of measured tables name as their procedure."""


class Survey:
    """All runs there are.

    Args:
        problem: Says how many configurations and instances there are.
        captime: For every run, in seconds.
        instances: How many stream positions; all of them if it is left out.
    """

    bound = "none"
    pays = True

    def __init__(self, problem: Problem, *, captime: float, instances: int | None = None) -> None:
        length = problem.n_instances
        wanted = instances if length is None else min(length, instances or length)
        if wanted is None:
            raise ScenarioError("the stream of instances has no end; say how many of them are to be measured")
        self.plan = Ladder(problem.utility, np.array([captime]))
        self.rounds = 0
        self.candidates: BoolArray = np.ones(problem.n_configs, dtype=np.bool_)
        self._problem = problem
        self._wanted = wanted
        self._ordered = 0
        self._settled: IntArray = np.zeros(problem.n_configs, dtype=np.int64)
        self._means: FloatArray = np.zeros(problem.n_configs)

    def ask(self, slots: int) -> Orders:
        """Return the next positions for all configurations: as many as keep all slots at work."""
        if self._ordered >= self._wanted:
            return no_orders()
        n_configs = self._problem.n_configs
        self._ordered = min(self._wanted, self._ordered + max(1, -(-slots // n_configs)))
        all_configs = np.arange(n_configs)
        return Orders(all_configs, np.full(n_configs, self._ordered), np.zeros(n_configs, dtype=np.int64))

    def tell(self, tally: Tally, changed: IntArray) -> None:
        """Nothing is decided; only how far one has come."""
        self.rounds += int(len(changed) > 0)
        self._settled = tally.settled
        self._means = tally.utility_low / np.maximum(tally.n, 1)

    def certificate(self) -> Certificate:
        """Nothing is claimed."""
        n_configs = self._problem.n_configs
        epsilon = 1.0 if n_configs > 1 else 0.0
        return Certificate(int(self._means.argmax()), epsilon, self._problem.delta, n_configs, 0.0, 1.0)

    def finished(self) -> str | None:
        """When every run is settled."""
        return "instances" if bool((self._settled >= self._wanted).all()) else None
