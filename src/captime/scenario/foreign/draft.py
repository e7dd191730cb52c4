"""A scenario in the making: its sections, what was decided on the way, and what could not be carried over."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from captime.errors import ScenarioError

_PLACEHOLDER = "log-laplace(60, 1)"


@dataclass(slots=True)
class Draft:
    """What is going to be written.

    Attributes:
        source: The file of the other tool.
        folder: Where the scenario is going to stand.
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

    def megabytes(self, value: str, key: str) -> None:
        """Limit the memory of runs."""
        number = self.number(value, key)
        if number > 0:
            self.target["memory"] = f"{number:g}MB"
            self.decided.append(f"target.memory is {number:g} MB, from {key}")

    def number(self, value: str, key: str) -> float:
        """Return a number of the file."""
        try:
            return float(value)
        except ValueError:
            raise ScenarioError(f"{self.source}: {key} is {value!r}; expected a number") from None

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
    return next((path for place in places if (path := place / name).exists()), None)


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
