"""What a program looks like: it turns requests into launches, and reports into outcomes."""

from collections.abc import Sequence
from typing import Protocol

from captime.programs.configurations import Configuration
from captime.runs import RunOutcome, RunRequest
from captime.streams.protocol import Instance
from captime.supervision.messages import Launch, Report


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
