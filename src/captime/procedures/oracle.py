"""The runtime oracle: [UAC] Algorithm 1. What could be certified if runtimes were told and not run for."""

import numpy as np

from captime.bounds.hoeffding import Hoeffding
from captime.budget import SampleBudget
from captime.intervals import Intervals
from captime.plans.ladder import Ladder
from captime.procedures.lockstep import Habits, Lockstep
from captime.procedures.problem import Problem


def oracle(problem: Problem) -> Lockstep:
    """Successive elimination on uncapped runtimes: the reference for the number of samples; it pays no CPU time.

    On a table with a timeout the oracle knows no more than the table does: a run at the timeout counts as
    [0, u(timeout)], and the certificate is wider by that much.
    """
    plan = Ladder(problem.utility, np.array([problem.captime_top]))
    budget = SampleBudget(problem.delta, problem.n_configs)
    # The pseudocode compares means: Û_i < Û_i* - 2α. Recomputed Hoeffding ends differ by 2α, so the test is the same.
    intervals = Intervals(problem.n_configs, Hoeffding(), budget, plan, running=False)
    return Lockstep(problem, intervals, Habits(ties_by_mean=False), pays=False)
