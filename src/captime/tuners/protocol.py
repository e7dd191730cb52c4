"""What a file of another tuner yields: configurations that the tuner recommends, and the instances it has met."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from captime.programs.protocol import Setting


@dataclass(frozen=True, slots=True)
class Incumbent:
    """A configuration that a tuner recommends.

    Attributes:
        settings: Values by name; a parameter that was not active is absent.
        about: Where it stands in the file and how it fared there, for people.
        name: What the file calls it; "" if the file has no name for it.
    """

    settings: Mapping[str, Setting]
    about: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class TunerResult:
    """What was read from one file.

    Attributes:
        tuner: Name of the tuner in the register of formats.
        path: The file.
        incumbents: Best first.
        instances: Names of the instances that the tuner has met; None if the file does not tell.
    """

    tuner: str
    path: Path
    incumbents: Sequence[Incumbent] = ()
    instances: Sequence[str] | None = field(default=None)


class TunerFormat(Protocol):
    """A module or object that knows the files of one tuner."""

    def recognises(self, path: Path, start: bytes) -> bool:
        """Tell whether this is a file of that tuner, from its name and its first bytes."""
        ...

    def read(self, path: Path, top: int | None, study: str | None) -> TunerResult:
        """Read the best configurations.

        Args:
            path: The file.
            top: How many; None for what is usual in such a file.
            study: Which of several studies, where a file may hold several.
        """
        ...
