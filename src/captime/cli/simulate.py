"""`captime simulate`: a procedure on recorded runtimes, as if the programs were run."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import typer
from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from captime.certificate import Population
from captime.cli import AsJson
from captime.cli.shared import asking_to_stop, print_certificate, say
from captime.drive import Observer
from captime.errors import CaptimeError, ScenarioError
from captime.procedures import PROCEDURES
from captime.procedures.baselines import BASELINES
from captime.procedures.protocol import Procedure
from captime.report.charts.mpl import check_picture_path, draw_epsilon
from captime.report.simulated import as_json, check_trace_path, summary_of_simulation, write_trace
from captime.report.words import cpu_time, printable, rounded_up
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
from captime.simulation.on_space import Maker
from captime.simulation.result import BESIDE
from captime.sources import RuntimeTable, read_table
from captime.sources.replay import Replay
from captime.sources.window import Accounting
from captime.spaces import FORMATS, Proposer, Settings, Space, order_for, read_space
from captime.utilities import parse_utility
from captime.utilities.formula import duration_text, parse_duration

# What `captime simulate` runs on: a recorded table, a space with a surrogate, or a table whose rows are of a space.

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
        model: Whether a model proposes some of the configurations.
    """

    def make(wishes: dict[str, Any]) -> tuple[Maker, Target]:
        seed = wishes["seed"]
        if wishes["sampling"] == "given":
            raise ScenarioError("--sampling given means nothing with --surrogate, which draws instances; leave it out")
        # A claim about exactly these instances meets each of them once.
        wishes["sampling"] = "shuffle" if wishes.get("population") == Population.THESE else "replace"
        order = order_for(wishes["options"].get("effort"))
        maker = Proposer(space, seed, model=model, draws_first=order.draws_first, proposals=order.proposals)
        if table is not None:
            learnt = Learnt(space, table, settings, sampling=wishes["sampling"], seed=seed)
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


GOAL_REACHED = ("epsilon", "single")


def simulate_command(
    source: Annotated[
        Path,
        typer.Argument(
            help="Recorded runtimes: .npy, .npz, .csv, .parquet or an ASlib scenario folder. With --surrogate: a space."
        ),
    ],
    *,
    utility: Annotated[
        str,
        typer.Option(help="What an answer is worth, such as 'log-laplace(60, 1)'; see `captime utility --help`."),
    ],
    surrogate: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE|made-up",
            help="Search the space: learn from this table, or make runtimes up, to answer for it.",
        ),
    ] = None,
    space: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The rows of the table are random configurations of this space."),
    ] = None,
    configurations: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV file with the settings of the table's rows; left out, configlist.csv beside the table, or names.",
        ),
    ] = None,
    model: Annotated[
        bool, typer.Option("--model/--no-model", help="On a space: a model proposes some of the configurations.")
    ] = True,
    procedure: Annotated[str, typer.Option(help="Procedure that decides what to run; see `captime list`.")] = "race",
    compare: Annotated[
        str | None,
        typer.Option(metavar="NAME,NAME,…", help="Run several procedures on the same stream and compare their costs."),
    ] = None,
    delta: Annotated[float, typer.Option(help="Allowed probability of a wrong certificate.")] = 0.1,
    epsilon: Annotated[float, typer.Option(help="Target epsilon: stop once it is certified.")] = 0.1,
    captime_first: Annotated[str, typer.Option(metavar="TIME", help="The first captime of all configurations.")] = "1s",
    sampling: Annotated[
        str,
        typer.Option(help="shuffle: each instance once; given: as recorded; replace: with replacement, endless."),
    ] = "shuffle",
    population: Annotated[
        str,
        typer.Option(help="these: best on exactly these instances; drawn: in the distribution they were drawn from."),
    ] = "drawn",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sampling.")] = 0,
    accounting: Annotated[
        str, typer.Option(help="restart: a capped run is paid again in full; resume: only the extra time.")
    ] = "restart",
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="An option of the procedure; may be repeated."),
    ] = None,
    budget: Annotated[
        str | None, typer.Option(metavar="TIME", help="Stop once this much CPU time is spent, such as 10d.")
    ] = None,
    timeout: Annotated[
        str | None,
        typer.Option(metavar="TIME|none", help="Timeout of the recorded runs, if the file does not state it."),
    ] = None,
    unsafe_format: Annotated[
        str | None, typer.Option(metavar="pickle", help="Allow a format that is only read on request.")
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write every decision to a .jsonl, .csv or .parquet file."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw epsilon against CPU time to a .png, .pdf or .svg file."),
    ] = None,
    as_json_object: AsJson = False,
) -> None:
    """Find the best configuration of a recorded table or of a space, with a certificate.

    Exit code 0: the goal was reached. 3: stopped early, the certificate printed is valid. 2: something in the
    command or in the file is wrong.
    """
    if trace is not None:
        check_trace_path(trace)
    if plot is not None:
        check_picture_path(plot)
    names = [procedure] if compare is None else _names(compare, option)
    ground = ground_of(
        source,
        surrogate,
        space,
        model=model,
        timeout=_timeout(timeout),
        unsafe_format=unsafe_format,
        configurations=configurations,
    )
    wishes: dict[str, Any] = {
        "utility": utility,
        "delta": delta,
        "epsilon": epsilon,
        "captime_first": parse_duration(captime_first, "--captime-first"),
        "sampling": sampling,
        **({"population": population} if population != "drawn" else {}),
        "seed": seed,
        "accounting": cast("Accounting", accounting),
        "options": _options(option or []),
        "budget": np.inf if budget is None else parse_duration(budget, "--budget"),
    }
    results, refused = _run_all(names, ground, wishes, quiet=as_json_object)
    for name, reason in refused.items():
        say(f"captime: {name} is left out: {reason}")
    if trace is not None:
        for name, result in results.items():
            write_trace(result.outcome.trace, result.table.configs, trace if compare is None else _beside(trace, name))
    if plot is not None:
        traces = {name: result.outcome.trace for name, result in results.items()}
        draw_epsilon(traces, plot, f"{ground.name}, {utility}, delta = {delta:g}", epsilon)
    _print_results(results, compared=compare is not None, as_json_object=as_json_object)
    reached = all(result.outcome.stopped in GOAL_REACHED for result in results.values())
    raise typer.Exit(0 if reached and not refused else 3)


