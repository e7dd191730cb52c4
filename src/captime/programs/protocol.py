"""What a program looks like: it turns requests into launches, and reports into outcomes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Protocol

from captime.runs import RunOutcome, RunRequest
from captime.streams.protocol import Instance
from captime.supervision.messages import Launch, Report

# One configuration of the program: a name and settings, or another program altogether.

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


# What a program looks like: it turns requests into launches, and reports into outcomes.


class Program(Protocol):
    """The program to be configured, as far as an executor has to know it."""

    @property
    def repeatable(self) -> bool:
        """Whether the same request with the same seed has the same law of runtimes.

        It has if the seed is part of the command, if the program is deterministic, or if the user says so. Otherwise
        runs that were stopped or lost are never tried again.
        """
        ...

    def launch(self, request: RunRequest, number: int, tag: str) -> Launch:
        """Return what a slot supervisor has to do for this request."""
        ...

    def judge(self, request: RunRequest, report: Report) -> RunOutcome:
        """Return what the report means; only a positive answer in time counts as one."""
        ...

    def describe(self) -> dict[str, object]:
        """Return what makes the program what it is, in words that JSON knows; goes into the hash of the scenario."""
        ...

    def command_line(self, config: int, instance: str, seed: int) -> list[str]:
        """Return the command of a configuration, for people to paste."""
        ...

    def how_started(self, config: int, instance: Instance, seed: int) -> str:
        """Return a sentence without its full stop that says how a run is started: the command, or the call."""
        ...


class GrowingProgram(Program, Protocol):
    """A program that takes more configurations on its way."""

    def extend(self, configurations: Sequence[Configuration]) -> None:
        """These join, with the next indices."""
        ...


# Guesses at what was meant, for messages.


def did_you_mean(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """`; did you mean 'x'?`, or nothing if nothing known is near.

    >>> did_you_mean("detla", ["delta", "seed"])
    "; did you mean 'delta'?"
    """
    near = get_close_matches(word, list(known), n=1, cutoff=cutoff)
    return f"; did you mean {near[0]!r}?" if near else ""
