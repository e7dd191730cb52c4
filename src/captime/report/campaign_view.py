"""The live view of a campaign: what is certified, what runs now, how long it may still take. On stderr.

On a terminal it is one panel that is drawn over itself; anywhere else, a plain line now and then.
"""

import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from rich.console import Console
from rich.control import Control
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from captime.campaign.assembly import Assembly
from captime.certificate import Certificate, Population
from captime.evidence import Evidence
from captime.executors.protocol import Executor
from captime.ledger import LedgerReader
from captime.ledger.ownership import SlotUse, read_slots
from captime.live import Observer
from captime.procedures.forecast import Forecast
from captime.procedures.protocol import Procedure
from captime.report.ledger_data import Pace, floor_of
from captime.report.words import (
    age_words,
    busy_words,
    cpu_time,
    gamma_words,
    printable,
    rounded_down,
    rounded_up,
    slot_names,
)
from captime.scenario.spec import CampaignQuestion
from captime.tally import Tally
from captime.utilities.formula import duration_text, rounded_time

_FRAMES_A_SECOND = 4
_SECONDS_BETWEEN_LINES = 10.0
_RUNS_SHOWN = 4
_SLOTS_SHOWN = 6
# Lines that are not slots; and the narrowest terminal with room for bars.
_OTHER_LINES = 14
_ROOM_FOR_BARS = 64
_BAR = 16
HINT = "Ctrl-C stops; the same command resumes"
"""Stands below the view."""
# One width for all frames, so that the frame stands still while numbers change.
_WIDEST = 88
# What a set can give is told in the first minutes; of larger sets working it out would hold up the runs.
_FIRST_MINUTES = 600.0
_LARGEST_FORECAST = 2000
_ABOUT = {Population.THESE: "exactly these instances", Population.DRAWN: "more like them"}


@dataclass(frozen=True, slots=True)
class SetForecast:
    """What a finite set of instances can give, as far as anything is known before and in the first minutes.

    Attributes:
        n_instances: How many there are.
        delta: Allowed probability of a wrong certificate.
        jobs: Number of runs at the same time.
    """

    n_instances: int
    delta: float
    jobs: int

    @classmethod
    def of(cls, question: CampaignQuestion, jobs: int) -> "SetForecast | None":
        """Return the outlook of a campaign; None on an endless stream."""
        length = question.stream.length
        return None if length is None else cls(length, question.delta, jobs)

    def rows(self, held: Certificate, goal: float, tally: Tally) -> list[tuple[str, str]]:
        """Return what the set can give, and after which time if every run takes as long as those so far."""
        if held.n_configs < 2 or self.n_instances > _LARGEST_FORECAST:
            return []
        forecast = Forecast(self.n_instances, held.n_configs, self.delta, population=held.population)
        runs, seconds = int(tally.runs.sum()), float(tally.seconds.sum())
        wait = ""
        if runs:
            left = forecast.to_run(goal) * held.n_configs * seconds / runs / self.jobs
            wait = f"at most about {duration_text(rounded_time(left))}"
        these, sample = forecast.claims(goal, wait=wait)
        return [("this set", these), ("", sample)]


