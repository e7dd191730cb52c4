"""Captime verification: [UAC] Algorithm 2. How short could captimes be if the truth only had to be shown?

A prover who knows every runtime distribution chooses one captime per configuration. A skeptic without that knowledge
runs everything up to those captimes and checks that the claimed configuration is within epsilon. The captimes are the
reference for any procedure that has to find out by itself.
"""

from collections.abc import Callable

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.certificate import Certificate, Orders, no_orders
from captime.errors import ScenarioError
from captime.plans import Ladder
from captime.procedures.problem import Problem
from captime.tally import Tally
from captime.utilities.formula import Utility

# Just above an infimum that is not attained because "completed" is strict: t < κ.
_JUST_ABOVE = 1.0 + 1e-12


def prover_captime(utility: Utility, runtimes: FloatArray, allowed: float, limit: float = np.inf) -> float:
    """The shortest captime at which at most `allowed` utility is hidden behind it: inf{κ : u(κ)·P(t > κ) <= allowed}.

    Args:
        utility: What an answer is worth.
        runtimes: All runtimes of the configuration, infinite where it never finishes.
        allowed: Gap to the best configuration plus epsilon / 2.
        limit: Captimes beyond it are not available; the answer is cut there.
    """
    times = np.sort(runtimes)
    # Share of runs longer than κ, for κ in [times[k-1], times[k]): constant between two runtimes.
    starts = np.concatenate(([0.0], np.unique(times[np.isfinite(times)])))
    longer = 1.0 - np.searchsorted(times, starts, side="right") / len(times)
    with np.errstate(divide="ignore"):
        needed = np.where(longer > 0, np.minimum(1.0, allowed / np.maximum(longer, 1e-300)), 1.0)
    # On each stretch, κ works from the later of its start and the moment when u has fallen far enough.
    works_from = np.maximum(starts, utility.inverse(needed))
    ends = np.append(starts[1:], np.inf)
    captime = float(works_from[works_from < ends].min(initial=np.inf))
    return min(max(captime, np.finfo(np.float64).tiny) * _JUST_ABOVE, limit)


class Verification:
    """Prover and skeptic on a table whose distributions are taken as the truth; nothing is random here.

    Args:
        problem: The question, with `known_runtimes` and a finite number of instances.

    Attributes:
        captimes: The prover's captime per configuration.
        accepted: The skeptic's verdict; None before it has looked.
    """

    bound = "exact"
    pays = True

    def __init__(self, problem: Problem) -> None:
        runtimes, n_instances = _the_truth(problem)
        self.problem = problem
        self.candidates: BoolArray = np.ones(problem.n_configs, dtype=np.bool_)
        self.rounds = 0
        self.accepted: bool | None = None
        self._n_instances = n_instances
        utility, limit = problem.utility, problem.captime_limit
        # Behind the table's timeout an answer may come at once or never; the prover counts it as worth nothing.
        means = np.array([float((utility(t) * (t < limit)).mean()) for t in map(runtimes, range(problem.n_configs))])
        gaps = means.max() - means
        self.captimes: FloatArray = np.array(
            [prover_captime(utility, runtimes(i), gaps[i] + problem.epsilon / 2, limit) for i in range(len(gaps))]
        )
        rungs, level = np.unique(self.captimes, return_inverse=True)
        self.plan = Ladder(utility, rungs)
        self._level: IntArray = level.astype(np.int64)
        nothing_yet = 1.0 if problem.n_configs > 1 else 0.0
        self._certificate = Certificate(0, nothing_yet, 0.0, problem.n_configs, 0.0, 1.0)

    def ask(self, slots: int) -> Orders:  # noqa: ARG002 (one order, whatever the number of workers)
        """Everything, each configuration at its own captime."""
        if self.rounds:
            return no_orders()
        all_configs = np.arange(self.problem.n_configs)
        return Orders(all_configs, np.full(len(all_configs), self._n_instances), self._level)

    def tell(self, tally: Tally, changed: IntArray) -> None:  # noqa: ARG002 (the skeptic looks once)
        """The skeptic's check: LB of the claimed configuration against every UB."""
        if self.rounds or bool((tally.n < self._n_instances).any()) or bool(tally.open.any()):
            return
        self.rounds = 1
        lower, upper = tally.utility_low / tally.n, tally.utility_high / tally.n
        best = int(lower.argmax())
        others = np.delete(upper, best)
        epsilon = max(0.0, float(others.max(initial=0.0)) - float(lower[best]))
        # 1e-12: sums of a million utilities carry rounding of that size; the prover's slack is epsilon / 2.
        self.accepted = epsilon <= self.problem.epsilon + 1e-12
        self._certificate = Certificate(
            best, min(1.0, epsilon), 0.0, self.problem.n_configs, float(lower[best]), float(upper[best])
        )

    def certificate(self) -> Certificate:
        """Nothing before the skeptic has looked, then the statement about this table (delta = 0)."""
        return self._certificate

    def finished(self) -> str | None:
        """See the protocol. A failed check means that the table's timeout hides too much."""
        if self.accepted is None:
            return None
        return "epsilon" if self.accepted else "instances"


def _the_truth(problem: Problem) -> tuple[Callable[[int], FloatArray], int]:
    if problem.known_runtimes is None or problem.n_instances is None:
        raise ScenarioError(
            "verification needs to be handed the true runtime distributions: use it on a recorded table with "
            "--sampling given or shuffle"
        )
    if problem.epsilon <= 0:
        raise ScenarioError("verification needs an epsilon above 0, because its captimes depend on it; try 0.1")
    return problem.known_runtimes, problem.n_instances