def _run_all(
    names: list[str], ground: Ground, wishes: dict[str, Any], *, quiet: bool
) -> tuple[dict[str, Simulation], dict[str, CaptimeError]]:
    """Every procedure on the same stream; among several, one that cannot do it is left out with its reason."""
    for name in names:
        if name not in PROCEDURES and name not in BASELINES:
            known = ", ".join(sorted((*PROCEDURES, *BASELINES)))
            more = "" if BASELINES else "; methods of other authors come with the package captime-research"
            raise ScenarioError(f"there is no procedure {name!r}; there are {known}{more}")
    results: dict[str, Simulation] = {}
    refused: dict[str, CaptimeError] = {}
    with asking_to_stop() as interrupted:
        for name in names:
            configs: list[str] = []
            title = f"{name} on {printable(ground.name)}"
            with live_view(ground.names or configs, title, wanted=not quiet) as observer:
                try:
                    results[name] = ground.run(name, configs, observer, interrupted, wishes)
                except ScenarioError as error:
                    refused[name] = error
    if not results:
        raise next(iter(refused.values()))
    return results, refused


def _print_results(results: dict[str, Simulation], *, compared: bool, as_json_object: bool) -> None:
    if as_json_object:
        objects = {name: as_json(result) for name, result in results.items()}
        typer.echo(json.dumps({"compare": objects} if compared else next(iter(objects.values()))))
        return
    if compared:
        print_comparison(results)
    shown = min(results.values(), key=_dearness)
    print_certificate(summary_of_simulation(shown), shown.table.notes)


def _dearness(result: Simulation) -> tuple[bool, bool, float]:
    """Smaller is better; a hypothetical procedure that pays nothing comes last."""
    return (result.cpu_seconds == 0, result.certificate.epsilon > result.epsilon, result.cpu_seconds)


def print_comparison(results: dict[str, Simulation]) -> None:
    """One line per procedure: what it certified and what that cost."""
    # Only who reached the goal, and paid for it, can be the cheapest.
    paid = [r.cpu_seconds for r in results.values() if r.cpu_seconds > 0 and r.outcome.stopped in GOAL_REACHED]
    least = min(paid, default=0.0)
    shown = Table(title="The same stream, several procedures", title_justify="left")
    for heading in ("procedure", "configuration", "epsilon", "CPU time", "runs", "times the least", "stopped"):
        shown.add_column(heading, justify="left" if heading in ("procedure", "configuration", "stopped") else "right")
    for name, result in results.items():
        shown.add_row(
            name,
            Text(printable(result.config_name)),
            rounded_up(result.certificate.epsilon),
            duration_text(result.cpu_seconds),
            f"{int(result.outcome.runs.sum()):,}",
            f"{result.cpu_seconds / least:.1f}" if least and result.cpu_seconds else "-",
            result.outcome.stopped,
        )
    # Wide enough for the names: a line that the terminal wraps reads better than cut words.
    Console(highlight=False, width=max(110, Console().width)).print(shown)


def _names(compare: str, option: list[str] | None) -> list[str]:
    """Procedures to compare; each at most once, and without options, which belong to one procedure."""
    names = [name.strip() for name in compare.split(",") if name.strip()]
    if not names or len(set(names)) < len(names):
        raise ScenarioError(f"--compare is {compare!r}; it has to be different names with commas, such as up,race")
    if option:
        raise ScenarioError("--option belongs to one procedure; leave it out with --compare, or run them one by one")
    return names


def _beside(path: Path, name: str) -> Path:
    """trace.csv and race become trace.race.csv."""
    return path.with_name(f"{path.stem}.{name}{path.suffix}")


def _timeout(text: str | None) -> float | None:
    if text is None:
        return None
    return np.inf if text.strip().lower() in ("none", "inf") else parse_duration(text, "--timeout")


def _options(pairs: list[str]) -> dict[str, str]:
    read: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise ScenarioError(f"--option is {pair!r}; it has to be NAME=VALUE, such as variant=paper")
        if name.strip() in read:
            raise ScenarioError(f"--option {name.strip()} is given twice; give it once")
        read[name.strip()] = value.strip()
    return read
