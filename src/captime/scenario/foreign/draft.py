"""A scenario in the making: its sections, what was decided on the way, and what could not be carried over."""

import json
import math
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from captime.errors import ScenarioError

_PLACEHOLDER = "log-laplace(60, 1)"


@dataclass(slots=True)
class ScenarioDraft:
    """What is going to be written.

    Attributes:
        source: The file of the other tool.
        folder: Where the scenario is going to stand.
        list_name: The file beside the scenario that a list of instances is written to.
        utility: What an answer is worth, if the user has said so.
        top: Fields of the whole file.
        target: Fields of [target].
        space: Fields of [space].
        instances: Fields of [instances].
        stop: Fields of [stop].
        companions: Further files to write, by name.
        decided: What was decided, a sentence each.
        lost: What could not be carried over, a sentence each.
    """

    source: Path
    folder: Path
    list_name: str
    utility: str | None = None
    top: dict[str, Any] = field(default_factory=dict)
    target: dict[str, Any] = field(default_factory=dict)
    space: dict[str, Any] = field(default_factory=dict)
    instances: dict[str, Any] = field(default_factory=dict)
    stop: dict[str, Any] = field(default_factory=dict)
    companions: dict[str, str] = field(default_factory=dict)
    decided: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def worth(self, cutoff: float | None, told: str) -> None:
        """Decide on the utility: the user's, one that ends at a cutoff, or one to be replaced."""
        if self.utility is not None:
            self.top["utility"] = self.utility
            self.decided.append(f"utility = {self.utility!r}, as --utility says")
        elif cutoff is not None:
            self.top["utility"] = f"uniform({cutoff:g})"
            self.decided.append(
                f"utility = 'uniform({cutoff:g})', from {told}: the worth of an answer falls evenly to nothing there, "
                "so configurations are ranked by their mean time with timeouts counted as the cutoff"
            )
        else:
            self.top["utility"] = _PLACEHOLDER
            self.decided.append(
                f"utility = {_PLACEHOLDER!r} stands in: the file does not say what time is worth; choose one with "
                "`captime utility`"
            )

    def named(self, path: Path) -> str:
        """Return a file's name as seen from the folder of the scenario."""
        return os.path.relpath(path.absolute(), self.folder.absolute())

    def program(self, path: Path) -> str:
        """Return a program's name as seen from there: without a slash it would be looked for on the PATH."""
        name = self.named(path)
        return name if "/" in name else f"./{name}"

    def megabytes(self, value: object, key: str) -> None:
        """Limit the memory of runs."""
        number = self.number(value, key)
        if number > 0:
            self.target["memory"] = f"{number:g}MB"
            self.decided.append(f"target.memory is {number:g} MB, from {key}")

    def number(self, value: object, key: str) -> float:
        """Return a number of the file."""
        try:
            number = float(str(value))
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise ScenarioError(f"{self.source}: {key} is {str(value)!r}; expected a number, such as 300")
        return number

    def seconds(self, value: object, key: str) -> float:
        """Return a time of the file, which is more than nothing."""
        number = self.number(value, key)
        if number <= 0:
            raise ScenarioError(f"{self.source}: {key} is {str(value)!r}; expected seconds above 0, such as 300")
        return number

    def words(self, text: str, key: str) -> list[str]:
        """Return the words of a command of the file."""
        try:
            return shlex.split(text)
        except ValueError as flaw:
            raise ScenarioError(
                f"{self.source}: {key} is {text!r}: {flaw}; expected words, perhaps in quotes"
            ) from None

    def goal(self) -> None:
        """Say how good the answer has to be, which no other tool asks for."""
        self.top.setdefault("delta", 0.1)
        self.stop.setdefault("epsilon", 0.1)
        self.decided.append(
            "delta = 0.1 and stop.epsilon = 0.1 are captime's usual goal; other tools have no such words"
        )

    def text(self) -> str:
        """Return the scenario as TOML, with the lists before it as comments."""
        lines = [f"# Made by `captime import` from {self.source.name}.", "#", "# What was decided:"]
        lines += [f"#   - {each}" for each in self.decided]
        lines += ["# What could not be carried over:", *(f"#   - {each}" for each in self.lost or ["nothing"]), ""]
        lines += _fields(self.top)
        for name in ("target", "space", "instances", "stop"):
            section = getattr(self, name)
            if section:
                lines += ["", f"[{name}]", *_fields(section)]
        return "\n".join([*lines, ""])


