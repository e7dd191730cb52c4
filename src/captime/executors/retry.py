"""Executors around an executor: retry what was lost, and report outcomes in a fixed order."""

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from captime.arrays import IntArray
from captime.errors import ScenarioError
from captime.executors.protocol import Executor
from captime.runs import Measurement, RunOutcome, RunRequest, Shortage, Status, Verdict

# An executor around another one: everything is passed on, and a member of this family changes one thing.


class ExecutorWrapper:
    """Passes everything on.

    Args:
        inner: Does the runs.
    """

    def __init__(self, inner: Executor) -> None:
        self._inner = inner

    @property
    def slots(self) -> int:
        """See the protocol."""
        return self._inner.slots

    @property
    def ahead(self) -> int:
        """See the protocol."""
        return self._inner.ahead

    @property
    def now(self) -> float:
        """See the protocol."""
        return self._inner.now

    def submit(self, requests: Sequence[RunRequest]) -> None:
        """See the protocol."""
        self._inner.submit(requests)

    def collect(self, timeout: float | None = None) -> list[RunOutcome]:
        """See the protocol."""
        return self._inner.collect(timeout)

    def watch(self) -> list[tuple[RunRequest, float]]:
        """See the protocol."""
        return self._inner.watch()

    def cancel(self, configs: IntArray) -> None:
        """See the protocol."""
        self._inner.cancel(configs)

    def stop(self) -> None:
        """See the protocol."""
        self._inner.stop()

    def close(self) -> None:
        """See the protocol."""
        self._inner.close()


# What is done about runs that were lost: tried again a few times if that is sound, given up otherwise.
#
# A lost run is our fault, so dropping it would be wrong: long runs are lost more often than short ones. It is tried
# again with the same seed. After `MOST_LOSSES`, or at once if the program cannot repeat itself, it is given up
# instead: "was seen unfinished after x seconds" is all that will ever be known of it, and the bounds count it as
# that.
#
# Losses on a machine that is out of disk, memory, processes or descriptors do not count: `WaitingExecutor` holds runs
# back until the machine is fit again, and says when it stays unfit.

MOST_LOSSES = 3
PATIENCE = 600.0
"""Seconds for which a campaign waits for a machine that is unfit."""
# A run that is lost so often because its machine became unfit, each time after it was fit again, is the reason itself.
_MOST_INCIDENTS = 4
# Incidents in a row without any run that ended well, of any configuration.
_MOST_BARREN = 8
# Between two looks at a machine that refuses runs; refusals further apart than the gap are two different stories.
_LOOK_SECONDS = 1.0
_GAP_SECONDS = 10.0
_LONGEST_PAUSE = 60.0

_log = logging.getLogger("captime")
Note = Callable[..., None]


class LossLimit(ExecutorWrapper):
    """An executor that gives up runs which were lost too often.

    Args:
        inner: Does the runs.
        repeatable: Whether a run takes the same time when it is tried again.
    """

    def __init__(self, inner: Executor, *, repeatable: bool) -> None:
        super().__init__(inner)
        self._repeatable = repeatable
        self._lost: Counter[tuple[int, int]] = Counter()

    def remember(self, outcome: RunOutcome) -> None:
        """Count a loss, now or before the campaign was resumed; those of unfit machines do not count."""
        if outcome.shortage is None:
            self._lost[outcome.request.config, outcome.request.instance] += 1

    def collect(self, timeout: float | None = None) -> list[RunOutcome]:
        """See the protocol."""
        return [self._judged(outcome) for outcome in super().collect(timeout)]

    def _judged(self, outcome: RunOutcome) -> RunOutcome:
        if outcome.status.meaning.counts:
            return outcome
        self.remember(outcome)
        times = self._lost[outcome.request.config, outcome.request.instance]
        if self._repeatable and (times < MOST_LOSSES or outcome.shortage is not None):
            return outcome
        why = f"lost {times} times" if self._repeatable else "lost, and the program cannot repeat itself"
        detail = f"{why}: {outcome.detail}" if outcome.detail else why
        return replace(outcome, status=Status.ABANDONED, verdict=Verdict.BLOCKED, detail=detail)


