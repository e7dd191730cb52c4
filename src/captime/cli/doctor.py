"""`captime doctor`: is everything well, before hours are spent?"""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from captime.cli import AsJson
from captime.cli.shared import clearing_up
from captime.report.words import printable
from captime.scenario import load_scenario
from captime.scenario.checkup import Checkup, Finding, examine
from captime.utilities.formula import duration_text, parse_duration

_MARKS = {"well": ("✓", "green"), "note": ("·", "cyan"), "warning": ("!", "yellow"), "failed": ("✗", "red")}
_WIDTH = 14


def doctor_command(
    scenario: Annotated[Path, typer.Argument(help="The scenario, a TOML file; `captime init` writes one.")],
    *,
    captime: Annotated[str, typer.Option(metavar="TIME", help="Captime of the trial runs.")] = "5s",
    as_json_object: AsJson = False,
) -> None:
    """Check what a campaign depends on, with a few short runs of the program.

    Exit code 0: a campaign can be started. 7: the program cannot be used as it is. 6: the ledger cannot be written. 2:
    the scenario is wrong.
    """
    # Markup is off: square brackets in messages are the user's, not Rich's.
    console = Console(markup=False, highlight=False, emoji=False)
    seconds = parse_duration(captime, "--captime")
    found = load_scenario(scenario)
    with clearing_up():
        checkup = examine(found, seconds, (lambda _: None) if as_json_object else lambda each: _show(console, each))
    if as_json_object:
        typer.echo(json.dumps({"scenario": str(scenario), **checkup.as_json()}))
    else:
        _sum_up(console, checkup)
    raise typer.Exit(checkup.exit_code)


def _show(console: Console, finding: Finding) -> None:
    mark, colour = _MARKS[finding.level]
    line = Text(f"{mark} ", style=colour)
    line.append(f"{finding.check:<{_WIDTH}}", style="bold")
    line.append(printable(finding.found))
    console.print(line, soft_wrap=True)
    if finding.advice:
        console.print(Text(f"  {'':<{_WIDTH}}→ {printable(finding.advice)}", style=colour), soft_wrap=True)


def _sum_up(console: Console, checkup: Checkup) -> None:
    counts = {level: sum(finding.level == level for finding in checkup.findings) for level in _MARKS}
    took = f" ({duration_text(checkup.seconds)})"
    if not checkup.well:
        console.print(f"{counts['failed']} of {len(checkup.findings)} checks failed{took}", style="bold red")
    elif counts["warning"]:
        plural = "s" if counts["warning"] > 1 else ""
        console.print(f"Ready to run; {counts['warning']} warning{plural}{took}", style="bold yellow")
    else:
        console.print(f"All is well{took}", style="bold green")
