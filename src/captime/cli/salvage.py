"""`captime salvage`: what can be saved of a damaged ledger, in a new file."""

from pathlib import Path
from typing import Annotated

import typer

from captime.cli.recorded import ledger_of
from captime.ledger.backup import salvage
from captime.report.words import message


def salvage_command(
    ledger: Annotated[Path, typer.Argument(help="The damaged ledger, or its scenario; it is only read.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The new ledger; must not exist.")],
) -> None:
    """Copy the rows before the first damage into a new ledger, from which the campaign can be resumed.

    What was certified by then stays certified: a ledger that ends earlier is as valid as one that was stopped earlier.
    """
    saved = salvage(ledger_of(ledger), output)
    typer.echo(message(f"{saved.rows:,} rows saved to {output}"))
    typer.echo(message(f"It ends there because: {saved.damage}") if saved.damage else "Nothing was wrong with any row.")
