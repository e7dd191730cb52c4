"""`captime schema`: the JSON schema of the scenario, for editors."""

from pathlib import Path
from typing import Annotated

import typer

from captime.errors import StorageTrouble
from captime.report.words import printable
from captime.scenario.template import schema_text


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
