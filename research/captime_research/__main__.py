"""`captime-experiment` (or `python -m captime_research`): the figures of the papers on a table, as PDF, PNG and CSV."""

import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from captime.cli import main as run
from captime.errors import ScenarioError
from captime.report.charts.mpl import check_picture_path
from captime.sources.synthetic import shipped_tables, table_at
from captime.utilities.formula import parse_duration
from captime_research.bands import View, draw_bands
from captime_research.experiments import EXPERIMENTS
from captime_research.experiments.gap import CERTIFIED, IN_FORCE, marks_of, panels_of
from captime_research.experiments.rows import Row, bands, read_rows, write_rows
from captime_research.experiments.running import compute
from captime_research.experiments.setting import Setting

_TO_CERTIFY = "CPU time to certify, {unit}"
VIEWS = {
    "captime": View("captime κ, {unit}", _TO_CERTIFY),
    "epsilon": View("ε", _TO_CERTIFY),
    "utility": View("mean utility of the configuration", "CPU time spent on it, {unit}", cloud=True),
    "phase": View("ε of the phase", "CPU time until then, {unit}"),
    "time": View(
        "CPU time spent, {unit}",
        "relative gap to the best",
        log_x=True,
        log_y=0.01,
        other={CERTIFIED: "certified ε"},
    ),
}


def experiment_command(
    name: Annotated[str, typer.Argument(help=f"Which: {', '.join(EXPERIMENTS)}.")],
    *,
    data: Annotated[
        str, typer.Option(metavar="NAME|PATH", help="A table: a shipped one, a file, or an ASlib scenario folder.")
    ] = "",
    out: Annotated[Path, typer.Option(help="Folder for the pictures and the numbers.")] = Path("experiment-out"),
    seeds: Annotated[int, typer.Option(min=1, help="Repetitions; bands show the extremes.")] = 5,
    jobs: Annotated[int | None, typer.Option(min=1, help="Seeds at a time; as many as cores by default.")] = None,
    scale: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="κ0, the time scale of utilities and captimes; by the table's timeout."),
    ] = None,
    sampling: Annotated[
        str | None, typer.Option(help="shuffle: each instance once; replace: with replacement; by the table's size.")
    ] = None,
    timeout: Annotated[
        str | None, typer.Option(metavar="TIME", help="Timeout of the recorded runs, if the file does not state it.")
    ] = None,
    unsafe_format: Annotated[
        str | None, typer.Option(metavar="pickle", help="Allow a format that is only read on request.")
    ] = None,
    also: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Numbers of other methods to draw beside these; may be said several times."),
    ] = None,
    as_json_object: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Draw one of the papers' figures from recorded runtimes, with captime's race beside their methods.

    Writes NAME-TABLE.pdf, .png and .csv. The utilities' time scale follows the table's timeout and is stated on the
    picture.
    """
    if name not in EXPERIMENTS:
        raise ScenarioError(f"there is no experiment {name!r}; there are {', '.join(EXPERIMENTS)}")
    table = table_at(
        _chosen(data),
        timeout=None if timeout is None else parse_duration(timeout, "--timeout"),
        unsafe_format=unsafe_format,
    )
    kappa = None if scale is None else parse_duration(scale, "--scale")
    setting = Setting(table, kappa, sampling, EXPERIMENTS[name].delta)
    others = [row for path in also or () for row in _read(path)]
    base = out / f"{name}-{_safe(table.name)}"
    pictures = [base.with_name(f"{base.name}{suffix}") for suffix in (".pdf", ".png")]
    for picture in pictures:
        check_picture_path(picture)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ScenarioError(f"--out {out} cannot be a folder ({error.strerror}); choose another place") from error
    with _progress(f"{name} on {table.name}", seeds, quiet=as_json_object) as (bar, task):
        rows = compute(
            name,
            setting,
            seeds,
            jobs=jobs or os.cpu_count() or 1,
            progress=lambda done: bar.update(task, completed=done),
        )
    numbers = base.with_name(f"{base.name}.csv")
    write_rows(rows, numbers)
    if all(math.isnan(row.y) for row in rows):
        raise ScenarioError(f"{name} on {table.name}: no point could be computed: {rows[0].why}")
    _draw(name, [*rows, *others], pictures, setting.note, seeds)
    files = [str(path) for path in (*pictures, numbers)]
    if as_json_object:
        typer.echo(json.dumps({"experiment": name, "data": table.name, "scale": setting.scale, "files": files}))
    else:
        typer.echo("\n".join(files))


def _draw(name: str, rows: list[Row], pictures: list[Path], note: str, seeds: int) -> None:
    """The picture of an experiment, from its numbers."""
    view = VIEWS[EXPERIMENTS[name].x]
    # Means as in the paper that has this picture; costs are skewed, so medians elsewhere.
    by_time = EXPERIMENTS[name].x == "time"
    curves = bands([row for row in rows if not math.isnan(row.x) and row.panel != IN_FORCE], mean=by_time)
    middle = f"{'mean' if by_time else 'median'} of {seeds} seeds"
    full_note = f"{note}; {middle}{'' if view.cloud else ', bands: extremes'}"
    if not by_time:
        draw_bands(curves, pictures, view, full_note)
        return
    panels = panels_of(curves)
    marks = marks_of(rows, panels)
    draw_bands(panels, pictures, view, f"{full_note}{'; star: its guarantee holds from here' * bool(marks)}", marks)


def _read(path: Path) -> list[Row]:
    try:
        return read_rows(path)
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise ScenarioError(
            f"--also {path} cannot be read as the numbers of an experiment ({error}); expected a CSV file with the "
            "columns panel, label, seed, x, y, why"
        ) from error


def _chosen(data: str) -> str:
    """The table asked for, or the first shipped one."""
    if data:
        return data
    known = shipped_tables()
    if not known:
        raise ScenarioError("--data is missing, and no tables are shipped with this copy; name a table or a folder")
    return next(iter(known))


def _safe(name: str) -> str:
    """A name that can be part of a file's."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)[:80]


@contextmanager
def _progress(title: str, total: int, *, quiet: bool) -> Iterator[tuple[Progress, TaskID]]:
    """A bar on stderr, on terminals only."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("seeds"))
    with Progress(*columns, TimeElapsedColumn(), console=console, disable=quiet or not console.is_terminal) as bar:
        yield bar, bar.add_task(title, total=total)


app = typer.Typer(pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]})
app.command()(experiment_command)


def main() -> None:
    """Run the command and end the process as captime does."""
    run(app)


if __name__ == "__main__":
    main()
