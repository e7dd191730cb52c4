"""What a wrapper's convention looks like."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from captime.programs.arguments import ArgumentStyle
from captime.programs.judge import SelfReport
from captime.supervision.messages import Report


@dataclass(frozen=True, slots=True)
class Called:
    """What a wrapper is called with.

    Attributes:
        instance: Path or name.
        seed: For the program's random choices.
        config: Number of the configuration.
        position: Position in the stream.
        longest: Seconds that the wrapper is told: more than any run of the campaign may take, and the same for all. How
            long this run may take was drawn, and a program that knew it could answer just in time.
        settings: The words for the settings.
    """

    instance: str
    seed: int
    config: int
    position: int
    longest: float
    settings: list[str]

    @property
    def cutoff(self) -> str:
        """A cutoff in whole seconds, a second or two more than the longest captime.

        The wrapper must not stop the run itself: its clock is not ours, and a run that gave up early says
        less than one that we stopped.
        """
        return "2147483647" if self.longest >= 2**31 - 2 else str(math.ceil(self.longest) + 1)


@dataclass(frozen=True, slots=True)
class Wrapper:
    """One convention.

    Attributes:
        name: Its name in scenarios.
        words: What follows the wrapper's command.
        read: The account in a report, given the seconds that the wrapper was told.
        style: How settings are written.
        exit_codes: Accepted exit codes; None if only the account counts.
        patterns: What to look for in the output.
        seeded: Whether the seed is part of every call.
    """

    name: str
    words: Callable[[Called], list[str]]
    read: Callable[[Report, float], SelfReport]
    style: ArgumentStyle
    exit_codes: tuple[int, ...] | None = None
    patterns: Mapping[str, str] = field(default_factory=dict)
    seeded: bool = True


def number_in(text: str) -> float | None:
    """Return a finite number of seconds, 0 or more; None for anything else."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0.0 else None


def shown(raw: bytes) -> str:
    """Return the beginning of what was found, for a message."""
    return repr(raw[:80].decode("utf-8", "replace"))
