"""The command line: words and exit codes. One file per command; this door registers them and ends the process.

Exit codes: 0 goal reached, 1 our bug, 2 your words (usage, input), 3 stopped early with a valid certificate or the
scenario is another one than the ledger's, 4 the ledger is in use, 5 it is damaged, 6 the machine (disk, memory), 7
your program, 8 certified worse (`compare --not-worse-by`); 130 and 143 ended by a signal, with the certificate printed.
"""

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import getdoc, signature
from io import TextIOWrapper
from typing import Any

import typer
from rich.markup import escape
from typer.core import TyperGroup
from typer.models import ParameterInfo

from captime.cli.backup import backup_command
from captime.cli.best import best_command
from captime.cli.compare import compare_command
from captime.cli.dashboard import dashboard_command
from captime.cli.data import data_command
from captime.cli.demo import demo_command
from captime.cli.doctor import doctor_command
from captime.cli.experiment import experiment_command
from captime.cli.explain import explain_command
from captime.cli.export import export_command
from captime.cli.importing import import_command
from captime.cli.init import init_command
from captime.cli.judge import judge_command
from captime.cli.listing import list_command
from captime.cli.measure import measure_command
from captime.cli.plot import plot_command
from captime.cli.printing import say
from captime.cli.report import report_command
from captime.cli.run import run_command
from captime.cli.salvage import salvage_command
from captime.cli.schema import schema_command
from captime.cli.simulate import simulate_command
from captime.cli.space import space_command
from captime.cli.status import status_command
from captime.cli.utility import utility_command
from captime.cli.validate import validate_command
from captime.cli.verify import verify_command
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
from captime.report.words import message

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


class _Commands(TyperGroup):
    """Complaints about the command line quote it; they are shown as all messages are."""

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
            error.message = message(error.message)  # type: ignore[attr-defined] # looked at in the line above
        raise


app = typer.Typer(
    name="captime",
    cls=_Commands,
    help="Which configuration of my program is worth most to me, and how sure can I be?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _register(name: str, command: Callable[..., None]) -> None:
    """Add a command; square brackets in its help, as in [space], are the user's and no markup of Rich."""
    for parameter in signature(command).parameters.values():
        for info in getattr(parameter.annotation, "__metadata__", ()):
            if isinstance(info, ParameterInfo) and info.help is not None:
                info.help = escape(info.help)
    app.command(name, help=escape(getdoc(command) or ""))(command)


_register("init", init_command)
_register("import", import_command)
_register("doctor", doctor_command)
_register("run", run_command)
_register("compare", compare_command)
_register("measure", measure_command)
_register("validate", validate_command)
_register("judge", judge_command)
_register("explain", explain_command)
_register("best", best_command)
_register("backup", backup_command)
_register("export", export_command)
_register("salvage", salvage_command)
_register("status", status_command)
_register("report", report_command)
_register("plot", plot_command)
_register("dashboard", dashboard_command)
_register("verify", verify_command)
_register("simulate", simulate_command)
_register("utility", utility_command)
_register("space", space_command)
_register("schema", schema_command)
_register("experiment", experiment_command)
_register("data", data_command)
_register("list", list_command)
_register("demo", demo_command)


@app.callback(invoke_without_command=True)
def _version(
    ctx: typer.Context,
    *,
    version: bool = typer.Option(False, "--version", help="Print the version and exit.", is_eager=True),
) -> None:
    if version:
        from captime import __version__  # noqa: PLC0415 (the package's own front page would be a circle at the top)

        typer.echo(f"captime {__version__}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


def _plugin_problems() -> list[str]:
    from captime import PLUGIN_PROBLEMS  # noqa: PLC0415 (the package's own front page would be a circle at the top)

    return PLUGIN_PROBLEMS


def main() -> None:
    """Run a command and end the process with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows a question mark; that is no reason to stop.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    for problem in _plugin_problems():
        say(f"captime: {problem}.")
    try:
        # Typer ends the process itself: 0 or a command's own code, 2 for words it does not understand.
        app()
    except (InvariantViolated, ReplayDiverged) as error:
        say(f"captime: {error}. This is a bug in captime; please report it.")
        sys.exit(1)
    except CaptimeError as error:
        say(f"captime: {error}")
        sys.exit(next((code for kind, code in _CODES if isinstance(error, kind)), 2))
    except KeyboardInterrupt:
        # The second Ctrl-C: whoever insists is not kept waiting. What was committed is in the ledger.
        typer.echo("captime: interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # Somebody closed the pipe (`| head`): nothing to add, and nothing to complain about.
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        # What no reader or writer has told in its own words: a name that is too long, a folder that is no folder.
        named = "" if error.filename is None else f" ({os.fsdecode(error.filename)!r})"
        say(f"captime: the system refuses: {error.strerror or error}{named}. Check the names in the command")
        sys.exit(2 if error.errno in _WRONG_NAMES else 6)
