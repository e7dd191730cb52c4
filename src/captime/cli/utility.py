"""`captime utility`: look at a utility before using it, or get from a sentence to one."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from captime.cli.shared import say
from captime.errors import ScenarioError
from captime.report.charts.mpl import check_picture_path, draw_utility
from captime.utilities import UTILITIES, Utility, parse_utility
from captime.utilities.formula import duration_text, parse_duration
from captime.utilities.suggest import (
    UtilitySummary,
    deadline_at,
    from_prices,
    half_after,
    halving_every,
    summarise,
    worthless_after,
)

_WAYS = (
    "give a text like 'log-laplace(60, 1)', or one of --worthless-after 5min, --deadline 5min, "
    "--half-after 1min, "
    "--halving-every 1min, --pay-per-hour 2 --worth 1"
)


def utility_command(
    text: Annotated[
        str | None,
        typer.Argument(help="The utility, for example 'log-laplace(60, 1)' or 'uniform(5min)'.", show_default=False),
    ] = None,
    *,
    worthless_after_text: Annotated[
        str | None,
        typer.Option("--worthless-after", metavar="TIME", help="'Worthless after 5 minutes': uniform."),
    ] = None,
    deadline_text: Annotated[
        str | None,
        typer.Option("--deadline", metavar="TIME", help="'I need it by then, earlier is no better': step."),
    ] = None,
    half_after_text: Annotated[
        str | None,
        typer.Option("--half-after", metavar="TIME", help="'Half as good after a minute': log-laplace."),
    ] = None,
    halving_every_text: Annotated[
        str | None,
        typer.Option("--halving-every", metavar="TIME", help="'Loses half every minute': exponential."),
    ] = None,
    pay_per_hour: Annotated[
        float | None,
        typer.Option(metavar="PRICE", help="'I pay 2 EUR an hour ...': what an hour of computing costs."),
    ] = None,
    worth: Annotated[
        float | None,
        typer.Option(metavar="PRICE", help="'... and an answer is worth 1 EUR': uniform until they are equal."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw it to a .png, .pdf or .svg file."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
) -> None:
    """Show a utility: what an answer is worth after 1 s, 1 min, 1 h, ...

    From a sentence to a utility:

    "Worthless after 5 minutes" is --worthless-after 5min and gives
    uniform(300), which loses its worth evenly. If an answer just in time
    is as good as one at once, it is --deadline 5min and gives step(300).

    "I pay 2 EUR an hour and an answer is worth 1 EUR" is --pay-per-hour 2
    --worth 1 and gives uniform(1800): after half an hour the answer has cost
    what it is worth.

    "Half as good after a minute" is --half-after 1min and gives
    log-laplace(60, 1), which keeps a little worth for ever. If the same loss
    repeats every minute, it is --halving-every 1min, an exponential.

    "Full worth for 10 s, nothing after 10 minutes" is linear(10s, 10min), or
    geometric(10s, 10min) if each doubling of the time hurts the same.

    "We rank by PAR2 with a limit of 5000 s" is parc(5000, 2).

    "I know what it is worth at some moments" is
    tabulated(0:1, 10s:0.5, 1min:0).
    """
    sentences = {
        "--worthless-after": worthless_after_text,
        "--deadline": deadline_text,
        "--half-after": half_after_text,
        "--halving-every": halving_every_text,
    }
    utility = _chosen(text, sentences, pay_per_hour, worth)
    if plot is not None:
        check_picture_path(plot)
    summary = summarise(utility)
    if as_json:
        typer.echo(json.dumps(_as_json(summary), indent=2))
    else:
        _print(summary)
    if plot is not None:
        draw_utility(utility, plot)
        say(f"picture: {plot}")


def _chosen(
    text: str | None, sentences: dict[str, str | None], pay_per_hour: float | None, worth: float | None
) -> Utility:
    """The one utility the command line describes; none or several are refused."""
    given = [name for name, value in sentences.items() if value is not None]
    given += ["the text"] if text is not None else []
    given += ["--pay-per-hour and --worth"] if (pay_per_hour, worth) != (None, None) else []
    if not given:
        known = ", ".join(UTILITIES)
        raise ScenarioError(f"no utility is given; {_WAYS}. Texts begin with one of: {known}")
    if len(given) > 1:
        raise ScenarioError(f"{len(given)} utilities are given ({'; '.join(given)}), expected one; {_WAYS}")
    if text is not None:
        return parse_utility(text)
    if (pay_per_hour is None) != (worth is None):
        missing, there = ("--worth", "--pay-per-hour") if worth is None else ("--pay-per-hour", "--worth")
        raise ScenarioError(f"{there} is given without {missing}; both prices together make a utility")
    if pay_per_hour is not None and worth is not None:
        return from_prices(pay_per_hour, worth)
    makers: dict[str, Callable[[float], Utility]] = {
        "--worthless-after": worthless_after,
        "--deadline": deadline_at,
        "--half-after": half_after,
        "--halving-every": halving_every,
    }
    name = given[0]
    return makers[name](parse_duration(sentences[name] or "", name))


def _print(summary: UtilitySummary) -> None:
    # Markup and emoji are off: brackets and colons in a text are the user's, not Rich's.
    console = Console(markup=False, emoji=False, highlight=False)
    console.print(summary.text, style="bold", soft_wrap=True)
    console.print(f"worthless from: {duration_text(summary.zero_at)}")
    _print_table(
        console,
        ("time", "worth"),
        [(duration_text(seconds), f"{worth:.4g}") for seconds, worth in summary.worth_at],
    )
    _print_table(
        console,
        ("worth", "first reached after"),
        [(f"{worth:g}", duration_text(seconds)) for worth, seconds in summary.time_at],
    )


def _print_table(console: Console, headings: tuple[str, str], rows: list[tuple[str, str]]) -> None:
    # In a pipe columns and blanks are enough, and easier on the next program.
    table = Table(box=box.SIMPLE_HEAD if console.is_terminal else None)
    for heading in headings:
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _as_json(summary: UtilitySummary) -> dict[str, object]:
    """Infinity is not JSON: a moment that never comes is null."""
    return {
        "utility": summary.text,
        "zero_at": _finite(summary.zero_at),
        "worth_at": [{"seconds": seconds, "worth": worth} for seconds, worth in summary.worth_at],
        "time_at": [{"worth": worth, "seconds": _finite(seconds)} for worth, seconds in summary.time_at],
    }


def _finite(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) else None
