"""Runs on the workers of a Dask cluster: each is a lease of one worker's station, written in plain values.

Dask carries messages and tells which workers are present; it decides nothing. A lease is made out to one station. If
its worker goes, the lease is revoked and the run is LOST, to be tried again with the same seed; what its old holder may
still say is handed to the ledger as what it is, the answer to an attempt that was given up, and never counts.
"""

import logging
import math
import selectors
import time
from collections.abc import Callable, Sequence
from typing import Any, Self
from uuid import uuid4

from captime.arrays import IntArray
from captime.errors import ScenarioError
from captime.executors import dask_worker as station
from captime.executors.dask_client import (
    CallAnswered,
    CallFailed,
    DaskClient,
    MessageReceived,
    News,
    SchedulerGone,
    SchedulerUnreachable,
    WorkerLeft,
    WorkersPresent,
)
from captime.executors.dask_leases import FILE, DaskTerms, Leases
from captime.executors.dask_workers import GREET, MEASURE, OPEN, Note, WorkerPool
from captime.executors.protocol import SlotDisplay, signals_heard
from captime.programs.protocol import Program
from captime.runs import RunOutcome, RunRequest

__all__ = ["DaskExecutor", "DaskTerms"]

Late = Callable[[Sequence[RunOutcome]], None]
_log = logging.getLogger("captime")
_MINUTE = 60.0
# A refused worker may be followed by a better one.
_HOPE_SECONDS = 10.0
# What was asked to stop and does not answer by then is taken to be lost: the certificate must not wait for it.
_GOODBYE_SECONDS = 2.5
# Jobs that have ended are looked after at least so often while there is no worker.
_QUEUE_SECONDS = 2.0


def _ignored(*_: object, **__: object) -> None:
    """Ignore the event."""


