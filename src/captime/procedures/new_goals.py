"""Another epsilon on the way, for procedures whose bounds do not depend on the goal: they just stop somewhere else."""

from dataclasses import replace

from captime.procedures.problem import Problem


class NewGoals:
    """A procedure that can be given another goal; everything it knows continues to count.

    Attributes:
        problem: The question, with the goal.
    """

    problem: Problem

    def retarget(self, epsilon: float) -> None:
        """From now on this is the goal."""
        self.problem = replace(self.problem, epsilon=epsilon)
