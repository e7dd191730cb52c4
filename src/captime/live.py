"""The loop of the live path, where procedure, evidence and executor meet: as many runs at once as there are slots.

One lap: ask while slots are free, start what is missing, wait for what comes back, tell, stop what is no longer wanted.
Certificates are valid at every moment, so nobody waits for stragglers in order to be right.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.certificate import Certificate
from captime.evidence import Evidence
from captime.executors.protocol import Executor
from captime.procedures.protocol import Procedure
from captime.runs import RunRequest
from captime.trace import Decisions, Trace

# An unfinished run is looked at again once it is so many times as old as at the last look: sooner tells little.
_OLDER = 2.0

Observer = Callable[[Procedure, Evidence, Executor], None]


@dataclass(frozen=True, slots=True)
class LiveOutcome:
    """What a campaign came to.

    Attributes:
        certificate: The statement.
        stopped: Why it ended: `epsilon`, `single`, `instances`, `budget`, `deadline`, `interrupted`, or `idle` if the
            procedure wanted nothing although it was not content.
        rounds: Decisions taken.
        candidates: Who may still be the best.
        seconds: CPU seconds per configuration, cancelled and lost attempts included.
        runs: Executions per configuration.
        samples: Prefix lengths per configuration, as far as every run of them is settled, skipped positions left out.
        wall_seconds: How long it took by the executor's clock.
        trace: The story in CPU seconds.
        wall: Executor's clock at each decision of the story.
    """

    certificate: Certificate
    stopped: str
    rounds: int
    candidates: IntArray
    seconds: FloatArray
    runs: IntArray
    samples: IntArray
    wall_seconds: float
    trace: Trace = field(repr=False)
    wall: FloatArray = field(repr=False)


def _never() -> bool:
    return False


def drive_parallel(
    procedure: Procedure,
    executor: Executor,
    evidence: Evidence,
    *,
    budget: float = np.inf,
    deadline: float = np.inf,
    look_every: float = 1.0,
    observer: Observer | None = None,
    interrupted: Callable[[], bool] = _never,
) -> LiveOutcome:
    """Keep all slots at work until the procedure is content, time or money is spent, or somebody interrupts.

    Args:
        procedure: Decides.
        executor: Does the runs.
        evidence: Keeps the books; made for the procedure's plan.
        budget: CPU seconds that may be spent. Runs under way when they run out are cancelled.
        deadline: The same for the executor's clock.
        look_every: At least so many wall-clock seconds pass between looks at unfinished runs, which narrow what these
            can still be worth.
        observer: Called after every lap.
        interrupted: Asked before every lap; True stops with the certificate held so far.
    """
    campaign = _Campaign(procedure, executor, evidence, look_every)
    stopped = "interrupted"
    while not interrupted():
        content = procedure.finished()
        # At the end of the stream there is nothing to ask for, but what is under way may still say something.
        if content is not None and not (content == "instances" and evidence.open):
            stopped = content
            break
        if float(evidence.tally.seconds.sum()) >= budget or executor.now >= deadline:
            stopped = "deadline" if executor.now >= deadline else "budget"
            break
        if content is None:
            campaign.order()
        executor.submit(evidence.take(executor.slots - evidence.in_flight))
        if not evidence.in_flight:
            stopped = content or "idle"
            break
        campaign.listen(deadline)
        if observer is not None:
            observer(procedure, evidence, executor)
    return campaign.close(stopped)


class _Campaign:
    """Who takes part, and what was written down."""

    def __init__(self, procedure: Procedure, executor: Executor, evidence: Evidence, look_every: float) -> None:
        self._procedure = procedure
        self._executor = executor
        self._evidence = evidence
        self._look_every = look_every
        self._next_look = look_every
        self._looked: dict[RunRequest, float] = {}
        self._trace = Trace()
        self._wall: list[float] = []

    def order(self) -> None:
        """Ask until there is work for every slot, or nothing new is wanted; never ahead of the work in hand."""
        evidence = self._evidence
        while (free := self._executor.slots - evidence.open) > 0:
            targets = self._procedure.ask(free)
            if len(targets) == 0 or evidence.aim(targets) == 0:
                break

    def listen(self, deadline: float) -> None:
        """Wait for something to come back, pass it on, and stop what it made superfluous."""
        procedure, executor, evidence = self._procedure, self._executor, self._evidence
        timeout = None if np.isinf(deadline) else max(0.0, deadline - executor.now)
        changed = evidence.add(executor.collect(timeout))
        if executor.now >= self._next_look:
            changed = np.union1d(changed, self._look())
            self._next_look = executor.now + self._look_every
        before = procedure.rounds
        procedure.tell(evidence.tally, changed)
        if procedure.rounds > before:
            self._write_down()
        executor.cancel(evidence.retire(procedure.candidates))

    def _look(self) -> IntArray:
        """See how far unfinished runs have come."""
        news, looked = set(), {}
        for request, seconds in self._executor.watch():
            last = self._looked.get(request, 0.0)
            if seconds >= _OLDER * last and self._evidence.seen(request, seconds):
                news.add(request.config)
                last = seconds
            looked[request] = last
        self._looked = looked
        return np.array(sorted(news), dtype=np.int64)

    def _write_down(self) -> None:
        procedure, tally, certificate = self._procedure, self._evidence.tally, self._procedure.certificate()
        self._wall.append(self._executor.now)
        self._trace.blocks.append(
            Decisions(
                np.array([procedure.rounds]),
                np.array([tally.seconds.sum()]),
                np.array([tally.runs.sum()]),
                np.array([certificate.config]),
                np.array([certificate.epsilon]),
                np.array([np.count_nonzero(procedure.candidates)]),
            )
        )

    def close(self, stopped: str) -> LiveOutcome:
        """Cancel what is under way and pay for it; the certificate is the one held when things were stopped."""
        procedure, executor, evidence = self._procedure, self._executor, self._evidence
        certificate = procedure.certificate()
        executor.cancel(np.arange(len(evidence.tally.n)))
        while evidence.in_flight and (outcomes := executor.collect()):
            evidence.add(outcomes)
        tally = evidence.tally
        return LiveOutcome(
            certificate=certificate,
            stopped=stopped,
            rounds=procedure.rounds,
            candidates=np.flatnonzero(procedure.candidates),
            seconds=tally.seconds.copy(),
            runs=tally.runs.copy(),
            samples=np.maximum(tally.settled - tally.skipped, 0),
            wall_seconds=executor.now,
            trace=self._trace,
            wall=np.array(self._wall),
        )
