"""What a utility looks like. Members of the family import nothing of it: fitting the shape is enough."""

from typing import Protocol

from captime.arrays import FloatArray


class Utility(Protocol):
    """What an answer is worth when it arrives after t seconds: u(0) = 1, never rising, falling to 0.

    Every member is right-continuous (the value *at* a jump is the lower one), because a utility is the
    survival function of a random deadline, P(deadline > t), and because "completed" means strictly before the
    captime.
    """

    @property
    def zero_at(self) -> float:
        """The first moment from which an answer is worth nothing; infinite if it always keeps some worth."""
        ...

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """Where the formula changes or jumps; checks and plots look closely there."""
        ...

    def __call__(self, seconds: FloatArray, /) -> FloatArray:
        """u(t), element by element; infinity is worth 0, a negative or missing time is an error."""
        ...

    def inverse(self, value: FloatArray, /) -> FloatArray:
        """Return the first moment at which the worth has fallen to `value` or below: inf{t : u(t) <= value}."""
        ...

    def __str__(self) -> str:
        """Return the textual form: `parse_utility(str(u))` gives an equal utility."""
        ...
