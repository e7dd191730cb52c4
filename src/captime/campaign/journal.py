"""The ledger as the journal of the live loop: what happens is on disk before it is acted upon."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from captime.arrays import BoolArray
from captime.campaign.result import CampaignResult
from captime.certificate import Certificate, Orders
from captime.errors import CaptimeError, LedgerDamaged, LedgerLocked, ScenarioError
from captime.evidence import Evidence
from captime.executors.protocol import Executor
from captime.executors.retry import ExecutorWrapper
from captime.ledger import Ledger, LedgerReader
from captime.ledger.connection import crash_point
from captime.ledger.file_watch import rescued_name
from captime.ledger.rows import SampleRow
from captime.live import Seen
from captime.procedures.protocol import Procedure
from captime.runs import RunOutcome, RunRequest
from captime.streams.finite import InstanceStream
from captime.supervision.processes import steady_ns

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

    def asked(self, slots: int, orders: Orders) -> None:
        """See the protocol."""
        if self._orders:
            self._ledger.asked(slots, orders)

    def started(self, requests: Sequence[RunRequest]) -> None:
        """See the protocol. The instances and seeds of new positions are registered with them."""
        self._look_at_clock()
        self._before_start()
        positions = {request.instance for request in requests}
        samples = {position: sample_at(self._stream, position) for position in positions}
        with_retries(lambda: self._ledger.started(requests, samples))
        crash_point("announced")

    def observed(self, outcomes: Sequence[RunOutcome], seen: Seen) -> None:
        """See the protocol."""
        self._look_at_clock()
        with_retries(lambda: self._ledger.observed(outcomes, seen))
        crash_point("acknowledged")
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

    def asked(self, slots: int, orders: Orders) -> None:
        """See the protocol."""
        if self._on_record:
            self._on_record -= 1
        else:
            self._ledger.asked(slots, orders)

    def started(self, requests: Sequence[RunRequest]) -> None:
        """Nothing: which attempts these are is known below the loop."""

    def observed(self, outcomes: Sequence[RunOutcome], seen: Seen) -> None:
        """Nothing, likewise."""


def sample_at(stream: InstanceStream, position: int) -> SampleRow:
    """Return what a position of the stream stands for, as the ledger remembers it."""
    element = stream.at(position)
    return SampleRow(position, element.instance.name, element.instance.digest, element.seed)


# What a procedure has come to, written into the ledger whenever it has changed: certificate, candidates, facts.


class Recorder:
    """Writes down what is new, and nothing twice.

    Args:
        ledger: The one that is written to.
        n_configs: How many configurations there are at first.
        clock: Wall-clock seconds of earlier calls; those of this one are counted from there.
    """

    def __init__(self, ledger: Ledger, n_configs: int, clock: float) -> None:
        self._ledger = ledger
        self._clock = clock
        self._certified: Certificate | None = None
        self._facts: object = None
        self._in_the_race: BoolArray = np.ones(n_configs, dtype=np.bool_)

    def certificate(self, procedure: Procedure, evidence: Evidence, now: float) -> None:
        """Write the certificate down, if another one is held.

        Args:
            procedure: The procedure that made it.
            evidence: Knows what was spent.
            now: Wall-clock seconds of this call.
        """
        held = procedure.certificate()
        if held is self._certified or held == self._certified:
            return
        self._certified = held
        self.facts(procedure)
        left, spent = int(procedure.candidates.sum()), float(evidence.tally.seconds.sum())
        self._ledger.certified(held, procedure.rounds, spent, self._clock + now, left)
        crash_point("certified")

    def candidates(self, procedure: Procedure, evidence: Evidence) -> None:
        """Record which configurations were cleared, and which became candidates again; no decision needs it."""
        now = procedure.candidates.copy()
        before = np.ones(len(now), dtype=np.bool_)
        before[: len(self._in_the_race)] = self._in_the_race
        if np.array_equal(before, now):
            return
        self._in_the_race = now
        out, back = np.flatnonzero(before & ~now).tolist(), np.flatnonzero(now & ~before).tolist()
        self._ledger.noted("candidates", out=out, back=back, cpu_seconds=float(evidence.tally.seconds.sum()))

    def facts(self, procedure: Procedure) -> None:
        """Write down what an independent check needs to know beside the rows."""
        tell = getattr(procedure, "facts", None)
        facts = None if tell is None else tell()
        if facts is not None and facts != self._facts:
            self._facts = facts
            self._ledger.noted("facts", **facts)


# What a campaign does about a ledger that is deleted, replaced or overwritten while it runs.

_SECONDS_BETWEEN_LOOKS = 1.0


class LedgerWatchingExecutor(ExecutorWrapper):
    """An executor that looks at something else about once a second while it waits for runs.

    Args:
        inner: Does the runs; its clock is the wall clock.
        look: Returns True if waiting is no longer of use.
    """

    def __init__(self, inner: Executor, look: Callable[[], bool]) -> None:
        super().__init__(inner)
        self._look = look

    def collect(self, timeout: float | None = None) -> list[RunOutcome]:
        """See the protocol. Returns early, with nothing, when `look` says so."""
        until = math.inf if timeout is None else self.now + timeout
        while True:
            began = self.now
            step = max(0.0, min(_SECONDS_BETWEEN_LOOKS, until - began))
            back = super().collect(step)
            # Back early with nothing: nothing is under way, or a signal has arrived.
            if back or self.now - began < step or self.now >= until or self._look():
                return back


def check_no_rescue(path: Path) -> None:
    """Refuse to begin a new campaign where the last one's ledger was lost and a copy of it waits to be put back."""
    saved = rescued_name(path)
    if not path.exists() and saved.exists():
        raise ScenarioError(
            f"there is no ledger {path}, but {saved.name} beside it holds the rows of a campaign whose ledger was "
            f"lost. Rename it to {path.name} to resume that campaign, or move it away to begin a new one"
        )


def with_what_was_lost(result: CampaignResult, ledger: Ledger) -> CampaignResult:
    """Return the result with what is to be said if the closed file does not hold what the certificate rests on."""
    happened = ledger.lost
    if _holds(ledger.path, ledger.campaign_id, result.head):
        if not happened or result.trouble is not None:
            return result
        told = (
            f"{happened}. All rows could still be brought into the ledger, and it is whole; the same command resumes "
            "the campaign"
        )
        # The copy that was made first is not needed.
        if result.rescued is not None:
            result.rescued.path.unlink(missing_ok=True)
        return replace(result, warnings=(told, *result.warnings), rescued=None)
    if result.trouble is not None and not happened:
        return result
    happened = happened or f"{ledger.path} is not the file any more that was written"
    if result.rescued is not None:
        saved = (
            f"All {result.rescued.rows:,} rows were saved in {result.rescued.path}; rename it to {ledger.path.name} to "
            "resume the campaign"
        )
    else:
        saved = "The rows could not be saved; keep what is left of the files and a copy of this output"
    valid = "No" if result.question.procedure == "survey" else "The certificate is valid, but no"
    told = f"{happened}. {valid} file of this name holds the runs that it rests on (head {result.head[:12]})"
    return replace(result, trouble=LedgerDamaged(told, saved))


def _holds(path: Path, campaign: str, head: str) -> bool:
    """Return whether the file under this name is this campaign's, up to this row."""
    try:
        with LedgerReader(path) as reader:
            return reader.campaign_id == campaign and reader.head == head
    except CaptimeError:
        return False