class ProgressView:
    """Takes a copy of the numbers after laps; Rich draws them from its own thread when a frame is due.

    Args:
        names: Of the configurations that are known at the start.
        goal: The epsilon asked for; 0 for none.
        title: What stands above it.
        console: Where it is drawn; needed only on a terminal.
        seats: Tells what runs on which slot.
        gamma_goal: On a space, the gamma asked for; None for none.
        clock: Wall-clock seconds that earlier calls took.
        n_runs: Where all runs of a list are made and nothing is decided: how many there are.
        measured_on: Which clock runs are measured on, `cpu` or `wall`.
        more: Tells further lines, as (label, value).
        hint: Stands below the view.
        outlook: What the set of instances can give; None if it has no end.
    """

    def __init__(
        self,
        names: Sequence[str],
        goal: float,
        title: str,
        console: Console | None = None,
        seats: Callable[[], Sequence[SlotUse]] = tuple,
        *,
        gamma_goal: float | None = None,
        clock: float = 0.0,
        n_runs: int | None = None,
        measured_on: str = "cpu",
        more: Callable[[], Sequence[tuple[str, str]]] = tuple,
        hint: str = HINT,
        outlook: SetForecast | None = None,
    ) -> None:
        self._hint = hint
        self._outlook = outlook
        self._goal = goal
        self._measured_on = measured_on
        self._more = more
        self._clock = clock
        self._gamma_goal = gamma_goal
        self._n_runs = n_runs
        self._seats = seats
        self._names = names
        self._title = title
        self._console = console
        self._width = None if console is None else console.width
        self._pace = Pace(goal)
        self._next = 0.0
        self._began: float | None = None
        self._rows: list[tuple[str, str]] = [("starting", "slots, ledger, calibration")]
        self._under_way = ""

    def observe(self, procedure: Procedure, evidence: Evidence, executor: Executor) -> None:
        """The newest state; laps that come faster than frames are passed over."""
        moment = time.monotonic()
        if moment < self._next:
            return
        self._next = moment + 0.5 / _FRAMES_A_SECOND
        self._began = moment - self._clock - executor.now
        self._look(procedure, evidence, executor)

    def _look(self, procedure: Procedure, evidence: Evidence, executor: Executor) -> None:
        self._under_way = self._running(executor)
        tally = evidence.tally
        spent = cpu_time(float(tally.seconds.sum()), self._measured_on)
        if self._n_runs is not None:
            done = int((tally.n - tally.open).sum())
            self._rows = [("runs", f"{done:,} of {self._n_runs:,}   {spent}")]
            return
        held = procedure.certificate()
        left = int(np.count_nonzero(procedure.candidates))
        self._pace.note(self._clock + executor.now, held.epsilon)
        interval = f"[{rounded_down(held.utility_low, 3)}, {rounded_up(held.utility_high, 3)}]"
        rows = [
            ("epsilon", f"{rounded_up(held.epsilon)}   {self._pace.words(self._floor(held, tally))}".rstrip()),
            ("best so far", f"{self._name(held.config)}   utility in {interval}"),
            ("candidates", f"{left:,} of {max(len(procedure.candidates), held.n_configs):,}"),
            ("runs", f"{int(tally.runs.sum()):,}   {spent}"),
        ]
        if held.gamma is not None:
            goal = f"   (goal {self._gamma_goal:g})" if self._gamma_goal else ""
            rows.insert(1, ("gamma", f"{gamma_words(held, 3)}{goal}"))
        if held.other is not None:
            near = f"within {rounded_up(held.other.epsilon)}" if held.other.epsilon < 1.0 else "nothing yet"
            rows.insert(1, (_ABOUT[held.other.population], near))
        if self._outlook is not None and self._goal > 0.0 and self._clock + executor.now < _FIRST_MINUTES:
            rows += self._outlook.rows(held, self._goal, tally)
        self._rows = [*self._more(), *rows]

    def _floor(self, held: Certificate, tally: Tally) -> float:
        """Return what epsilon can fall to with all instances there are."""
        length = None if self._outlook is None else self._outlook.n_instances
        return floor_of(held.epsilon, int(tally.n[held.config]), length, held.population)

    def _name(self, config: int) -> str:
        # Pools grow: a configuration that came later has no name here.
        return printable(self._names[config]) if config < len(self._names) else f"configuration {config}"

    def _running(self, executor: Executor) -> str:
        under_way = sorted(executor.watch(), key=lambda run: -run[1])
        shown = [
            f"{self._name(request.config)} {seconds:.1f}/{request.captime:.3g} s"
            for request, seconds in under_way[:_RUNS_SHOWN]
        ]
        more = len(under_way) - len(shown)
        return "   ".join(shown) + (f"   and {more} more" if more > 0 else "") or "nothing"

    @property
    def line(self) -> str:
        """The same in one line."""
        return "  ".join(f"{label} {value}" for label, value in self._rows)

    def __rich__(self) -> Panel:
        self._clear_after_resize()
        grid = Table.grid(padding=(0, 2))
        for label, value in self._rows:
            grid.add_row(*_row(label, value))
        if self._began is not None:
            self._add_slots(grid)
        grid.add_row(*_row("time", self._time()))
        width = None if self._console is None else min(_WIDEST, self._console.width)
        return Panel(grid, title=Text(self._title), subtitle=Text(self._hint), width=width)

    def _add_slots(self, grid: Table) -> None:
        """What runs where, as of this frame, however long ago the last lap was."""
        seats, now = self._seats(), time.time_ns()
        if not seats:
            grid.add_row(*_row("running now", self._under_way))
            return
        grid.add_row(*_row("running now", busy_words(seats, 0)))
        height, width = (24, _WIDEST) if self._console is None else (self._console.height, self._console.width)
        busy = [each for each in zip(slot_names(seats), seats, strict=True) if each[1].run is not None]
        shown = busy[: max(0, min(_SLOTS_SHOWN, height - _OTHER_LINES))]
        for name, seated in shown:
            config, seconds, captime = seated.run[0] if seated.run else 0, seated.seconds(now), seated.captime
            limit = captime if math.isfinite(captime) else None
            value = f"{self._name(config)}  {age_words(seconds, limit)}"
            bar = [ProgressBar(captime, min(seconds, captime), _BAR)] if limit and width >= _ROOM_FOR_BARS else []
            grid.add_row(*_row(printable(name), value), *bar)
        if shown and len(busy) > len(shown):
            grid.add_row(*_row("", f"and {len(busy) - len(shown):,} more"))

    def _time(self) -> str:
        """Return a clock that also moves between updates."""
        return "" if self._began is None else f"{duration_text(float(int(time.monotonic() - self._began)))} so far"

    def _clear_after_resize(self) -> None:
        """A terminal that became narrower has wrapped the lines of the last frame; Rich would leave their rests."""
        if self._console is not None and self._console.width != self._width:
            self._width = self._console.width
            self._console.control(Control.clear(), Control.home())


