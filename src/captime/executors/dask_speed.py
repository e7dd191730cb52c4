"""Unlike machines: which may take part, and what their seconds are worth.

Every machine does the same fixed piece of work when it joins, and again every few minutes. `same`: only machines that
take equally long for it take part. `any`: all do, and which one a run gets is left to chance. `normalised`: all do, and
their seconds are counted as those of a machine for which the piece of work takes a stated time.
"""

from dataclasses import dataclass
from typing import Literal

Rule = Literal["same", "any", "normalised"]


@dataclass(frozen=True, slots=True)
class SpeedTerms:
    """What is demanded of machines.

    Attributes:
        rule: See above.
        tolerance: By which share the piece of work may take longer or shorter.
        reference: CPU seconds it takes on the machine that counts. With `same`, that of the first machine if it is
            left out.
    """

    rule: Rule = "same"
    tolerance: float = 0.1
    reference: float | None = None


class HostSpeeds:
    """The machines that take part, by host.

    Args:
        terms: What is demanded.

    Attributes:
        seconds: What the piece of work took on each host: the least that was seen, which is the least disturbed.
    """

    def __init__(self, terms: SpeedTerms) -> None:
        self._terms = terms
        self._reference = terms.reference
        self.seconds: dict[str, float] = {}

    def admit(self, host: str, seconds: float) -> str:
        """Let a machine join; why not, if it may not."""
        best = min(seconds, self.seconds.get(host, seconds))
        if self._terms.rule == "same":
            if self._reference is None:
                self._reference = best
            off = best / self._reference - 1.0
            if abs(off) > self._terms.tolerance:
                return (
                    f"the reference took {best * 1e3:.1f} ms on {host} and {self._reference * 1e3:.1f} ms on the first "
                    f"machine, which is more than {self._terms.tolerance:.0%} apart"
                )
        self.seconds[host] = best
        return ""

    def drifted(self, host: str, seconds: float) -> float | None:
        """By which share a machine is slower or faster than when it joined, if that is more than is allowed."""
        off = seconds / self.seconds[host] - 1.0
        return off if abs(off) > self._terms.tolerance else None

    def factor(self, host: str) -> float:
        """Return how many seconds of this machine make one that counts."""
        if self._terms.rule != "normalised" or self._terms.reference is None:
            return 1.0
        return self.seconds[host] / self._terms.reference

    def described(self) -> str:
        """For the certificate: on which machines time was measured."""
        many = len(self.seconds)
        machines = f"{many} machine{'' if many == 1 else 's'}"
        match self._terms.rule:
            case "same":
                within = f"{self._terms.tolerance:.0%}"
                return f"on {machines} that took equally long for a fixed piece of work, within {within}"
            case "any":
                return f"on whichever of {machines} was free; the mix of machines is part of what is certified"
            case "normalised":
                reference = 1e3 * (self._terms.reference or 0.0)
                return f"on {machines}, counted as on one where a fixed piece of work takes {reference:.1f} ms"
