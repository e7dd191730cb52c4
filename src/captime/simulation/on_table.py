"""A recorded table, a utility and a procedure in, a certificate with its story out."""

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path

import numpy as np

from captime.arrays import FloatArray
from captime.certificate import Certificate, Population
from captime.drive import Observer, Outcome, drive
from captime.errors import ScenarioError
from captime.procedures import ON_A_SET, REGISTERS, Problem
from captime.procedures.baselines import BASELINES, Bench, NoMoreInstances
from captime.procedures.problem import build_procedure, read_options
from captime.runs import never
from captime.simulation.result import Simulation
from captime.sources import RuntimeTable, read_table
from captime.sources.replay import Replay
from captime.sources.window import Accounting, RowStream, stream_of
from captime.trace import Decisions, Trace
from captime.utilities import Utility, utility_of

# Keeps what a baseline draws apart from everything else that is derived from the same seed.
_BASELINE_KEY = 0x62617365


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
    interrupted: Callable[[], bool] = never,
    population: Population | str = Population.DRAWN,
) -> Simulation:
    """Run a procedure on recorded runtimes, as if the programs were run.

    Args:
        source: A table, or a path to one (see `captime.read_table`).
        utility: What answers are worth, as an object or as text such as `log-laplace(60, 1)`.
        procedure: Name in `captime.PROCEDURES`, or of a baseline (`captime list` has both).
        delta: Allowed probability of a wrong certificate.
        epsilon: Stop once the recommended configuration is certified to be within this of the best; 0 for never.
        captime_first: The captime every configuration starts with, in seconds.
        sampling: `shuffle` (each instance once in random order), `given` (as recorded) or `replace` (with replacement).
        seed: Seed of the sampling.
        accounting: `restart` (a cut run is paid again in full when its captime rises) or `resume` (only what is added).
        options: Options of the procedure.
        budget: Stop once this many CPU seconds are spent.
        timeout: Timeout of the recorded runs, if the file does not state it.
        unsafe_format: Name of a format that is only read on request, such as `pickle`.
        observer: Called after every decision or batch of decisions.
        interrupted: Asked between decisions; True stops with the certificate held so far.
        population: `these` for the best on exactly these instances, `drawn` for the distribution they come from. The
            goal is about the one chosen; the certificate about these instances carries the other claim, too.

    >>> from captime.sources.synthetic import synthetic_table
    >>> result = simulate(synthetic_table(1, 5, 4000, limit=900.0), utility="uniform(60)", epsilon=0.3)
    >>> result.certificate.epsilon <= 0.3, result.outcome.stopped
    (True, 'epsilon')
    """
    check_wishes(accounting, budget)
    if not isinstance(source, RuntimeTable):
        source = read_table(Path(source), timeout=timeout, unsafe_format=unsafe_format)
    utility = utility_of(utility)
    stream = stream_of(sampling, source.groups, seed)
    about = population_of(population, sampling, procedure)
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
        population=about,
    )
    if procedure in BASELINES:
        bench = _bench(source, stream, problem, accounting)
        outcome = _drive_baseline(procedure, options or {}, bench, budget, interrupted)
        bound, repeats = "none", True
    else:
        made = build_procedure(procedure, REGISTERS, problem, options or {})
        replay = Replay(source, stream, made.plan, utility, accounting=accounting, pays=made.pays)
        outcome = drive(made, replay, budget=budget, observer=observer, interrupted=interrupted)
        bound, repeats = made.bound, made.plan.repeats
    return Simulation(
        table=source,
        utility=utility,
        procedure=procedure,
        options=dict(options or {}),
        bound=bound,
        repeats=repeats,
        delta=delta,
        epsilon=epsilon,
        sampling=sampling,
        population=stream.population,
        seed=seed,
        accounting=accounting,
        outcome=outcome,
        matrix_cpu_seconds=_matrix_seconds(source, stream, problem.captime_top),
    )


