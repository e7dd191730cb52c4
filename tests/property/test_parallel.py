"""Many workers, outcomes in any order, losses, echoes, cancellations: the books hold the truth and agree in the end."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from captime.arrays import BoolArray, FloatArray
from captime.certificate import Orders
from captime.drive import drive
from captime.evidence import Evidence
from captime.executors import VirtualExecutor
from captime.live import LiveOutcome, drive_parallel
from captime.plans import Ladder, Plan, RandomCaptimes, Schedule
from captime.procedures import PROCEDURES, Problem, Procedure
from captime.procedures.race import Race
from captime.runs import RunOutcome, RunRequest, Status
from captime.sources.replay import Replay
from captime.sources.synthetic import synthetic_table
from captime.sources.table import RuntimeTable
from captime.sources.window import stream_of
from captime.utilities import parse_utility
from runtime_laws import NEVER, in_order, table_of

steady = settings(derandomize=True, deadline=None, max_examples=80)

UTILITY = parse_utility("log-laplace(4, 1)")
RUNTIMES = (0.0, 0.3, 1.0, 1.7, 2.0, 4.0, 7.9, 8.0, 30.0, NEVER)
N_CONFIGS, N_POSITIONS = 3, 10
RUNGS = np.array([1.0, 2.0, 4.0, 8.0])
# A share of the run that is seen, survived or lost.
shares = st.sampled_from([0.0, 0.25, 0.5, 0.999, 1.0])
which = st.integers(0, 63)


@st.composite
def tables(draw: st.DrawFn) -> FloatArray:
    """Runtimes of three configurations on ten instances, ties and crashes included."""
    cells = draw(st.lists(st.sampled_from(RUNTIMES), min_size=30, max_size=30))
    return np.array(cells).reshape(N_CONFIGS, N_POSITIONS)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Either family, with and without truncation."""
    if draw(st.booleans()):
        return Ladder(UTILITY, RUNGS)
    boost, longest = draw(st.sampled_from([1.0, 1.5, 4.0])), draw(st.sampled_from([3.0, 40.0]))
    return RandomCaptimes(UTILITY, draw(st.integers(0, 99)), Schedule(boost), Schedule(longest))


events = st.one_of(
    st.tuples(st.just("aim"), which, which),
    st.tuples(st.just("raise"), which, which),
    st.tuples(st.just("skip"), which, which),
    st.tuples(st.just("take"), which, which),
    st.tuples(st.sampled_from(["end", "echo"]), which, which),
    st.tuples(st.sampled_from(["see", "lose", "cancel"]), which, shares),
    st.tuples(st.just("retire"), which, which),
)
Event = tuple[str, int, float]


@dataclass
class Field:
    """Evidence with a world around it that ends, loses and doubles runs as it is told."""

    seconds: FloatArray
    plan: Plan
    evidence: Evidence = field(init=False)
    flying: list[RunRequest] = field(default_factory=list)
    over: list[RunOutcome] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.evidence = Evidence(N_CONFIGS, self.plan, UTILITY)

    def order(self, config: int, n: int, level: int, first: int | None = None) -> None:
        """One order, as a procedure would place it: nothing in it ever falls."""
        tally = self.evidence.tally
        if not self.plan.can_rise(tally.level[config : config + 1])[0]:
            level = int(tally.level[config])
        orders = Orders(
            np.array([config]),
            np.array([max(n, int(tally.n[config]))]),
            np.array([max(level, int(tally.level[config]))]),
            None if first is None else np.array([first]),
        )
        self.evidence.aim(orders)

    def play(self, event: Event) -> None:
        """Let that happen."""
        what, number, more = event
        config, n = number % N_CONFIGS, 1 + int(more) % N_POSITIONS
        if what == "aim":
            self.order(config, n, 0)
        elif what == "raise":
            self.order(config, 0, int(more) % len(RUNGS))
        elif what == "skip":
            self.order(config, min(n + 2, N_POSITIONS), 0, first=n)
        elif what == "take":
            self.flying += self.evidence.take(1 + int(more) % 8)
        elif what == "retire":
            self.evidence.retire(np.array([bool(number >> bit & 1) for bit in range(N_CONFIGS)]))
        elif what == "echo" and self.over:
            self.evidence.add([self.over[number % len(self.over)]])
        elif self.flying:
            self.finish(self.flying[number % len(self.flying)], what, more)

    def finish(self, request: RunRequest, what: str, share: float) -> None:
        """The run ends, is seen, is lost or is cancelled after a share of its time."""
        runtime = float(self.seconds[request.config, request.instance])
        whole = min(runtime, request.captime)
        if what == "see":
            self.evidence.seen(request, share * whole)
            return
        self.flying.remove(request)
        if what == "end":
            status = Status.COMPLETED if runtime < request.captime else Status.CAPPED
            if runtime == NEVER:
                status = Status.FAILED
            outcome = RunOutcome(request, status, whole, whole)
        else:
            status = Status.LOST if what == "lose" else Status.CAPPED
            outcome = RunOutcome(request, status, share * whole, share * whole)
        self.over.append(outcome)
        self.evidence.add([outcome])

    def drain(self, pick: Callable[[int], int]) -> None:
        """All workers finish everything that was ordered, in the order of `pick`."""
        self.evidence.retire(np.ones(N_CONFIGS, dtype=np.bool_))
        while self.evidence.open:
            self.flying += self.evidence.take(pick(5) + 1)
            if self.flying:
                self.finish(self.flying[pick(len(self.flying))], "end", 1.0)

    def true_scores(self, config: int) -> FloatArray:
        """What every run would score if it were never stopped."""
        worth = UTILITY(self.seconds[config])
        if isinstance(self.plan, Ladder):
            return worth
        assert isinstance(self.plan, RandomCaptimes)
        position = np.arange(N_POSITIONS)
        boost = self.plan.boost.at(position)
        return np.where(self.plan.draws(position) < boost * worth, np.maximum(worth, 1.0 / boost), 0.0)


