"""One call from wishes to result: a recorded table, a utility and a procedure in, a certificate with its story out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

import numpy as np

from captime.arrays import FloatArray
from captime.certificate import Certificate
from captime.drive import Observer, Outcome, drive
from captime.errors import ScenarioError
from captime.procedures import PROCEDURES, Problem
from captime.procedures.options import build_procedure
from captime.sources import RuntimeTable, read_table
from captime.sources.accounting import Accounting
from captime.sources.replay import Replay
from captime.sources.sampling import Stream, stream_of
from captime.utilities import Utility, parse_utility


@dataclass(frozen=True, slots=True)
class Simulation:
    """A finished simulation: what was asked and what came out.

    Attributes:
        table: The recorded runtimes.
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
    """

    table: RuntimeTable
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


def _never() -> bool:
    return False


def simulate(
    source: RuntimeTable | str | PathLike[str],
    *,
    utility: Utility | str,
    procedure: str = "race",
    delta: float = 0.1,
    epsilon: float = 0.1,
    captime_first: float = 1.0,
    sampling: str = "shuffle",
    seed: int = 0,
    accounting: Accounting = "restart",
    options: Mapping[str, object] | None = None,
    budget: float = np.inf,
    timeout: float | None = None,
    unsafe_format: str | None = None,
    observer: Observer | None = None,
    interrupted: Callable[[], bool] = _never,
) -> Simulation:
    """Run a procedure on recorded runtimes, as if the programs were run.

    Args:
        source: A table, or a path to one (see `captime.read_table`).
        utility: What answers are worth, as an object or as text such as `log-laplace(60, 1)`.
        procedure: Name in `captime.PROCEDURES`.
        delta: Allowed probability of a wrong certificate.
        epsilon: Stop once the recommended configuration is certified to be within this of the best; 0 for never.
        captime_first: The captime everyone starts with, in seconds.
        sampling: `shuffle` (each instance once in random order), `given` (as recorded) or `replace` (with replacement).
        seed: Seed of the sampling.
        accounting: `restart` (a cut run is paid again in full when its captime rises) or `resume` (only what is added).
        options: Options of the procedure.
        budget: Stop once so many CPU seconds are spent.
        timeout: The table's own timeout, where the file does not say it.
        unsafe_format: Name of a format that is only read on request, such as `pickle`.
        observer: Called after every decision or batch of decisions.
        interrupted: Asked between decisions; True stops with the certificate held so far.

    >>> from captime.sources.synthetic import synthetic_table
    >>> result = simulate(synthetic_table(1, 5, 4000, limit=900.0), utility="uniform(60)", epsilon=0.3)
    >>> result.certificate.epsilon <= 0.3, result.outcome.stopped
    (True, 'epsilon')
    """
    if accounting not in ("restart", "resume"):
        raise ScenarioError(f"accounting is {accounting!r}; there are restart and resume")
    if not budget > 0:
        raise ScenarioError(f"the budget is {budget!r} CPU seconds, but it has to be positive")
    if not isinstance(source, RuntimeTable):
        source = read_table(Path(source), timeout=timeout, unsafe_format=unsafe_format)
    if isinstance(utility, str):
        utility = parse_utility(utility)
    stream = stream_of(sampling, source.groups, seed)
    problem = Problem(
        n_configs=source.n_configs,
        utility=utility,
        delta=delta,
        epsilon=epsilon,
        captime_first=captime_first,
        captime_limit=source.limit,
        n_instances=stream.length,
        seed=seed,
        known_runtimes=_truth(source, stream),
    )
    made = build_procedure(procedure, PROCEDURES, problem, options or {})
    replay = Replay(source, stream, made.plan, utility, accounting=accounting, pays=made.pays)
    outcome = drive(made, replay, budget=budget, observer=observer, interrupted=interrupted)
    return Simulation(
        table=source,
        utility=utility,
        procedure=procedure,
        options=dict(options or {}),
        bound=made.bound,
        repeats=made.plan.repeats,
        delta=delta,
        epsilon=epsilon,
        sampling=sampling,
        population=stream.population,
        seed=seed,
        accounting=accounting,
        outcome=outcome,
    )


def _truth(table: RuntimeTable, stream: Stream) -> Callable[[int], FloatArray] | None:
    """For hypothetical procedures: everything the stream will ever show of a configuration; None if it is endless."""
    length = stream.length
    if length is None:
        return None
    rows = stream.rows(0, length)

    def runtimes(config: int) -> FloatArray:
        seconds = table.seconds[config].take(rows)
        # At the table's timeout a run is known to take at least that long; nobody knows that it ever ends.
        return np.where(seconds >= table.limit, np.inf, seconds)

    return runtimes
