"""One goal after the other, for campaigns whose decisions depend on outcomes alone.

When somebody goes on with a smaller epsilon, the moment at which the procedure hears of it must not be a matter of
timing, or the same outcomes would no longer give the same answer. So it hears of it when it has reached the goal
before: a moment that is in the outcomes. A larger epsilon needs no telling: one simply stops sooner.
"""

from collections import deque
from collections.abc import Sequence

from captime.arrays import BoolArray, IntArray
from captime.campaign.resuming import set_goal
from captime.certificate import Certificate
from captime.plans.protocol import Plan
from captime.procedures.protocol import Procedure
from captime.tally import Tally
from captime.targets import Targets


class GoalAfterGoal:
    """A procedure that is given its next goal once it has reached the one before.

    Args:
        procedure: Made for the first goal.
        goals: The goals that came after it, in the order in which they were asked for; the last one counts.
    """

    def __init__(self, procedure: Procedure, goals: Sequence[float]) -> None:
        self._procedure = procedure
        self._waiting = deque(goals)
        self._last = goals[-1] if goals else None

    @property
    def plan(self) -> Plan:
        """See the protocol."""
        return self._procedure.plan

    @property
    def bound(self) -> str:
        """See the protocol."""
        return self._procedure.bound

    @property
    def candidates(self) -> BoolArray:
        """See the protocol."""
        return self._procedure.candidates

    @property
    def rounds(self) -> int:
        """See the protocol."""
        return self._procedure.rounds

    @property
    def pays(self) -> bool:
        """See the protocol."""
        return self._procedure.pays

    def ask(self, slots: int) -> Targets:
        """See the protocol."""
        return self._procedure.ask(slots)

    def tell(self, tally: Tally, changed: IntArray) -> None:
        """See the protocol."""
        self._procedure.tell(tally, changed)

    def certificate(self) -> Certificate:
        """See the protocol."""
        return self._procedure.certificate()

    def facts(self) -> dict[str, object] | None:
        """What an independent check needs to know beside the rows, if the procedure has anything to say."""
        tell = getattr(self._procedure, "facts", None)
        return None if tell is None else tell()

    def finished(self) -> str | None:
        """See the protocol."""
        if self._last is not None and self.certificate().epsilon <= self._last:
            return "epsilon"
        while (content := self._procedure.finished()) == "epsilon" and self._waiting:
            set_goal(self._procedure, {"epsilon": self._waiting.popleft()})
        return content
