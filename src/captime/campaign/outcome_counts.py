"""What became of all the runs, counted: by verdict, by warning; and whether the measurements can be trusted."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scipy.special import bdtrc

from captime.runs import RunOutcome

# More runs than this share are disturbed, by more than chance explains at this level.
_DEGRADED, _BY_CHANCE = 0.01, 0.01
_DISTURBANCES = ("contended", "drifted", "swapping", "throttled")


def disturbing(flags: Mapping[str, int], counted: int) -> list[str]:
    """Return the warnings that too many runs carry: times are doubtful, and the certificate says so.

    A few runs are disturbed on every machine. If 1 % of all runs were, that many or more of `counted` would be flagged
    with a probability of less than 1 %: 1 of 56 (0.43) says nothing, 4 of 56 (0.002) do.
    """
    return [flag for flag in _DISTURBANCES if _too_many(flags.get(flag, 0), counted)]


def _too_many(flagged: int, counted: int) -> bool:
    if flagged <= _DEGRADED * counted:
        return False
    return float(bdtrc(flagged - 1, max(counted, flagged), _DEGRADED)) < _BY_CHANCE


@dataclass(slots=True)
class OutcomeCounts:
    """Counts of outcomes.

    Attributes:
        verdicts: How often each verdict was given, by its word.
        flags: How often each warning was given.
        counted: Runs that count.
        answered: Those of them that answered.
        judged: Those of them of which a program's own end is known; recorded runtimes are no program's.
        hosts: Where they ran.
        lost_seconds: CPU seconds of runs that were lost.
    """

    verdicts: Counter[str] = field(default_factory=Counter)
    flags: Counter[str] = field(default_factory=Counter)
    counted: int = 0
    answered: int = 0
    judged: int = 0
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
            self.answered += outcome.status.meaning.answered
            self.judged += outcome.verdict is not None
            if outcome.measured is not None:
                self.flags.update(outcome.measured.flags)
                self.hosts[outcome.measured.host] += 1

    @property
    def disturbed_by(self) -> list[str]:
        """Why times that were measured here are doubtful, if they are: warnings that many runs carry."""
        return disturbing(self.flags, self.counted)
