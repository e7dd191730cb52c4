"""The command line: words and exit codes. One file per command, imported when it is used; this door names them.

Exit codes: 0 goal reached, 1 our bug, 2 your words (usage, input), 3 stopped early with a valid certificate or the
scenario is another one than the ledger's, 4 the ledger is in use, 5 it is damaged, 6 the machine (disk, memory), 7
your program, 8 certified worse (`compare --not-worse-by`); 130 and 143 ended by a signal, with the certificate printed.
"""

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from inspect import getdoc, signature
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import ParameterInfo

from captime import __version__
from captime.errors import (
    CaptimeError,
    InvariantViolated,
    LedgerDamaged,
    LedgerInUse,
    MachineUnfit,
    ReplayDiverged,
    ScenarioDiffers,
    StorageTrouble,
    TargetProgramError,
)

_CODES: tuple[tuple[type[CaptimeError], int], ...] = (
    (ScenarioDiffers, 3),
    (LedgerInUse, 4),
    (LedgerDamaged, 5),
    (StorageTrouble, 6),
    (MachineUnfit, 6),
    (TargetProgramError, 7),
)
"""Who has to act decides the code; everything else on purpose is your words, 2."""

_WRONG_NAMES = {errno.ENAMETOOLONG, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EINVAL, errno.ELOOP}

# Options that mean the same in several commands.
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Number of runs at the same time.")]
Oversubscribe = Annotated[bool, typer.Option("--oversubscribe", help="Allow more jobs than cores.")]
Values = Annotated[
    str | None, typer.Option(metavar="JSON", help="Where instances are values: a JSON list, or a file that holds one.")
]
Captime = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Captime of every run; by default the time at which the utility is 0.01."),
]
ScenarioFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The scenario; the one that the ledger names by default.")
]


COMMANDS: dict[str, str] = {
    "init": "Write a commented scenario, complete and valid, to fill in.",
    "import": "Turn the scenario of another configurator into scenario.toml.",
    "doctor": "Check what a campaign depends on, with a few short runs of the program.",
    "plan": "Show how many instances an epsilon needs, for claims about exactly these and about more like them.",
    "run": "Find the best configuration of a program, with a certificate. Run the same command again to resume.",
    "compare": "Compare commands on the same instances, and stop when the best of them is decided.",
    "measure": "Run all configurations on all instances, and write a table for `simulate`. Run it again to resume.",
    "validate": "Run chosen configurations on held-out instances: utilities and improvement with their bounds.",
    "judge": "Race incumbents of other tuners on held-out instances, and compare the winner with the default.",
    "explain": "Show which settings carry the gain: a path from the default to the winner, with bounds.",
    "best": "Show the recommended configuration: its name, command line, JSON, Python, TOML, PCS, or for irace.",
    "backup": "Copy a ledger as it is at one moment, complete in one file.",
    "export": "Write one line per finished run: configuration, instance, seed, captime, verdict, times, memory.",
    "salvage": "Copy the rows before the first damage into a new ledger, from which the campaign can be resumed.",
    "status": "Show the certificate, its cost, the runs under way and the latest events. Only reads.",
    "report": "Write a report on a campaign into one HTML file that needs nothing else. Only reads.",
    "plot": "Draw one figure of a campaign, or the same figure of several, for a paper. Only reads.",
    "dashboard": "Show a campaign on a local web page that follows it. Only reads; Ctrl-C ends it.",
    "verify": "Check every row of a ledger, then derive its newest certificate again from the rows alone.",
    "simulate": "Find the best configuration of a recorded table or of a space, with a certificate.",
    "utility": "Show a utility: what an answer is worth after 1 s, 1 min, 1 h, ...",
    "space": "Read a parameter space, show its contents, draw from it, or convert it.",
    "schema": "Print the JSON schema of scenario files, for editors that complete and check their fields.",
    "data": "List the measured tables that come with captime: where they are, and how they were measured.",
    "list": "Show utilities, bounds, procedures and installed baselines with one line each.",
    "demo": "Configure a real SAT solver on generated instances, and show what a certificate looks like.",
}
"""Commands and their lines in `captime --help`; a line is the first paragraph of the command's docstring.

To add one: a line here, and `NAME_command` in a file of its name.
"""

