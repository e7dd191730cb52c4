"""`captime report` and `captime plot`: a campaign as one page, and single figures of it for papers."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from captime.cli.shared import ledger_of, say_missing
from captime.errors import ScenarioError
from captime.report.charts.mpl import check_picture_path, print_charts
from captime.report.configurations import configuration_table
from captime.report.ledger_data import LedgerData, read_story
from captime.report.page import report_page, write_report
from captime.report.simulated import is_trace, read_trace_story
from captime.report.validated import Validated, validations_json, validations_of
from captime.report.views import FIGURES, OVERLAYS, View, figures_of
from captime.report.views.duel import duel_view
from captime.report.words import certificate_json, printable


def report_command(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="LEDGER|SCENARIO|TRACE",
            help="A ledger (a campaign may be writing to it), the scenario it belongs to, or a trace.",
        ),
    ],
    *,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="The page; beside the ledger by default.")
    ] = None,
    pair: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME,NAME", help="Compare these two configurations; may be repeated."),
    ] = None,
    validation: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="LEDGER",
            help="A ledger of `captime validate` to show; may be repeated. Those beside the ledger by default.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the numbers behind all figures as one JSON object instead.")
    ] = False,
) -> None:
    """Write a report on a campaign into one HTML file that needs nothing else. Only reads."""
    story = told_in(source)
    views = with_pairs(story, figures_of(story), pair or [])
    held_out = validations_of(story, validation)
    if as_json:
        typer.echo(json.dumps(_numbers(story, views, held_out)))
        return
    path = out or story.path.with_suffix(".html")
    try:
        write_report(report_page(story, views, held_out), path)
    except OSError as error:
        raise ScenarioError(
            f"the report {path} cannot be written ({error.strerror or error}); choose another place with -o"
        ) from error
    typer.echo(printable(str(path)))


def told_in(source: Path) -> LedgerData:
    """Return the story of a ledger, of a scenario's ledger or of a trace; the suffix tells them apart."""
    story = read_trace_story(source) if is_trace(source) else read_story(ledger_of(source))
    say_missing(story.missing)
    return story


def with_pairs(story: LedgerData, views: list[View], pairs: list[str]) -> list[View]:
    """The same figures, with these comparisons in place of the usual ones."""
    if not pairs:
        return views
    wanted = [_pair(story, text) for text in pairs]
    made = duel_view(story, wanted)
    if made is None:
        raise ScenarioError(f"--pair {pairs[0]}: there is no instance that both were run on, so nothing to compare")
    return [made if view.name == made.name else view for view in views]


def _pair(story: LedgerData, text: str) -> tuple[int, int]:
    # Names may have commas in them: every way of cutting the text in two is tried.
    places = [place for place, character in enumerate(text) if character == ","]
    known = {name: config for config, name in enumerate(story.names)}
    for place in places:
        first, second = text[:place].strip(), text[place + 1 :].strip()
        if first in known and second in known and first != second:
            return known[first], known[second]
    raise ScenarioError(
        f"--pair is {text!r}, expected two different configurations with a comma between them, such as "
        f"{story.names[0]!r} and {story.names[-1]!r}"
    )


def _numbers(story: LedgerData, views: list[View], held_out: Sequence[Validated]) -> dict[str, object]:
    table = configuration_table(story)
    return {
        "source": str(story.path),
        "certificate": None if story.certificate is None else certificate_json(story.certificate, story.names),
        "missing": story.missing or None,
        "configurations": list(story.names),
        "table": None if table is None else table.as_json(),
        "validations": validations_json(held_out),
        "figures": {
            view.name: {
                "title": view.title,
                "caption": view.caption,
                "table": None
                if view.table is None
                else {"columns": list(view.table.columns), "rows": [list(row) for row in view.table.rows]},
                **view.numbers,
            }
            for view in views
        },
    }


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
