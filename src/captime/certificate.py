"""What a procedure says: its standing orders, and its certificate.

An order reads: *know configuration `config` on its first `n` stream positions at captime level `level`*; which runs
follow from it is not the procedure's business. Orders are parallel arrays, because a lockstep procedure places a
thousand of them at once. The certificate names one configuration, and bounds how much better another one may be.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import numpy as np

from captime.arrays import IntArray
from captime.errors import ScenarioError

RULES = 1
"""Number of the rules of deciding. A ledger is resumed by deciding again from its rows, so its decisions must come out
the same: this number becomes the next one with every change that lets a procedure, a bound, a draw or a share of delta
decide otherwise on the same rows, and with no other change. captime's own version is not part of the identity.

`tests/golden/test_rules_of_deciding.py` (race and pool at 1, 8 and 64 slots) and `test_stored_ledgers.py` guard it: if
one of them fails, either the change was not meant, or this number has to grow and the traces are recorded anew. The
check in `captime.skeptic` has to confirm ledgers of all numbers there ever were: it finds theirs in their scenario.
"""
Mode = Literal["selection", "simultaneous", "nothing"]
"""What delta covers; see `Certificate`."""


class Population(StrEnum):
    """The instances that a claim is about."""

    THESE = "these"
    """Exactly the instances of the set, each with its seed. The only randomness is captime's own."""
    DRAWN = "drawn"
    """The distribution from which the instances were drawn, or are a fair sample of."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """With probability at least 1 - delta, `config` is within `epsilon` of the best of `n_configs` configurations.

    The statement holds at every moment at once: it may be read, and the run stopped, whenever one likes.

    Attributes:
        config: Index of the recommended configuration.
        epsilon: No configuration's expected utility exceeds this one's by more. 1 says nothing yet.
        delta: Allowed probability that any certificate of the run was wrong; 0 for statements about a known table.
        n_configs: Among how many.
        utility_low: Lower bound on the expected utility of `config`.
        utility_high: Upper bound on it.
        gamma: In infinite spaces, the best fraction that is left out of the comparison.
        challenger: The closest rival: the configuration that could still be better by epsilon; None if there is none.
        mode: What delta covers. `simultaneous`: every interval of every configuration, hence the recommendation.
            `selection`: the recommendation and its own interval, but not the upper bounds of all others at once.
            `nothing`: the procedure promises nothing about utility; epsilon is 1 and the interval is [0, 1].
        shares: How delta is spent, as (kind of statement, share of delta).
        population: The instances that the claim is about.
        instances: Number of instances of the set; only of a claim about exactly these.
        instances_run: Number of instances on which the utility of `config` is known exactly; only of such a claim.
        other: The claim about the other population that the same runs support, for the same configuration, with an
            epsilon of its own; None if there is none. Each of the two claims has the failure probability delta.
    """

    config: int
    epsilon: float
    delta: float
    n_configs: int
    utility_low: float
    utility_high: float
    gamma: float | None = None
    challenger: int | None = None
    mode: Mode = "simultaneous"
    shares: tuple[tuple[str, float], ...] = (("intervals", 1.0),)
    population: Population = Population.DRAWN
    instances: int | None = None
    instances_run: int | None = None
    other: "Certificate | None" = None


def check_delta(delta: float) -> None:
    """Refuse a failure probability that is not strictly between 0 and 1."""
    if not 0.0 < delta < 1.0:
        raise ScenarioError(f"delta is {delta!r}, but a failure probability lies strictly between 0 and 1; try 0.1")


@dataclass(frozen=True, slots=True)
class Orders:
    """Parallel arrays of orders, one entry per configuration named.

    Attributes:
        config: Configuration indices, each at most once.
        n: How many positions of the stream, counted from its start. Only ever grows for a configuration.
        level: Level of the captime plan. Only ever grows for a configuration.
        first: Positions below it that a configuration has not run yet are skipped for ever; None skips nothing. Whether
            a position is skipped must not depend on anything seen on it or after it.
    """

    config: IntArray
    n: IntArray
    level: IntArray
    first: IntArray | None = None

    def __len__(self) -> int:
        return len(self.config)


def no_orders() -> Orders:
    """Nothing to order now: the procedure is done, or waits for what is under way."""
    empty = np.empty(0, dtype=np.int64)
    return Orders(empty, empty, empty)
