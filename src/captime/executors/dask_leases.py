"""The leases: which run is whose, from the request to its one outcome.

A lease is made out once, to one station; a run that has to be given away again gets a new one. Every request comes back
exactly once. An answer to a lease that was revoked is kept apart, as late.
"""

import math
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from captime.executors import dask_worker as station
from captime.executors.dask_client import DaskClient
from captime.executors.dask_files import Digests
from captime.executors.dask_workers import Note, SpeedTerms, WorkerPool, WorkerRecord
from captime.executors.protocol import NoBoard, SlotDisplay
from captime.ledger.ownership import SlotId
from captime.programs.protocol import Program
from captime.runs import RunOutcome, RunRequest
from captime.supervision.messages import Report, lost_by_change

FILE = "file"
# Under way and next: the coordinator's decision on what comes after that is many milliseconds away.
_PER_SLOT = 2


class Queue(Protocol):
    """The jobs that bring workers, where there is a batch queue."""

    @property
    def over(self) -> str:
        """Why no job will bring a worker any more; "" as long as one may."""
        ...

    def words(self) -> str:
        """Return what the queue says of the jobs, for people."""
        ...

    def news(self) -> list[dict[str, object]]:
        """Jobs that have ended since the last time, as facts."""
        ...

    def useful(self, address: str) -> None:
        """The worker at this address has made a run."""
        ...


@dataclass(frozen=True, slots=True)
class DaskTerms:
    """How runs are made on a cluster.

    Attributes:
        isolation: As for the local executor, on every worker.
        scratch: Where workers make the directories of runs; their usual place for temporary files if left out.
        machines: What is demanded of machines.
        most: No more runs at once than this, however many workers there are.
        patience: Seconds without any worker after which to give up.
        transferred: The instance file at a stream position, if instances are to be sent to workers; None if they are
            to be found there under the same path.
        queue: The jobs that bring workers, if there is a batch queue.
    """

    isolation: str | None = None
    scratch: str | None = None
    machines: SpeedTerms = field(default_factory=SpeedTerms)
    most: int | None = None
    patience: float = math.inf
    transferred: Callable[[int], str | None] | None = None
    queue: Queue | None = None


