"""What a ledger says about its certificate, in the shape that words are made from. Nothing here asks a procedure."""

from pathlib import Path
from typing import Annotated, Literal, overload

import typer

from captime.cli.shared import say
from captime.errors import ScenarioError
from captime.ledger import Certified, LedgerReader
from captime.report.ledger_words import bound_on_record
from captime.report.words import Account, cpu_time, draws_among, seeds_of
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


def account_of_ledger(reader: LedgerReader, certified: Certified, stopped: str = "") -> Account:
    """A certificate of a ledger with what there is to tell about it.

    Args:
        reader: The ledger.
        certified: One of its certificates.
        stopped: Why the campaign ended, or that it is running; in words.
    """
    scenario, configs = reader.scenario, reader.configs
    options, clock = scenario.get("options"), scenario.get("clock")
    runs = sum(count for count, _ in reader.counts().values())
    return Account(
        certificate=certified.certificate,
        names=[config.name for config in configs],
        utility=str(scenario.get("utility", "a utility that is not on record")),
        procedure=str(scenario.get("procedure", "a procedure that is not on record")),
        options=options if isinstance(options, dict) else {},
        bound=bound_on_record(scenario),
        rounds=certified.rounds,
        runs=runs,
        cost=f"{cpu_time(certified.cpu_seconds, clock)}, {runs:,} runs",
        left=certified.candidates,
        stopped=stopped,
        rests_on=(),
        pool=len(configs),
        draws=draws_among([config.origin for config in configs], certified.certificate.n_configs),
        seeds=seeds_of(scenario),
    )


@overload
def scenario_of(reader: LedgerReader, *, needed: Literal[True]) -> Path: ...


@overload
def scenario_of(reader: LedgerReader, *, needed: bool) -> Path | None: ...


def scenario_of(reader: LedgerReader, *, needed: bool) -> Path | None:
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
