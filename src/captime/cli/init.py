"""`captime init`: a scenario to begin with, every field in it, and no questions asked."""

from pathlib import Path
from typing import Annotated

import typer

from captime.errors import ScenarioError, StorageTrouble
from captime.report.words import message
from captime.scenario import template

_NAME = "scenario.toml"


def init_command(
    directory: Annotated[
        Path, typer.Argument(help="Where to write it; a name ending in .toml is the file itself.")
    ] = Path(),
) -> None:
    """Write a commented scenario, complete and valid, to fill in.

    Nothing is ever overwritten.
    """
    path = directory if directory.suffix == ".toml" else directory / _NAME
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as stream:
            stream.write(template())
    except FileExistsError:
        raise ScenarioError(f"{path} exists already and is left as it is; name another folder or file") from None
    except OSError as error:
        raise StorageTrouble(f"{path} cannot be written ({error.strerror}); choose another folder") from None
    typer.echo(message(f"wrote {path}; fill it in, then: captime doctor {path}"))
