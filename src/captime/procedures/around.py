"""A procedure around another one: everything is passed on, and a member of this family changes one thing."""

from captime.arrays import BoolArray, IntArray
from captime.certificate import Certificate
from captime.plans.protocol import Plan
from captime.procedures.protocol import KeepsBook, Procedure
from captime.tally import Tally
from captime.targets import Targets


class AroundProcedure:
    """Passes everything on.

    Args:
        procedure: Decides.
    """

    def __init__(self, procedure: Procedure) -> None:
        self._procedure = procedure

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

    def finished(self) -> str | None:
        """See the protocol."""
        return self._procedure.finished()

    def facts(self) -> dict[str, object] | None:
        """What an independent check needs to know beside the rows, if the procedure has anything to say."""
        tell = getattr(self._procedure, "facts", None)
        facts: dict[str, object] | None = None if tell is None else tell()
        return facts

    def spending(self) -> dict[str, float]:
        """Return CPU seconds by purpose; empty if the procedure keeps no book."""
        return self._procedure.spending() if isinstance(self._procedure, KeepsBook) else {}
