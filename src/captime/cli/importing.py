"""`captime import`: the scenario of another tool as one of captime's, and what became of every line of it."""

import json
from pathlib import Path
from typing import Annotated

import typer

from captime.cli.init import write_new
from captime.errors import UtilityError
from captime.report.words import message
from captime.scenario.foreign import READERS, Draft, read_foreign
from captime.utilities import parse_utility


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
        typer.Option("--from", metavar="FORMAT", help=f"Its format, if it is not seen: {', '.join(READERS)}."),
    ] = None,
    utility: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What an answer is worth, such as 'log-laplace(60, 1)'.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Turn the scenario of another configurator into scenario.toml.

    Says what was decided on the way and what could not be carried over.
    """
    if utility is not None:
        try:
            parse_utility(utility)
        except UtilityError as error:
            raise UtilityError(f"--utility: {error}") from None
    draft = read_foreign(file, output.parent, from_format, utility)
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


def _as_json(draft: Draft, output: Path) -> dict[str, object]:
    files = [str(output), *(str(output.parent / name) for name in draft.companions)]
    return {"files": files, "decided": draft.decided, "not_carried_over": draft.lost}
