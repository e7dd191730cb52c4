"""The live view of a simulation: epsilon, candidates, CPU time, best configuration. Only on a terminal, on stderr."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from captime.drive import Observer
from captime.procedures.protocol import Procedure
from captime.report.words import cpu_time, printable
from captime.sources.replay import Replay

_FRAMES_A_SECOND = 8


class _View:
    """Keeps a reference to the newest state; Rich draws it when a frame is due."""

    def __init__(self, configs: Sequence[str], title: str) -> None:
        self._configs = configs
        self._title = title
        self._seen: tuple[Procedure, Replay] | None = None

    def observe(self, procedure: Procedure, replay: Replay) -> None:
        self._seen = (procedure, replay)

    def __rich__(self) -> Panel:
        grid = Table.grid(padding=(0, 2))
        if self._seen is not None:
            procedure, replay = self._seen
            held = procedure.certificate()
            candidates = procedure.candidates
            left = int(np.count_nonzero(candidates))
            interval = f"[{held.utility_low:.3f}, {held.utility_high:.3f}]"
            for label, value in (
                ("epsilon", f"{held.epsilon:.4f}"),
                ("best so far", f"{printable(self._configs[held.config])}  utility in {interval}"),
                ("candidates", f"{left:,} of {len(candidates):,}"),
                ("CPU time", cpu_time(float(replay.tally.seconds.sum()))),
                ("runs", f"{int(replay.tally.runs.sum()):,}"),
            ):
                grid.add_row(Text(label, style="dim"), Text(value))
        return Panel(grid, title=Text(self._title), subtitle="Ctrl-C stops with what is certified so far", expand=False)


@contextmanager
def live_view(configs: Sequence[str], title: str, *, wanted: bool) -> Iterator[Observer | None]:
    """An observer that shows progress while inside; None where nobody is looking."""
    console = Console(stderr=True)
    if not (wanted and console.is_terminal):
        yield None
        return
    view = _View(configs, title)
    with Live(view, console=console, refresh_per_second=_FRAMES_A_SECOND, transient=True):
        yield view.observe
