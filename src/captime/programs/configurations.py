"""One configuration of the program: a name and settings, or another program altogether."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Setting = str | int | float | bool | list[str]
"""A value of a setting; a list is zero or more words of the command line."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """What distinguishes one candidate from the others.

    Attributes:
        name: Unique, shown to people.
        settings: Values by name; a setting that is not active is absent.
        command: A command of its own, in place of the target's: choosing among programs is choosing a configuration.
        answer: Its own pattern of a right answer; None for the target's.
        exit_codes: Its own accepted exit codes; None for the target's.
        given: What a function is called with in place of the settings, where JSON has no word for it, such as an array
            of NumPy; None for the settings themselves.
        origin: Where it came from: `listed`, `default`, `favourite`, `random` or `model`.
    """

    name: str
    settings: Mapping[str, Setting] = field(default_factory=dict)
    command: tuple[str, ...] | None = None
    answer: str | None = None
    exit_codes: tuple[int, ...] | None = None
    origin: str = "listed"
    given: Mapping[str, Any] | None = None

    def describe(self) -> dict[str, Any]:
        """Everything but the origin, in words that JSON knows."""
        own = {"command": self.command, "answer": self.answer, "exit_codes": self.exit_codes}
        return {
            "name": self.name,
            "settings": dict(self.settings),
            **{
                key: list(value) if isinstance(value, tuple) else value
                for key, value in own.items()
                if value is not None
            },
        }
