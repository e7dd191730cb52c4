"""The readable end of a campaign, real or simulated, on stdout."""

from collections.abc import Sequence

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from captime.report.configuration_words import ROWS_SHOWN, as_text, caption, for_terminal, shown_rows
from captime.report.configurations import ConfigurationTable
from captime.report.words import Account, lines, message, printable, statement


def say(text: str) -> None:
    """Say something on stderr: escaped and not endless, whatever names it has in it."""
    typer.echo(message(text), err=True)


def print_certificate(account: Account, notes: Sequence[str] = (), table: ConfigurationTable | None = None) -> None:
    """Print the statement, the table of configurations, the numbers, and what the certificate rests on."""
    # Markup is off: square brackets in names are the user's, not Rich's.
    console = Console(markup=False, highlight=False)
    for note in notes:
        console.print(f"note: {printable(note)}", style="dim", soft_wrap=True)
    console.print(statement(account), style="bold", soft_wrap=True)
    if table is not None:
        print_table(console, table)
    grid = Table.grid(padding=(0, 2))
    for label, value in lines(account):
        grid.add_row(Text(label, style="dim"), Text(message(value)))
    console.print(grid)
    console.print("This rests on:", style="dim")
    for assumed in account.rests_on:
        console.print(f"  - {message(assumed)}", soft_wrap=True)


def print_table(console: Console, table: ConfigurationTable, most: int = ROWS_SHOWN) -> None:
    """Print the table of configurations and how to read it."""
    if console.is_terminal:
        console.print(for_terminal(table, most))
    else:
        # A pipe has no width: nothing is cut.
        console.print(as_text(table, most), soft_wrap=True)
    console.print(caption(table, len(shown_rows(table, most))), style="dim", soft_wrap=not console.is_terminal)
