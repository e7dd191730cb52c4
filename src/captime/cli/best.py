"""`captime best`: the recommended configuration, ready to paste."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from captime.campaign.roster import configuration_of
from captime.cli.recorded import account_of_ledger, say_missing, scenario_of
from captime.errors import ScenarioError
from captime.ledger import ConfigRow, LedgerReader
from captime.programs.hints import did_you_mean
from captime.report.winner import FORMS, OTHER_NAMES, as_command
from captime.report.words import printable, statement
from captime.scenario import load_scenario

_COMMAND = "command"


def best_command(
    ledger: Annotated[Path, typer.Argument(help="The ledger of a campaign; it may be running.")],
    *,
    form: Annotated[
        str | None,
        typer.Option(
            "--as", metavar="FORM", help="command, json, python, toml, pcs, arguments or irace; all by default."
        ),
    ] = None,
    scenario: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The scenario, for the command; the ledger's by default.")
    ] = None,
    as_json_object: Annotated[bool, typer.Option("--json", help="Print one JSON object with all forms.")] = False,
) -> None:
    """Show the recommended configuration as command line, JSON, Python, TOML, PCS, arguments of wrappers, or for irace.

    Without --as, what is certified about it stands first.
    """
    form = None if form is None else _form(form)
    with LedgerReader(ledger) as reader:
        say_missing(reader.missing)
        certified = reader.last_certificate()
        if certified is None:
            raise ScenarioError(f"{ledger} has no certificate yet; go on with it first")
        row = reader.configs[certified.certificate.config]
        said = statement(account_of_ledger(reader, certified))
        path = scenario or scenario_of(reader, needed=form == _COMMAND)
    settings = row.settings.get("settings", row.settings)
    if not isinstance(settings, dict):
        raise ScenarioError(f"{ledger}: configuration {printable(row.name)} has no settings on record")
    found = {name: make(settings) for name, make in FORMS.items() if form in (None, name)}
    if path is not None and form in (None, _COMMAND):
        found = {_COMMAND: as_command(_words(path, row)), **found}
    if as_json_object:
        held = certified.certificate
        told = {
            "name": row.name,
            "statement": said,
            "epsilon": held.epsilon,
            "delta": held.delta,
            "gamma": held.gamma,
            "settings": settings,
            "forms": found,
        }
        typer.echo(json.dumps(told, indent=2))
    elif form is not None:
        typer.echo(found[form])
    else:
        typer.echo(said)
        for name, text in found.items():
            typer.echo(f"{name}:")
            typer.echo("\n".join(f"  {printable(line)}" for line in text.splitlines()))


def _form(typed: str) -> str:
    """The form that is meant, by any of its names."""
    form, known = OTHER_NAMES.get(typed, typed), (_COMMAND, *FORMS)
    if form not in known:
        near = did_you_mean(typed, (*known, *OTHER_NAMES))
        raise ScenarioError(f"--as is {typed!r}{near or '; it can be ' + ', '.join(known)}")
    return form


def _words(path: Path, row: ConfigRow) -> list[str]:
    """The command, with the instance left open; the seed is one among many."""
    alone = replace(load_scenario(path), candidates=(configuration_of(row),))
    return alone.program.command_line(0, "INSTANCE", 1)