def existing(name: str, places: Sequence[Path]) -> Path | None:
    """Return the file or folder of that name, as seen from the first of these places where there is one."""

    def exists(path: Path) -> bool:
        try:
            return path.exists()
        except (OSError, ValueError):  # Too long for a name, or with a NUL in it.
            return False

    return next((path for place in places if exists(path := place / name)), None)


def _fields(section: Mapping[str, Any]) -> list[str]:
    return [f"{_key(name)} = {_value(value)}" for name, value in section.items()]


def _key(name: str) -> str:
    plain = name.replace("_", "").replace("-", "")
    return name if plain.isascii() and plain.isalnum() else json.dumps(name)


def _value(value: Any) -> str:
    """Write a value as TOML does; texts are written as JSON writes them, which TOML reads."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(_fields(value)) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_value(each) for each in value) + "]"
    return json.dumps(value, ensure_ascii=False)


# Lists of instances as other tools write them: `<instance> [specifics]` per line, perhaps with a seed before it.


def read_instances(path: Path, draft: ScenarioDraft) -> None:
    """Read a list of instances alone; the program is for the user to fill in."""
    draft.worth(None, "")
    draft.target["command"] = ["./program", "{seed}", "{settings}", "{instance}"]
    draft.target["answer"] = "^(SATISFIABLE|UNSATISFIABLE)"
    draft.space["level"] = {"type": "int", "low": 1, "high": 9, "default": 5}
    draft.decided.append("[target] and [space] are examples to be replaced: a list of instances names no program")
    take_list(path, [path.parent, Path()], draft)
    draft.goal()


def take_list(
    path: Path, places: Sequence[Path], draft: ScenarioDraft, *, extra: str = "the words behind an instance"
) -> None:
    """Carry a list of instances over into a file beside the scenario; files are looked for in these places."""
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise ScenarioError(
            f"{path}, a list of instances, cannot be read: {error.strerror}; expected a text with one instance per line"
        ) from None
    rows = [split_line(line, path, number) for number, line in enumerate(text.splitlines(), start=1)]
    rows = [row for row in rows if row]
    if not rows:
        raise ScenarioError(f"{path}, a list of instances, is empty; expected one instance per line")
    seeded = all(len(row) > 1 and row[0].isdigit() and existing(row[0], places) is None for row in rows)
    names = [row[1] if seeded else row[0] for row in rows]
    found = [existing(name, places) for name in names]
    unique = list(dict.fromkeys(draft.named(each) if each else name for each, name in zip(found, names, strict=True)))
    missing = sum(each is None for each in found)
    if missing == len(names) and all(not Path(name).suffix and "/" not in name for name in names):
        draft.instances["values"] = unique
        draft.decided.append(f"instances.values has the {len(unique)} entries of {path.name}, none of which is a file")
    else:
        draft.companions[draft.list_name] = "\n".join([*unique, ""])
        draft.instances["list"] = draft.list_name
        draft.decided.append(f"instances.list is {draft.list_name}, with the {len(unique)} instances of {path.name}")
        if missing:
            draft.lost.append(
                f"{missing} instances of {path.name} were not found: {names[found.index(None)]!r}, for one"
            )
    if seeded:
        draft.lost.append(
            f"the seeds in {path.name}: captime ties a seed of its own to every position of the stream, the same for "
            "all configurations"
        )
    if len(unique) < len(names):
        draft.decided.append(f"{len(names) - len(unique)} repeated lines of {path.name} count once")
    if any(len(row) > 1 + seeded for row in rows):
        draft.lost.append(f"{extra} in {path.name}: no word of a command can differ between instances")


def split_line(line: str, path: Path, number: int) -> list[str]:
    """Return the words of a line of a file, without its comment."""
    try:
        return shlex.split(line, comments=True)
    except ValueError as flaw:
        raise ScenarioError(f"{path}, line {number}: {flaw}; expected words, perhaps in quotes") from None
