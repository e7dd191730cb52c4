"""Many decisions at a time for procedures that work on one or two configurations per decision.

Such a procedure goes back and forth between configurations. Being told one run at a time would cost more than the
arithmetic itself, so a replay lays out lanes: what the next positions of some configurations will say. The procedure
walks them as far as they carry it and says whose turn it was; what it did not walk never happened.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.tally import Tally


class Lanes(Protocol):
    """The sums of some configurations after each of their next positions, each configuration from where it stands.

    Attributes:
        config: Which configurations, shape (A,).
        level: Their captime levels, the same along the whole lane, shape (A,).
        length: How many positions of each lane can be walked, shape (A,); 0 if its captime has to rise first.
        n: Prefix length after each position, shape (A, K).
        low: Sums of the low ends, shape (A, K).
        high: Sums of the high ends, shape (A, K).
        completed: Completed runs, shape (A, K).
    """

    config: IntArray
    level: IntArray
    length: IntArray
    n: IntArray
    low: FloatArray
    high: FloatArray
    completed: IntArray

    def payable(self, row: IntArray, /) -> int:
        """How many of these decisions begin before the CPU budget is spent; see `Turns.row`."""
        ...


@dataclass(frozen=True, slots=True)
class Turns:
    """What a procedure made of its lanes.

    Attributes:
        row: For each decision the lanes that moved one position, shape (decisions, lanes a decision moves); -1 where a
            decision moves fewer.
        config: Recommended configuration after each decision.
        epsilon: Certified epsilon after each decision.
        left: Candidates left after each decision. Configurations that were eliminated leave with the last one.
    """

    row: IntArray
    config: IntArray
    epsilon: FloatArray
    left: IntArray

    def __len__(self) -> int:
        return len(self.epsilon)


def no_turns() -> Turns:
    """The lanes do not carry a single decision: ask, answer and tell it in the plain way."""
    none = np.empty(0, dtype=np.int64)
    return Turns(none[:, None], none, np.empty(0), none)


@runtime_checkable
class TakesTurns(Protocol):
    """A procedure that can be told many decisions at once, and decides as if they came one by one.

    `ask(slots)` names first the configurations that the next decision needs, then others by how soon they are needed.
    """

    def tell_turns(self, lanes: Lanes, /) -> Turns:
        """Walk the lanes as far as they go; no turns if the very next decision needs something else."""
        ...


class SingleSteps:
    """Lanes of one position: what the tally says now about configurations that may stand at different positions."""

    def __init__(self, tally: Tally, config: IntArray) -> None:
        self.config = config
        self.level: IntArray = tally.level.take(config)
        self.length: IntArray = np.ones(len(config), dtype=np.int64)
        self.n: IntArray = tally.n[config, None]
        self.low: FloatArray = tally.utility_low[config, None]
        self.high: FloatArray = tally.utility_high[config, None]
        self.completed: IntArray = tally.completed[config, None]
        self.given_up: IntArray = tally.given_up.take(config)

    def payable(self, row: IntArray, /) -> int:
        """It has been paid."""
        return len(row)