def column(world: Field, config: int, name: str) -> BoolArray:
    """A column from position 0 on; what comes before the first one that was ordered is skipped, and settled."""
    runs = world.evidence._runs[config]
    return np.concatenate((np.ones(runs.start, dtype=np.bool_), getattr(runs, name)))


def assert_true_and_consistent(world: Field) -> None:
    """Every interval holds the true score, and the sums are sums of the intervals."""
    tally = world.evidence.tally
    for config in range(N_CONFIGS):
        n, settled = int(tally.n[config]), int(tally.settled[config])
        counted, is_settled = ~column(world, config, "skipped")[:n], column(world, config, "settled")
        low, high = tally.samples(config, 0, n)
        truth = world.true_scores(config)[:n]
        assert (low <= truth).all()
        assert (truth <= high).all()
        assert tally.utility_low[config] == pytest.approx(low[counted].sum())
        assert tally.utility_high[config] == pytest.approx(high[counted].sum())
        assert tally.skipped[config] == n - counted.sum()
        assert tally.open[config] == n - is_settled[:n].sum()
        assert is_settled[:settled].all()
        assert settled == n or not is_settled[settled]
        # A settled run says what the same run says in a replay.
        position = np.flatnonzero(counted & is_settled[:n])
        seconds = world.seconds[config, position]
        _, sure_low, sure_high = world.plan.settled(
            seconds, UTILITY(seconds), np.full(len(position), tally.level[config]), position
        )
        np.testing.assert_array_equal(low[position], sure_low)
        np.testing.assert_array_equal(high[position], sure_high)


@steady
@given(tables(), plans(), st.lists(events, max_size=60))
def test_intervals_hold_the_truth_whatever_happens(seconds: FloatArray, plan: Plan, story: list[Event]) -> None:
    """Orders, losses, echoes, cancellations, looks and returns, one after the other in any order."""
    world = Field(seconds, plan)
    for event in story:
        world.play(event)
        assert_true_and_consistent(world)


def known(world: Field) -> list[bytes]:
    """Everything in the tally but the price, to the last bit."""
    tally = world.evidence.tally
    columns = (tally.level, tally.n, tally.settled, tally.skipped, tally.open, tally.completed)
    return [column.tobytes() for column in (*columns, tally.utility_low, tally.utility_high)]


@steady
@given(tables(), plans(), st.lists(events, max_size=40), st.randoms(use_true_random=False))
def test_the_final_tally_is_the_same_for_every_order_of_arrival(
    seconds: FloatArray, plan: Plan, story: list[Event], random: Random
) -> None:
    """Bit by bit: neither chance nor losses nor who came first can be seen in it."""
    world, calm = Field(seconds, plan), Field(seconds, plan)
    for event in story:
        world.play(event)
        if event[0] in ("aim", "raise", "skip"):
            calm.play(event)
    world.drain(lambda n: int(random.random() * n))
    calm.drain(lambda _: 0)
    assert known(world) == known(calm)
    assert_true_and_consistent(world)


