"""`captime plan`: how many instances an epsilon takes, before any run is made."""

import json
from typing import Annotated, Literal

import typer
from rich.console import Console

from captime.certificate import Population
from captime.cli import AsJson
from captime.procedures.forecast import EPSILONS, MOST_INSTANCES, SPREAD, Forecast

_USUAL = (50, 100, 200, 500, 1000)
_HEADER = ("instances", "epsilon", "of exactly these, to run", "as a sample, needed")


def plan_command(
    instances: Annotated[
        int | None, typer.Argument(metavar="N", help="Number of instances; a table of common sizes by default.")
    ] = None,
    *,
    configs: Annotated[int, typer.Option(help="Number of configurations compared.")] = 8,
    delta: Annotated[float, typer.Option(help="Allowed probability of a wrong certificate.")] = 0.1,
    epsilon: Annotated[
        list[float] | None, typer.Option(help="Target epsilon; may be repeated. Several common values by default.")
    ] = None,
    spread: Annotated[
        float, typer.Option(help="Standard deviation of the difference of two utilities on an instance.")
    ] = SPREAD,
    population: Annotated[
        Literal["these", "drawn"], typer.Option(help="What the goal of the campaign is about, as in a scenario.")
    ] = "these",
    as_json: AsJson = False,
) -> None:
    """Show how many instances an epsilon needs, for claims about exactly these and about more like them.

    The figures are those of the bounds that the race uses, for a leader and a rival that is exactly as good. Clear
    differences take fewer instances, and a leader that changes on the way takes more.
    """
    epsilons = tuple(dict.fromkeys(epsilon or EPSILONS))
    sizes = _USUAL if instances is None else (instances,)
    found = [Forecast(size, configs, delta, spread, Population(population)) for size in sizes]
    told = [each.as_json(epsilons) for each in found]
    if as_json:
        typer.echo(json.dumps(told if instances is None else told[0], indent=2))
        return
    console = Console(markup=False, highlight=False)
    console.print(
        f"{configs:,} configurations, delta {delta:g}, spread of differences {spread:g}; a rival exactly as good "
        "as the best",
        style="dim",
        soft_wrap=True,
    )
    rows = [_HEADER]
    for forecast in found:
        for each in epsilons:
            needed = forecast.needed(each)
            enough = f"over {MOST_INSTANCES:,}" if needed is None else f"{needed:,}"
            rows.append((f"{forecast.n_instances:,}", f"{each:g}", f"{forecast.to_run(each):,}", enough))
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER))]
    for row in rows:
        console.print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)), soft_wrap=True)
    for forecast in found:
        count, drawn = forecast.n_instances, forecast.drawn
        best = f"within {drawn:.2g} at best" if drawn < 1.0 else "nothing"
        console.print(
            f"All {count:,} run: about exactly these epsilon is 0; about more like them {best}.", soft_wrap=True
        )
