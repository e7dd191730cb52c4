"""Why runs of a table are missing: commands that make all runs of a list say so when a scenario's rule ended them."""

import typer

from captime.report.stopped import STOPPED

COMPLETE = "instances"
"""How ledgers call the end of a table on which nothing is missing."""
_ADVICE = {
    "budget": "The scenario's stop.cpu counts all runs in this ledger: raise it, and the same command goes on",
    "deadline": "That is the scenario's stop.wall or stop.until; the same command goes on",
}


def say_why(stopped: str) -> None:
    """On stderr, so that it is not missed where the output is read by a program."""
    if stopped != COMPLETE:
        advice = _ADVICE.get(stopped, "The same command goes on")
        typer.echo(f"captime: some runs are missing, because {STOPPED[stopped]}. {advice}.", err=True)
