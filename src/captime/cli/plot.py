"""`captime plot`: one figure of a campaign as a picture for a paper."""

from pathlib import Path
from typing import Annotated

import typer

from captime.cli.report import told_in, with_pairs
from captime.errors import ScenarioError
from captime.report.charts.print import print_charts
from captime.report.figures.canvas import check_picture_path
from captime.report.views.figures import FIGURES, OVERLAYS
from captime.report.words import printable


def plot_command(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=f"One of {', '.join(FIGURES)}.")],
    source: Annotated[
        list[Path],
        typer.Argument(
            metavar="LEDGER|SCENARIO|TRACE…",
            help="Ledgers, scenarios or traces; several for epsilon and runtimes.",
        ),
    ],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="A .png, .pdf or .svg file.")],
    pair: Annotated[
        list[str] | None, typer.Option(metavar="NAME,NAME", help="For the duel: these two configurations.")
    ] = None,
    part: Annotated[
        int | None,
        typer.Option(min=1, help="Where a figure has several charts: only this one; all side by side by default."),
    ] = None,
) -> None:
    """Draw one figure of a campaign, or the same figure of several, for a paper. Only reads."""
    if kind not in FIGURES:
        raise ScenarioError(f"there is no figure {kind!r}; there are {', '.join(FIGURES)}")
    if len(source) > 1 and kind not in OVERLAYS:
        raise ScenarioError(
            f"{kind} shows one campaign, but {len(source)} files are given; draw them one by one, or choose one of "
            f"{', '.join(OVERLAYS)}"
        )
    check_picture_path(out)
    stories = [told_in(each) for each in source]
    view = FIGURES[kind](stories)
    if view is None:
        raise ScenarioError(
            f"{printable(str(source[0]))} has nothing to say about {kind}: it has no runs, no settings or no utility "
            f"that can be read{', or `captime explain` was not run' if kind == 'ablation' else ''}; `captime report` "
            "shows the figures there are"
        )
    if pair:
        view = with_pairs(stories[0], [view], pair)[0]
    charts = view.shown()
    if part is not None:
        if part > len(view.charts):
            raise ScenarioError(f"--part is {part}, but {kind} has {len(view.charts)} charts; count from 1")
        charts = [view.charts[part - 1]]
    print_charts(charts, out)
    typer.echo(printable(str(out)))
