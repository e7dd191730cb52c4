"""The loop: the only place where a procedure and a source meet."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from captime.arrays import BoolArray
from captime.certificate import Orders
from captime.procedures.protocol import KeepsBook, LooksAhead, Procedure
from captime.procedures.turns import TakesTurns
from captime.runs import never
from captime.sources.replay import Replay
from captime.tally import one_decision
from captime.trace import Decisions, Incidents, LoopOutcome, Trace

Observer = Callable[[Procedure, Replay], None]

# Cells (rounds × candidates) shown to a lockstep procedure at once: enough to amortise the calls, few enough for
# a cache.
_CELLS_AT_ONCE = 1 << 16
# Just below the 32 MB up to which glibc adapts; see _Lap.
_KEPT_AT_HAND = 31 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(LoopOutcome):
    """What a run came to; `seconds` are in the accounting chosen.

    Attributes:
        rerun_seconds: How much repeating cut runs costs, under either accounting.
        crossed: Number of configurations whose bounds contradict each other.
    """

    rerun_seconds: dict[str, float]
    crossed: int


def drive(
    procedure: Procedure,
    replay: Replay,
    *,
    budget: float = np.inf,
    observer: Observer | None = None,
    interrupted: Callable[[], bool] = never,
) -> Outcome:
    """Ask, answer, tell, until the procedure is content, the CPU budget is spent or the loop is interrupted.

    Args:
        procedure: Decides.
        replay: Answers from a table.
        budget: CPU seconds that may be spent; the round during which they run out is still judged.
        observer: Called after every lap, to show progress.
        interrupted: Asked before every lap; True stops with the certificate held so far.
    """
    trace, stopped = Trace(), "interrupted"
    lap = _Lap(procedure, replay, trace, budget)
    while not interrupted():
        if (content := procedure.finished()) is not None:
            stopped = content
            break
        if lap.spent() >= budget:
            stopped = "budget"
            break
        if not lap.run():
            stopped = "idle"
            break
        if observer is not None:
            observer(procedure, replay)
    return _outcome(procedure, replay, stopped, trace)


class _Lap:
    """Once around: what is asked is answered, told and written down."""

    def __init__(self, procedure: Procedure, replay: Replay, trace: Trace, budget: float) -> None:
        self._procedure = procedure
        self._replay = replay
        self._trace = trace
        self._budget = budget
        self._ahead = procedure if isinstance(procedure, LooksAhead) else None
        self._in_turns = procedure if isinstance(procedure, TakesTurns) else None
        # Freeing one large block tells the C library to keep memory of that size at hand. Otherwise it may hand the
        # arrays of every window back to the system and fetch them again page by page, a third of all time.
        np.empty(_KEPT_AT_HAND, dtype=np.uint8)
        self._depth = 1
        self._width = 2

    def spent(self) -> float:
        """CPU seconds so far."""
        return float(self._replay.tally.seconds.sum())

    def run(self) -> bool:
        """Run one lap, by whichever way the procedure can be told; False if it wants nothing, which cannot change."""
        procedure = self._procedure
        before = procedure.candidates.copy()
        if self._ahead is not None:
            made = self._several_rounds(self._ahead)
        else:
            due = procedure.ask(slots=1)
            if len(due) == 0:
                # Asking may have moved it on, into another phase; a second empty answer is final.
                due = procedure.ask(slots=1)
            if len(due) == 0:
                return False
            several = None if self._in_turns is None else self._several_turns(self._in_turns, due)
            made = self._one_decision(due) if several is None else several
        self._incidents(made, before)
        self._trace.blocks.append(made)
        return True

    def _several_rounds(self, procedure: LooksAhead) -> Decisions:
        """Lockstep: show more rounds at a time while that works out, fewer when it was too many."""
        replay, orders, first = self._replay, self._procedure.ask(slots=1), self._procedure.rounds + 1
        while True:
            window = replay.look_ahead(orders, self._depth, self._budget - self.spent())
            if (progress := procedure.tell_ahead(window)) is not None:
                break
            self._depth = max(1, self._depth // 4)
        seconds, runs = window.book(progress.used)
        self._depth = min(2 * self._depth, max(1, _CELLS_AT_ONCE // len(orders)))
        number = np.arange(first, first + len(seconds))
        return Decisions(number, seconds, runs, progress.config, progress.epsilon, progress.left)

    def _several_turns(self, procedure: TakesTurns, due: Orders) -> Decisions | None:
        """Turns: show more lanes and longer ones while they are walked; None if the next decision has to come alone."""
        replay, first = self._replay, self._procedure.rounds + 1
        if bool((due.level > replay.tally.level.take(due.config)).any()):
            return None
        lanes = replay.lanes(self._procedure.ask(slots=self._width), self._depth, self._budget - self.spent())
        turns = procedure.tell_turns(lanes)
        if len(turns) == 0:
            return None
        seconds, runs = lanes.book(turns.row)
        walked = np.bincount(turns.row[turns.row >= 0], minlength=len(lanes.config))
        self._width = _adapted(self._width, int(np.count_nonzero(walked)), len(replay.tally.n))
        self._depth = _adapted(self._depth, int(walked.max()), max(1, _CELLS_AT_ONCE // self._width))
        number = np.arange(first, first + len(turns))
        return Decisions(number, seconds, runs, turns.config, turns.epsilon, turns.left)

    def _one_decision(self, due: Orders) -> Decisions:
        procedure = self._procedure
        procedure.tell(self._replay.tally, self._replay.answer(due))
        return one_decision(procedure.rounds, self._replay.tally, procedure.certificate(), procedure.candidates)

    def _incidents(self, made: Decisions, before: BoolArray) -> None:
        """Record eliminations and captime increases; the round is inferred from the configuration's prefix length."""
        # Pools grow: a configuration that was added meanwhile is not eliminated.
        gone = np.flatnonzero(before & ~self._procedure.candidates[: len(before)])
        eliminated = (gone, self._replay.tally.n.take(gone) - 1, np.full(len(gone), np.nan))
        for config, positions, captime in (*self._replay.raises, eliminated):
            if len(config):
                place = np.searchsorted(made.round, positions + 1).clip(max=len(made.round) - 1)
                if self._in_turns is not None:
                    place[:] = len(made.round) - 1  # a procedure that takes turns stops when something happens
                happened = Incidents(made.round[place], made.seconds[place], config, captime)
                self._trace.happened.append(happened)