@steady
@given(tables(), plans(), st.lists(events, max_size=25))
def test_fulfilled_orders_say_what_a_replay_says(seconds: FloatArray, plan: Plan, story: list[Event]) -> None:
    """The same orders, answered from array slices: the same tally but for rounding."""
    world = Field(seconds, plan)
    replay = Replay(table_of(seconds), in_order(N_POSITIONS), plan, UTILITY)
    for event in story:
        if event[0] in ("aim", "raise", "skip"):
            world.play(event)
            tally = world.evidence.tally
            behind = np.flatnonzero((tally.n > replay.tally.n) | (tally.level > replay.tally.level))
            first = np.array([_gap_end(world, int(config)) for config in behind], dtype=np.int64)
            replay.answer(Orders(behind, tally.n[behind], tally.level[behind], first))
    world.drain(lambda _: 0)
    ours, theirs = world.evidence.tally, replay.tally
    for name in ("level", "n", "settled", "skipped", "open", "completed"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)
    for name in ("utility_low", "utility_high"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-12, atol=1e-12, err_msg=name)


def _gap_end(world: Field, config: int) -> int:
    """Where the last gap of skipped positions ends."""
    skipped = np.flatnonzero(column(world, config, "skipped"))
    return int(skipped[-1]) + 1 if len(skipped) else 0


# ---------------------------------------------------------------------- whole campaigns


def question(
    table: RuntimeTable, name: str, *, epsilon: float, n_instances: int | None, **options: object
) -> Procedure:
    """A procedure for that table."""
    problem = Problem(
        n_configs=table.n_configs,
        utility=parse_utility("log-laplace(10, 1)"),
        delta=0.1,
        epsilon=epsilon,
        captime_limit=table.limit,
        n_instances=n_instances,
    )
    return PROCEDURES[name](problem, **options)


def campaign(table: RuntimeTable, procedure: Procedure, workers: int, sampling: str = "given") -> LiveOutcome:
    """Run it with this many virtual workers."""
    utility = parse_utility("log-laplace(10, 1)")
    evidence = Evidence(table.n_configs, procedure.plan, utility)
    executor = VirtualExecutor(table, stream_of(sampling, table.groups, 3), workers)
    return drive_parallel(procedure, executor, evidence)


@pytest.mark.parametrize("seed", range(4))
def test_up_with_one_worker_tells_the_story_of_the_replay(seed: int) -> None:
    """Round by round: recommendation, epsilon, candidates, executions and price."""
    table = synthetic_table(seed, 5, 250, limit=90.0)
    live = campaign(table, question(table, "up", epsilon=0.0, n_instances=250), 1)
    procedure = question(table, "up", epsilon=0.0, n_instances=250)
    utility = parse_utility("log-laplace(10, 1)")
    replay = Replay(table, stream_of("given", table.groups, 3), procedure.plan, utility)
    plain = drive(procedure, replay)
    assert (live.stopped, live.rounds) == (plain.stopped, plain.rounds)
    ours, theirs = live.trace.decisions(), plain.trace.decisions()
    for name in ("round", "runs", "config", "candidates"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)
    np.testing.assert_allclose(ours.epsilon, theirs.epsilon, rtol=0, atol=1e-12)
    np.testing.assert_allclose(ours.seconds, theirs.seconds, rtol=1e-9)
    assert live.wall_seconds == pytest.approx(live.seconds.sum())


@pytest.mark.parametrize("workers", [2, 8, 64])
def test_up_decides_the_same_with_any_number_of_workers(workers: int) -> None:
    """A round is judged whole, so only the wall clock changes."""
    table = synthetic_table(5, 8, 200, limit=90.0)
    one = campaign(table, question(table, "up", epsilon=0.0, n_instances=200), 1)
    many = campaign(table, question(table, "up", epsilon=0.0, n_instances=200), workers)
    assert many.certificate == one.certificate
    np.testing.assert_array_equal(many.trace.decisions().epsilon, one.trace.decisions().epsilon)
    np.testing.assert_array_equal(many.runs, one.runs)
    assert many.wall_seconds < one.wall_seconds


class Overheard(Race):
    """A race that writes down what it orders."""

    orders: list[tuple[list[int], list[int]]]

    def ask(self, slots: int) -> Orders:
        """What the race asks."""
        orders = super().ask(slots)
        self.__dict__.setdefault("orders", []).append((orders.config.tolist(), orders.n.tolist()))
        return orders


