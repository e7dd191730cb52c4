"""`captime list`: what there is, one line each."""

import inspect
import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from captime.bounds import BOUNDS
from captime.procedures import PROCEDURES
from captime.procedures.baselines import BASELINES
from captime.procedures.options import option_types
from captime.utilities import UTILITIES


def list_command(*, as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False) -> None:
    """Show utilities, bounds, procedures and baselines with one line each."""
    families = {
        "utilities": {name: _first_line(member) for name, member in UTILITIES.items()},
        "bounds": {name: member.summary for name, member in BOUNDS.items()},
        "procedures": {name: _with_options(member) for name, member in PROCEDURES.items()},
        "baselines": {name: _with_options(member.search) for name, member in BASELINES.items()},
    }
    if as_json:
        typer.echo(json.dumps(families, ensure_ascii=False))
        return
    console = Console(markup=False, highlight=False)
    for family, members in families.items():
        console.print(Text(family, style="bold"))
        grid = Table.grid(padding=(0, 2))
        for name, about in members.items():
            grid.add_row(Text(f"  {name}"), Text(about))
        console.print(grid)


def _first_line(member: Any) -> str:
    return (inspect.getdoc(member) or "").partition("\n")[0]


def _with_options(member: Any) -> str:
    options = ", ".join(option_types(member))
    return _first_line(member) + (f" Options: {options}." if options else "")
