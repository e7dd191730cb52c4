"""`captime best`: the recommended configuration, ready to paste."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from captime.campaign.changes import configuration_of
from captime.certificate import Certificate
from captime.cli.shared import LedgerArgument, ledger_of, say_missing, scenario_on_record
from captime.errors import ScenarioError
from captime.ledger import ConfigRow, LedgerReader
from captime.programs import FunctionProgram
from captime.programs.protocol import did_you_mean
from captime.report.ledger_words import summary_of_ledger
from captime.report.words import printable, statement
from captime.scenario import load_scenario
from captime.skeptic.audit import CONFLICT

Settings = Mapping[str, Any]


def as_json(settings: Settings) -> str:
    """One JSON object."""
    return json.dumps(dict(settings), ensure_ascii=False)


def as_python(settings: Settings) -> str:
    """A dictionary."""
    return repr(dict(settings))


def as_toml(settings: Settings) -> str:
    """An inline table, for `[configurations]` or the favourites of a `[space]`."""
    inside = ", ".join(f"{_key(name)} = {_toml(value)}" for name, value in settings.items())
    return f"{{ {inside} }}" if inside else "{}"


def as_pcs(settings: Settings) -> str:
    """`name='value'` with commas between, as SMAC prints configurations of the space in a PCS file."""
    return ", ".join(f"{name}='{_escaped(' '.join(_words(value)))}'" for name, value in settings.items())


def as_arguments(settings: Settings) -> str:
    """`-name 'value'` as wrappers of ParamILS, SMAC and AClib take them, quoted for a shell."""
    return " ".join(quote(word) for name, value in settings.items() for word in (f"-{name}", *_words(value)))


def as_irace(settings: Settings) -> str:
    """A line of names and a line of values, as irace's file of initial configurations has them."""
    values = ['"' + " ".join(_words(value)).replace('"', r"\"") + '"' for value in settings.values()]
    return "\n".join((" ".join(settings), " ".join(values)))


def as_command(words: Sequence[str]) -> str:
    """A command line, quoted for a shell."""
    return " ".join(quote(word) for word in words)


FORMS: dict[str, Callable[[Settings], str]] = {
    "json": as_json,
    "python": as_python,
    "toml": as_toml,
    "pcs": as_pcs,
    "arguments": as_arguments,
    "irace": as_irace,
}
"""Forms that need nothing but the settings."""


def can_say(form: str, settings: Settings) -> bool:
    """Return whether a form has words for these settings: settings of functions may be nested, or None."""
    if form in ("json", "python"):
        return True
    if form == "toml":
        return not _has_none(settings)
    return all(not isinstance(part, Mapping | list) and part is not None for part in _parts(settings))


def _parts(settings: Settings) -> list[Any]:
    """Return the values, and those inside lists of words, which are the only lists that command lines have."""
    return [part for value in settings.values() for part in (value if isinstance(value, list) else [value])]


def _has_none(value: Any) -> bool:
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return value is None or any(map(_has_none, inner))


OTHER_NAMES = {"dict": "python", "command-line": "command", "shell": "command", "call": "command", "smac": "pcs"}
"""What people call some forms, too."""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", r"\'")


def _words(value: Any) -> list[str]:
    if isinstance(value, list):
        return [str(each) for each in value]
    return [str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, float) else str(value)]


def _key(name: str) -> str:
    bare = name.replace("-", "").replace("_", "").isalnum() and name.isascii()
    return name if bare else json.dumps(name)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return as_toml(value)
    if isinstance(value, list):
        return f"[{', '.join(_toml(each) for each in value)}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


_COMMAND, _CALL, _NAME = "command", "call", "name"
_OWN = ("command", "answer", "exit_codes")
"""What a configuration may have beside its settings, if several programs are compared."""
_OF_SETTINGS = ("pcs", "arguments", "irace")
"""Forms that know settings and nothing else."""