def _adapted(shown: int, walked: int, most: int) -> int:
    """Return how many to show next time: twice as many if all were needed, half if most were not."""
    if walked >= shown:
        return min(2 * shown, most)
    return max(1, shown // 2) if 4 * walked < shown else min(shown, most)


def _outcome(procedure: Procedure, replay: Replay, stopped: str, trace: Trace) -> Outcome:
    tally = replay.tally
    seen = tally.n - tally.skipped
    started = np.maximum(seen, 1)
    intervals = getattr(procedure, "intervals", None)
    trace.spending = procedure.spending() if isinstance(procedure, KeepsBook) else {}
    return Outcome(
        certificate=procedure.certificate(),
        stopped=stopped,
        rounds=procedure.rounds,
        candidates=np.flatnonzero(procedure.candidates),
        seconds=tally.seconds.copy(),
        rerun_seconds={str(kind): cost for kind, cost in replay.rerun_seconds.items()},
        runs=tally.runs.copy(),
        samples=seen,
        captimes=replay.plan.captime(tally.level, np.maximum(tally.n, 1) - 1),
        capping=(tally.utility_high - tally.utility_low) / started,
        crossed=0 if intervals is None else int(intervals.crossed.sum()),
        trace=trace,
        spending=dict(trace.spending),
        runs_everything=getattr(procedure, "runs_everything", False),
    )
