"""`captime init` and `captime import`: a scenario to fill in, for a known solver, or of another configurator."""

import json
from pathlib import Path
from typing import Annotated

import typer

from captime.cli import AsJson
from captime.errors import ScenarioError, StorageTrouble, UtilityError
from captime.report.words import message, printable
from captime.scenario import template
from captime.scenario.foreign import READERS, ScenarioDraft, read_foreign
from captime.scenario.presets import INSTALL, preset
from captime.scenario.template import SCHEMA_LINE, schema_text, write_schema
from captime.utilities import parse_utility

_NAME = "scenario.toml"


def init_command(
    directory: Annotated[
        Path, typer.Argument(help="Where to write it; a name ending in .toml is the file itself.")
    ] = Path(),
    *,
    solver: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"Begin with the command, answers, exit codes and parameter space of a solver: {', '.join(INSTALL)}.",
        ),
    ] = None,
) -> None:
    """Write a commented scenario, complete and valid, to fill in.

    With --solver it is ready for that solver, but for the instances and the
    utility. No scenario is ever overwritten. The schema for editors stands
    beside it, see `captime schema`.
    """
    path = directory if directory.suffix == ".toml" else directory / _NAME
    chosen = None if solver is None else preset(solver)
    texts = {path: SCHEMA_LINE + (template() if chosen is None else chosen.scenario)}
    if chosen is not None:
        texts |= {path.parent / name: text for name, text in chosen.companions.items()}
    write_new(texts)
    try:
        write_schema(path.parent)
    except OSError as error:
        raise StorageTrouble(f"{path.parent}: the schema cannot be written ({error.strerror})") from None
    beside = "".join(f" and {each}" for each in texts if each != path)
    if chosen is None:
        typer.echo(message(f"wrote {path}; fill it in, then: captime doctor {path}"))
        return
    typer.echo(message(f"wrote {path}{beside} for {chosen.name}; to get the solver: {chosen.install}"))
    typer.echo(message(f"fill in the instances and the utility, then run: captime doctor {path}"))


def write_new(texts: dict[Path, str]) -> None:
    """Write new files; refuse if one of them exists, before any is written."""
    for path in texts:
        if path.exists() or path.is_symlink():
            raise ScenarioError(f"{path} exists already and is left as it is; name another folder or file")
    for path, text in texts.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as stream:
                stream.write(text)
        except FileExistsError:
            raise ScenarioError(f"{path} exists already and is left as it is; name another folder or file") from None
        except OSError as error:
            raise StorageTrouble(f"{path} cannot be written ({error.strerror}); choose another folder") from None


def import_command(
    file: Annotated[
        Path, typer.Argument(help="A scenario of AClib, SMAC 2, ParamILS or irace, or SMAC3's scenario.json.")
    ],
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The scenario to write; never overwritten.")
    ] = Path("scenario.toml"),
    from_format: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="FORMAT", help=f"Input format (default: detected from the file): {', '.join(READERS)}."
        ),
    ] = None,
    utility: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What an answer is worth, such as 'log-laplace(60, 1)'.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Turn the scenario of another configurator into scenario.toml.

    Prints the choices made and what could not be converted.
    """
    if utility is not None:
        try:
            parse_utility(utility)
        except UtilityError as error:
            raise UtilityError(f"--utility: {error}") from None
    draft = read_foreign(file, output, from_format, utility)
    write_new({output: draft.text()} | {output.parent / name: text for name, text in draft.companions.items()})
    if as_json:
        typer.echo(json.dumps(_as_json(draft, output), indent=2, ensure_ascii=False))
        return
    for heading, sentences in (("decided", draft.decided), ("not carried over", draft.lost or ["nothing is missing"])):
        typer.echo(f"{heading}:")
        for each in sentences:
            typer.echo(message(f"  - {each}"))
    beside = "".join(f" and {output.parent / name}" for name in draft.companions)
    typer.echo(message(f"wrote {output}{beside}; look at it, then: captime doctor {output}"))


def _as_json(draft: ScenarioDraft, output: Path) -> dict[str, object]:
    files = [str(output), *(str(output.parent / name) for name in draft.companions)]
    return {"files": files, "decided": draft.decided, "not_carried_over": draft.lost}


# `captime schema`: the JSON schema of the scenario, for editors.


def schema_command(
    *,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write it there instead of printing it.")
    ] = None,
) -> None:
    """Print the JSON schema of scenario files, for editors that complete and check their fields.

    A first line `#:schema ./captime.schema.json` tells an editor with a TOML language server where it is; `captime
    init` writes both.
    """
    if out is None:
        typer.echo(schema_text(), nl=False)
        return
    try:
        out.write_text(schema_text(), encoding="utf-8")
    except OSError as error:
        raise StorageTrouble(f"{out} cannot be written ({error.strerror}); choose another file") from None
    typer.echo(printable(str(out)))
