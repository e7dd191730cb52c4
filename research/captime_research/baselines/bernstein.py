"""The radius of a Bernstein race, as in LeapsAndBounds and CapsAndRuns: how far a mean of runtimes may be off."""

import math

# The radius may be looked at after every run; levels are spent on epochs whose lengths grow by this factor.
_EPOCH = 1.1
# Σ l^-1.1 over l = 1, 2, …: what the epochs' shares add up to.
EPOCHS = 10.5844


class Running:
    """Mean and variance of numbers that come one by one."""

    def __init__(self) -> None:
        self.count = 0
        self.mean = 0.0
        self._squares = 0.0

    def add(self, value: float) -> None:
        """One more."""
        self.count += 1
        step = value - self.mean
        self.mean += step / self.count
        self._squares += step * (value - self.mean)

    @property
    def variance(self) -> float:
        """With divisor n."""
        return self._squares / self.count if self.count else 0.0


def radius(seen: Running, largest: float, share: float) -> float:
    """How far the mean may be off, with probability 1 - Σ share / (l^1.1 · 10.5844) at most at every look.

    Args:
        seen: Capped runtimes so far, at least one.
        largest: The captime: no number is larger.
        share: Allowed probability of failure for this configuration.
    """
    epoch = max(1, math.floor(math.log(seen.count, _EPOCH)) + 1)
    ends, began = math.floor(_EPOCH**epoch), math.floor(_EPOCH ** (epoch - 1))
    level = 3.0 * EPOCHS * epoch**1.1 / share
    x = max(1.0, ends / began) * math.log(level)
    return math.sqrt(2.0 * seen.variance * x / seen.count) + 3.0 * largest * x / seen.count
