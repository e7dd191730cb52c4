"""One goal after the other, and one stretch of the stream, for campaigns whose decisions depend on outcomes alone.

When somebody goes on with a smaller epsilon, the moment at which the procedure hears of it must not be a matter of
timing, or the same outcomes would no longer give the same answer. So it hears of it when it has reached the goal
before: a moment that is in the outcomes. A larger epsilon needs no telling: one simply stops sooner.
"""

from collections import deque
from collections.abc import Mapping, Sequence

from captime.errors import ScenarioDiffers
from captime.procedures.around import AroundProcedure
from captime.procedures.protocol import Procedure, TakesMoreInstances, TakesNewGoals


def set_goal(procedure: Procedure, facts: Mapping[str, object]) -> None:
    """From here on another epsilon is asked for."""
    if not isinstance(procedure, TakesNewGoals):
        raise ScenarioDiffers(
            "this ledger was begun with another goal, and its procedure cannot change goals on its way; say the old "
            "epsilon, or begin a new ledger"
        )
    procedure.retarget(float(str(facts["epsilon"])))


def set_length(procedure: Procedure, facts: Mapping[str, object]) -> None:
    """From here on the stream has more instances."""
    if not isinstance(procedure, TakesMoreInstances):
        raise ScenarioDiffers(
            "instances were added to a ledger whose procedure cannot go on with more; take them out again, or begin a "
            "new ledger"
        )
    procedure.more_instances(int(str(facts["length"])))


class GoalAfterGoal(AroundProcedure):
    """A procedure that is given its next goal once it has reached the one before, and more instances at their end.

    Args:
        procedure: Made for the first goal and the first stream.
        goals: The goals that came after it, in the order in which they were asked for; the last one counts.
        lengths: How long the stream became later, in that order.
    """

    def __init__(self, procedure: Procedure, goals: Sequence[float], lengths: Sequence[int] = ()) -> None:
        super().__init__(procedure)
        self._waiting = deque(goals)
        self._last = goals[-1] if goals else None
        self._lengths = deque(lengths)

    def finished(self) -> str | None:
        """See the protocol."""
        if self._last is not None and self.certificate().epsilon <= self._last:
            return "epsilon"
        while (content := super().finished()) is not None:
            if content == "epsilon" and self._waiting:
                set_goal(self._procedure, {"epsilon": self._waiting.popleft()})
            elif content == "instances" and self._lengths:
                set_length(self._procedure, {"length": self._lengths.popleft()})
            else:
                break
        return content
