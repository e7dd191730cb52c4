"""What a model may cost: a small share of what the runs themselves have cost so far.

The cost of fitting is not measured but estimated, by a formula that was calibrated once: a decision that depends on a
stopwatch could not be taken again in the same way when a campaign is resumed. `python benchmarks/model.py`
compares the estimate with a stopwatch.
"""

from captime.spaces.basis import Basis
from captime.spaces.model import MOST
from captime.spaces.space import Space

# Of all CPU seconds spent on runs: a little less than a hundredth, which leaves some for what is not estimated.
SHARE = 0.008
# Seconds: of a fit and a search in any case; per parameter; per configuration and term; per configuration, squared; per
# configuration, cubed. Rather too much than too little.
_ANYWAY, _PER_PARAMETER, _PER_TERM, _PER_PAIR, _PER_TRIPLE = 6e-3, 3e-4, 5e-7, 3e-7, 2.5e-9


class Restraint:
    """Says whether another model is affordable.

    Args:
        space: The space.

    Attributes:
        seconds: What all models have cost so far, as estimated.
    """

    def __init__(self, space: Space) -> None:
        self._parameters = len(space.names)
        self._terms = len(Basis(space).owners)
        self.seconds = 0.0

    def estimate(self, configurations: int) -> float:
        """Return the CPU seconds of fitting a model to `configurations` configurations, and of searching with it."""
        n = min(configurations, MOST)
        return (
            _ANYWAY
            + _PER_PARAMETER * self._parameters
            + (_PER_TERM * self._terms + (_PER_PAIR + _PER_TRIPLE * n) * n) * n
        )

    def takes(self, configurations: int, spent: float) -> bool:
        """Whether one more is affordable; if so, it is booked.

        Args:
            configurations: To learn from.
            spent: CPU seconds of all runs so far.
        """
        cost = self.estimate(configurations)
        if self.seconds + cost > SHARE * spent:
            return False
        self.seconds += cost
        return True
