"""What members with a time of grace and an end have in common."""

from dataclasses import dataclass
from typing import ClassVar

from captime.utilities.checks import Seconds, number_text, require
from captime.utilities.formula import Formula


@dataclass(frozen=True, slots=True)
class DeadlineWindow(Formula):
    """1 up to `start`, 0 from `end` on, and between them what the member says.

    Attributes:
        start: until here nothing is lost (k0).
        end: from here on an answer is worth nothing (k1).
    """

    start: Seconds
    end: Seconds

    start_may_be_zero: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require(self, "start", or_equal=self.start_may_be_zero)
        require(self, "end", above=self.start, relation=f"start is {number_text(self.start)}")
        for parameter in self._parameters[2:]:
            require(self, parameter)

    @property
    def zero_at(self) -> float:
        """The end."""
        return self.end

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """The start (if it is not 0) and the end."""
        return tuple(each for each in (self.start, self.end) if each > 0.0)
