"""What the model may cost: one core, and a small share of what the runs themselves have cost so far."""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np

from captime.spaces.features import Basis
from captime.spaces.model import MOST
from captime.spaces.space import Space

# Keep matrix arithmetic on one core: the others belong to the programs that are being timed.
#
# NumPy's usual wheels carry OpenBLAS, which takes all cores for matrices of a hundred rows and lets them spin while
# they wait for each other. There is no switch for it in NumPy, but the library itself has one. Where it is another
# library, or the switch is not found, nothing is changed: it costs time, not correctness.

# Names of the two functions, as the wheels of different years have them.
_PREFIXES = ("scipy_openblas_", "openblas_")
_SUFFIXES = ("64_", "")
_Switch = tuple[Callable[[], int], Callable[[int], None]]


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside, matrix arithmetic takes one core; afterwards it is as before."""
    switch = _found()
    if switch is None:
        yield
        return
    get, put = switch
    before = get()
    put(1)
    try:
        yield
    finally:
        put(before)


@cache
def _found() -> _Switch | None:
    """Reads and sets the number of threads."""
    for path in sorted((Path(np.__file__).parents[1] / "numpy.libs").glob("lib*openblas*")):
        try:
            library = ctypes.CDLL(str(path))
        except OSError:
            continue
        for prefix in _PREFIXES:
            for suffix in _SUFFIXES:
                get = getattr(library, f"{prefix}get_num_threads{suffix}", None)
                put = getattr(library, f"{prefix}set_num_threads{suffix}", None)
                if get is not None and put is not None:
                    return get, put
    return None


# What a model may cost: a small share of what the runs themselves have cost so far.
#
# The cost of fitting is not measured but estimated, by a formula that was calibrated once: a decision that depends on
# a stopwatch could not be taken again in the same way when a campaign is resumed. `python benchmarks/model.py`
# compares the estimate with a stopwatch.

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
