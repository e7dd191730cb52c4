"""What an instance, a place in the stream and a stream look like."""

from dataclasses import dataclass
from typing import Any, Protocol

from captime.supervision.messages import Fingerprint, Preparation


@dataclass(frozen=True, slots=True)
class Instance:
    """Something to solve.

    Attributes:
        name: Unique, shown to people; of a file the path as seen from the scenario (surrogateescape).
        path: The file, absolute; None if the instance is a value.
        value: What a function is given, or a program in place of a path; used where there is no path.
        digest: SHA-256 of the content; nothing for a generated instance, which is not known yet.
        fingerprint: By which a change of the file is noticed; None if there is no file, or not yet.
        preparation: The command that makes the file.
        answer: The known right answer.
    """

    name: str
    path: str | None = None
    value: Any = None
    digest: str = ""
    fingerprint: Fingerprint | None = None
    preparation: Preparation | None = None
    answer: bytes | None = None


@dataclass(frozen=True, slots=True)
class Element:
    """A place in the stream: every configuration meets this instance with this seed there.

    Attributes:
        position: Counted from 0.
        instance: What is to be solved.
        seed: For the program's own random choices.
    """

    position: int
    instance: Instance
    seed: int


class InstanceStream(Protocol):
    """A fixed, possibly endless sequence of instances and seeds."""

    @property
    def length(self) -> int | None:
        """How many positions there are; None for an endless stream."""
        ...

    @property
    def population(self) -> str:
        """`stream`: the distribution the instances were drawn from. `finite`: exactly these instances."""
        ...

    @property
    def n_instances(self) -> int | None:
        """How many different instances there are; None if they are made on demand."""
        ...

    def at(self, position: int) -> Element:
        """Return the instance and the seed of that position; the same whenever it is asked."""
        ...

    def describe(self) -> dict[str, object]:
        """Return what makes the stream what it is, in words that JSON knows; goes into the hash of the scenario."""
        ...
