"""What an experiment is run on: a table, a time scale, a way of sampling; and the few questions all of them ask."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.procedures.naive import Naive
from captime.procedures.problem import Problem
from captime.simulation import Simulation, simulate
from captime.sources import RuntimeTable
from captime.utilities import parse_utility
from captime_research.baselines import register

# The paper's κ0, and the timeout of its table of minisat: 15 κ0.
PAPER_SCALE, PAPER_TIMEOUT = 60.0, 900.0
# The paper's tables have 20,000 to 50,000 instances, each used once. A table of that size is used as it was there;
# a smaller one is sampled with replacement, and stands for exactly its instances.
_LARGE = 10_000
# The paper's timeout of CPLEX is 10,000 s, 167 κ0; what comes near that is treated alike.
_LONG = 5_000.0
# A point of a curve that needs more runs of a configuration than this is missing, as it is in the paper for want of
# instances: its smallest table has 20,118.
_MOST_RUNS = 20_000


@dataclass(frozen=True)
class Setting:
    """A table and how it is looked at.

    Args:
        table: The recorded runtimes.
        scale: κ0 in seconds, which everything else is measured in. Left out: 60 s as in the paper if the table's
            timeout is 900 s or more. Otherwise the median runtime, to two digits, at most a fifteenth of the timeout,
            the paper's proportion: under a utility that falls long after the runs have ended, all would be alike.
        sampling: `shuffle` or `replace`. Left out: by the size of the table.
        delta: Allowed probability of a wrong certificate.

    Attributes:
        factor: By how much the paper's times are multiplied here: κ0 / 60 s.
    """

    table: RuntimeTable
    scale: float | None = None
    sampling: str | None = None
    delta: float = 0.1
    factor: float = field(init=False)

    def __post_init__(self) -> None:
        scale = _usual_scale(self.table) if self.scale is None else self.scale
        sampling = "shuffle" if self.table.n_groups >= _LARGE else "replace"
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "sampling", sampling if self.sampling is None else self.sampling)
        object.__setattr__(self, "factor", scale / PAPER_SCALE)

    @property
    def log_laplace(self) -> str:
        """The paper's first utility, in this table's time."""
        return f"log-laplace({self._second(PAPER_SCALE)}, 1)"

    @property
    def uniform(self) -> str:
        """The paper's second utility, in this table's time."""
        return f"uniform({self._second(PAPER_SCALE)})"

    def time(self, paper_seconds: float) -> float:
        """A time of the paper, in this table's time."""
        return paper_seconds * self.factor

    def _second(self, paper_seconds: float) -> str:
        return f"{self.time(paper_seconds):.6g}"

    @property
    def long(self) -> bool:
        """Whether this is a table like the paper's of CPLEX, for which it has longer grids than for minisat."""
        return self.table.limit >= self.time(_LONG)

    @property
    def note(self) -> str:
        """What the curves have in common, in small print."""
        drawn = "with replacement" if self.sampling == "replace" else "each instance once"
        return f"{self.table.name}: κ0 = {self._second(PAPER_SCALE)} s, δ = {self.delta:g}, {drawn}"

    @property
    def most_runs(self) -> int:
        """How many runs of one configuration there can be."""
        return self.table.n_groups if self.sampling == "shuffle" else _MOST_RUNS

    def run(
        self,
        procedure: str,
        utility: str,
        epsilon: float,
        seed: int,
        options: Mapping[str, object] | None = None,
        *,
        budget: float = math.inf,
    ) -> Simulation:
        """One simulation in this setting."""
        register()
        return simulate(
            self.table,
            utility=utility,
            procedure=procedure,
            options=options,
            delta=self.delta,
            epsilon=epsilon,
            captime_first=self.time(1.0),
            sampling=str(self.sampling),
            seed=seed,
            budget=budget,
        )

    def naive_fits(self, utility: str, epsilon: float, captime: float) -> None:
        """Refuse, with the reason, what Naive cannot do within the runs there are."""
        Naive(
            Problem(
                self.table.n_configs,
                parse_utility(utility),
                self.delta,
                epsilon,
                captime_limit=self.table.limit,
                n_instances=self.most_runs,
            ),
            captime=captime,
            variant="as-published",
        )

    def truth(self, utility: str) -> FloatArray:
        """Mean utility of every configuration over the whole table; a run at the timeout counts as worth nothing."""
        worth = parse_utility(utility)
        done = self.table.seconds < self.table.limit
        means: FloatArray = (worth(self.table.seconds) * done).mean(axis=1)
        return means


def _usual_scale(table: RuntimeTable) -> float:
    known = table.seconds[np.isfinite(table.seconds)]
    timeout = table.limit if math.isfinite(table.limit) else float(known.max())
    if timeout >= PAPER_TIMEOUT:
        return PAPER_SCALE
    typical = float(np.median(table.seconds))
    return float(f"{min(typical, timeout * PAPER_SCALE / PAPER_TIMEOUT):.2g}")


def first_time(result: Simulation, epsilons: FloatArray) -> FloatArray:
    """CPU seconds until each of these was certified; NaN where it never was."""
    made = result.outcome.trace.decisions()
    best = np.minimum.accumulate(made.epsilon) if len(made.epsilon) else made.epsilon
    # `best` falls; the first place where it is at most each goal.
    place: IntArray = np.searchsorted(-best, -np.asarray(epsilons), side="left")
    seconds: FloatArray = np.append(made.seconds, np.nan)
    return seconds.take(np.minimum(place, len(made.seconds)))
