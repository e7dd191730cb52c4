"""Answers in the order of the questions: the same campaign whatever the timing, for any number of jobs.

Requests go to the inner executor as they come; outcomes are handed on strictly in the order in which they were asked
for, one at a time, and as many requests are open as the window says, however many slots there are. What a procedure is
told then depends on the outcomes alone, not on which was faster, so two campaigns with the same outcomes take the same
decisions to the last bit. The price: one long run can hold up the window.
"""

from collections import deque
from collections.abc import Sequence

from captime.arrays import IntArray
from captime.errors import ScenarioError
from captime.executors.protocol import Executor
from captime.executors.wrapper import ExecutorWrapper
from captime.runs import RunOutcome, RunRequest


class FixedOrderExecutor(ExecutorWrapper):
    """An executor that answers in order.

    Args:
        inner: Does the runs.
        window: How many requests are open at once; part of what decides the answer, unlike the number of slots.
    """

    def __init__(self, inner: Executor, window: int) -> None:
        if window < 1:
            raise ScenarioError(f"the window is {window}, but at least one run has to be open; say 1 or more")
        super().__init__(inner)
        self._window = window
        self._asked: deque[RunRequest] = deque()
        self._back: dict[RunRequest, RunOutcome] = {}

    @property
    def slots(self) -> int:
        """The window."""
        return self._window

    @property
    def ahead(self) -> int:
        """Nothing beyond the window."""
        return 0

    def submit(self, requests: Sequence[RunRequest]) -> None:
        """See the protocol."""
        self._asked.extend(requests)
        super().submit(requests)

    def collect(self, timeout: float | None = None) -> list[RunOutcome]:
        """See the protocol. Waits for the oldest request; what came back before its turn is kept."""
        if not self._asked:
            return []
        until = None if timeout is None else self.now + timeout
        while self._asked[0] not in self._back:
            left = None if until is None else max(0.0, until - self.now)
            came = super().collect(left)
            self._back |= {outcome.request: outcome for outcome in came}
            if not came:
                # Nothing in time, or the wait was interrupted, by a signal for instance.
                return []
        return [self._back.pop(self._asked.popleft())]

    def watch(self) -> list[tuple[RunRequest, float]]:
        """Nothing: how far a run has come by now is a matter of timing."""
        return []

    def cancel(self, configs: IntArray) -> None:
        """Do nothing: when a run is stopped is a matter of timing, so each continues to its captime."""
