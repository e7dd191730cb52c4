"""What several commands share: how a result is printed, how a ledger is opened, and how a command ends on a signal."""

import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Annotated, Literal, overload

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from captime.campaign.assembly import Assembly
from captime.errors import ScenarioError
from captime.executors.protocol import signals_remembered
from captime.ledger import LedgerReader
from captime.live import Observer
from captime.report.campaign_view import shown_progress
from captime.report.configurations import ROWS_SHOWN, ConfigurationTable, as_text, caption, for_terminal, shown_rows
from captime.report.words import STOPPED, Summary, lines, message, printable, statement
from captime.scenario import load_scenario

# The readable end of a campaign, real or simulated, on stdout.


def say(text: str) -> None:
    """Say something on stderr: escaped and not endless, whatever names it has in it."""
    typer.echo(message(text), err=True)


def print_certificate(summary: Summary, notes: Sequence[str] = (), table: ConfigurationTable | None = None) -> None:
    """Print the statement, the table of configurations, the numbers, and what the certificate rests on."""
    # Markup is off: square brackets in names are the user's, not Rich's.
    console = Console(markup=False, highlight=False)
    for note in notes:
        console.print(f"note: {printable(note)}", style="dim", soft_wrap=True)
    console.print(statement(summary), style="bold", soft_wrap=True)
    if table is not None:
        print_table(console, table)
    grid = Table.grid(padding=(0, 2))
    for label, value in lines(summary):
        grid.add_row(Text(label, style="dim"), Text(message(value)))
    console.print(grid)
    console.print("This rests on:", style="dim")
    for assumed in summary.rests_on:
        console.print(f"  - {message(assumed.words)}", soft_wrap=True)


def print_table(console: Console, table: ConfigurationTable, most: int = ROWS_SHOWN) -> None:
    """Print the table of configurations and how to read it."""
    if console.is_terminal:
        console.print(for_terminal(table, most))
    else:
        # A pipe has no width: nothing is cut.
        console.print(as_text(table, most), soft_wrap=True)
    console.print(caption(table, len(shown_rows(table, most))), style="dim", soft_wrap=not console.is_terminal)


# Ctrl-C as a wish, not as an accident: the first one asks the loop to stop, the second one insists.

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# A queue signals every process of a job, and the job's script passes the signal on: that is one wish, not two.
_SAME_WISH_SECONDS = 5.0


class StopRequest:
    """Whether a stop was requested: call it.

    Attributes:
        signal: Number of the signal that did; None if none was.
    """

    def __init__(self) -> None:
        self.signal: int | None = None

    def __call__(self) -> bool:
        """Return True once a stop was requested."""
        return self.signal is not None


@contextmanager
def asking_to_stop() -> Iterator[StopRequest]:
    """While inside, the first Ctrl-C (or SIGTERM, or a closed terminal) only makes the yielded function return True."""
    asked = StopRequest()
    until = 0.0

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal until
        if asked.signal is None:
            asked.signal = number
            until = time.monotonic() + _SAME_WISH_SECONDS
        elif number == signal.SIGINT or time.monotonic() > until:
            signal.default_int_handler(number, frame)

    before = {number: signal.signal(number, note) for number in _SIGNALS}
    try:
        with signals_remembered():
            yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def clearing_up() -> Iterator[None]:
    """While inside, a first SIGTERM or a closed terminal ends the process as Ctrl-C does: what was begun is undone."""

    def leave(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 (the shape of a handler)
        signal.signal(number, signal.SIG_DFL)
        sys.exit(128 + number)

    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, leave) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


COMPLETE = "instances"
"""How ledgers call the end of a table on which nothing is missing."""
_ADVICE = {
    "budget": "The scenario's stop.cpu counts all runs in this ledger: raise it, and the same command resumes",
    "deadline": "That is the scenario's stop.wall or stop.until; the same command resumes",
}


def progress_of(
    campaign: Assembly, title: str, *, quiet: bool, n_runs: int | None = None
) -> AbstractContextManager[Observer | None]:
    """Show the progress of a campaign, unless it is not wanted; see `shown_progress`."""
    return nullcontext() if quiet else shown_progress(campaign, title, n_runs=n_runs)


def say_why(stopped: str) -> None:
    """On stderr, so that it is not missed where the output is read by a program."""
    if stopped != COMPLETE:
        advice = _ADVICE.get(stopped, "The same command resumes")
        typer.echo(f"captime: some runs are missing, because {STOPPED[stopped]}. {advice}.", err=True)


# What commands that read a ledger share: how it is named, and which scenario it belongs to.

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