@dataclass(frozen=True, slots=True)
class Unfit:
    """Why a campaign cannot continue.

    Attributes:
        shortage: What the machine is out of.
        words: The shortage in a sentence, of the last run that was refused or lost.
        configs: Configurations that were lost again and again although the machine was fit in between; empty if the
            machine simply stays unfit.
    """

    shortage: Shortage
    words: str
    configs: tuple[int, ...] = ()


class WaitingExecutor(ExecutorWrapper):
    """An executor that waits while machines are unfit, and stops waiting after a while.

    A run that was refused before it began is submitted again as the same attempt: nothing has happened to it, so there
    is no second chance in it. After a run that was lost on an unfit machine new ones are held back for a moment, a
    longer one each time.

    Args:
        inner: Does the runs.
        patience: Seconds for which runs may be refused without any that ends well.
        note: Writes an event down, as `note(kind, **facts)`.
        repeatable: Whether a run takes the same time when it is tried again.
        clock: Seconds on some clock.
        sleep: Waits for the given number of seconds.

    Attributes:
        gave_up: Why continuing is of no use; None as long as it is.
    """

    def __init__(
        self,
        inner: Executor,
        patience: float,
        note: Note,
        *,
        repeatable: bool,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(inner)
        self.gave_up: Unfit | None = None
        self._patience = patience
        self._note = note
        # What is said of a request that is dropped before it began, as of any run that is stopped early.
        self._dropped = Status.CAPPED if repeatable else Status.ABANDONED
        self._clock = clock
        self._sleep = sleep
        # Each with the moment from which on it may be submitted; nothing is before that moment for all of them.
        self._held: list[tuple[float, RunRequest]] = []
        self._resume_at = 0.0
        self._under_way: dict[RunRequest, int] = {}
        self._back: list[RunOutcome] = []
        self._stopping = False
        self._unfit_since: float | None = None
        self._last_refusal = 0.0
        self._incident = 0
        self._barren = 0
        self._counted: dict[int, int] = {}
        self._in_a_row: Counter[int] = Counter()
        self._of_run: Counter[tuple[int, int]] = Counter()

    def submit(self, requests: Sequence[RunRequest]) -> None:
        """See the protocol. While a machine is unfit, requests are held back."""
        self._held += [(0.0, request) for request in requests]
        self._release()

    def collect(self, timeout: float | None = None) -> list[RunOutcome]:
        """See the protocol. Empty now and then while requests are held back, so that a signal is heard."""
        self._release()
        back, self._back = self._back, []
        if back:
            return back
        due = min((due for due, _ in self._held), default=None)
        left = None if due is None else max(0.0, max(due, self._resume_at) - self._clock())
        wait = min((each for each in (timeout, left) if each is not None), default=None)
        if self._held and not self._under_way:
            self._sleep(min(_LOOK_SECONDS, wait or 0.0))
            self._release()
            return []
        news = [outcome for outcome in super().collect(wait) if self._is_news(outcome)]
        news += self._back
        self._back = []
        return news

    def cancel(self, configs: IntArray) -> None:
        """See the protocol."""
        unwanted = {int(config) for config in configs}
        self._drop([request for _, request in self._held if request.config in unwanted])
        super().cancel(configs)

    def stop(self) -> None:
        """See the protocol."""
        self._stopping = True
        self._drop([request for _, request in self._held])
        super().stop()

    def _release(self) -> None:
        now = self._clock()
        if not self._held or now < self._resume_at or self.gave_up is not None:
            return
        requests = [request for due, request in self._held if due <= now]
        if requests:
            self._held = [each for each in self._held if each[0] > now]
            self._under_way |= dict.fromkeys(requests, self._incident)
            super().submit(requests)

    def _drop(self, requests: Sequence[RunRequest]) -> None:
        dropped = set(requests)
        self._held = [each for each in self._held if each[1] not in dropped]
        self._back += [self._never_begun(request) for request in requests]

    def _is_news(self, outcome: RunOutcome) -> bool:
        """Take note of an outcome; False if it is not passed on."""
        begun_in = self._under_way.pop(outcome.request, self._incident)
        if outcome.shortage is not None and not self._stopping:
            if outcome.unbegun:
                self._refused(outcome, outcome.shortage)
                return False
            self._lost(outcome, outcome.shortage, begun_in)
        elif outcome.unbegun:
            self._back.append(self._never_begun(outcome.request))
            return False
        elif outcome.status.meaning.counts and outcome.verdict is not Verdict.CANCELLED:
            self._ended_well(outcome, begun_in)
        return True

    def _refused(self, outcome: RunOutcome, shortage: Shortage) -> None:
        now = self._clock()
        if self._unfit_since is None or now - self._last_refusal > _GAP_SECONDS:
            self._unfit_since = now
            self._incident += 1
            self._tell(outcome, shortage)
        self._last_refusal = now
        # Only this one waits: other machines of a cluster may be fit.
        self._held.append((now + min(_LOOK_SECONDS, self._patience), outcome.request))
        if now - self._unfit_since >= self._patience:
            self._give_up(Unfit(shortage, outcome.detail))

    def _lost(self, outcome: RunOutcome, shortage: Shortage, begun_in: int) -> None:
        """Count incidents, not runs: whatever was under way when the machine became unfit is lost at once."""
        request = outcome.request
        if begun_in == self._incident:
            self._tell(outcome, shortage)
            pause = min(2.0**self._barren, _LONGEST_PAUSE, self._patience)
            self._resume_at = max(self._resume_at, self._clock() + pause)
            self._incident += 1
            self._barren += 1
        if begun_in >= self._counted.get(request.config, 0):
            self._counted[request.config] = self._incident
            self._in_a_row[request.config] += 1
        self._of_run[request.config, request.instance] += 1
        guilty = {config for config, times in self._in_a_row.items() if times >= _MOST_INCIDENTS}
        guilty |= {config for (config, _), times in self._of_run.items() if times >= _MOST_INCIDENTS}
        if guilty:
            self._give_up(Unfit(shortage, outcome.detail, tuple(sorted(guilty))))
        elif self._barren >= _MOST_BARREN:
            self._give_up(Unfit(shortage, outcome.detail))

    def _ended_well(self, outcome: RunOutcome, begun_in: int) -> None:
        """Note that machines are fit; a run that began before the last incident does not say so."""
        self._in_a_row.pop(outcome.request.config, None)
        self._barren = 0
        if self._unfit_since is not None and begun_in == self._incident:
            self._note("fit", seconds=self._clock() - self._unfit_since)
            self._unfit_since = None

    def _tell(self, outcome: RunOutcome, shortage: Shortage) -> None:
        self._note("unfit", shortage=shortage.value, why=outcome.detail, config=outcome.request.config)
        _log.warning("captime: waiting for the machine, for %.0f s at most: %s", self._patience, outcome.detail)

    def _give_up(self, why: Unfit) -> None:
        if self.gave_up is None:
            self.gave_up = why

    def _never_begun(self, request: RunRequest) -> RunOutcome:
        return RunOutcome(request, self._dropped, 0.0, 0.0, "never begun", Verdict.CANCELLED, Measurement(0, 0))


# Answers in the order of the questions: the same campaign whatever the timing, for any number of jobs.
#
# Requests go to the inner executor as they come; outcomes are handed on strictly in the order in which they were
# asked for, one at a time, and as many requests are open as the window says, however many slots there are. What a
# procedure is told then depends on the outcomes alone, not on which was faster, so two campaigns with the same
# outcomes take the same decisions to the last bit. The price: one long run can hold up the window.


class FixedOrderExecutor(ExecutorWrapper):
    """An executor that answers in order.

    Args:
        inner: Does the runs.
        window: How many requests are open at once; part of what decides the answer, unlike the number of slots.
    """

    def __init__(self, inner: Executor, window: int) -> None:
        if window < 1:
            raise ScenarioError(f"the window is {window}, but at least one run has to be open; use 1 or more")
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
