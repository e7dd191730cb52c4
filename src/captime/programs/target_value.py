"""Time to target: a run has answered when a line that it prints reaches a value, and not before.

The value is a number, or one that is reckoned from the best value known of the instance: a multiple of it, or a share
of it away from it. The direction is always said, so nothing depends on the sign of a value.
"""

from dataclasses import dataclass
from typing import Literal

from captime.errors import ScenarioError
from captime.programs.answers import meaning
from captime.supervision.messages import StopValue

Direction = Literal["at_most", "at_least"]


@dataclass(frozen=True, slots=True)
class TargetValue:
    """The value that ends a run.

    Attributes:
        pattern: Matches the lines with a value, which is the group `value`, or the first group.
        direction: Whether the value has to be at most or at least the bound.
        number: The bound itself, the same for all instances; None if it depends on the best value.
        best_times: The bound is this multiple of the best value that is known of the instance.
        gap: The bound is away from the best value by this share of it.
    """

    pattern: str
    direction: Direction
    number: float | None = None
    best_times: float | None = None
    gap: float | None = None

    @property
    def relative(self) -> bool:
        """Whether the bound depends on the best value of the instance."""
        return self.number is None

    def bound(self, best: bytes | None, instance: str) -> float:
        """Return the bound for an instance whose best known value is this.

        >>> TargetValue("^o ([0-9]+)", "at_most", gap=0.05).bound(b"-100", "a")
        -95.0
        """
        if self.number is not None:
            return self.number
        known = None if best is None else meaning(best)
        if not isinstance(known, float):
            found = "no best value" if best is None else f"the value {best.decode('utf-8', 'replace')!r}"
            raise ScenarioError(
                f"target.until: {found} is known of instance {instance!r}; expected a number for every instance, in "
                "the column answer of instances.csv or in instances.answers"
            )
        if self.best_times is not None:
            return self.best_times * known
        away = (self.gap or 0.0) * abs(known)
        return known + away if self.direction == "at_most" else known - away

    def until(self, best: bytes | None, instance: str) -> StopValue:
        """Return what a slot supervisor compares values with."""
        bound = self.bound(best, instance)
        return StopValue(at_most=bound) if self.direction == "at_most" else StopValue(at_least=bound)
