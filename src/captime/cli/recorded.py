"""What commands that read a ledger share: how it is named, and which scenario it belongs to."""

from pathlib import Path
from typing import Annotated, Literal, overload

import typer

from captime.cli.shared import say
from captime.errors import ScenarioError
from captime.ledger import LedgerReader
from captime.scenario import load_scenario

LedgerArgument = Annotated[
    Path, typer.Argument(help="The ledger, or the scenario it belongs to; a campaign may be writing to it.")
]
"""The argument of every command that reads a ledger; `ledger_of` makes a ledger of it."""


def say_missing(missing: str) -> None:
    """Say on stderr that what is shown is not all that was on record, if it is not."""
    if missing:
        say(f"captime: warning: {missing}. What is shown is an older state")


def ledger_of(named: Path) -> Path:
    """Return the ledger itself: as named, or the one that belongs to a scenario.

    Args:
        named: A ledger, or a scenario, which is a file whose name ends in `.toml`.
    """
    if named.suffix.lower() != ".toml":
        return named
    ledger = load_scenario(named).ledger
    if not ledger.exists():
        raise ScenarioError(
            f"{named}: its ledger {ledger} does not exist; expected the file that `captime run {named}` writes. Run it "
            "first, or name the ledger if it was begun with --ledger"
        )
    return ledger


@overload
def scenario_on_record(reader: LedgerReader, *, needed: Literal[True]) -> Path: ...


@overload
def scenario_on_record(reader: LedgerReader, *, needed: bool) -> Path | None: ...


def scenario_on_record(reader: LedgerReader, *, needed: bool) -> Path | None:
    """Return the scenario of the campaign's latest call, if it was a file that is still there.

    Args:
        reader: The ledger.
        needed: Complain if there is none.
    """
    named = [str(event.facts.get("scenario") or "") for event in reader.events() if event.kind in ("began", "resumed")]
    path = next((Path(name) for name in reversed(named) if name and Path(name).exists()), None)
    if path is None and needed:
        raise ScenarioError(
            f"{reader.path} does not name a scenario that is still there, so how to run the program is unknown; use "
            "--scenario FILE"
        )
    return path
