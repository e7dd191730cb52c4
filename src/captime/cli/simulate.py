"""`captime simulate`: a procedure on recorded runtimes, as if the programs were run."""

import json
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from captime.cli.shared import asking_to_stop, print_certificate, say
from captime.cli.simulate_on import Ground, ground_of, live_view
from captime.errors import CaptimeError, ScenarioError
from captime.procedures import PROCEDURES
from captime.procedures.baselines import BASELINES
from captime.report.charts.mpl import check_picture_path, curve_of, draw_epsilon
from captime.report.simulated import account_of_simulation, as_json
from captime.report.trace_story import check_trace_path, write_trace
from captime.report.words import printable, rounded_up
from captime.simulation import Simulation
from captime.sources.window import Accounting
from captime.utilities.durations import duration_text, parse_duration

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
        bool, typer.Option("--model/--no-model", help="On a space: a model proposes every second configuration.")
    ] = True,
    procedure: Annotated[str, typer.Option(help="Who decides; see `captime list`.")] = "race",
    compare: Annotated[
        str | None,
        typer.Option(metavar="NAME,NAME,…", help="Run several procedures on the same stream and compare their costs."),
    ] = None,
    delta: Annotated[float, typer.Option(help="Allowed probability of a wrong certificate.")] = 0.1,
    epsilon: Annotated[float, typer.Option(help="Stop once the answer is within this of the best.")] = 0.1,
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
        str, typer.Option(help="restart: a cut run is paid again in full; resume: only the extra time.")
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
        typer.Option(metavar="TIME|none", help="The table's own timeout, where the file does not say it."),
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
    as_json_object: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Find the best configuration of a recorded table or of a space, and say how sure one can be.

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
        curves = {name: curve_of(result.outcome.trace) for name, result in results.items()}
        draw_epsilon(curves, plot, f"{ground.name}, {utility}, delta = {delta:g}", [epsilon])
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
    print_certificate(account_of_simulation(shown), shown.table.notes)


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