class DaskExecutor:
    """As many programs at once as the workers of a cluster have threads, however many those are from moment to moment.

    Args:
        program: Turns requests into launches and reports into outcomes.
        connect: Makes a link that listens to a topic.
        tag: What the tags of all processes begin with: the id of the ledger, without a slash.
        terms: How runs are made.

    Attributes:
        gone: Why the cluster is given up; "" as long as it is not.
        most_slots: The largest number of runs at once that was possible so far.
    """

    def __init__(
        self, program: Program, connect: Callable[[str], DaskClient], *, tag: str, terms: DaskTerms | None = None
    ) -> None:
        self.gone = ""
        self.most_slots = 0
        self._begun = time.monotonic()
        self._terms = terms or DaskTerms()
        self._session = uuid4().hex
        self._link = connect(station.topic_of(self._session))
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._link, selectors.EVENT_READ)
        self._note: Note = _ignored
        self._write_late: Late = _ignored
        opening = (tag, self._terms.isolation, self._terms.scratch)
        self._force = WorkerPool(self._link, self._session, opening, self._terms.machines, self._noted)
        self._leases = Leases(
            program, self._link, self._force, session=self._session, tag=tag, terms=self._terms, note=self._noted
        )
        self._alone_since = self._complained_at = time.monotonic()
        self._stop_by = math.inf

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def tell_events(self, note: Note, late: Late) -> None:
        """Set the functions that record what happens to machines, and answers that came after the run was given up."""
        self._note, self._write_late = note, late

    def show_on(self, board: SlotDisplay) -> None:
        """See the protocol."""
        self._leases.board = board
        for worker in self._force.workers.values():
            self._leases.show(worker)

    def _noted(self, kind: str, **facts: object) -> None:
        self._note(kind, **facts)

    @property
    def slots(self) -> int:
        """See the protocol. Never less than one: a request has to wait for the first worker."""
        return max(1, self._slots)

    @property
    def _slots(self) -> int:
        return min(self._force.slots, self._terms.most or self._force.slots)

    @property
    def ahead(self) -> int:
        """See the protocol. One per slot: the next decision is many milliseconds away."""
        return self.slots

    @property
    def now(self) -> float:
        """See the protocol."""
        return time.monotonic() - self._begun

    @property
    def isolation(self) -> str:
        """How runs are kept together on the workers."""
        return "+".join(sorted(self._force.isolation)) or "none"

    @property
    def place(self) -> str:
        """Where time was measured, for the certificate."""
        return f"{self._force.machines.described()} (isolation {self.isolation}, {self.most_slots} at once at most)"

    def submit(self, requests: Sequence[RunRequest]) -> None:
        """See the protocol."""
        for request in requests:
            self._leases.wait_with(request)
        self._leases.hand_out()

    def collect(self, timeout: float | None = None) -> list[RunOutcome]:
        """See the protocol. Empty also when a signal has arrived."""
        # What was given up has been told by now, so the ledger knows these for what they are.
        self._tell_late()
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        with signals_heard(self._selector) as bell:
            while not self._leases.back and self._leases.requests:
                self._selector.select(max(0.0, min(deadline - time.monotonic(), self._chores())))
                for news in self._link.news():
                    self._receive(news)
                self.most_slots = max(self.most_slots, self._slots)
                self._leases.hand_out()
                # What was stopped is waited for, however often that is asked for: it has to be paid.
                heeded = (bell.was_signalled() or bool(self.gone)) and self._stop_by == math.inf
                if heeded or time.monotonic() >= deadline:
                    break
        back, self._leases.back = self._leases.back, []
        return back

    def watch(self) -> list[tuple[RunRequest, float]]:
        """See the protocol. Runs not heard of yet are left out."""
        return [(self._leases.requests[number], seconds) for number, seconds in self._leases.seen.items()]

    def cancel(self, configs: IntArray) -> None:
        """See the protocol."""
        unwanted = {int(config) for config in configs}
        self._leases.cancel([number for number, request in self._leases.requests.items() if request.config in unwanted])

    def stop(self) -> None:
        """See the protocol."""
        self._stop_by = time.monotonic() + _GOODBYE_SECONDS
        self._leases.cancel(list(self._leases.requests))

    def close(self) -> None:
        """See the protocol."""
        self._tell_late()
        self._selector.close()
        self._link.close(list(self._force.workers), station.close_station, self._session)
        self._leases.clear()

    def _tell_late(self) -> None:
        if self._leases.late:
            late, self._leases.late = self._leases.late, []
            self._write_late(late)

    # ------------------------------------------------------------------ hearing

    def _receive(self, news: News) -> None:
        match news:
            case WorkersPresent(threads):
                self._leases.lose(self._force.update_workers(threads), "its worker is not there any more")
            case WorkerLeft(address):
                worker = self._force.release(address)
                self._leases.lose([] if worker is None else [worker], "its worker went away")
            case SchedulerUnreachable():
                self._note("cut-off")
                self._leases.lose(self._force.release_all(), "the scheduler went away")
            case SchedulerGone(why):
                self._leases.lose(self._force.release_all(), "the scheduler went away")
                self._give_up(why)
            case MessageReceived((number, seconds, slot)):
                self._leases.seen_unfinished(number, seconds, slot)
            case CallAnswered(call, value):
                self._answered(call, value)
            case CallFailed(call, why, died):
                self._failed(call, why, died=died)

    def _answered(self, call: Any, value: Any) -> None:
        match call:
            case (kind, address) if kind == GREET:
                self._force.station_opening(address, value)
            case (kind, address) if kind == OPEN:
                self._force.opened(address, value)
                if (worker := self._force.workers.get(address)) is not None:
                    self._leases.show(worker)
            case (kind, address) if kind == MEASURE:
                self._force.measured(address, value)
            case (kind, address, digest) if kind == FILE:
                self._leases.arrived(address, digest)
            case _:
                self._leases.answered(call, value)

    def _failed(self, call: Any, why: str, *, died: bool) -> None:
        match call:
            case (kind, address) if kind == GREET:
                self._force.refuse(address, f"captime cannot be loaded there ({why})")
            case (kind, address) if kind == OPEN:
                self._force.refuse(address, why)
            case (kind, _) if kind == MEASURE:
                pass
            case (kind, address, digest) if kind == FILE:
                self._force.refuse(address, why)
                self._leases.arrived(address, digest)
            case _:
                self._leases.failed(call, why, died=died)

    def _give_up(self, why: str) -> None:
        """The cluster will not come back: what waits for it is stopped, and the certificate so far stands."""
        if not self.gone:
            self.gone = why
            _log.warning("the cluster is given up: %s", why)
            self._note("gone", why=why)
        self._leases.cancel(list(self._leases.requests))

    # ------------------------------------------------------------------ while waiting

    def _chores(self) -> float:
        """Look after what time brings; in how many seconds to look again."""
        now = time.monotonic()
        queue = self._terms.queue
        self._force.measure_again()
        for ended in [] if queue is None else queue.news():
            self._note("job-ended", **ended)
        if now >= self._stop_by:
            self._leases.lose_the_rest("it did not stop")
            return 0.0
        if self._force.slots:
            self._alone_since = self._complained_at = now
            return min(_MINUTE, self._stop_by - now)
        if self._force.hopeless and now - self._force.refused_at >= _HOPE_SECONDS:
            self._give_up_waiting("; ".join(f"{address}: {why}" for address, why in self._force.refused.items()))
        elif queue is not None and queue.over and not self.gone:
            if not self._leases.worked:
                raise ScenarioError(f"executor: {queue.over}. Correct executor.options, or try one such job by hand")
            self._give_up(queue.over)
        elif now - self._alone_since >= self._terms.patience:
            self._give_up(f"there was no worker for {now - self._alone_since:.0f} s (executor.patience){self._queued}")
        elif now - self._complained_at >= _MINUTE:
            self._complained_at = now
            _log.warning("no worker for %.0f minutes; waiting%s", (now - self._alone_since) / _MINUTE, self._queued)
        soon = _HOPE_SECONDS if queue is None else _QUEUE_SECONDS
        return 0.0 if self._leases.back else min(_MINUTE, self._terms.patience, soon, self._stop_by - now)

    @property
    def _queued(self) -> str:
        """What the queue says, as the end of a sentence."""
        return "" if self._terms.queue is None else f"; {self._terms.queue.words()}"

    def _give_up_waiting(self, why: str) -> None:
        """Give up if all workers were refused."""
        if not self._leases.worked:
            raise ScenarioError(
                f"no worker of the cluster can be used: {why}. Workers need this version of captime, the program under "
                "the same path, and the instances too (a shared folder, or executor.transfer = true)"
            )
        self._give_up(f"no worker can be used any more: {why}")