def _row(label: str, value: str) -> tuple[Text, Text]:
    return (
        Text(label, style="dim", no_wrap=True, overflow="ellipsis"),
        Text(value, overflow="ellipsis", no_wrap=True),
    )


def _own_seats(ledger: Path) -> Sequence[SlotUse]:
    """What this very process has written down of its slots."""
    found = read_slots(ledger)
    return found.seats if found.pid == os.getpid() else ()


def _clock_on_record(ledger: Path | None) -> float:
    """Return what earlier calls took: CPU time, runs, epsilon and the clock continue from there."""
    if ledger is None or not ledger.exists():
        return 0.0
    with LedgerReader(ledger) as reader:
        return reader.clock()


def shown_progress(
    campaign: Assembly, title: str, *, n_runs: int | None = None
) -> AbstractContextManager[Observer | None]:
    """Return the view of a campaign: its goal and outlook, or how many of its runs are made.

    Args:
        campaign: Question, ledger and settings.
        title: What stands above it.
        n_runs: Where all runs of a list are made and nothing is decided: how many there are.
    """
    question = campaign.question
    decides = n_runs is None
    return campaign_view(
        question.names,
        question.epsilon if decides else 0.0,
        title,
        ledger=campaign.ledger,
        gamma_goal=question.goal.gamma if decides else None,
        n_runs=n_runs,
        measured_on=question.clock,
        outlook=SetForecast.of(question, campaign.settings.jobs) if decides else None,
    )


@contextmanager
def campaign_view(
    names: Sequence[str],
    goal: float,
    title: str,
    *,
    ledger: Path | None = None,
    gamma_goal: float | None = None,
    n_runs: int | None = None,
    measured_on: str = "cpu",
    more: Callable[[], Sequence[tuple[str, str]]] = tuple,
    hint: str = HINT,
    outlook: SetForecast | None = None,
) -> Iterator[Observer | None]:
    """An observer that shows progress while inside.

    Args:
        names: Of the configurations.
        goal: The epsilon asked for; 0 for none.
        title: What stands above it.
        ledger: Beside which the campaign tells what is on its slots.
        gamma_goal: On a space, the gamma asked for; None for none.
        n_runs: Where all runs of a list are made and nothing is decided: how many there are.
        measured_on: Which clock runs are measured on, `cpu` or `wall`.
        more: Tells further lines, as (label, value).
        hint: Stands below the view.
        outlook: What the set of instances can give; None if it has no end.
    """
    wishes: dict[str, Any] = {
        "more": more,
        "hint": hint,
        "gamma_goal": gamma_goal,
        "clock": _clock_on_record(ledger),
        "n_runs": n_runs,
        "measured_on": measured_on,
        "outlook": outlook,
    }
    console = Console(stderr=True)
    if console.is_terminal:
        seats = tuple if ledger is None else partial(_own_seats, ledger)
        view = ProgressView(names, goal, title, console, seats, **wishes)
        with Live(view, console=console, refresh_per_second=_FRAMES_A_SECOND, transient=True):
            yield view.observe
        return
    yield plain_lines(ProgressView(names, goal, title, **wishes), sys.stderr)


def plain_lines(view: ProgressView, out: TextIO) -> Observer:
    """An observer that writes a line now and then, the first one at once."""
    due = 0.0

    def write(procedure: Procedure, evidence: Evidence, executor: Executor) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + _SECONDS_BETWEEN_LINES
            view.observe(procedure, evidence, executor)
            out.write(f"captime: {view.line}\n")
            out.flush()

    return write
