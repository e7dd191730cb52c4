"""What a ledger remembers, as values: configurations, stream positions, and the events of a campaign in their order.

No SQL here, and no decisions: `store` writes these, `replaying` and `reading` give them back as they were.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from captime.certificate import Certificate
from captime.errors import InvariantViolated
from captime.runs import RunOutcome, RunRequest
from captime.targets import Targets

Origin = Literal["listed", "default", "favourite", "random", "model"]


@dataclass(frozen=True, slots=True)
class ConfigRow:
    """A configuration, as it was registered.

    Attributes:
        index: The number it has in requests, counted from 0.
        name: What people call it; any text a file name can be, surrogate escapes included.
        settings: What was said about it; whatever JSON can say.
        origin: Where it came from.
    """

    index: int
    name: str
    settings: Mapping[str, object] = field(default_factory=dict)
    origin: Origin = "listed"

    @property
    def parameters(self) -> Mapping[str, object]:
        """What it is set to: a scenario's description has that in a field of its own, beside a command perhaps."""
        inner = self.settings.get("settings")
        return inner if isinstance(inner, Mapping) else self.settings


@dataclass(frozen=True, slots=True)
class SampleRow:
    """A position of the stream, as it was when the first run on it was asked for.

    Attributes:
        position: Counted from 0.
        instance: Name of the instance; any text a file name can be.
        digest: SHA-256 of its content, in hexadecimal digits; empty if not known yet.
        seed: What the target was given as its seed.
    """

    position: int
    instance: str
    digest: str = ""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.position < 0 or not -(2**63) <= self.seed < 2**63:
            raise InvariantViolated(f"{self}: positions count from 0, and a seed has to fit into 64 bits")


@dataclass(frozen=True, slots=True)
class Asked:
    """The procedure was asked what it wants, and this is what it said.

    Attributes:
        sequence: Number of the row.
        slots: How many free slots it was told of.
        targets: Its orders; possibly none.
    """

    sequence: int
    slots: int
    targets: Targets


@dataclass(frozen=True, slots=True)
class Started:
    """These runs were about to be started: written down before any of them was.

    Attributes:
        sequence: Number of the first row.
        requests: In the order in which they were submitted.
        samples: Stream positions without any earlier run.
    """

    sequence: int
    requests: tuple[RunRequest, ...]
    samples: tuple[SampleRow, ...]


@dataclass(frozen=True, slots=True)
class Observed:
    """This became known at one moment: written down before any decision was drawn from it.

    Attributes:
        sequence: Number of the first row.
        outcomes: What came back, orphans included; in the order in which it did.
        seen: Runs seen unfinished, with the CPU seconds they had behind them.
    """

    sequence: int
    outcomes: tuple[RunOutcome, ...]
    seen: tuple[tuple[RunRequest, float], ...]


@dataclass(frozen=True, slots=True)
class Added:
    """Configurations that joined later.

    Attributes:
        sequence: Number of the first row.
        configs: The added configurations.
    """

    sequence: int
    configs: tuple[ConfigRow, ...]


@dataclass(frozen=True, slots=True)
class Noted:
    """Something worth remembering that is neither order nor run.

    Attributes:
        sequence: Number of the row.
        kind: One word: `began`, `stopped`, `warning`, `conflict`, …
        facts: Whatever JSON can say.
        at_ns: When, in nanoseconds since 1970.
    """

    sequence: int
    kind: str
    facts: Mapping[str, object]
    at_ns: int = 0


@dataclass(frozen=True, slots=True)
class Certified:
    """A certificate, as it was held at that moment.

    Attributes:
        sequence: Number of the row.
        certificate: The statement.
        rounds: Decisions taken by then.
        cpu_seconds: CPU seconds spent by then.
        wall_seconds: How long the campaign had taken by then, all calls of the command together.
        candidates: How many could still be the best.
        head: Hash of the row before: everything the statement rests on, in 64 hexadecimal digits.
        at_ns: When, in nanoseconds since 1970.
    """

    sequence: int
    certificate: Certificate
    rounds: int
    cpu_seconds: float
    wall_seconds: float
    candidates: int
    head: str
    at_ns: int = 0


Event: TypeAlias = Asked | Started | Observed | Added | Noted
