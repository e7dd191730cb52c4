"""The loop of the live path, where procedure, evidence and executor meet: as many runs at once as there are slots.

One lap: ask while slots are free, start what is missing, wait for what comes back, tell, stop what is no longer wanted.
Certificates are valid at every moment, so no decision has to wait for stragglers. A journal is told of
everything before it is acted upon: what is written down is enough to walk the same way again (`walk_again`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.certificate import Orders, no_orders
from captime.errors import LedgerError, MachineUnfit, ReplayDiverged
from captime.evidence import Evidence
from captime.executors.protocol import Executor
from captime.ledger.rows import Asked, Event, Observed, Started
from captime.procedures.protocol import KeepsBook, Procedure
from captime.runs import RunOutcome, RunRequest, never
from captime.tally import one_decision
from captime.trace import LoopOutcome, Trace

# An unfinished run is looked at again once it is this many times as old as at the last look: sooner tells little.
_OLDER = 2.0

Observer = Callable[[Procedure, Evidence, Executor], None]
Seen = Sequence[tuple[RunRequest, float]]
"""Runs under way, each with the CPU seconds after which it was last seen unfinished."""


class Journal(Protocol):
    """Receives everything that decisions depend on, in order, before any of it is acted upon."""

    def asked(self, slots: int, orders: Orders) -> None:
        """Record what the procedure answered when it was asked for the work of this many slots."""
        ...

    def started(self, requests: Sequence[RunRequest]) -> None:
        """These are about to be started."""
        ...

    def observed(self, outcomes: Sequence[RunOutcome], seen: Seen) -> None:
        """These came back, and then these were seen unfinished; both are about to be told."""
        ...


class NoJournal:
    """A journal that records nothing."""

    def asked(self, slots: int, orders: Orders) -> None:
        """Forget it."""

    def started(self, requests: Sequence[RunRequest]) -> None:
        """Forget it."""

    def observed(self, outcomes: Sequence[RunOutcome], seen: Seen) -> None:
        """Forget it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOutcome(LoopOutcome):
    """What a campaign came to.

    Beside the reasons of `LoopOutcome` it may have `stopped` at its `deadline`, for its `ledger` if the journal refused
    to write, or for its `machine` if that is unfit. `seconds` have cancelled and lost attempts in them, and `samples`
    are counted as far as every run of them is settled.

    Attributes:
        wall_seconds: How long it took by the executor's clock.
        wall: Executor's clock at each decision of the story.
        trouble: Why the journal refused to write, or why the executor cannot continue; None without trouble. The
            certificate rests on what was written before.
    """

    wall_seconds: float
    wall: FloatArray = field(repr=False)
    trouble: LedgerError | MachineUnfit | None = None


def drive_parallel(
    procedure: Procedure,
    executor: Executor,
    evidence: Evidence,
    *,
    budget: float = np.inf,
    deadline: float = np.inf,
    look_every: float = 1.0,
    observer: Observer | None = None,
    interrupted: Callable[[], bool] = never,
    journal: Journal | None = None,
) -> LiveOutcome:
    """Keep all slots at work until the procedure is content, a limit is reached, or the loop is interrupted.

    Args:
        procedure: Decides.
        executor: Does the runs.
        evidence: Keeps the books; made for the procedure's plan.
        budget: CPU seconds that may be spent. Runs under way when they run out are cancelled.
        deadline: Latest time on the executor's clock.
        look_every: The least number of wall-clock seconds between looks at unfinished runs, which narrow what these
            can still be worth.
        observer: Called after every lap.
        interrupted: Asked before every lap; True stops with the certificate held so far.
        journal: Receives everything; None for no journal.
    """
    campaign = _LiveLoop(procedure, executor, evidence, look_every, journal or NoJournal())
    trouble: LedgerError | MachineUnfit | None = None
    try:
        stopped = _laps(campaign, budget, deadline, observer, interrupted)
    except LedgerError as error:
        stopped, trouble = "ledger", error
    except MachineUnfit as error:
        stopped, trouble = "machine", error
    return campaign.close(stopped, trouble)


def _laps(
    campaign: "_LiveLoop", budget: float, deadline: float, observer: Observer | None, interrupted: Callable[[], bool]
) -> str:
    """Go round until there is a reason to stop; return it."""
    procedure, executor, evidence = campaign.procedure, campaign.executor, campaign.evidence
    while not interrupted():
        content = procedure.finished()
        # At the end of the stream there is nothing to ask for, but what is under way may still say something.
        if content is not None and not (content == "instances" and evidence.open):
            return content
        if float(evidence.tally.seconds.sum()) >= budget or executor.now >= deadline:
            return "deadline" if executor.now >= deadline else "budget"
        if content is None:
            campaign.order()
        campaign.start()
        if not evidence.in_flight:
            return content or "idle"
        campaign.listen(deadline)
        if observer is not None:
            observer(procedure, evidence, executor)
    return "interrupted"


def tell_all(procedure: Procedure, evidence: Evidence, outcomes: Sequence[RunOutcome], seen: Seen) -> IntArray:
    """Tell the books and the procedure what became known; return those whose runs are no longer wanted."""
    changed = set(evidence.add(outcomes).tolist())
    changed |= {request.config for request, seconds in seen if evidence.seen(request, seconds)}
    procedure.tell(evidence.tally, np.array(sorted(changed), dtype=np.int64))
    return evidence.retire(procedure.candidates)


