"""The sums a procedure is told: what is known of every configuration, no object per run.

Every run of a configuration's prefix counts, as an interval of its score. `utility_low` and `utility_high` are the
sums of the two ends, so that mean(low) and mean(high) are all that a bound on the mean needs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.certificate import Certificate
from captime.trace import Decisions

Samples = Callable[[int, int, int], tuple[FloatArray, FloatArray]]
"""`samples(config, first, last)`: low and high ends of that configuration on positions first, …, last - 1."""
Times = Callable[[int, int], tuple[FloatArray, BoolArray]]
"""`times(config, last)`: CPU seconds of that configuration's runs on positions 0, …, last - 1, and which of them have
ended. The others were last seen unfinished then. A failed run ends after infinitely many; not a number: no run."""


@dataclass(slots=True)
class Tally:
    """What is known, per configuration, under the order in force.

    Attributes:
        level: Level of the captime plan in force.
        n: Length of the prefix, skipped positions included.
        settled: Length of the prefix in which every run is settled at that level (always n in a replay).
        skipped: Positions of the prefix that were skipped for ever.
        open: Runs of the prefix that are not settled at that level (always 0 in a replay).
        completed: Runs of the prefix that ended before their captime.
        given_up: Settled runs of the prefix that were stopped before their captime and are never tried again (always 0
            in a replay). Their scores stay intervals: neither the high end nor the difference from u(κ) is proven.
        utility_low: Sum of the low ends of the scores.
        utility_high: Sum of the high ends of the scores.
        seconds: CPU seconds spent.
        runs: Executions started, repeated ones included.
        samples: The interval ends one by one, for bounds that need more than sums (paired comparison, betting bounds).
    """

    level: IntArray
    n: IntArray
    settled: IntArray
    skipped: IntArray
    open: IntArray
    completed: IntArray
    given_up: IntArray
    utility_low: FloatArray
    utility_high: FloatArray
    seconds: FloatArray
    runs: IntArray
    samples: Samples
    times: Times | None = None


def blank_tally(n_configs: int, samples: Samples, times: Times | None = None) -> Tally:
    """Return the tally before the first run."""

    def zeros() -> IntArray:
        return np.zeros(n_configs, dtype=np.int64)

    n = zeros()
    return Tally(
        level=zeros(),
        n=n,
        settled=n,  # the same array: a replay settles whatever it answers; a live tally has one of its own
        skipped=zeros(),
        open=zeros(),
        completed=zeros(),
        given_up=zeros(),
        utility_low=np.zeros(n_configs),
        utility_high=np.zeros(n_configs),
        seconds=np.zeros(n_configs),
        runs=zeros(),
        samples=samples,
        times=times,
    )


class Outlook(Protocol):
    """The sums of configurations in lockstep, as they will stand after each of the next K rounds.

    A replay can show many rounds at once, so that a lockstep procedure judges them in one stroke of array arithmetic.
    The procedure must decide as if it had been told one round at a time; what it does not accept never happened.

    Attributes:
        config: Which configurations, shape (A,).
        level: Their captime levels in the first round, shape (A,).
        n: Prefix length after each round, shape (K,).
        low: Sums of the low ends, shape (A, K).
        high: Sums of the high ends, shape (A, K).
    """

    config: IntArray
    level: IntArray
    n: IntArray
    low: FloatArray
    high: FloatArray

    def raise_captimes(self, rows: IntArray, after: IntArray) -> None:
        """Show these rows one level higher from the round that follows round number `after` (counted from 0).

        It counts only for rows that take part in that following round.
        """
        ...

    def within_budget(self, used: IntArray) -> bool:
        """Return whether all rounds begin before the CPU budget is spent, if row k takes part in `used[k]` of them."""
        ...


@dataclass(slots=True)
class PrefixSums:
    """An outlook of one round: what the tally says now."""

    config: IntArray
    level: IntArray
    n: IntArray
    low: FloatArray
    high: FloatArray

    def raise_captimes(self, rows: IntArray, after: IntArray) -> None:
        """Nothing follows the only round."""

    def within_budget(self, used: IntArray) -> bool:  # noqa: ARG002 (the only round has begun already)
        """Yes: it was ordered."""
        return True


def standing(tally: Tally, config: IntArray) -> PrefixSums:
    """Return what the tally says now about configurations that stand at the same position."""
    return PrefixSums(
        config,
        tally.level.take(config),
        tally.n[config[:1]],
        tally.utility_low[config, None],
        tally.utility_high[config, None],
    )


def one_decision(number: int, tally: Tally, held: Certificate, candidates: BoolArray) -> Decisions:
    """Return a single decision, from the books and the certificate as they are after it."""
    left = np.count_nonzero(candidates)
    row = (number, tally.seconds.sum(), tally.runs.sum(), held.config, held.epsilon, left)
    return Decisions(*(np.array([each]) for each in row))