class Leases:
    """Which worker has which run.

    Args:
        program: Turns requests into launches and reports into outcomes.
        link: To the scheduler.
        force: The workers.
        session: Of the coordinator.
        tag: What the tags of all processes begin with.
        terms: How runs are made.
        note: Writes an event down.

    Attributes:
        requests: What has not come back, by the number of the lease.
        seen: After how many seconds runs were last seen unfinished, by the number of the lease.
        back: What came back.
        late: Outcomes of leases that had been given up.
        worked: Whether any worker has ever done a run.
        board: Is told what runs where, as soon as stations tell.
    """

    def __init__(
        self,
        program: Program,
        link: DaskClient,
        force: WorkerPool,
        *,
        session: str,
        tag: str,
        terms: DaskTerms,
        note: Note,
    ) -> None:
        self.requests: dict[int, RunRequest] = {}
        self.seen: dict[int, float] = {}
        self.back: list[RunOutcome] = []
        self.late: list[RunOutcome] = []
        self.worked = False
        self.board: SlotDisplay = NoBoard()
        self._program = program
        self._link = link
        self._force = force
        self._session = session
        self._tag = tag
        self._terms = terms
        self._note = note
        self._digests = Digests()
        self._numbers = count(1)
        self._waiting: deque[int] = deque()
        self._holder: dict[int, WorkerRecord] = {}
        self._sending: dict[tuple[str, str], list[int]] = {}
        self._given_up: dict[int, tuple[RunRequest, WorkerRecord]] = {}
        self._seats: dict[int, SlotId] = {}

    # ------------------------------------------------------------------ giving

    def wait_with(self, request: RunRequest, *, first: bool = False) -> None:
        """Queue a request that no worker has yet."""
        number = next(self._numbers)
        self.requests[number] = request
        (self._waiting.appendleft if first else self._waiting.append)(number)

    def hand_out(self) -> None:
        """Give waiting requests to workers with free slots."""
        most = self._terms.most or math.inf
        while self._waiting and len(self._holder) < _PER_SLOT * most:
            worker = self._force.choose(_PER_SLOT)
            if worker is None:
                break
            self._give(worker, self._waiting.popleft())

    def _give(self, worker: WorkerRecord, number: int) -> None:
        request = self.requests[number]
        which = f"{request.config}.{request.instance}.{request.attempt}"
        launch = self._program.launch(request, number, f"{self._tag}/{which}")
        files, changed = self._digests.named(launch.guarded)
        if changed:
            self._settle(number, lost_by_change(number, changed))
            return
        if worker.factor != 1.0:
            launch = replace(
                launch, captime=launch.captime * worker.factor, wall_limit=launch.wall_limit * worker.factor
            )
        transferred = self._terms.transferred
        order = {
            "session": self._session,
            "station": worker.station,
            "lease": number,
            "launch": launch.to_json(),
            "files": files,
            "instance": None if transferred is None else transferred(request.instance),
        }
        worker.held[number] = None
        self._holder[number] = worker
        key = self._force.key_for(f"{which}-{number}")
        self._link.call(number, worker.address, station.run_lease, order, key=key)

    def cancel(self, numbers: Sequence[int]) -> None:
        """Stop these; they come back as cancelled, those that have not begun at once."""
        told: dict[str, list[int]] = {}
        for number in numbers:
            if number in self._holder:
                told.setdefault(self._holder[number].address, []).append(number)
            else:
                # Waiting for a worker, or for its instance to get there: it has never begun.
                self._unbegun(number)
                self._settle(number, Report(number, "cancelled"))
        for address, leases in told.items():
            self._link.shout([address], station.stop_leases, self._session, leases)

    def _unbegun(self, number: int) -> None:
        if number in self._waiting:
            self._waiting.remove(number)
        for numbers in self._sending.values():
            if number in numbers:
                numbers.remove(number)

    # ------------------------------------------------------------------ answers

    def answered(self, number: int, value: Any) -> None:
        """A station says what became of a lease."""
        if number not in self.requests:
            self._came_late(number, value)
            return
        worker = self._take_back(number)
        match value:
            case ("report", text, slot):
                worker.failures = 0
                self.worked = True
                if self._terms.queue is not None:
                    self._terms.queue.useful(worker.address)
                self._settle(number, Report.from_json(text), worker, slot)
            case ("missing", to_send, why):
                if why:
                    self._force.refuse(worker.address, f"{worker.host}: {why}")
                    to_send = []
                self._begin_anew(number, worker, to_send[:1])
            case ("strange",):
                # The worker was restarted since the lease; whatever it held is lost.
                self._force.workers.pop(worker.address, None)
                self.lose([worker], "its worker was started again")
                self._begin_anew(number, worker, [])
            case _:
                self._settle(number, Report(number, "lost", problem="its result was lost on the way"), worker)

    def _begin_anew(self, number: int, worker: WorkerRecord, to_send: Sequence[tuple[str, str]]) -> None:
        """It was not run; a lease is made out only once, so it gets another number."""
        request = self.requests.pop(number)
        self.wait_with(request, first=True)
        for path, digest in to_send:
            number, key = self._waiting.popleft(), (worker.address, digest)
            if key not in self._sending:
                try:
                    content = Path(path).read_bytes()
                except OSError:
                    self._settle(number, lost_by_change(number, path))
                    return
                arguments = (self._session, path, digest, content)
                self._link.shout([worker.address], station.take_file, *arguments, call=(FILE, *key))
            self._sending.setdefault(key, []).append(number)

    def failed(self, number: int, why: str, *, died: bool = False) -> None:
        """Book a lease of which no report will come; `died` if its worker is gone, which other news tells."""
        if number not in self._holder:
            self._given_up.pop(number, None)
            return
        worker = self._take_back(number)
        if not died:
            self._force.failed(worker, why)
        self._settle(number, Report(number, "lost", problem=why), worker)

    def arrived(self, address: str, digest: str) -> None:
        """Release the requests that waited for an instance: it has reached the worker, or never will."""
        for number in self._sending.pop((address, digest), []):
            self._waiting.appendleft(number)

    def seen_unfinished(self, number: Hashable, seconds: float, slot: int) -> None:
        """A run was seen under way."""
        if isinstance(number, int) and (worker := self._holder.get(number)) is not None:
            self.seen[number] = seconds / worker.factor
            self._seats[number] = _seat(worker, slot)
            self.board.running(self._seats[number], self.requests[number], self.seen[number])

    def show(self, worker: WorkerRecord) -> None:
        """There are new slots."""
        for slot in range(worker.slots):
            self.board.idle(_seat(worker, slot))

    # ------------------------------------------------------------------ ends

    def _take_back(self, number: int) -> WorkerRecord:
        worker = self._holder.pop(number)
        worker.held.pop(number, None)
        if (seat := self._seats.pop(number, None)) is not None:
            self.board.idle(seat)
        return worker

    def lose(self, workers: Sequence[WorkerRecord], why: str) -> None:
        """These workers are no more: their leases are revoked."""
        for worker in workers:
            lost = list(worker.held)
            self._link.forget(lost)
            for number in lost:
                self._given_up[number] = (self.requests[number], worker)
                self._take_back(number)
                self._settle(number, Report(number, "lost", problem=f"{why} ({worker.host}, {worker.address})"), worker)
            for address, digest in [key for key in self._sending if key[0] == worker.address]:
                self._waiting.extendleft(self._sending.pop((address, digest)))
            for slot in range(worker.slots):
                self.board.gone(_seat(worker, slot))
            if lost:
                self._note("worker-lost", worker=worker.address, host=worker.host, runs=len(lost), why=why)

    def _settle(self, number: int, report: Report, worker: WorkerRecord | None = None, slot: int = 0) -> None:
        """Nothing more will be heard of this lease that counts."""
        request = self.requests.pop(number)
        self.seen.pop(number, None)
        self.back.append(self._outcome(request, report, worker, slot))

    def _outcome(self, request: RunRequest, report: Report, worker: WorkerRecord | None, slot: int) -> RunOutcome:
        if worker is not None and worker.factor != 1.0:
            report = replace(report, runtime_ns=round(report.runtime_ns / worker.factor))
        outcome = self._program.judge(request, report)
        if outcome.measured is None or worker is None:
            return outcome
        return replace(outcome, measured=replace(outcome.measured, host=worker.host, slot=slot))

    def _came_late(self, number: int, value: Any) -> None:
        request, worker = self._given_up.pop(number, (None, None))
        if request is not None and value[0] == "report":
            self.late.append(self._outcome(request, Report.from_json(value[1]), worker, int(value[2])))

    def lose_the_rest(self, why: str) -> None:
        """Count leases that have not been answered by now as lost."""
        for number in list(self._holder):
            self._settle(number, Report(number, "lost", problem=why), self._take_back(number))

    def clear(self) -> None:
        """Forget everything."""
        everything = (self.requests, self.seen, self._waiting, self._holder, self._sending, self._given_up, self._seats)
        for held in everything:
            held.clear()


def _seat(worker: WorkerRecord, slot: int) -> SlotId:
    return SlotId(slot, worker.host, worker.address)
