"""`captime space`: look at a parameter space, draw from it, write it in another format."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from captime.cli import AsJson
from captime.cli.shared import say
from captime.errors import ScenarioError
from captime.report.words import message
from captime.spaces import FORMATS, Settings, Space, read_space, section_of, write_space
from captime.spaces.clauses import clause_text
from captime.spaces.laws import Beta, Normal
from captime.spaces.parameters import Choice, Float, Parameter
from captime.spaces.values import text_of

# A space in a few lines: for people, and as a dictionary for programs.


def domain_text(parameter: Parameter) -> str:
    """The values of a parameter in one line."""
    if isinstance(parameter, Choice):
        shown = ", ".join(repr(choice) if choice == "" else text_of(choice) for choice in parameter.choices[:12])
        rest = f", … ({len(parameter.choices)} values)" if len(parameter.choices) > 12 else ""
        mark = " (weighted)" if parameter.weights is not None else ""
        return f"{{{shown}{rest}}}{mark}"
    marks = [word for word, there in (("log", parameter.log), (_prior(parameter), _prior(parameter))) if there]
    if isinstance(parameter, Float) and parameter.digits is not None:
        marks.append(f"{parameter.digits} digits")
    return f"{text_of(parameter.low)} … {text_of(parameter.high)}" + (f" ({', '.join(marks)})" if marks else "")


def _prior(parameter: Parameter) -> str:
    law = None if isinstance(parameter, Choice) else parameter.law
    return "normal prior" if isinstance(law, Normal) else "beta prior" if isinstance(law, Beta) else ""


def size_text(space: Space) -> str:
    """How many configurations there are, as far as that can be said."""
    if space.size is not None:
        return f"{space.size:,} configurations"
    if space.combinations is None:
        return "infinitely many configurations"
    return f"at most {_large(space.combinations)} configurations"


def _large(count: int) -> str:
    return f"{count:,}" if count < 10**9 else f"10^{len(str(count))}"


def counts_text(space: Space) -> str:
    """How many parameters of each kind, conditions and forbidden combinations."""
    kinds = [parameter.kind for parameter in space.parameters]
    by_kind = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    return (
        f"{len(kinds)} parameter{'s'[: len(kinds) != 1]} ({by_kind}), {len(space.conditions)} conditional, "
        f"{len(space.forbidden)} forbidden combination{'s'[: len(space.forbidden) != 1]}"
    )


def conditions_text(space: Space) -> list[str]:
    """The conditions, one line each."""
    return [f"{name} | {clause_text(clause)}" for name, clause in space.conditions.items()]


def forbidden_text(space: Space) -> list[str]:
    """The forbidden combinations, one line each."""
    return [f"{{{clause_text(clause)}}}" for clause in space.forbidden]


_WRITTEN = ", ".join(name for name, each in FORMATS.items() if each.write is not None)


def space_command(
    file: Annotated[Path, typer.Argument(help="The file: TOML, JSON, YAML, PCS or irace's parameters.txt.")],
    *,
    from_format: Annotated[
        str | None,
        typer.Option("--from", metavar="FORMAT", help="Input format (default: from the file name)."),
    ] = None,
    sample: Annotated[int, typer.Option(min=0, help="Draw this many random configurations.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Random seed for --sample.")] = 0,
    to_format: Annotated[
        str | None,
        typer.Option("--to", metavar="FORMAT", help=f"Write the space as one of {_WRITTEN}."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write it; left out, to the terminal."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Read a parameter space, show its contents, draw from it, or convert it.

    Understands the [space] section of a scenario, ConfigSpace's JSON and YAML,
    PCS files old and new, and irace's parameters.txt.
    """
    if to_format is None and output is not None:
        raise ScenarioError(f"-o {output} says where to write, but not what; add --to with one of {_WRITTEN}")
    if to_format is not None and (sample or as_json):
        raise ScenarioError("--to writes the space itself; ask for --sample or --json in a call of its own")
    if output is not None and output.exists() and file.exists() and output.samefile(file):
        raise ScenarioError(f"-o {output} is the file that is read; name another one, so that its comments are kept")
    space = read_space(file, from_format)
    for note in _notes(space):
        say(f"note: {note}")
    if to_format is not None:
        _convert(space, to_format, output)
        return
    draws = [space.draw(seed, number) for number in range(sample)]
    if as_json:
        typer.echo(json.dumps(_as_json(space, draws), indent=2, ensure_ascii=False))
    else:
        _print(space, draws)


def _notes(space: Space) -> list[str]:
    """What people should know of it."""
    if not space.default_is_forbidden:
        return list(space.notes)
    stands_in = (
        "the file gives no default for some parameters, and those assumed are forbidden together: the first random "
        "configuration stands in for the default. Better ones can be named in a scenario, as space.favourites"
    )
    return [*space.notes, stands_in]


def _convert(space: Space, to_format: str, output: Path | None) -> None:
    text = write_space(space, to_format)
    if output is None:
        typer.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as flaw:
        raise ScenarioError(f"{output} cannot be written ({flaw.strerror}); choose another place with -o") from None
    say(f"written: {output}")


def _as_json(space: Space, draws: list[Settings]) -> dict[str, object]:
    return {
        "space": section_of(space),
        "default": space.default,
        "size": space.size,
        "combinations": space.combinations,
        "notes": _notes(space),
        "samples": draws,
    }


def _print(space: Space, draws: list[Settings]) -> None:
    # Markup and emoji are off: brackets and colons are the file's, not Rich's.
    console = Console(markup=False, emoji=False, highlight=False)
    console.print(f"{counts_text(space)}; {size_text(space)}", soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD if console.is_terminal else None)
    for heading in ("parameter", "type", "values", "default"):
        table.add_column(heading, overflow="fold")
    for each in space.parameters:
        table.add_row(
            *map(
                message,
                (each.name, each.kind, domain_text(each), text_of(each.default) + " (assumed)"[: 10 * each.assumed]),
            )
        )
    console.print(table)
    for heading, lines in (("conditions", conditions_text(space)), ("forbidden", forbidden_text(space))):
        if lines:
            console.print(f"{heading}:")
            for line in lines:
                console.print(f"  {message(line)}", soft_wrap=True)
    if draws:
        console.print("draws:")
        for settings in draws:
            shown = " ".join(f"{name}={text_of(value)}" for name, value in settings.items())
            console.print(f"  {message(shown)}", soft_wrap=True)
