"""The live view of a campaign: what is certified, what runs now, how long it may still take. On stderr.

On a terminal it is one panel that is drawn over itself; anywhere else, a plain line now and then.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from captime.evidence import Evidence
from captime.executors.protocol import Executor
from captime.live import Observer
from captime.procedures.protocol import Procedure
from captime.report.pace import Pace
from captime.report.words import cpu_time, printable
from captime.utilities.durations import duration_text

_FRAMES_A_SECOND = 4
_SECONDS_BETWEEN_LINES = 10.0
_RUNS_SHOWN = 4


class _View:
    """Takes a copy of the numbers after each lap; Rich draws them from its own thread when a frame is due."""

    def __init__(self, names: Sequence[str], goal: float, title: str) -> None:
        self._names = names
        self._title = title
        self._pace = Pace(goal)
        self._rows: list[tuple[str, str]] = [("starting", "slots, ledger, calibration")]

    def observe(self, procedure: Procedure, evidence: Evidence, executor: Executor) -> None:
        """The newest state."""
        held, tally = procedure.certificate(), evidence.tally
        left = int(np.count_nonzero(procedure.candidates))
        now = executor.now
        self._pace.note(now, held.epsilon)
        interval = f"[{held.utility_low:.3f}, {held.utility_high:.3f}]"
        rows = [
            ("epsilon", f"{held.epsilon:.4f}   {self._pace.words()}".rstrip()),
            ("best so far", f"{printable(self._names[held.config])}   utility in {interval}"),
            ("candidates", f"{left:,} of {held.n_configs:,}"),
            (
                "runs",
                f"{int(tally.runs.sum()):,}   {cpu_time(float(tally.seconds.sum()))}   {duration_text(now)} so far",
            ),
            ("running now", self._running(executor)),
        ]
        if held.gamma is not None:
            rows.insert(1, ("gamma", f"{held.gamma:.3f}"))
        self._rows = rows

    def _running(self, executor: Executor) -> str:
        under_way = sorted(executor.watch(), key=lambda run: -run[1])
        shown = [
            f"{printable(self._names[request.config])} {seconds:.1f}/{request.captime:.3g} s"
            for request, seconds in under_way[:_RUNS_SHOWN]
        ]
        more = len(under_way) - len(shown)
        return "   ".join(shown) + (f"   and {more} more" if more > 0 else "") or "nothing"

    @property
    def line(self) -> str:
        """The same in one line."""
        return "  ".join(f"{label} {value}" for label, value in self._rows[:4])

    def __rich__(self) -> Panel:
        grid = Table.grid(padding=(0, 2))
        for label, value in self._rows:
            grid.add_row(Text(label, style="dim"), Text(value, overflow="ellipsis", no_wrap=True))
        hint = "Ctrl-C stops with what is certified so far; the same command goes on later"
        return Panel(Group(grid), title=Text(self._title), subtitle=hint, expand=False)


@contextmanager
def campaign_view(names: Sequence[str], goal: float, title: str, *, quiet: bool) -> Iterator[Observer | None]:
    """An observer that shows progress while inside; None where nobody wants it."""
    if quiet:
        yield None
        return
    console = Console(stderr=True)
    view = _View(names, goal, title)
    if console.is_terminal:
        with Live(view, console=console, refresh_per_second=_FRAMES_A_SECOND, transient=True):
            yield view.observe
        return
    last = time.monotonic()

    def plain(procedure: Procedure, evidence: Evidence, executor: Executor) -> None:
        nonlocal last
        if time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            view.observe(procedure, evidence, executor)
            sys.stderr.write(f"captime: {view.line}\n")
            sys.stderr.flush()

    yield plain
