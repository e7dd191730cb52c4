"""A campaign on a parameter space, without its program: the pool grows, and a target answers for all its members."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Protocol

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.certificate import Certificate, Orders, Population
from captime.drive import Observer, drive
from captime.errors import InvariantViolated, ScenarioError
from captime.plans import Plan
from captime.procedures import REGISTERS, Problem
from captime.procedures.pool_terms import PoolTerms
from captime.procedures.problem import build_procedure
from captime.procedures.protocol import Procedure, ProcedureWrapper
from captime.runs import never
from captime.simulation.learnt import Target
from captime.simulation.on_table import check_wishes, population_of
from captime.simulation.result import Found, Pooled, Simulation
from captime.sources import RuntimeTable
from captime.sources.replay import Replay
from captime.sources.window import Accounting, RowStream
from captime.spaces import Known, Settings, lessons_for
from captime.tally import blank_tally
from captime.utilities import Utility, utility_of

# Orders answered by a target instead of a table: the same road, with room for configurations that come later.


class _Positions(RowStream):
    """Positions stand for themselves: a target knows its own instances."""

    def __init__(self, target: Target) -> None:
        self._target = target

    @property
    def length(self) -> int | None:
        return self._target.length

    @property
    def population(self) -> str:
        return self._target.population

    def rows(self, start: int, stop: int) -> IntArray:
        return np.arange(start, stop)


class TargetReplay(Replay):
    """A target as a source.

    Args:
        target: Answers; a configuration must have been added to it before its runs are asked for.
        plan: How long runs may take.
        utility: What answers are worth.
        accounting: Which cost the tally carries.
        pays: False for a hypothetical procedure.
    """

    def __init__(
        self, target: Target, plan: Plan, utility: Utility, *, accounting: Accounting = "restart", pays: bool = True
    ) -> None:
        # A table in name only: it lends its timeout, and its runtimes are never read.
        lent = RuntimeTable.build(target.name, ["none"], ["nothing"], np.zeros((1, 1)), timeout=target.limit)
        super().__init__(lent, _Positions(target), plan, utility, accounting=accounting, pays=pays)
        self._target = target

    def grow(self, n_configs: int) -> None:
        """Make room for `n_configs` configurations; what is known of the others stays."""
        before = self.tally
        known = len(before.n)
        if n_configs <= known:
            return
        self.tally = blank_tally(n_configs, self.samples, self.times)
        for field in fields(before):
            if field.name not in ("samples", "times"):
                getattr(self.tally, field.name)[:known] = getattr(before, field.name)

    def seconds(self, config: IntArray, first: int, last: int) -> FloatArray:
        """Runtimes of these configurations on positions first, …, last - 1."""
        length = self._target.length
        if length is not None and last > length:
            raise InvariantViolated(f"positions up to {last} were ordered from a stream of {length}")
        return np.stack([self._target.seconds(each, first, last) for each in config.tolist()])

    def seconds_at(self, config: IntArray, position: IntArray) -> FloatArray:
        """Runtimes of each configuration on its own row of positions, shape (A, K)."""
        first, last = int(position.min()), int(position.max()) + 1
        return np.take_along_axis(self.seconds(config, first, last), position - first, axis=1)


# This many random configurations say how an answer compares with the space.
_COMPARED = 2000


class Maker(Protocol):
    """Makes configurations by index: `captime.spaces.Proposer`, or `RowProposer` where rows are all there is."""

    n_listed: int
    model: bool
    draws_first: int
    proposals: int

    def origin(self, index: int) -> str:
        """Where the configuration of that index comes from."""
        ...

    def propose(self, index: int, known: Sequence[Known] = (), spent: float = np.inf) -> Settings:
        """The configuration of that index."""
        ...


def simulate_on_space(
    maker: Maker,
    target: Target,
    *,
    utility: Utility | str,
    procedure: str = "pool",
    delta: float = 0.1,
    epsilon: float = 0.1,
    captime_first: float = 1.0,
    seed: int = 0,
    sampling: str = "replace",
    accounting: Accounting = "restart",
    options: Mapping[str, object] | None = None,
    budget: float = np.inf,
    observer: Observer | None = None,
    interrupted: Callable[[], bool] = never,
    names: list[str] | None = None,
    population: Population | str = Population.DRAWN,
) -> Simulation:
    """Run a campaign on a space as if there were a program.

    Args:
        maker: Makes the configurations.
        target: Answers for them.
        utility: What answers are worth, as an object or as text.
        procedure: `pool`: the one whose candidates need not exist beforehand.
        delta: Allowed probability of a wrong certificate.
        epsilon: Goal.
        captime_first: The captime every configuration starts with, in seconds, where captimes rise.
        seed: Of the captimes.
        sampling: How the target meets instances; for the report.
        accounting: `restart` or `resume`, as on a table.
        options: Options of the procedure.
        budget: Stop once this many CPU seconds are spent.
        observer: Called after every decision.
        interrupted: Asked between decisions.
        names: Is filled with the names of the configurations as they come.
        population: `these` for the best on exactly the instances of the target, which then has to have an end and to
            be met in random order; `drawn` for the distribution they come from.

    >>> from captime.spaces import Proposer
    >>> from captime.spaces.formats.section import read_section
    >>> from captime.simulation import MadeUp
    >>> space = read_section({"x": {"type": "float", "low": 0.0, "high": 1.0}}, "example")
    >>> result = simulate_on_space(
    ...     Proposer(space, 1), MadeUp(space, 10.0), utility="uniform(60)", epsilon=0.3, options={"gamma": 0.5}
    ... )
    >>> result.certificate.epsilon <= 0.3, result.certificate.gamma <= 0.5
    (True, True)
    """
    check_wishes(accounting, budget)
    if procedure != "pool":
        raise ScenarioError(
            f"procedure {procedure} compares a fixed list of configurations, and a space has none; use pool, or "
            "simulate on a table whose rows were drawn from the space"
        )
    worth = utility_of(utility)
    about = population_of(population, sampling, procedure)
    if about is Population.THESE and target.length is None:
        raise ScenarioError(
            f"population is 'these', but {target.name} has instances without end, so there is no set to speak about; "
            "name a table of recorded runs, or use population 'drawn'"
        )
    limit = getattr(maker, "limit", None)
    problem = Problem(
        n_configs=max(1, maker.n_listed),
        utility=worth,
        delta=delta,
        epsilon=epsilon,
        captime_first=captime_first,
        captime_limit=target.limit,
        n_instances=target.length,
        seed=seed,
        pool=PoolTerms(
            maker.n_listed,
            model=maker.model,
            draws_first=maker.draws_first,
            proposals=maker.proposals,
            limit=limit,
        ),
        population=about,
    )
    made = build_procedure(procedure, REGISTERS, problem, options or {})
    replay = TargetReplay(target, made.plan, worth, accounting=accounting, pays=made.pays)
    growing = _Growing(made, maker, target, replay, [] if names is None else names)
    growing.grow(problem.n_configs)
    outcome = drive(growing, replay, budget=budget, observer=observer, interrupted=interrupted)
    held = outcome.certificate
    on_set = about is Population.THESE
    matrix = _matrix_seconds(target, len(growing.settings), problem.captime_top) if on_set else None
    worths = _on_set(target, len(growing.settings)) if on_set else target.worths
    return Simulation(
        table=Pooled(
            name=target.name,
            configs=tuple(growing.names),
            settings=tuple(growing.settings),
            limit=target.limit,
            n_instances=target.n_instances,
            law=target.law,
            proposals=sum(maker.origin(index) == "model" for index in range(len(growing.settings))),
            found=_found(
                growing.settings, held, target.random_settings(_COMPARED), worths, worth, listed=maker.n_listed > 0
            ),
        ),
        utility=worth,
        procedure=procedure,
        options=dict(options or {}),
        bound=made.bound,
        repeats=made.plan.repeats,
        delta=delta,
        epsilon=epsilon,
        sampling=sampling,
        population=target.population,
        seed=seed,
        accounting=accounting,
        outcome=outcome,
        matrix_cpu_seconds=matrix,
    )


def _matrix_seconds(target: Target, n_configs: int, captime: float) -> float:
    """Return what it costs to run every configuration of the pool on every instance up to a captime."""
    length = target.length or 0
    return sum(float(np.minimum(target.seconds(config, 0, length), captime).sum()) for config in range(n_configs))


Worths = Callable[[Sequence[Settings], Utility], FloatArray]
"""What configurations are really worth, from their settings and the utility."""


def _on_set(target: Target, known: int) -> Worths:
    """Return what configurations are worth on exactly the instances of a target.

    Args:
        target: Answers for them.
        known: How many configurations it has been told of.
    """
    told = iter(range(known, 10**9))

    def worths(settings: Sequence[Settings], utility: Utility) -> FloatArray:
        length = target.length or 0
        means = []
        for each in settings:
            target.add(each)
            seconds = target.seconds(next(told), 0, length)
            means.append(float(np.where(seconds < target.limit, utility(seconds), 0.0).mean()))
        return np.array(means)

    return worths


def _found(
    settings: list[Settings],
    held: Certificate,
    drawn: Sequence[Settings],
    worths: Worths,
    utility: Utility,
    *,
    listed: bool,
) -> Found:
    """What the answer is really worth."""
    pool_worths: FloatArray = worths(settings, utility)
    random_worths: FloatArray = worths(drawn, utility)
    return Found(
        settings=settings[held.config],
        worth=float(pool_worths[held.config]),
        best=float(pool_worths.max()),
        default=float(pool_worths[0]) if listed else None,
        above=float((random_worths > pool_worths[held.config] + held.epsilon).mean()),
        drawn=len(random_worths),
    )


class _Growing(ProcedureWrapper):
    """A procedure whose new configurations come into being when it asks for them."""

    def __init__(
        self, procedure: Procedure, maker: Maker, target: Target, replay: TargetReplay, names: list[str]
    ) -> None:
        super().__init__(procedure)
        self._maker = maker
        self._target = target
        self._replay = replay
        self._lessons = lessons_for(maker.proposals, replay.utility)
        self.names = names
        self.settings: list[Settings] = []

    @property
    def intervals(self) -> object:
        """Of the procedure, if it has any to show."""
        return getattr(self._procedure, "intervals", None)

    def certificate(self) -> Certificate:
        """See the protocol; configurations that the pool has a place for and that have no run yet are not counted."""
        held = super().certificate()
        return replace(held, n_configs=min(held.n_configs, len(self.settings)))

    def ask(self, slots: int) -> Orders:
        """See the protocol."""
        orders = super().ask(slots)
        if len(orders):
            self.grow(int(orders.config.max()) + 1)
        return orders

    def grow(self, size: int) -> None:
        """Make configurations until there are `size`."""
        while len(self.settings) < size:
            index, tally = len(self.settings), self._replay.tally
            origin = self._maker.origin(index)
            known = self._lessons.of(tally, self.settings) if origin == "model" else []
            made = self._maker.propose(index, known, float(tally.seconds.sum()))
            self._target.add(made)
            self.settings.append(made)
            self.names.append(origin if origin == "default" else f"{origin}-{index}")
        self._replay.grow(size)