def walk_again(procedure: Procedure, evidence: Evidence, story: Iterable[Event]) -> Iterator[Event]:
    """Bring a new procedure and new books to where a journal ends, and check that they take the same decisions.

    Args:
        procedure: Made as the first one was.
        evidence: Made as the first one was.
        story: What was written down, in order.

    Yields:
        What is not for this loop to understand, at the place where it happened.
    """
    for event in story:
        match event:
            case Asked(sequence, slots, orders):
                wanted = procedure.ask(slots)
                if not _same(wanted, orders):
                    raise ReplayDiverged(f"entry {sequence}: {orders} was wanted then, and now it is {wanted}")
                evidence.aim(wanted)
            case Started(sequence, requests, _):
                taken = evidence.take(len(requests))
                if taken != list(requests):
                    raise ReplayDiverged(f"entry {sequence}: {requests} were started then, and now it would be {taken}")
            case Observed(_, outcomes, seen):
                tell_all(procedure, evidence, outcomes, seen)
            case _:
                yield event


def _same(one: Orders, other: Orders) -> bool:
    first, second = (orders.first if orders.first is not None else np.empty(0) for orders in (one, other))
    pairs = ((one.config, other.config), (one.n, other.n), (one.level, other.level), (first, second))
    return all(np.array_equal(here, there) for here, there in pairs)


class _LiveLoop:
    """The parts of the loop, and what was recorded."""

    def __init__(
        self, procedure: Procedure, executor: Executor, evidence: Evidence, look_every: float, journal: Journal
    ) -> None:
        self.procedure = procedure
        self.executor = executor
        self.evidence = evidence
        self._journal = journal
        self._look_every = look_every
        self._next_look = look_every
        self._looked: dict[RunRequest, float] = {}
        self._trace = Trace()
        self._wall: list[float] = []

    @property
    def _capacity(self) -> int:
        """How many runs may be open just now; workers of a cluster come and go."""
        return self.executor.slots + self.executor.ahead

    def order(self) -> None:
        """Ask until there is work for every slot, or nothing new is wanted; never ahead of the work in hand."""
        evidence = self.evidence
        before = no_orders()
        while (free := self._capacity - evidence.open) > 0:
            orders = self.procedure.ask(free)
            self._journal.asked(free, orders)
            if len(orders) == 0 or (evidence.aim(orders) == 0 and (evidence.open or _same(before, orders))):
                break
            # An order may be met by the runs there are, such as one for longer captimes than were drawn. While nothing
            # is under way nothing else will be told, so the procedure is asked again.
            before = orders

    def start(self) -> None:
        """Start what is missing, as far as there is room for it."""
        requests = self.evidence.take(self._capacity - self.evidence.in_flight)
        if requests:
            self._journal.started(requests)
            self.executor.submit(requests)

    def listen(self, deadline: float) -> None:
        """Wait for something to come back, pass it on, and stop what it made superfluous."""
        executor = self.executor
        timeout = None if np.isinf(deadline) else max(0.0, deadline - executor.now)
        outcomes = executor.collect(timeout)
        seen: Seen = ()
        if executor.now >= self._next_look:
            seen = self._look(outcomes)
            self._next_look = executor.now + self._look_every
        before = self.procedure.rounds
        if outcomes or seen:
            self._journal.observed(outcomes, seen)
        executor.cancel(tell_all(self.procedure, self.evidence, outcomes, seen))
        if self.procedure.rounds > before:
            self._write_down()

    def _look(self, ended: Sequence[RunOutcome]) -> Seen:
        """See how far unfinished runs have come; those that have grown little since the last look are passed over."""
        over = {outcome.request for outcome in ended}
        news, looked = [], {}
        for request, seconds in self.executor.watch():
            last = self._looked.get(request, 0.0)
            if request not in over and seconds > 0.0 and seconds >= _OLDER * last:
                news.append((request, seconds))
                last = seconds
            looked[request] = last
        self._looked = looked
        return news

    def _write_down(self) -> None:
        procedure = self.procedure
        self._wall.append(self.executor.now)
        self._trace.blocks.append(
            one_decision(procedure.rounds, self.evidence.tally, procedure.certificate(), procedure.candidates)
        )

    def close(self, stopped: str, trouble: LedgerError | MachineUnfit | None) -> LiveOutcome:
        """Cancel what is under way and pay for it; the certificate is the one held when things were stopped."""
        procedure, executor, evidence = self.procedure, self.executor, self.evidence
        certificate = procedure.certificate()
        executor.stop()
        try:
            while evidence.in_flight and (outcomes := executor.collect()):
                evidence.add(outcomes)
                if not isinstance(trouble, LedgerError):
                    self._journal.observed(outcomes, ())
        except LedgerError as error:
            # With outcomes in order, the executor itself writes them down.
            stopped, trouble = "ledger", trouble or error
        tally = evidence.tally
        self._trace.spending = procedure.spending() if isinstance(procedure, KeepsBook) else {}
        return LiveOutcome(
            certificate=certificate,
            stopped=stopped,
            rounds=procedure.rounds,
            candidates=np.flatnonzero(procedure.candidates),
            seconds=tally.seconds.copy(),
            runs=tally.runs.copy(),
            samples=np.maximum(tally.settled - tally.skipped, 0),
            capping=(tally.utility_high - tally.utility_low) / np.maximum(tally.n - tally.skipped, 1),
            captimes=procedure.plan.captime(tally.level, np.maximum(tally.n, 1) - 1),
            wall_seconds=executor.now,
            trace=self._trace,
            wall=np.array(self._wall),
            trouble=trouble,
            spending=dict(self._trace.spending),
            runs_everything=getattr(procedure, "runs_everything", False),
        )
