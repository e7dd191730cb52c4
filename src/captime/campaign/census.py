"""What became of all the runs, counted: by verdict, by warning; and whether the measurements can be trusted."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from captime.runs import RunOutcome

_DEGRADED = 0.01
_DISTURBANCES = ("contended", "drifted", "swapping", "throttled")


def disturbing(flags: Mapping[str, int], counted: int) -> list[str]:
    """Which warnings so many runs carry that times are doubtful: the certificate says so in its first line."""
    return [flag for flag in _DISTURBANCES if flags.get(flag, 0) > _DEGRADED * max(1, counted)]


@dataclass(slots=True)
class Census:
    """Counts of outcomes.

    Attributes:
        verdicts: How often each verdict was given, by its word.
        flags: How often each warning was given.
        counted: Runs that count.
        hosts: Where they ran.
        lost_seconds: CPU seconds of runs that were lost.
    """

    verdicts: Counter[str] = field(default_factory=Counter)
    flags: Counter[str] = field(default_factory=Counter)
    counted: int = 0
    hosts: Counter[str] = field(default_factory=Counter)
    lost_seconds: float = 0.0

    def take(self, outcomes: Sequence[RunOutcome]) -> None:
        """Count these too."""
        for outcome in outcomes:
            self.verdicts[outcome.status.value if outcome.verdict is None else outcome.verdict.value] += 1
            if not outcome.status.meaning.counts:
                self.lost_seconds += outcome.cost
                continue
            self.counted += 1
            if outcome.measured is not None:
                self.flags.update(outcome.measured.flags)
                self.hosts[outcome.measured.host] += 1

    @property
    def disturbed_by(self) -> list[str]:
        """Why times that were measured here are doubtful, if they are: warnings that many runs carry."""
        return disturbing(self.flags, self.counted)
