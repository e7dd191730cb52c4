"""What all formats share: lines and fields, their places in messages, and what a format cannot say."""

import math
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from captime.errors import ScenarioError
from captime.files import read_limited
from captime.spaces.clauses import Clause, both
from captime.spaces.parameters import Parameter
from captime.spaces.space import Space
from captime.spaces.values import Value

# Files that are read line by line: where a line is, what is wrong with it, and the space that comes of them all.

# Real spaces have some hundred kilobytes; what is longer than this is something else.
_LARGEST = 32 << 20


class LineError(ScenarioError):
    """What is wrong with a line of a file; the message names both."""


def text_in(path: Path) -> str:
    """The text of a file; bytes that are none are named by their line."""
    try:
        data = read_limited(path, _LARGEST)
    except OSError as flaw:
        raise ScenarioError(
            f"{path.name}: cannot be read ({flaw.strerror}), expected a file with a parameter space"
        ) from None
    except ValueError as flaw:
        raise ScenarioError(f"{path.name!r} is no name of a file ({flaw}); correct it") from None
    with suppress(UnicodeDecodeError):
        return data.decode("utf-8-sig")
    if path.suffix.lower() not in (".toml", ".json", ".yaml", ".yml"):
        # Comments may be in any encoding: real files have names such as Chvátal in them.
        data = re.sub(rb"#[^\r\n]*", b"#", data)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as flaw:
        line = data[: flaw.start].count(b"\n") + 1
        raise ScenarioError(
            f"{path.name}, line {line}: found the byte {data[flaw.start]:#04x}, which is no UTF-8 text; save the file "
            "as UTF-8"
        ) from None


def numbered(text: str) -> Iterator[tuple[int, str]]:
    """The lines that say something, with their numbers from 1; # begins a comment."""
    # Only the line ends of text files: str.splitlines would also count form feeds and their like.
    for number, line in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        content = line.partition("#")[0].strip()
        if content:
            yield number, content


@dataclass(slots=True)
class Draft:
    """What was read so far: declarations at once, clauses when all declarations are known.

    Attributes:
        file: the name of the file, for errors.
        parameters: by name, with the number of the line that declares each.
        conditions: child, number of the line, and what reads its clause.
        forbidden: number of the line, and what reads its clause.
        notes: what people should know.
    """

    file: str
    parameters: dict[str, tuple[int, Parameter]] = field(default_factory=dict)
    conditions: list[tuple[str, int, Callable[[dict[str, Parameter]], Clause]]] = field(default_factory=list)
    forbidden: list[tuple[int, Callable[[dict[str, Parameter]], Clause]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def flaw(self, line: int, what: object) -> LineError:
        """Return an error that names the file and the line; one that does so already is kept."""
        return what if isinstance(what, LineError) else LineError(f"{self.file}, line {line}: {what}")

    def declare(self, line: int, parameter: Parameter) -> None:
        """One more parameter; the same declaration may be repeated, another one of the same name may not."""
        known = self.parameters.get(parameter.name)
        if known is None:
            self.parameters[parameter.name] = (line, parameter)
        elif known[1] == parameter:
            self.notes.append(f"line {line} declares {parameter.name} again, as line {known[0]} did")
        else:
            raise self.flaw(
                line, f"found another declaration of {parameter.name} than on line {known[0]}; remove one of the two"
            )

    def space(self) -> Space:
        """The whole space."""
        if not self.parameters:
            raise self.flaw(1, "found no declaration in the whole file, expected at least one parameter")
        named = {name: parameter for name, (_, parameter) in self.parameters.items()}
        conditions = self._conditions(named)
        forbidden = []
        for line, read in self.forbidden:
            try:
                forbidden.append(read(named))
            except ScenarioError as flaw:
                raise self.flaw(line, flaw) from None
        try:
            space = Space(tuple(named.values()), conditions, tuple(forbidden), notes=tuple(self.notes))
        except ScenarioError as flaw:
            raise self.flaw(self.conditions[0][1] if self.conditions else 1, flaw) from None
        self._check_default(space)
        return space

    def _conditions(self, named: dict[str, Parameter]) -> dict[str, Clause]:
        conditions: dict[str, Clause] = {}
        for child, line, read in self.conditions:
            if child not in named:
                raise self.flaw(
                    line, f"found a condition for {child}, which no line declares; declare it, or correct the name"
                )
            try:
                clause = read(named)
            except ScenarioError as flaw:
                raise self.flaw(line, flaw) from None
            if child in conditions:
                self.notes.append(f"line {line} is one more condition for {child}: all of them must hold")
                clause = both([conditions[child], clause])
            conditions[child] = clause
        return conditions

    def _check_default(self, space: Space) -> None:
        """A forbidden default is the fault of the first line that forbids it."""
        if not space.default_is_forbidden:
            return
        columns = space.columns(space.deactivated(space.default_row[np.newaxis]))
        guilty = next(
            line
            for (line, _), clause in zip(self.forbidden, space.forbidden, strict=True)
            if clause.truth(columns)[0].any()
        )
        try:
            space.default  # noqa: B018 (asked for its complaint)
        except ScenarioError as flaw:
            raise self.flaw(guilty, flaw) from None


# Single fields of TOML, JSON and YAML tables, checked for their kind. The caller knows the place and adds it.


def number(value: object, key: str) -> float:
    """A number; true and false are none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ScenarioError(f"{key} is {value!r}, expected a number")
    try:
        return float(value)
    except OverflowError:
        raise ScenarioError(f"{key} is a whole number too large to compute with, expected one below 2^53") from None


def truth(value: object, key: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise ScenarioError(f"{key} is {value!r}, expected true or false")
    return value


def plain(value: object, key: str) -> Value:
    """Anything a parameter can be set to."""
    if not isinstance(value, bool | int | float | str):
        raise ScenarioError(f"{key} is {value!r}, expected a text, a number, true or false")
    if isinstance(value, float) and not math.isfinite(value):
        raise ScenarioError(f"{key} is {value!r}, expected a finite number")
    return text(value, key) if isinstance(value, str) else value


def text(value: str, key: str) -> str:
    """A text that can be printed and stored: half a character, as JSON allows them, cannot."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ScenarioError(f"{key} is {value!r}, expected whole characters; correct the one with \\ud") from None
    return value


def items(value: object, key: str) -> list[Any]:
    """A list, perhaps an empty one."""
    if not isinstance(value, list):
        raise ScenarioError(f"{key} is {value!r}, expected a list")
    return value


def some(value: object, key: str) -> list[Any]:
    """A list with something in it."""
    if not items(value, key):
        raise ScenarioError(f"{key} is empty, expected at least one value")
    return items(value, key)


# What a format cannot say. A writer that would lose something about the space itself refuses, and names it.


def refuse(format_name: str, lost: list[str]) -> None:
    """Raise if something would be lost."""
    if lost:
        shown = "; ".join(lost[:5]) + (f"; and {len(lost) - 5} more" if len(lost) > 5 else "")
        raise ScenarioError(
            f"{format_name} files cannot say everything this space says, and without it they would be another space: "
            f"{shown}. Write toml instead, or simplify the space"
        )
