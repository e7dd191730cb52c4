"""Where the methods of benchmarks/search.py spend CPU time: targets learnt from recorded tables, and a book of costs.

A run costs its simulated seconds, up to its captime. What a method computes itself is measured, and booked beside it.
All methods with the same seed meet the same runtimes: those of a configuration at a position of the stream are fixed.
Half of a table's instances are in the stream, the other half is held out; which ones is a matter of the seed.
"""

import os
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.procedures.protocol import Procedure
from captime.simulation import Learnt, settings_of_list, simulate_on_space
from captime.sources import RuntimeTable, read_table
from captime.sources.replay import Replay
from captime.spaces import Proposer, Settings, Space, order_for, read_space
from captime.utilities import Utility, parse_utility

TABLES = Path(os.environ.get("CAPTIME_TABLES", Path(__file__).parents[2] / "shared" / "data" / "configured"))
"""A folder for each target, with params.pcs, configlist.csv and runs.csv."""
UTILITY = "log-laplace(60, 1)"
_TIMEOUT = 300.0
# Which instances are held out.
_SPLIT = 0x5B117


class BudgetSpent(Exception):  # noqa: N818 (an end, not an error)
    """The CPU time that the method may spend is spent, or it has been thinking for too long."""


@dataclass(frozen=True, slots=True)
class Step:
    """From here on this is the incumbent.

    Attributes:
        spent: Simulated CPU seconds of runs until then.
        thinking: The method's own CPU seconds until then.
        settings: The incumbent's.
    """

    spent: float
    thinking: float
    settings: Settings


def targets() -> list[str]:
    """The targets there are, by name."""
    return sorted(path.parent.name for path in TABLES.glob("*/params.pcs"))


@lru_cache(maxsize=4)
def recorded(target: str) -> tuple[Space, RuntimeTable, list[Settings]]:
    """A space, its table and the settings of its rows."""
    folder = TABLES / target
    space = read_space(folder / "params.pcs")
    table = read_table(folder / "runs.csv", timeout=_TIMEOUT)
    return space, table, settings_of_list(folder / "configlist.csv", space, table.n_configs)