def population_of(population: str, sampling: str, procedure: str) -> Population:
    """Return the instances that a claim is about; refuse a claim that the sampling or the procedure cannot carry."""
    if population not in tuple(Population):
        raise ScenarioError(f"population is {population!r}; there are {', '.join(Population)}")
    about = Population(population)
    if about is Population.THESE and sampling != "shuffle":
        raise ScenarioError(
            f"population is 'these' and sampling is {sampling!r}, but a claim about exactly these instances needs an "
            "order that captime draws itself; use sampling 'shuffle'"
        )
    if about is Population.THESE and procedure not in ON_A_SET:
        raise ScenarioError(
            f"procedure {procedure} makes no claim about exactly these instances; use population 'drawn', or one of "
            f"{', '.join(sorted(ON_A_SET))}"
        )
    return about


def _matrix_seconds(source: RuntimeTable, stream: RowStream, captime: float) -> float | None:
    """Return what it costs to run every configuration on every instance up to a captime; None on an endless stream."""
    if stream.length is None:
        return None
    seconds = source.seconds[:, stream.rows(0, stream.length)]
    return float(np.minimum(seconds, captime).sum())


def check_wishes(accounting: str, budget: float) -> None:
    """Refuse what makes no sense, with what would."""
    if accounting not in ("restart", "resume"):
        raise ScenarioError(f"accounting is {accounting!r}; there are restart and resume")
    if not budget > 0:
        raise ScenarioError(f"the budget is {budget!r} CPU seconds, but it has to be positive")


def _truth(table: RuntimeTable, stream: RowStream) -> Callable[[int], FloatArray] | None:
    """For hypothetical procedures: everything the stream will ever show of a configuration; None if it is endless."""
    length = stream.length
    if length is None:
        return None
    rows = stream.rows(0, length)

    def runtimes(config: int) -> FloatArray:
        seconds = table.seconds[config].take(rows)
        # At the table's timeout a run is known to take at least that long; it is not known that it ever ends.
        return np.where(seconds >= table.limit, np.inf, seconds)

    return runtimes


def _bench(table: RuntimeTable, stream: RowStream, problem: Problem, accounting: Accounting) -> Bench:
    """The same stream with the same costs, for a baseline, which makes its runs itself."""

    def runtimes(config: int, first: int, last: int) -> FloatArray:
        seconds: FloatArray = table.seconds[config].take(stream.rows(first, last))
        return seconds

    return Bench(
        runtimes,
        table.n_configs,
        problem.utility,
        longest=table.limit,
        length=stream.length,
        rng=np.random.default_rng((_BASELINE_KEY, problem.seed)),
        delta=problem.delta,
        accounting=accounting,
        names=table.configs,
    )


def _drive_baseline(
    name: str, options: Mapping[str, object], bench: Bench, budget: float, interrupted: Callable[[], bool]
) -> Outcome:
    """Let a baseline search until it is done, out of budget or out of instances; it certifies nothing."""
    search = BASELINES[name].search
    config, stopped = 0, "done"
    story: list[tuple[int, float, int, int, float, int]] = []
    try:
        for guess in search(bench, **read_options(name, search, options)):
            config = guess.config
            story.append((len(story) + 1, bench.spent, int(bench.runs.sum()), config, 1.0, guess.left))
            if bench.spent >= budget or interrupted():
                stopped = "budget" if bench.spent >= budget else "interrupted"
                break
    except NoMoreInstances:
        stopped = "instances"
    columns = [np.array(column) for column in zip(*story, strict=True)]
    return Outcome(
        certificate=Certificate(config, 1.0, bench.delta, bench.n_configs, 0.0, 1.0, mode="nothing", shares=()),
        stopped=stopped,
        rounds=len(story),
        candidates=np.arange(bench.n_configs),
        seconds=bench.seconds,
        rerun_seconds={"restart": bench.restarted, "resume": bench.resumed},
        runs=bench.runs,
        samples=bench.samples,
        captimes=np.full(bench.n_configs, np.nan),
        capping=np.zeros(bench.n_configs),
        crossed=0,
        trace=Trace([Decisions(*columns)] if story else []),
    )
