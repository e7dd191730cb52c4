"""Methods of other authors, to compare with: their register, and the bench on which they make their runs.

They promise nothing about utility: most look for the smallest mean runtime, some promise nothing at all. What each does
promise stands beside it, in words; a certificate of epsilon 1 ("nothing is certified") is all they can give here.

Why not ask and tell? The other procedures order "the first n positions at one captime level" and are told sums of
utilities. Baselines want other things: a queue in which every instance has a captime of its own, runtimes instead of
utilities, races in which the first to finish stops the rest. They are given a bench and make runs on it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.errors import ScenarioError
from captime.utilities.formula import Utility

_CHUNK = 256


@dataclass(frozen=True, slots=True)
class Guess:
    """The configuration that a baseline would recommend now, and how many it still considers."""

    config: int
    left: int


Guesses = Iterator[Guess]


@dataclass(frozen=True, slots=True)
class Baseline:
    """A procedure of others.

    Attributes:
        search: `search(bench, option=value, ...)` makes runs and yields the configuration it would recommend.
        guarantee: What its authors prove about its answer, in words; never anything about utility.
        reference: Where it is described.
    """

    search: Callable[..., Guesses]
    guarantee: str
    reference: str


BASELINES: dict[str, Baseline] = {}
"""Methods of other authors by name. They come from packages, such as captime-research, by their entry points."""


class NoMoreInstances(Exception):  # noqa: N818 (an end, not an error: the driver stops here)
    """The stream has no position left that a baseline wants."""


class Bench:
    """Runs of every configuration on every position of the stream, paid for.

    A completed run costs its runtime, a cut one its captime; asking again for a completed run costs nothing. A cut run
    that is made again with a longer captime costs all of it (`restart`) or what is added (`resume`). Completed means
    strictly before the captime.

    Args:
        runtimes: `runtimes(config, first, last)`: how long that configuration takes on positions first, …, last - 1.
        n_configs: How many configurations.
        utility: What an answer is worth.
        longest: Nothing is known of runs beyond it; every captime is cut to it.
        length: How many positions the stream has; None if it is endless.
        rng: For baselines that draw configurations.
        delta: The probability of a wrong certificate that the user allows; baselines make none, and pass it on.
        accounting: Which cost counts as spent.
        names: Names of the configurations, from which searchers read their parameters; may be empty.

    Attributes:
        spent: CPU seconds in all, in the accounting chosen.
        seconds: The same, per configuration.
        samples: How far into the stream each configuration has got.
        runs: Executions per configuration.
        resumed: CPU seconds in all, had capped runs been resumed where they stopped.
        restarted: CPU seconds in all, had they begun anew.
    """

    def __init__(
        self,
        runtimes: Callable[[int, int, int], FloatArray],
        n_configs: int,
        utility: Utility,
        *,
        longest: float,
        length: int | None,
        rng: np.random.Generator,
        delta: float = 0.1,
        accounting: Literal["restart", "resume"] = "restart",
        names: tuple[str, ...] = (),
    ) -> None:
        self.n_configs = n_configs
        self.utility = utility
        self.longest = longest
        self.length = length
        self.rng = rng
        self.delta = delta
        self.names = names
        self.seconds: FloatArray = np.zeros(n_configs)
        self.runs: IntArray = np.zeros(n_configs, dtype=np.int64)
        self.samples: IntArray = np.zeros(n_configs, dtype=np.int64)
        self.resumed = self.restarted = self.spent = 0.0
        self._resume = accounting == "resume"
        self._runtimes = runtimes
        self._known: list[FloatArray] = [np.empty(0) for _ in range(n_configs)]
        # How long each run has been tried; infinite once it completed.
        self._tried: list[FloatArray] = [np.empty(0) for _ in range(n_configs)]

    def run(self, config: int, position: int, captime: float) -> tuple[float, bool]:
        """Make one run; return the seconds it took up to its captime, and whether it completed."""
        seconds, completed = self.prefix(config, position, position + 1, captime)
        return float(seconds[0]), bool(completed[0])

    def prefix(self, config: int, first: int, last: int, captime: float) -> tuple[FloatArray, BoolArray]:
        """Run positions first, …, last - 1 at one captime; return the seconds of each run, and which completed."""
        captime = min(captime, self.longest)
        self._reach(config, last)
        true, tried = self._known[config][first:last], self._tried[config][first:last]
        completed = true < captime
        seconds = np.minimum(true, captime)
        again = (tried < captime) & ~np.isinf(tried)
        whole = float(seconds[again].sum())
        if not np.isfinite(whole):
            raise ScenarioError(
                "a run never ends and the table has no timeout to stop it; declare one with --timeout to use baselines"
            )
        added = whole - float(tried[again].sum())
        self.restarted += whole
        self.resumed += added
        cost = added if self._resume else whole
        self.spent += cost
        self.seconds[config] += cost
        self.runs[config] += int(np.count_nonzero(again))
        self.samples[config] = max(self.samples[config], last)
        tried[again] = np.where(completed[again], np.inf, captime)
        return seconds, completed

    def utilities(self, config: int, first: int, last: int, captime: float) -> FloatArray:
        """The same runs, scored: u(min(t, κ)), as the papers' code does for heuristics."""
        seconds, _ = self.prefix(config, first, last, captime)
        return self.utility(seconds)

    def race(self, configs: IntArray, position: int, captime: float) -> int | None:
        """All start together; when the first completes the rest are stopped. The winner, or None if all are cut."""
        captime = min(captime, self.longest)
        times = []
        for config in configs.tolist():
            self._reach(config, position + 1)
            times.append(float(self._known[config][position]))
        best = int(np.argmin(times))
        finished = times[best] < captime
        until = times[best] if finished else captime
        for place, config in enumerate(configs.tolist()):
            # The winner needs a captime just above its own time; all others are stopped at that moment.
            self.prefix(config, position, position + 1, np.nextafter(until, np.inf) if place == best else until)
        return int(configs[best]) if finished else None

    def _reach(self, config: int, last: int) -> None:
        """Fetch runtimes up to that position."""
        if self.length is not None and last > self.length:
            raise NoMoreInstances
        have = len(self._known[config])
        if last > have:
            upto = max(last, have + _CHUNK, have * 3 // 2)
            if self.length is not None:
                upto = min(upto, self.length)
            self._known[config] = np.concatenate((self._known[config], self._runtimes(config, have, upto)))
            self._tried[config] = np.concatenate((self._tried[config], np.zeros(upto - have)))
