"""`captime backup`: a copy of a ledger that may be in use."""

from pathlib import Path
from typing import Annotated

import typer

from captime.cli.printing import say
from captime.cli.recorded import LedgerArgument, ledger_of
from captime.ledger.backup import backup


def backup_command(
    ledger: LedgerArgument,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The copy; must not exist.")],
) -> None:
    """Copy a ledger as it is at one moment, complete in one file.

    Copying the file alone while a campaign runs would lose the newest rows.
    """
    ledger = ledger_of(ledger)
    rows = backup(ledger, output)
    say(f"{rows:,} rows copied to {output}")