@pytest.mark.parametrize("seed", range(4))
def test_a_race_with_one_worker_orders_what_it_orders_in_a_replay(seed: int) -> None:
    """Orders one run deep, asked for one at a time."""
    table = synthetic_table(seed, 5, 160, limit=90.0)
    utility = parse_utility("log-laplace(10, 1)")
    problem = Problem(table.n_configs, utility, delta=0.1, epsilon=0.0, captime_limit=table.limit, n_instances=160)
    live, plain = Overheard(problem, growth=0.001), Overheard(problem, growth=0.001)
    outcome = campaign(table, live, 1)
    story = drive(plain, Replay(table, stream_of("given", table.groups, 3), plain.plan, utility))
    assert live.orders == plain.orders
    assert outcome.stopped == story.stopped
    assert outcome.certificate.config == story.certificate.config
    assert outcome.certificate.epsilon == pytest.approx(story.certificate.epsilon, abs=1e-12)
    # With a whole order told at once, the runs after the one that decided have been made already.
    saved = story.runs - outcome.runs
    assert (saved >= 0).all()
    assert saved.sum() < len(live.orders[-1][0])


@pytest.mark.parametrize("workers", [1, 2, 8, 64])
@pytest.mark.parametrize(("name", "epsilon"), [("race", 0.1), ("up", 0.4)])
def test_certificates_are_true_at_every_moment(name: str, epsilon: float, workers: int) -> None:
    """The table is the population, so what is claimed can be looked up, after every lap."""
    table = synthetic_table(11, 6, 400, limit=90.0, spread=0.4)
    procedure = question(table, name, epsilon=epsilon, n_instances=None)
    truth = parse_utility("log-laplace(10, 1)")(table.seconds).mean(axis=1)
    outcome = campaign(table, procedure, workers, sampling="replace")
    made = outcome.trace.decisions()
    assert outcome.stopped == "epsilon"
    assert outcome.certificate.epsilon <= epsilon
    assert (truth.max() - truth[made.config] <= made.epsilon + 1e-12).all()
    assert outcome.certificate.utility_low <= truth[outcome.certificate.config] <= outcome.certificate.utility_high


def test_lost_runs_change_the_price_and_nothing_else() -> None:
    """Every third attempt is lost after a second; UP decides as if none were."""
    table = synthetic_table(5, 4, 120, limit=90.0)
    calm = campaign(table, question(table, "up", epsilon=0.0, n_instances=120), 8)
    procedure = question(table, "up", epsilon=0.0, n_instances=120)
    evidence = Evidence(table.n_configs, procedure.plan, parse_utility("log-laplace(10, 1)"))
    stream = stream_of("given", table.groups, 3)
    unlucky = VirtualExecutor(
        table, stream, 8, loses=lambda run: 1.0 if (run.config + run.instance + run.attempt) % 3 == 0 else None
    )
    stormy = drive_parallel(procedure, unlucky, evidence)
    assert stormy.certificate == calm.certificate
    np.testing.assert_array_equal(stormy.trace.decisions().epsilon, calm.trace.decisions().epsilon)
    assert stormy.runs.sum() > calm.runs.sum()


def test_a_deadline_a_budget_and_an_interruption_end_with_the_certificate_held() -> None:
    """What is under way is cancelled and paid for."""
    table = synthetic_table(5, 4, 400, limit=90.0)
    utility = parse_utility("log-laplace(10, 1)")
    stream = stream_of("given", table.groups, 3)

    def begin() -> tuple[Procedure, VirtualExecutor, Evidence]:
        procedure = question(table, "race", epsilon=0.01, n_instances=400)
        return procedure, VirtualExecutor(table, stream, 8), Evidence(table.n_configs, procedure.plan, utility)

    procedure, executor, evidence = begin()
    late = drive_parallel(procedure, executor, evidence, deadline=100.0)
    assert (late.stopped, late.wall_seconds, evidence.in_flight) == ("deadline", 100.0, 0)
    assert late.certificate == procedure.certificate()
    assert late.seconds.sum() == pytest.approx(executor.busy_seconds)
    poor = drive_parallel(*begin(), budget=300.0)
    assert poor.stopped == "budget"
    assert poor.seconds.sum() >= 300.0
    assert drive_parallel(*begin(), interrupted=lambda: True).stopped == "interrupted"
