"""`captime list` and `captime data`: members of the families, and the measured tables, one line each."""

import inspect
import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from captime.bounds import BOUNDS
from captime.cli import AsJson
from captime.errors import ScenarioError
from captime.procedures import PROCEDURES
from captime.procedures.baselines import BASELINES
from captime.procedures.problem import option_types
from captime.sources import read_table
from captime.sources.synthetic import datasheet, path_of, shipped_tables
from captime.utilities import UTILITIES


def list_command(*, as_json: AsJson = False) -> None:
    """Show utilities, bounds, procedures and installed baselines with one line each."""
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
        if not members:  # baselines are in the package of experiments
            continue
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


def data_command(
    action: Annotated[str, typer.Argument(help="list: all tables; path: the file of a table; about: its datasheet.")],
    name: Annotated[str | None, typer.Argument(help="Name of the table.")] = None,
    *,
    as_json_object: AsJson = False,
) -> None:
    """List the measured tables that come with captime: where they are, and how they were measured."""
    if action == "list":
        _list(as_json_object=as_json_object)
        return
    if action not in ("path", "about"):
        raise ScenarioError(f"captime data has no action {action!r}; there are list, path and about")
    if name is None:
        raise ScenarioError(f"captime data {action} needs the name of a table; captime data list has them")
    page = datasheet(name)
    if as_json_object:
        typer.echo(json.dumps({"name": name, "path": str(path_of(name)), "datasheet": str(page)}))
    else:
        typer.echo(str(path_of(name)) if action == "path" else page.read_text(encoding="utf-8"))


def _list(*, as_json_object: bool) -> None:
    tables = {name: read_table(path) for name, path in shipped_tables().items()}
    if as_json_object:
        told = {
            name: {
                "path": str(path_of(name)),
                "configurations": table.n_configs,
                "instances": table.n_instances,
                "timeout": table.limit,
                "cut": table.censored,
            }
            for name, table in tables.items()
        }
        typer.echo(json.dumps(told))
        return
    if not tables:
        typer.echo("no tables are shipped with this copy of captime", err=True)
        return
    shown = Table(title="Measured tables", title_justify="left")
    for heading in ("name", "configurations", "instances", "timeout", "runs cut"):
        shown.add_column(heading, justify="left" if heading == "name" else "right")
    for name, table in tables.items():
        cut = f"{table.censored:.1%}"
        shown.add_row(name, f"{table.n_configs}", f"{table.n_instances}", f"{table.limit:g} s", cut)
    Console(highlight=False).print(shown)