def best_command(
    ledger: LedgerArgument,
    *,
    form: Annotated[
        str | None,
        typer.Option(
            "--as", metavar="FORM", help="name, command, json, python, toml, pcs, arguments or irace; all by default."
        ),
    ] = None,
    scenario: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The scenario, for the command; the ledger's by default.")
    ] = None,
    as_json_object: Annotated[bool, typer.Option("--json", help="Print one JSON object with all forms.")] = False,
) -> None:
    """Show the recommended configuration: its name, command line, JSON, Python, TOML, PCS, or for irace.

    Without --as, the certificate is printed first. A configuration with a command of its own has it in JSON,
    Python and TOML, too.
    """
    form = None if form is None else _form(form)
    ledger = ledger_of(ledger)
    with LedgerReader(ledger) as reader:
        say_missing(reader.missing)
        certified = reader.last_certificate()
        if certified is None:
            raise ScenarioError(f"{ledger} has no certificate yet; resume the campaign first")
        row = reader.configs[certified.certificate.config]
        said = statement(summary_of_ledger(reader, certified))
        if any(note.kind == CONFLICT and note.sequence > certified.sequence for note in reader.events()):
            typer.echo(
                f"captime: {ledger}: after this certificate two configurations contradicted each other, so one of them "
                "is wrong and nothing is certified; see what `captime verify` says",
                err=True,
            )
        path = scenario or scenario_on_record(reader, needed=form == _COMMAND)
    settings = row.settings.get("settings", row.settings)
    if not isinstance(settings, dict):
        raise ScenarioError(f"{ledger}: configuration {printable(row.name)} has no settings on record")
    own = {} if settings is row.settings else {name: row.settings[name] for name in _OWN if name in row.settings}
    if form in FORMS and not can_say(form, settings):
        raise ScenarioError(
            f"--as {form} has no words for the settings of {printable(row.name)}, some of which are nested or None; "
            "choose json or python"
        )
    found = {
        name: make(settings if name in _OF_SETTINGS else {**own, **settings})
        for name, make in FORMS.items()
        if form == name
        or (form is None and can_say(name, settings) and (settings or name not in _OF_SETTINGS or not own))
    }
    if path is not None and form in (None, _COMMAND):
        found = {**_started(path, row), **found}
    if form in (None, _NAME):
        found = {_NAME: row.name, **found}
    if as_json_object:
        held = certified.certificate
        told = {
            "name": row.name,
            "statement": said,
            "epsilon": held.epsilon,
            "delta": held.delta,
            "gamma": held.gamma,
            "population": held.population.value,
            "instances": held.instances,
            "instances_run": held.instances_run,
            "other": None if held.other is None else _other(held.other),
            "settings": settings,
            "forms": found,
        }
        typer.echo(json.dumps(told, indent=2))
    elif form is not None:
        typer.echo(found[form] if form in found else found[_CALL])
    else:
        typer.echo(said)
        for name, text in found.items():
            typer.echo(f"{name}:")
            typer.echo("\n".join(f"  {printable(line)}" for line in text.splitlines()))


def _other(claim: Certificate) -> dict[str, object]:
    return {"population": claim.population.value, "epsilon": claim.epsilon, "delta": claim.delta}


def _form(typed: str) -> str:
    """The form that is meant, by any of its names."""
    form, known = OTHER_NAMES.get(typed, typed), (_NAME, _COMMAND, *FORMS)
    if form not in known:
        near = did_you_mean(typed, (*known, *OTHER_NAMES))
        raise ScenarioError(f"--as is {typed!r}{near or '; it can be ' + ', '.join(known)}")
    return form


def _started(path: Path, row: ConfigRow) -> dict[str, str]:
    """The command or the call, with the instance left open; the seed is one among many."""
    program = replace(load_scenario(path), candidates=(configuration_of(row),)).program
    words = program.command_line(0, "INSTANCE", 1)
    if isinstance(program, FunctionProgram):
        return {_CALL: words[0].replace("'INSTANCE'", "INSTANCE")}
    return {_COMMAND: as_command(words)}
