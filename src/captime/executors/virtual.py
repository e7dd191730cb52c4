"""Virtual workers with a virtual clock: recorded runtimes, replayed as if that many programs ran at once.

Runs end in the order of their runtimes, so the fast are heard of first. That is the dangerous case: a procedure that
judged by what has come back would judge by the fast ones. Nothing sleeps; a thousand workers for a year take seconds.
"""

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from captime.arrays import IntArray
from captime.errors import InvariantViolated, ScenarioError
from captime.runs import RunOutcome, RunRequest, Status
from captime.sources.table import RuntimeTable
from captime.sources.window import Accounting, RowStream


@dataclass(frozen=True, slots=True)
class _VirtualAttempt:
    """A run on a worker.

    Attributes:
        request: What was asked.
        status: How it will end if it is not cancelled.
        begun: When it started on this worker.
        before: CPU seconds it had behind it then, from attempts that it resumes.
        runtime: CPU seconds it will have behind it at its end.
    """

    request: RunRequest
    status: Status
    begun: float
    before: float
    runtime: float

    @property
    def ends(self) -> float:
        return self.begun + (self.runtime - self.before)


def _never_lost(_: RunRequest) -> float | None:
    return None


class VirtualExecutor:
    """Workers on one virtual clock; CPU time and wall-clock time are the same for them.

    A recorded runtime of infinity is a run that FAILED; how soon is not recorded, so it takes its whole captime, as in
    a replay.

    Args:
        table: The recorded runtimes.
        stream: In which order instances are met.
        workers: How many runs are under way at once.
        accounting: What happens to a run that was stopped and is asked for again: `restart` begins anew, `resume`
            continues where it stopped.
        loses: After how many seconds an attempt is lost through our own fault; None if it is not.

    Attributes:
        slots: The number of workers.
        ahead: 0: between two moments of a virtual clock there is time for any decision.
        now: The virtual clock, in seconds.
    """

    ahead = 0

    def __init__(
        self,
        table: RuntimeTable,
        stream: RowStream,
        workers: int,
        *,
        accounting: Accounting = "restart",
        loses: Callable[[RunRequest], float | None] = _never_lost,
    ) -> None:
        if workers < 1:
            raise ScenarioError(f"workers must be at least 1, got {workers}")
        self.slots = workers
        self.now = 0.0
        self._table = table
        self._stream = stream
        self._accounting = accounting
        self._loses = loses
        self._numbers = count()
        self._waiting: deque[RunRequest] = deque()
        self._running: dict[int, _VirtualAttempt] = {}
        # (end, number): numbers break ties in the order of starting, and find what was cancelled meanwhile.
        self._ends: list[tuple[float, int]] = []
        self._back: list[RunOutcome] = []
        self._survived: dict[tuple[int, int], float] = {}
        self._worked = 0.0

    @property
    def busy_seconds(self) -> float:
        """Worker seconds spent on runs so far."""
        return self._worked + sum(self.now - attempt.begun for attempt in self._running.values())

    @property
    def utilisation(self) -> float:
        """The share of all worker seconds so far that was spent on runs; 1 before the clock has moved."""
        return self.busy_seconds / (self.slots * self.now) if self.now > 0.0 else 1.0

    def submit(self, requests: Sequence[RunRequest]) -> None:
        """See the protocol."""
        for request in requests:
            self._check(request)
            self._waiting.append(request)
        self._start_waiting()

    def collect(self, timeout: float | None = None) -> list[RunOutcome]:
        """See the protocol. Moves the clock to the next end of a run, and brings all that end at that very moment."""
        if self._back:
            back, self._back = self._back, []
            return back
        until = np.inf if timeout is None else self.now + timeout
        self._forget_cancelled()
        if not self._ends or self._ends[0][0] > until:
            if np.isfinite(until):
                self.now = until
            return []
        self.now = self._ends[0][0]
        ended = []
        while self._ends and self._ends[0][0] == self.now:
            ended.append(self._finish(self._running.pop(heapq.heappop(self._ends)[1])))
            self._forget_cancelled()
        self._start_waiting()
        return ended

    def watch(self) -> list[tuple[RunRequest, float]]:
        """See the protocol. The clock shows it exactly."""
        return [
            (attempt.request, min(attempt.before + self.now - attempt.begun, attempt.runtime))
            for attempt in self._running.values()
        ]

    def cancel(self, configs: IntArray) -> None:
        """See the protocol. Takes no time."""
        unwanted = set(configs.tolist())
        for number in [key for key, attempt in self._running.items() if attempt.request.config in unwanted]:
            attempt = self._running.pop(number)
            # The clock may have been rounded past the end by a hair; no more was seen than there was.
            seen = min(attempt.before + self.now - attempt.begun, attempt.runtime)
            self._back.append(self._book(attempt, Status.CAPPED, seen))
        for request in [request for request in self._waiting if request.config in unwanted]:
            self._waiting.remove(request)
            survived = self._before(request)
            self._back.append(RunOutcome(request, Status.CAPPED, survived, 0.0, "cancelled before it started"))
        self._start_waiting()

    def stop(self) -> None:
        """See the protocol."""
        self.cancel(np.arange(self._table.n_configs))

    def close(self) -> None:
        """See the protocol."""
        self._worked = self.busy_seconds
        self._waiting.clear()
        self._running.clear()
        self._ends.clear()
        self._back.clear()

    # ------------------------------------------------------------------ one run

    def _check(self, request: RunRequest) -> None:
        """Refuse runs beyond the table's timeout or its last instance: nothing is recorded about them."""
        length, limit = self._stream.length, self._table.limit
        if request.config >= self._table.n_configs or (length is not None and request.instance >= length):
            raise InvariantViolated(
                f"{request} was submitted, but there are {self._table.n_configs} configurations and {length} positions"
            )
        if request.captime > limit:
            raise InvariantViolated(f"{request} was submitted, but the table knows nothing beyond {limit:g} s")
        if np.isinf(request.captime) and np.isinf(self._recorded(request)):
            raise ScenarioError(
                f"configuration {self._table.configs[request.config]!r} on stream position {request.instance} never "
                "finishes and was given no captime; choose a finite first captime, or declare the table's timeout"
            )

    def _recorded(self, request: RunRequest) -> float:
        row = self._stream.rows(request.instance, request.instance + 1)[0]
        return float(self._table.seconds[request.config, row])

    def _before(self, request: RunRequest) -> float:
        """CPU seconds that need not be spent again."""
        if self._accounting == "restart":
            return 0.0
        return min(self._survived.get((request.config, request.instance), 0.0), request.captime)

    def _start_waiting(self) -> None:
        while self._waiting and len(self._running) < self.slots:
            request = self._waiting.popleft()
            attempt = self._begin(request)
            number = next(self._numbers)
            self._running[number] = attempt
            heapq.heappush(self._ends, (attempt.ends, number))

    def _begin(self, request: RunRequest) -> _VirtualAttempt:
        recorded, before = self._recorded(request), self._before(request)
        if recorded < request.captime:
            status, runtime = Status.COMPLETED, recorded
        else:
            status, runtime = (Status.FAILED if np.isinf(recorded) else Status.CAPPED), request.captime
        lost_after = self._loses(request)
        if lost_after is not None and before + lost_after < runtime:
            status, runtime = Status.LOST, before + lost_after
        return _VirtualAttempt(request, status, self.now, before, runtime)

    def _finish(self, attempt: _VirtualAttempt) -> RunOutcome:
        return self._book(attempt, attempt.status, attempt.runtime)

    def _book(self, attempt: _VirtualAttempt, status: Status, runtime: float) -> RunOutcome:
        request, cost = attempt.request, runtime - attempt.before
        # What is lost is lost with everything it had behind it.
        self._survived[request.config, request.instance] = runtime if status.meaning.counts else 0.0
        self._worked += cost
        return RunOutcome(request, status, runtime, cost)

    def _forget_cancelled(self) -> None:
        while self._ends and self._ends[0][1] not in self._running:
            heapq.heappop(self._ends)
