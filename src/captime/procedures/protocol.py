"""What a procedure looks like."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.certificate import Certificate, Orders
from captime.plans import Plan
from captime.tally import Outlook, Tally


class Procedure(Protocol):
    """Decides what to learn next. Does no run, reads no clock, holds no file: ask it, tell it, read its certificate.

    The certificate is valid at every moment, whatever was asked and told so far.
    """

    @property
    def plan(self) -> Plan:
        """How long runs may take; fixed before the first run."""
        ...

    @property
    def bound(self) -> str:
        """Name of the bound in the register, or what stands in its place."""
        ...

    @property
    def candidates(self) -> BoolArray:
        """Which configurations may still be the best; runs of the others can be stopped."""
        ...

    @property
    def rounds(self) -> int:
        """How many decisions have been taken."""
        ...

    @property
    def pays(self) -> bool:
        """False for a hypothetical procedure that is told runtimes without running anything."""
        ...

    def ask(self, slots: int) -> Orders:
        """What it wants to know next. `slots` is a hint; an empty answer means not now, or never again."""
        ...

    def tell(self, tally: Tally, changed: IntArray) -> None:
        """What is known now; `changed` names the configurations whose sums moved."""
        ...

    def certificate(self) -> Certificate:
        """The best statement that holds now."""
        ...

    def finished(self) -> str | None:
        """Return why it wants nothing more (`epsilon`, `single`, `instances`), or None if it would continue."""
        ...


@dataclass(frozen=True, slots=True)
class Progress:
    """What a lockstep procedure made of an outlook.

    Attributes:
        used: For each row of the outlook, how many rounds it took part in; the rest of its runs are never made.
        config: Recommended configuration after each round.
        epsilon: Certified epsilon after each round.
        left: Candidates left after each round.
    """

    used: IntArray
    config: IntArray
    epsilon: FloatArray
    left: IntArray


@runtime_checkable
class LooksAhead(Protocol):
    """A lockstep procedure that can be shown several rounds at once, and decides as if they came one by one."""

    def tell_ahead(self, outlook: Outlook) -> Progress | None:
        """Judge all rounds of the outlook, or None: too many at once, show fewer. One round is never too many."""
        ...


@runtime_checkable
class TakesMoreInstances(Protocol):
    """A procedure whose stream may become longer at its end; configurations that had reached the end then continue."""

    def more_instances(self, length: int) -> None:
        """Continue on a stream that has `length` positions from now on."""
        ...


@runtime_checkable
class TakesNewGoals(Protocol):
    """A procedure that can be asked for another epsilon on its way; everything it knows continues to count."""

    def retarget(self, epsilon: float) -> None:
        """From now on this is the goal."""
        ...


@runtime_checkable
class HasTwoGoals(Protocol):
    """A procedure on a space: beside epsilon there is gamma, and a word for which of them have to be reached."""

    def retarget(self, epsilon: float, gamma: float | None = None, stop: str | None = None) -> None:
        """From now on these are the goals; what is left out stays as it is."""
        ...

    def reached(self, epsilon: float, gamma: float, stop: str) -> bool:
        """Whether it would be content with these."""
        ...


@runtime_checkable
class KeepsBook(Protocol):
    """A procedure that says for which purposes CPU time was spent."""

    def spending(self) -> dict[str, float]:
        """CPU seconds by purpose; together they are all CPU time of the runs."""
        ...


@runtime_checkable
class TakesNewcomers(Protocol):
    """A procedure that configurations may join on its way, chosen with knowledge of all runs so far."""

    def newcomers(self, count: int, earliest: int = 0) -> int:
        """Add `count` configurations, judged on no position before `earliest`. Return the index of the first."""
        ...


@runtime_checkable
class BetsLater(Protocol):
    """A procedure whose configurations run from the first position on, while later positions alone count for some."""

    def first_counted(self, config: int) -> int:
        """Return the first position that counts for a configuration; 0 if it knew nothing of any position."""
        ...


# A procedure around another one: everything is passed on, and a member of this family changes one thing.


class ProcedureWrapper:
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

    def ask(self, slots: int) -> Orders:
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