class SearchBench:
    """Runs of one method on one target, and the story of its incumbents.

    Args:
        target: Name of its folder.
        seed: Of the split, the stream and the search; the landscape is the same for all.
        budget: Simulated CPU seconds.
        patience: CPU seconds that the method itself may take.
    """

    def __init__(self, target: str, seed: int, budget: float, patience: float = np.inf) -> None:
        self.name = target
        self.space, table, settings = recorded(target)
        order = np.random.default_rng([_SPLIT, seed]).permutation(table.n_instances)
        self.held_out: IntArray = np.sort(order[: table.n_instances // 2])
        met: IntArray = np.sort(order[table.n_instances // 2 :])
        self.seed, self.budget, self.patience = seed, budget, patience
        self.utility: Utility = parse_utility(UTILITY)
        self.captime = _TIMEOUT
        self.target = _Timed(self.space, table, settings, seed=seed, instances=met, forest=_landscape(target).forest)
        self.on_runs, self.runs, self.elsewhere = 0.0, 0, 0.0
        self.ended = "budget"
        self.story: list[Step] = []
        # Of captime's own campaigns: CPU seconds of runs, and the epsilon that was certified then.
        self.certified: list[tuple[float, float]] = []
        # And the configurations of their pools, with how many there were at which CPU second of runs.
        self.members: list[Settings] = []
        self.grown: list[tuple[float, int]] = []
        self._indices: dict[bytes, int] = {}
        self._began = time.process_time()
        self.recommends(self.space.default)

    @property
    def landscape(self) -> float:
        """What the default is worth on all instances, by which a landscape is known: other machines may grow others."""
        every = np.arange(recorded(self.name)[1].n_instances)
        return round(float(self.target.worths_on([self.space.default], self.utility, every)[0]), 9)

    @property
    def thinking(self) -> float:
        """CPU seconds of the method itself: what the target took to answer is taken off."""
        return time.process_time() - self._began - self.target.inside + self.elsewhere

    def check(self) -> None:
        """Stop the method if nothing is left."""
        if self.on_runs >= self.budget:
            raise BudgetSpent
        if self.thinking > self.patience:
            self.ended = "patience"
            raise BudgetSpent

    def seconds(self, settings: Settings, positions: range, captime: float | None = None) -> FloatArray:
        """Runs, paid for up to their captime."""
        self.check()
        key = self.space.codes(settings).tobytes()
        if key not in self._indices:
            self._indices[key] = len(self._indices)
            self.target.add(settings)
        longest = self.captime if captime is None else captime
        found = np.minimum(self.target.seconds(self._indices[key], positions.start, positions.stop), longest)
        self.on_runs += float(found.sum())
        self.runs += len(found)
        return found

    def utilities(self, settings: Settings, positions: range) -> FloatArray:
        """What runs are worth; one that was cut counts as never finishing, as it does on held-out instances."""
        seconds = self.seconds(settings, positions)
        return np.asarray(np.where(seconds < self.captime, self.utility(seconds), 0.0))

    def recommends(self, settings: Settings) -> None:
        """The method's incumbent is this one now."""
        if not self.story or self.story[-1].settings != settings:
            self.story.append(Step(self.on_runs, self.thinking, dict(settings)))

    def pool(self, *, effort: str, model: bool = True) -> None:
        """A campaign of captime's, with goals that it will not reach."""
        order = order_for(effort)
        made = _Remembered(
            Proposer(
                self.space,
                self.seed,
                model=model,
                draws_first=order.draws_first,
                proposals=order.proposals,
                listed=[],
            )
        )

        def watch(procedure: Procedure, replay: Replay) -> None:
            self.on_runs = float(replay.tally.seconds.sum())
            self.runs = int(replay.tally.runs.sum())
            held = procedure.certificate()
            self.recommends(made.settings[held.config])
            self.certified.append((self.on_runs, held.epsilon))
            self.grown.append((self.on_runs, len(made.settings)))

        def interrupted() -> bool:
            if self.thinking > self.patience:
                self.ended = "patience"
                return True
            return False

        simulate_on_space(
            made,
            self.target,
            utility=self.utility,
            epsilon=0.02,
            seed=self.seed,
            options={"gamma": 0.0, "effort": effort},
            budget=self.budget,
            observer=watch,
            interrupted=interrupted,
        )
        self.members = made.settings

    def best_members(self, spent: list[float]) -> list[float]:
        """Return what the best configuration of the pool was worth at each of these CPU seconds, named or not."""
        worths = self.worths(self.members)
        sizes = [[size for at, size in self.grown if at <= each][-1:] or [1] for each in spent]
        return [float(worths[: size[0]].max()) for size in sizes]

    def worths(self, found: list[Settings]) -> FloatArray:
        """What configurations are worth on held-out instances, exactly."""
        return self.target.worths_on(found, self.utility, self.held_out)


class _Timed(Learnt):
    """A target that knows how long it took to answer."""

    inside = 0.0

    def add(self, settings: Settings) -> None:
        """See the protocol."""
        began = time.process_time()
        super().add(settings)
        self.inside += time.process_time() - began

    def seconds(self, config: int, first: int, last: int) -> FloatArray:
        """See the protocol."""
        began = time.process_time()
        found = super().seconds(config, first, last)
        self.inside += time.process_time() - began
        return found


@lru_cache(maxsize=4)
def _landscape(target: str) -> Learnt:
    """What is learnt from a table, once for all searches on it."""
    space, table, settings = recorded(target)
    return Learnt(space, table, settings, forest_seed=0)


class _Remembered:
    """A proposer whose configurations can be looked up."""

    def __init__(self, proposer: Proposer) -> None:
        self._proposer = proposer
        self.n_listed, self.model, self.draws_first = proposer.n_listed, proposer.model, proposer.draws_first
        self.proposals = proposer.proposals
        self.settings: list[Settings] = []

    def origin(self, index: int) -> str:
        """Of the proposer."""
        return self._proposer.origin(index)

    def propose(self, index: int, *what: Any) -> Settings:
        """Of the proposer."""
        self.settings.append(self._proposer.propose(index, *what))
        return self.settings[-1]