_FILES = {
    "backup": "export",
    "dashboard": "status",
    "data": "listing",
    "import": "init",
    "list": "listing",
    "plot": "report",
    "salvage": "export",
    "schema": "init",
}
"""Files of commands that share one, or whose name means something else in Python."""


class _Commands(TyperGroup):
    """Commands that are imported when they are used; complaints about the command line quote it, printable."""

    def __init__(self, **extra: Any) -> None:
        super().__init__(**extra)
        self.commands = {name: TyperCommand(name, help=_plain(line)) for name, line in COMMANDS.items()}
        self._listing = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command; while commands are only listed, its name and line without its module."""
        listed = super().get_command(ctx, cmd_name)
        return listed if listed is None or self._listing else command_of(cmd_name)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False

    def make_context(self, *args: Any, **extra: Any) -> Any:
        with _escaped():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        with _escaped():
            return super().invoke(ctx)


@contextmanager
def _escaped() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        # Complaints of the command line's own library: their class is not part of what Typer exports.
        if isinstance(getattr(error, "message", None), str) and hasattr(error, "format_message"):
            from captime.report.words import message  # noqa: PLC0415 (with the library; not for --version)

            error.message = message(error.message)  # type: ignore[attr-defined] # looked at in the line above
        raise


def _plain(text: str) -> str:
    """Escape square brackets in help texts, as in [space]: they are the user's and no markup of Rich."""
    return text.replace("[", r"\[")


def function_of(name: str) -> Callable[..., None]:
    """Import a command of `COMMANDS`, and the plugins it may meet."""
    try:
        for problem in import_module("captime.plugins").load_once():
            _say(f"captime: {problem}.")
        function: Callable[..., None] = getattr(
            import_module(f"captime.cli.{_FILES.get(name, name)}"), f"{name}_command"
        )
    except KeyboardInterrupt:
        sys.exit(130)  # while modules are being loaded, there is nothing to tell
    return function


@cache
def command_of(name: str) -> Any:
    """Return a command of `COMMANDS` as the command line calls it."""
    function = function_of(name)
    for parameter in signature(function).parameters.values():
        for info in getattr(parameter.annotation, "__metadata__", ()):
            if isinstance(info, ParameterInfo) and info.help is not None:
                info.help = _plain(info.help)
    alone = typer.Typer(add_completion=False)
    alone.command(name, help=_plain(getdoc(function) or ""))(function)
    return typer.main.get_command(alone)


def _say(text: str) -> None:
    from captime.cli.shared import say  # noqa: PLC0415 (with the library; not for --version)

    say(text)


app = typer.Typer(
    name="captime",
    cls=_Commands,
    help="Which configuration of my program is worth most to me, and how sure can I be?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def _version(
    ctx: typer.Context,
    *,
    version: bool = typer.Option(False, "--version", help="Print the version and exit.", is_eager=True),
) -> None:
    if version:
        typer.echo(f"captime {__version__}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


def main(program: Callable[[], object] = app) -> None:
    """Run a command and end the process with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows a question mark; that is no reason to stop.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        # Typer ends the process itself: 0 or a command's own code, 2 for words it does not understand.
        program()
    except (InvariantViolated, ReplayDiverged) as error:
        _say(f"captime: {error}. This is a bug in captime; please report it.")
        sys.exit(1)
    except CaptimeError as error:
        _say(f"captime: {error}")
        sys.exit(next((code for kind, code in _CODES if isinstance(error, kind)), 2))
    except KeyboardInterrupt:
        # The second Ctrl-C: the process ends at once. What was committed is in the ledger.
        typer.echo("captime: interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # The reader closed the pipe (`| head`): nothing to add, and nothing to complain about.
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        # What no reader or writer has told in its own words: a name that is too long, a folder that is no folder.
        named = "" if error.filename is None else f" ({os.fsdecode(error.filename)!r})"
        _say(f"captime: the system refuses: {error.strerror or error}{named}. Check the names in the command")
        sys.exit(2 if error.errno in _WRONG_NAMES else 6)
