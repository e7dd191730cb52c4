"""`captime verify`: whether a ledger is whole, and whether its certificate follows from its rows."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from captime.campaign.transfer import learned_words
from captime.cli import AsJson
from captime.cli.shared import LedgerArgument, ledger_of
from captime.errors import LedgerDamaged
from captime.ledger import LedgerReader
from captime.report.ledger_words import summary_of_ledger
from captime.report.words import certificate_json, printable, statement
from captime.skeptic import Audit, Trust, audit_of

_NOT_VERIFIABLE, _DAMAGED = 3, 5


def verify_command(
    ledger: LedgerArgument,
    *,
    trust: Annotated[
        list[Trust] | None,
        typer.Option(help="What may be taken on trust: orders, dates, draws, listing or scenario; may be repeated."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check every row of a ledger, then derive its newest certificate again from the rows alone.

    Exit code 0: the ledger is whole and supports its certificate. 3: it is whole, but this certificate cannot be
    checked here, or the ledger leaves something open that only --trust accepts. 5: a row was changed, removed or added,
    rows contradict each other or the scenario, or the certificate says more than the rows do.
    """
    ledger = ledger_of(ledger)
    try:
        with LedgerReader(ledger) as reader:
            found = audit_of(reader, trust or ())
            if as_json:
                typer.echo(json.dumps(_as_json(ledger, found, reader), indent=2))
            else:
                _print(found, reader)
    except LedgerDamaged as error:
        if not as_json:
            raise
        typer.echo(json.dumps({"ledger": str(ledger), "verdict": "refuted", "problem": str(error)}, indent=2))
        raise typer.Exit(_DAMAGED) from None
    raise typer.Exit(_NOT_VERIFIABLE if found.verdict == "not-verifiable" else 0)


def _as_json(ledger: Path, found: Audit, reader: LedgerReader) -> dict[str, object]:
    certified, names = found.certified, [config.name for config in reader.configs]
    return {
        "ledger": str(ledger),
        "verdict": found.verdict,
        "problem": found.why or None,
        "checked": list(found.account),
        "trusted": list(found.trusted),
        "rows": found.rows,
        "head": found.head,
        "certificate": None if certified is None else certificate_json(certified.certificate, names),
        "certificate_row": None if certified is None else certified.sequence,
        "learned": learned_words(reader.events()) or None,
    }


_VERDICTS = {
    "confirmed": "Confirmed: the rows are whole, and the newest certificate follows from them.",
    "nothing": "The rows are whole. No certificate has been written yet.",
    "not-verifiable": "The rows are whole, but the certificate could NOT be verified: {}.",
}


def _print(found: Audit, reader: LedgerReader) -> None:
    console = Console(markup=False, highlight=False)
    console.print(_VERDICTS[found.verdict].format(printable(found.why)), style="bold", soft_wrap=True)
    if found.certified is not None:
        console.print(statement(summary_of_ledger(reader, found.certified)), soft_wrap=True)
    learned = learned_words(reader.events())
    if learned:
        console.print(printable(learned), soft_wrap=True)
    console.print("What was checked:", style="dim")
    for each in found.account:
        console.print(f"  - {printable(each)}", soft_wrap=True)
    if found.trusted:
        console.print("What was taken on trust:", style="dim")
    for each in found.trusted:
        console.print(f"  - {printable(each)}", soft_wrap=True)
    console.print(f"head {found.head}", style="dim", soft_wrap=True)
