"""`captime compare`: two or more commands, no file, one sentence; with `--not-worse-by` the gate of a CI job."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.text import Text

from captime.cli import AsJson, Jobs, Quiet
from captime.cli.report import told_in
from captime.cli.shared import asking_to_stop, print_table, say
from captime.cli.validate import pattern_typed
from captime.comparison import Comparison, GateVerdict, compare
from captime.comparison.words import as_json, as_markdown, lines, sentence
from captime.errors import ScenarioDiffers, ScenarioError
from captime.report.campaigned import summary_and_table
from captime.report.charts.mpl import check_picture_path, print_charts
from captime.report.views.intervals import intervals_view
from captime.report.words import message, printable

CERTIFIED_WORSE = 8
"""Exit code of the gate."""
UNDECIDED = 3


def compare_command(
    commands: Annotated[
        list[str],
        typer.Argument(metavar="COMMAND…", help="Two or more, each in quotes, with {instance} where the file belongs."),
    ],
    *,
    instances: Annotated[
        list[str],
        typer.Option("--instances", "-i", metavar="PATTERN", help="A folder, or files: 'bench/*.cnf'."),
    ],
    half_after: Annotated[
        str | None, typer.Option(metavar="TIME", help="An answer is half as good after this time.")
    ] = None,
    deadline: Annotated[
        str | None, typer.Option(metavar="TIME", help="An answer is needed by then; earlier is no better.")
    ] = None,
    utility: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What an answer is worth, as in `captime utility`.")
    ] = None,
    not_worse_by: Annotated[
        float | None,
        typer.Option(
            metavar="MARGIN", help="The gate: is the second command worse than the first? It may be worth less by this."
        ),
    ] = None,
    at_least: Annotated[
        str | None,
        typer.Option(metavar="PERCENT", help="Is one of the two commands worth at least this much more, such as 10%?"),
    ] = None,
    epsilon: Annotated[
        float, typer.Option(help="Without a gate: stop once the best is certified to within this.")
    ] = 0.05,
    delta: Annotated[float, typer.Option(help="Allowed probability of a wrong statement.")] = 0.1,
    budget: Annotated[str | None, typer.Option(metavar="TIME", help="Stop after this wall-clock time.")] = None,
    name: Annotated[
        list[str] | None, typer.Option("--name", "-n", help="Name of a command; once for each, in order.")
    ] = None,
    answer: Annotated[
        str | None, typer.Option(metavar="REGEX", help="Pattern of a line with an answer; known solvers have one.")
    ] = None,
    exit_codes: Annotated[
        str | None, typer.Option(metavar="CODES", help="Exit codes of a run that has answered, such as 10,20.")
    ] = None,
    sampling: Annotated[
        Literal["replace", "shuffle"] | None,
        typer.Option(
            help="Left out: each file once if the commands take the same time again; the statement is about exactly "
            "these files. replace: drawn with replacement, likewise. shuffle: each once, and it is about all files "
            "that these are a fair sample of."
        ),
    ] = None,
    allow_duplicates: Annotated[
        bool, typer.Option("--allow-duplicates", help="Allow files with identical content; each counts.")
    ] = False,
    clock: Annotated[Literal["cpu", "wall"], typer.Option(help="Clock by which runs are capped and measured.")] = "cpu",
    jobs: Jobs = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Random seed; a fresh one by default.")] = None,
    ledger: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where every run is recorded; the same command resumes from it.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the utilities to a .png, .pdf or .svg file.")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a comment for a pull request.")] = False,
    as_json_object: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare commands on the same instances, and stop when the best of them is decided.

    Exit code 0: decided; with --not-worse-by: certified not worse. 8: certified worse. 3: undecided when the budget or
    the instances were used up; what is printed is valid. All other codes are those of `captime run`.
    """
    if markdown and as_json_object:
        raise ScenarioError("--markdown and --json both print to standard output; choose one of them")
    if plot is not None:
        check_picture_path(plot)
    codes = _codes(exit_codes)
    files = [pattern_typed(each) for each in instances]
    with asking_to_stop() as asked, _mistakes_are_no_verdicts():
        found = compare(
            commands,
            {"files": files},
            names=name or (),
            utility=utility,
            half_after=half_after,
            deadline=deadline,
            not_worse_by=not_worse_by,
            at_least=at_least,
            delta=delta,
            epsilon=epsilon,
            budget=budget,
            answer=answer,
            exit_codes=codes,
            sampling=sampling,
            allow_duplicates=allow_duplicates,
            clock=clock,
            jobs=jobs,
            seed=seed,
            ledger=ledger,
            progress=not (quiet or as_json_object),
            title="captime compare",
            say=_quietly if quiet else say,
            interrupted=asked,
        )
    if as_json_object:
        typer.echo(json.dumps(as_json(found), indent=2))
    elif markdown:
        typer.echo(as_markdown(found))
    else:
        _print(found)
    if plot is not None:
        _draw(found, plot)
    if found.campaign.trouble is not None:
        raise found.campaign.trouble
    if asked.signal is not None:
        raise typer.Exit(128 + asked.signal)
    if found.verdict is GateVerdict.WORSE:
        raise typer.Exit(CERTIFIED_WORSE)
    raise typer.Exit(0 if found.decided else UNDECIDED)


@contextmanager
def _mistakes_are_no_verdicts() -> Iterator[None]:
    """Turn exit code 3 of a ledger that belongs to another comparison into 2: here 3 is a verdict, undecided."""
    try:
        yield
    except ScenarioDiffers as error:
        raise ScenarioError(str(error)) from None


def _print(found: Comparison) -> None:
    """The sentence, the table, and what stands below."""
    console = Console(markup=False, highlight=False)
    summary, table = summary_and_table(found.campaign)
    console.print(sentence(found, summary), style="bold", soft_wrap=True)
    if table is not None:
        print_table(console, table)
    below = lines(found, summary)
    width = max(len(label) for label, _ in below)
    for label, value in below:
        # In full, however long: a ledger's name is there to be copied.
        console.print(Text.assemble((label.ljust(width), "dim"), "  ", message(value)), soft_wrap=True)


def _draw(found: Comparison, plot: Path) -> None:
    view = intervals_view(told_in(found.ledger))
    if view is None:
        raise ScenarioError(f"{printable(str(found.ledger))} has no runs yet, so there is nothing to draw")
    print_charts(view.shown(), plot)
    say(f"picture: {plot}")


def _quietly(words: str) -> None:
    """Print nothing."""


def _codes(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(each) for each in text.split(",")]
    except ValueError:
        raise ScenarioError(f"--exit-codes is {text!r}; expected whole numbers with commas, such as 10,20") from None
