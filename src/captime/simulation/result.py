"""What a simulation came to: what was asked, and what came out."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from captime.certificate import Certificate
from captime.drive import Outcome
from captime.sources import RuntimeTable
from captime.sources.window import Accounting
from captime.spaces import Settings
from captime.utilities import Utility

# Who took part in a simulation on a space, in the place where a simulation on a table has its table.


@dataclass(frozen=True, slots=True)
class Found:
    """What the answer is really worth: simulations know their targets' laws.

    Attributes:
        settings: Of the recommended configuration.
        worth: Its expected utility.
        best: The largest expected utility in the pool.
        default: Expected utility of the default configuration; None where the rows of a table are all there is,
            and none of them is the default.
        above: The share of random configurations that are better by more than the certified epsilon.
        drawn: How many random configurations that was estimated from.
    """

    settings: Settings
    worth: float
    best: float
    default: float | None
    above: float
    drawn: int


@dataclass(frozen=True, slots=True)
class Pooled:
    """The pool as it was at the end.

    Attributes:
        name: What to call the target.
        configs: Names by index.
        settings: Settings by index.
        limit: Nothing is known of runs beyond this.
        n_instances: Recorded instances behind the target; 0 if there are none.
        law: What runtimes rest on.
        proposals: Configurations of the pool that a model proposed.
        found: What the answer is really worth.
        notes: What a reader of the results should know.
    """

    name: str
    configs: tuple[str, ...]
    settings: tuple[Settings, ...]
    limit: float
    n_instances: int
    law: str
    proposals: int
    found: Found
    notes: tuple[str, ...] = ()

    @property
    def n_configs(self) -> int:
        """How many there were at the end."""
        return len(self.configs)


# What a simulation came to: what was asked, and what came out.


@dataclass(frozen=True, slots=True, repr=False)
class Simulation:
    """A finished simulation: what was asked and what came out.

    Attributes:
        table: The recorded runtimes, or who took their place on a space.
        utility: What answers are worth.
        procedure: Name of the procedure.
        options: Its options, as given.
        bound: Name of the bound it used.
        repeats: Whether cut runs are made again with longer captimes, which needs programs that repeat themselves.
        delta: Allowed probability of a wrong certificate.
        epsilon: Goal.
        sampling: How instances were drawn from the table.
        population: `stream` (the distribution the instances come from) or `finite` (exactly these instances).
        seed: Seed of the sampling.
        accounting: Which cost is reported as *the* cost.
        outcome: What came out.
        matrix_cpu_seconds: CPU seconds of every configuration on every instance of the set, each run up to the longest
            captime that is of use; None where the instances have no end.
    """

    table: RuntimeTable | Pooled
    utility: Utility
    procedure: str
    options: Mapping[str, object]
    bound: str
    repeats: bool
    delta: float
    epsilon: float
    sampling: str
    population: str
    seed: int
    accounting: Accounting
    outcome: Outcome = field(repr=False)
    matrix_cpu_seconds: float | None = None

    def __repr__(self) -> str:
        """Return one line: the recommended configuration, what is certified of it, and what it would have cost."""
        held = self.certificate
        return (
            f"<Simulation of {self.table.name!r}: {self.config_name!r}, epsilon {held.epsilon:.4f}, delta "
            f"{held.delta:g}, {int(self.outcome.runs.sum()):,} runs, {self.cpu_seconds:.6g} CPU seconds>"
        )

    @property
    def certificate(self) -> Certificate:
        """The statement."""
        return self.outcome.certificate

    @property
    def config_name(self) -> str:
        """Name of the recommended configuration."""
        return self.table.configs[self.certificate.config]

    @property
    def cpu_seconds(self) -> float:
        """What it would have cost, in the accounting chosen."""
        return float(self.outcome.seconds.sum())

    def cpu_seconds_under(self, accounting: Accounting) -> float:
        """What it would have cost under either accounting; the decisions are the same."""
        rerun = self.outcome.rerun_seconds
        return self.cpu_seconds - rerun[self.accounting] + rerun[accounting]
