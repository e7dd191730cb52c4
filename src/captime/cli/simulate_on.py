"""What `captime simulate` runs on: a recorded table, a space with a surrogate, or a table whose rows are of a space."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from captime.drive import Observer
from captime.errors import ScenarioError
from captime.procedures.protocol import Procedure
from captime.report.words import cpu_time, printable
from captime.simulation import (
    Learnt,
    MadeUp,
    RowProposer,
    Rows,
    Simulation,
    Target,
    settings_of_list,
    settings_of_rows,
    simulate,
    simulate_on_space,
)
from captime.simulation.config_lists import BESIDE
from captime.simulation.on_space import Maker
from captime.sources import RuntimeTable, read_table
from captime.sources.replay import Replay
from captime.spaces import FORMATS, Proposer, Settings, Space, read_space
from captime.utilities import parse_utility

MADE_UP = "made-up"
"""The surrogate that needs no table."""
_SPACES = tuple(ending for each in FORMATS.values() for ending in each.endings)


@dataclass(frozen=True, slots=True)
class Ground:
    """Something to simulate on.

    Attributes:
        name: What to call it.
        run: `run(procedure, names, observer, interrupted, wishes)`: one simulation.
        names: The configurations' names, as far as they are known beforehand.
    """

    name: str
    run: Callable[[str, list[str], Observer | None, Callable[[], bool], dict[str, Any]], Simulation]
    names: Sequence[str] = ()


def on_table(table: RuntimeTable) -> Ground:
    """The rows of a table are the candidates."""

    def run(
        procedure: str,
        names: list[str],  # noqa: ARG001 (a table has its own)
        observer: Observer | None,
        interrupted: Callable[[], bool],
        wishes: dict[str, Any],
    ) -> Simulation:
        return simulate(table, procedure=procedure, observer=observer, interrupted=interrupted, **wishes)

    return Ground(table.name, run, table.configs)


def on_rows(table: RuntimeTable, space: Space, settings: Sequence[Settings], *, model: bool) -> Ground:
    """The rows of a table are random configurations of a space; a model may choose among half of them."""

    def make(wishes: dict[str, Any]) -> tuple[Maker, Target]:
        seed = wishes["seed"]
        maker = RowProposer(space, settings, seed, model=model)
        if maker.limit <= maker.n_listed:
            raise ScenarioError(
                f"{table.name} has {table.n_configs} rows and none that was drawn at random; expected more: captime "
                "measure --draws makes them"
            )
        return maker, Rows(space, table, settings, sampling=wishes["sampling"], seed=seed)

    return Ground(table.name, _on_space(make))


def on_surrogate(
    space: Space, surrogate: str, table: RuntimeTable | None, settings: Sequence[Settings] = (), *, model: bool
) -> Ground:
    """Something answers for every configuration of a space.

    Args:
        space: The space.
        surrogate: What was asked for, for messages.
        table: To learn from; None for a made-up target.
        settings: Of the rows of the table.
        model: Whether a model proposes every second configuration.
    """

    def make(wishes: dict[str, Any]) -> tuple[Maker, Target]:
        seed = wishes["seed"]
        if wishes["sampling"] == "given":
            raise ScenarioError("--sampling given means nothing with --surrogate, which draws instances; leave it out")
        wishes["sampling"] = "replace"
        maker = Proposer(space, seed, model=model)
        if table is not None:
            learnt = Learnt(space, table, settings, seed=seed)
            checked = learnt.validated(parse_utility(wishes["utility"]))
            learnt.law += "" if checked is None else f" {checked}"
            return maker, learnt
        # A default that is worth a half leaves room above and below.
        typical = float(parse_utility(wishes["utility"]).inverse(np.array(0.5)))
        return maker, MadeUp(space, typical, seed=seed)

    return Ground(f"{surrogate} surrogate" if table is None else f"{table.name}, learnt", _on_space(make))


def _on_space(
    make: Callable[[dict[str, Any]], tuple[Maker, Target]],
) -> Callable[[str, list[str], Observer | None, Callable[[], bool], dict[str, Any]], Simulation]:
    def run(
        procedure: str,
        names: list[str],
        observer: Observer | None,
        interrupted: Callable[[], bool],
        wishes: dict[str, Any],
    ) -> Simulation:
        own = dict(wishes)
        maker, target = make(own)
        return simulate_on_space(
            maker,
            target,
            # On a space the race is the one whose pool grows.
            procedure="pool" if procedure == "race" else procedure,
            observer=observer,
            interrupted=interrupted,
            names=names,
            **own,
        )

    return run


def ground_of(
    source: Path,
    surrogate: str | None,
    space: Path | None,
    *,
    model: bool,
    timeout: float | None,
    unsafe_format: str | None,
    configurations: Path | None = None,
) -> Ground:
    """What the words of the command mean.

    Args:
        source: The argument: a table, or with `surrogate` a space.
        surrogate: A table to learn from, or `made-up`.
        space: What the rows of the table are configurations of.
        model: Whether a model proposes configurations.
        timeout: The table's own.
        unsafe_format: A format that is only read on request.
        configurations: A list with the settings of the table's rows; left out, `configlist.csv` beside it, or names.
    """
    if surrogate is None:
        if source.suffix.lower() in _SPACES and source.is_file():
            raise ScenarioError(
                f"{source} is no table of runtimes. To search its space, add --surrogate made-up, or --surrogate "
                f"TABLE to learn from recorded runs; or name a table and add --space {source}"
            )
        table = read_table(source, timeout=timeout, unsafe_format=unsafe_format)
        if space is None:
            return on_table(table)
        known = read_space(space)
        return on_rows(table, known, _settings(known, table, source, configurations), model=model)
    if space is not None:
        raise ScenarioError(
            "--space and --surrogate do not go together: with --surrogate the argument is the space itself, as in "
            "captime simulate space.pcs --surrogate table.npz"
        )
    known = read_space(source)
    if surrogate == MADE_UP:
        return on_surrogate(known, surrogate, None, model=model)
    table = read_table(Path(surrogate), timeout=timeout, unsafe_format=unsafe_format)
    settings = _settings(known, table, Path(surrogate), configurations)
    return on_surrogate(known, surrogate, table, settings, model=model)


def _settings(space: Space, table: RuntimeTable, source: Path, configurations: Path | None) -> list[Settings]:
    """The settings of a table's rows: from the list that was named, from the one beside the table, or from names."""
    beside = source.parent / BESIDE
    listed = beside if configurations is None and beside.is_file() else configurations
    return settings_of_rows(space, table) if listed is None else settings_of_list(listed, space, table.n_configs)


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
    """Yield an observer that shows progress; None without a terminal."""
    console = Console(stderr=True)
    if not (wanted and console.is_terminal):
        yield None
        return
    view = _View(configs, title)
    with Live(view, console=console, refresh_per_second=_FRAMES_A_SECOND, transient=True):
        yield view.observe
