"""The ledger as the journal of the live loop: what happens is on disk before it is acted upon."""

import time
from collections.abc import Callable, Sequence

from captime.errors import LedgerLocked
from captime.ledger import Ledger
from captime.ledger.crash_points import reached
from captime.ledger.rows import SampleRow
from captime.live import Seen
from captime.runs import RunOutcome, RunRequest
from captime.streams.protocol import InstanceStream
from captime.supervision.kernel import steady_ns
from captime.targets import Targets

# [F14] How long another process may lock the file before a campaign gives up; outcomes wait in memory until then.
_PATIENCE = 300.0
# A clock that differs by less was corrected, not set; corrections are a small share of the time that has passed.
_STEP_SECONDS, _SLEW = 0.05, 0.001
# The two clocks have to be read within this, or they are read again: the process may have been held up in between.
_TOGETHER_NS, _READINGS = 5_000_000, 10

Reader = Callable[[Sequence[RunOutcome]], None]


def _nothing() -> None:
    """Do nothing: there is nothing to record."""


def with_retries(write: Callable[[], None], patience: float = _PATIENCE) -> None:
    """Write, and try again while another process keeps the file locked; nothing is started or decided meanwhile.

    Args:
        write: May be called again after it was refused for a lock.
        patience: For how many seconds.
    """
    until = time.monotonic() + patience
    while True:
        try:
            write()
        except LedgerLocked:
            if time.monotonic() >= until:
                raise
        else:
            return


class ClockWatch:
    """Notices when the time of day was set to another value: rows before and after have dates that cannot be compared.

    Durations are not concerned: they are measured by clocks that cannot be set.

    Args:
        time_of_day: Nanoseconds since 1970.
        steady: Nanoseconds on a clock that cannot be set and that continues while the machine sleeps.
    """

    def __init__(self, time_of_day: Callable[[], int] = time.time_ns, steady: Callable[[], int] = steady_ns) -> None:
        self._time_of_day = time_of_day
        self._steady = steady
        self._last = self._read()

    def step(self) -> float | None:
        """By how many seconds the time of day was set since the last look, backwards if negative; None if it was not.

        Clocks that are being corrected little by little are not taken for one that was set.
        """
        before, self._last = self._last, self._read()
        passed = self._last[1] - before[1]
        seconds = (self._last[0] - before[0] - passed) / 1e9
        return seconds if abs(seconds) > max(_STEP_SECONDS, _SLEW * passed / 1e9) else None

    def _read(self) -> tuple[int, int]:
        """Both clocks at the same moment."""
        for _ in range(_READINGS):
            first, day = self._steady(), self._time_of_day()
            if self._steady() - first < _TOGETHER_NS:
                break
        return day, first


class LedgerJournal:
    """Writes everything down, then lets others look at what came back.

    Args:
        ledger: The one that is written to.
        stream: Says which instance and which seed a position stands for.
        readers: Are shown what came back, after it was written down; one of them may object by raising.
        orders: Whether orders are written down too; `OrdersJournal` does it for campaigns in fixed order.
        before_start: Called before runs are announced: what was fixed before them is written down before them.
        clock: Notices when the time of day was set.
    """

    def __init__(
        self,
        ledger: Ledger,
        stream: InstanceStream,
        readers: Sequence[Reader] = (),
        *,
        orders: bool = True,
        before_start: Callable[[], None] = _nothing,
        clock: ClockWatch | None = None,
    ) -> None:
        self._ledger = ledger
        self._stream = stream
        self._readers = readers
        self._orders = orders
        self._before_start = before_start
        self._clock = clock or ClockWatch()

    def asked(self, slots: int, targets: Targets) -> None:
        """See the protocol."""
        if self._orders:
            self._ledger.asked(slots, targets)

    def started(self, requests: Sequence[RunRequest]) -> None:
        """See the protocol. The instances and seeds of new positions are registered with them."""
        self._look_at_clock()
        self._before_start()
        positions = {request.instance for request in requests}
        samples = {position: sample_at(self._stream, position) for position in positions}
        with_retries(lambda: self._ledger.started(requests, samples))
        reached("announced")

    def observed(self, outcomes: Sequence[RunOutcome], seen: Seen) -> None:
        """See the protocol."""
        self._look_at_clock()
        with_retries(lambda: self._ledger.observed(outcomes, seen))
        reached("acknowledged")
        for reader in self._readers:
            reader(outcomes)

    def _look_at_clock(self) -> None:
        """Write down that the time of day was set, before any row that is dated by it."""
        step = self._clock.step()
        if step is not None:
            self._ledger.noted("clock-step", seconds=step)


class OrdersJournal:
    """Writes down orders, and nothing else: for campaigns in fixed order, whose runs are written down below the loop.

    Such a campaign is resumed by beginning again with a good memory, so it gives the orders on record once more, in
    the same sequence. They are not written twice.

    Args:
        ledger: The one that is written to.
        on_record: How many orders it has.
    """

    def __init__(self, ledger: Ledger, on_record: int) -> None:
        self._ledger = ledger
        self._on_record = on_record

    def asked(self, slots: int, targets: Targets) -> None:
        """See the protocol."""
        if self._on_record:
            self._on_record -= 1
        else:
            self._ledger.asked(slots, targets)

    def started(self, requests: Sequence[RunRequest]) -> None:
        """Nothing: which attempts these are is known below the loop."""

    def observed(self, outcomes: Sequence[RunOutcome], seen: Seen) -> None:
        """Nothing, likewise."""


def sample_at(stream: InstanceStream, position: int) -> SampleRow:
    """Return what a position of the stream stands for, as the ledger remembers it."""
    element = stream.at(position)
    return SampleRow(position, element.instance.name, element.instance.digest, element.seed)
