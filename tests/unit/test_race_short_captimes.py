"""Races that stop runs early and repeat them with longer captimes (docs/engine.md, step 10)."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from captime import RuntimeTable, parse_utility, simulate
from captime.arrays import FloatArray, IntArray
from captime.certificate import Orders
from captime.drive import drive
from captime.evidence import Evidence
from captime.executors.virtual import VirtualExecutor
from captime.live import drive_parallel
from captime.plans import RandomCaptimes, Schedule, Stops
from captime.procedures.agenda import WarmStart
from captime.procedures.problem import FIFTH_SCHEDULE, FOURTH_SCHEDULE, SEVENTH_SCHEDULE, SIXTH_SCHEDULE, Problem
from captime.procedures.race import Race
from captime.runs import RunRequest
from captime.sources.replay import Replay
from captime.sources.synthetic import synthetic_table
from captime.sources.window import stream_of
from race_worlds import CONFIGURED
from runtime_laws import in_order
from runtime_laws import table_of as harness_table

UTILITIES = ("uniform(60)", "log-laplace(60, 1)", "step(20)", "exponential(30)")
LIMIT = 300.0
BOOST = 1.25


def table_of(seconds: FloatArray) -> RuntimeTable:
    """A table of these runtimes, with a timeout."""
    n_configs, n_instances = seconds.shape
    configs, instances = (tuple(f"{kind}{k}" for k in range(n)) for kind, n in (("c", n_configs), ("i", n_instances)))
    return RuntimeTable("made up", configs, instances, np.minimum(seconds, LIMIT), LIMIT, np.arange(n_instances))


def one_excellent(rng: np.random.Generator, n_configs: int = 60) -> FloatArray:
    """One configuration answers within seconds, the others hardly ever."""
    seconds = np.where(rng.random((n_configs, 400)) < 0.15, rng.exponential(20.0, (n_configs, 400)), LIMIT)
    seconds[rng.integers(n_configs)] = rng.exponential(3.0, 400)
    return seconds


def near_ties(rng: np.random.Generator, n_configs: int = 48) -> FloatArray:
    """All fail on the same third of the instances and differ little on the others."""
    hard = rng.random(400) < 0.33
    seconds = rng.exponential(6.0, (n_configs, 400)) * rng.uniform(0.8, 1.2, (n_configs, 1))
    return np.where(hard, LIMIT, seconds)


def best_is_slow(rng: np.random.Generator, n_configs: int = 48) -> FloatArray:
    """The best takes 5 seconds always; the others answer at once on three instances of four, and never on the rest."""
    seconds = np.where(rng.random((n_configs, 400)) < 0.75, 0.1, LIMIT)
    seconds[rng.integers(n_configs)] = 5.0
    return seconds


WORLDS = (one_excellent, near_ties, best_is_slow)


def truth_of(table: RuntimeTable, text: str) -> FloatArray:
    """Mean utilities over the instances of a table: streams draw them with replacement."""
    utility = parse_utility(text)
    worth = np.where(table.seconds < LIMIT, utility(table.seconds), 0.0)
    return np.asarray(worth.mean(axis=1))


def is_false(table: RuntimeTable, text: str, seed: int, epsilon: float = 0.1) -> bool:
    """Whether any certificate on the way of a race names a configuration that is not within its epsilon."""
    result = simulate(table, utility=parse_utility(text), delta=0.2, epsilon=epsilon, sampling="replace", seed=seed)
    truth, made = truth_of(table, text), result.outcome.trace.decisions()
    return bool((truth.max() - truth[made.config] > made.epsilon + 1e-9).any())


@pytest.mark.parametrize("text", UTILITIES)
def test_ends_of_scores_hold_the_score_at_every_level(text: str) -> None:
    """The interval at a level contains the score of the run that is never stopped, and shrinks from level to level."""
    utility = parse_utility(text)
    rng = np.random.default_rng(5)
    stops = Stops.doubling(utility, BOOST, LIMIT)
    plan = RandomCaptimes(utility, 7, Schedule(BOOST), Schedule(LIMIT), stops)
    position = np.arange(3000)
    seconds = np.concatenate((rng.exponential(20.0, 2000), rng.uniform(0.0, 400.0, 1000)))
    worth = utility(seconds)
    score = np.where(plan.draws(position) < BOOST * worth, np.maximum(worth, 1.0 / BOOST), 0.0)
    before = (np.zeros(3000), np.ones(3000))
    captime = np.zeros(3000)
    for level in range(stops.top + 1):
        levels: IntArray = np.full(3000, level)
        assert (plan.captime(levels, position) >= captime).all()
        captime = plan.captime(levels, position)
        _, low, high = plan.settled(seconds, worth, levels, position)
        assert (low <= score).all()
        assert (score <= high).all()
        assert (low >= before[0]).all()
        assert (high <= before[1]).all()
        before = (low, high)
    assert (captime == np.minimum(plan.drawn(position), LIMIT)).all()


def test_stops_end_where_a_longer_one_shows_nothing() -> None:
    """The last stop is u⁻¹(1/B); with B = 1 there is none, and every run is made once."""
    utility = parse_utility("uniform(60)")
    assert Stops.doubling(utility, BOOST, LIMIT).stop[-1] == pytest.approx(12.0)
    assert Stops.doubling(utility, 1.0, LIMIT).top == 0


@pytest.mark.parametrize("world", WORLDS)
def test_certificates_on_the_way_are_true(world: object) -> None:
    """No false certificate in two races of each world to a coarse goal; `make coverage` has many, and finer ones."""
    assert callable(world)
    rng = np.random.default_rng(11)
    assert not any(is_false(table_of(world(rng)), "uniform(60)", seed, epsilon=0.2) for seed in range(2))


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("text", UTILITIES[:2])
def test_certificates_on_the_way_are_true_in_many_races(
    world: object, text: str, record_property: Callable[[str, object], None]
) -> None:
    """The share of races with a false certificate at any moment is at most delta."""
    assert callable(world)
    rng = np.random.default_rng(12)
    races = 400
    wrong = sum(is_false(table_of(world(rng)), text, seed) for seed in range(races))
    record_property("error rate", f"{wrong / races:.4f}")
    record_property("nominal", "0.2")
    assert wrong <= 0.2 * races


def test_a_stopped_run_that_counts_as_nothing_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a run stopped before its draw counts 0 at both ends. The slow best is then cleared, which is false."""

    def as_nothing(
        plan: RandomCaptimes, seconds: FloatArray, worth: FloatArray, level: IntArray, position: IntArray
    ) -> tuple[object, FloatArray, FloatArray]:
        captime = plan.captime(level, position)
        done = (seconds < captime) & (plan.draws(position) < BOOST * worth)
        score = np.where(done, np.maximum(worth, 1.0 / BOOST), 0.0)
        return done, score, score

    table = table_of(best_is_slow(np.random.default_rng(3)))
    assert not is_false(table, "uniform(60)", 0)
    monkeypatch.setattr(RandomCaptimes, "settled", as_nothing)
    assert is_false(table, "uniform(60)", 0)


def test_an_excellent_leader_is_found_for_a_fraction_of_the_time() -> None:
    """Short captimes cost at most half of what drawn ones cost where nearly all configurations are hopeless."""
    table = table_of(one_excellent(np.random.default_rng(2)))
    utility = parse_utility("uniform(60)")
    spent = []
    for short in (True, False):
        problem = Problem(60, utility, 0.1, 0.1, captime_limit=LIMIT, short_captimes=short)
        race = Race(problem)
        executor = VirtualExecutor(table, stream_of("replace", table.groups, 1), 1)
        outcome = drive_parallel(race, executor, Evidence(60, race.plan, utility))
        assert race.certificate().epsilon <= 0.1
        spent.append(float(outcome.seconds.sum()))
    assert spent[0] < 0.5 * spent[1]


@pytest.mark.parametrize("workers", [1, 8, 64])
def test_many_workers_reach_the_goal_and_name_the_best(workers: int) -> None:
    """The live path with runs in flight and runs made again: the same claim for any number of workers."""
    table = table_of(one_excellent(np.random.default_rng(4)))
    utility = parse_utility("log-laplace(60, 1)")
    race = Race(Problem(60, utility, 0.1, 0.1, captime_limit=LIMIT))
    executor = VirtualExecutor(table, stream_of("replace", table.groups, 1), workers)
    drive_parallel(race, executor, Evidence(60, race.plan, utility))
    held, truth = race.certificate(), truth_of(table, "log-laplace(60, 1)")
    assert held.epsilon <= 0.1
    assert truth[held.config] >= truth.max() - held.epsilon


def test_programs_that_do_not_repeat_themselves_have_one_level() -> None:
    """And so have short lists, whose decisions are those of earlier releases."""
    utility = parse_utility("uniform(60)")
    assert Race(Problem(60, utility, 0.1, 0.1)).plan.repeats
    assert not Race(Problem(60, utility, 0.1, 0.1, short_captimes=False)).plan.repeats
    assert not Race(Problem(39, utility, 0.1, 0.1)).plan.repeats


@pytest.mark.parametrize("n_configs", [12, 60])
def test_the_book_of_cpu_time_adds_up(n_configs: int) -> None:
    """Every CPU second has one purpose; where nearly all are hopeless, none is cleared by a duel at great cost."""
    table = table_of(one_excellent(np.random.default_rng(6), n_configs))
    result = simulate(table, utility=parse_utility("uniform(60)"), delta=0.1, epsilon=0.1, sampling="replace", seed=1)
    book = result.outcome.spending
    assert sum(book.values()) == pytest.approx(float(result.outcome.seconds.sum()))
    assert all(seconds >= 0.0 for seconds in book.values())
    assert book["warm_start"] > 0.0
    assert book["leader"] > 0.0
    assert book["not_cleared"] == 0.0


@pytest.mark.parametrize(("schedule", "stalls"), [(2, True), (3, False)])
def test_the_last_outcome_of_a_configuration_is_read_whole(schedule: int, *, stalls: bool) -> None:
    """A race whose stream is used up is done, although the last outcomes were runs made longer; by schedule 3 it is."""
    world, positions = CONFIGURED["best_ranks_last"](44), 60
    problem = Problem(44, world.utility, 0.2, 0.15, n_instances=positions, schedule=schedule)
    race, rng = Race(problem, growth=2.0), np.random.default_rng(1897275507)
    # One race in about a hundred ends that way; this is the first.
    for _ in range(83):
        seed, seconds = int(rng.integers(1 << 31)), world.draw(rng, positions)
    race.plan.seed = seed
    drive(race, Replay(harness_table(seconds, math.inf), in_order(positions), race.plan, world.utility))
    assert (race.finished() is None) == stalls


@pytest.mark.parametrize("workers", [1, 3])
def test_a_longer_captime_that_no_run_needs_does_not_end_a_campaign(workers: int) -> None:
    """No run of the first positions uses up the captime that is drawn for it: longer levels order nothing."""
    utility = parse_utility("uniform(60)")
    table = synthetic_table(4, 45, 1500, limit=LIMIT)
    race = Race(Problem(45, utility, 0.1, 0.1, captime_limit=LIMIT, n_instances=1500, seed=4))
    executor = VirtualExecutor(table, stream_of("given", table.groups, 0), workers)
    outcome = drive_parallel(
        race, executor, Evidence(45, race.plan, utility), interrupted=lambda: race._start is not None
    )
    assert outcome.stopped == "interrupted", "the race never began"


def raced_on_hard_first(schedule: int, slots: int, started: list[RunRequest], hard: int = 2) -> Race:
    """A race on a stream whose first instances no configuration answers; runs are written down as they start."""
    rng = np.random.default_rng(3)
    seconds = rng.exponential(0.5, (48, 600)) * rng.uniform(1.0, 8.0, (48, 1))
    seconds[:, :hard] = LIMIT
    table, utility = table_of(seconds), parse_utility("uniform(60)")
    problem = Problem(48, utility, 0.1, 0.2, captime_limit=LIMIT, n_instances=600, seed=4, short_captimes=True)
    race = Race(replace(problem, schedule=schedule))
    executor = VirtualExecutor(table, stream_of("given", table.groups, 0), slots)
    submit = executor.submit

    def watch(requests: list[RunRequest]) -> None:
        started.extend(requests)
        submit(requests)

    executor.submit = watch  # type: ignore[method-assign,assignment] # everything that is started is written down
    drive_parallel(race, executor, Evidence(48, race.plan, utility))
    return race


@pytest.mark.parametrize("slots", [1, 8])
def test_hard_first_instances_are_followed_by_others_before_captimes_are_long(slots: int) -> None:
    """The first rung takes more positions; all configurations run all of them, and the warm start costs less."""
    started: list[RunRequest] = []
    race = raced_on_hard_first(FIFTH_SCHEDULE, slots, started)
    before = raced_on_hard_first(FOURTH_SCHEDULE, slots, [])
    last_stop = float(race.plan.stops.stop[-1])
    others = next(place for place, run in enumerate(started) if run.instance >= 2)
    assert max(run.captime for run in started[:others]) <= last_stop
    first = {run.config for run in started if run.instance < 4}
    assert {run.config for run in started if run.instance == 3} == first == set(range(48))
    assert race.spending()["warm_start"] < 0.5 * before.spending()["warm_start"]
    assert race.finished() == "epsilon"


@pytest.mark.parametrize(
    ("slots", "schedule", "way", "hard"),
    [
        (1, FIFTH_SCHEDULE, "_extend", 2),
        (8, FIFTH_SCHEDULE, "_extend", 2),
        (1, SEVENTH_SCHEDULE, "_extend", 2),
        (4, SEVENTH_SCHEDULE, "_extend", 2),
        (1, SEVENTH_SCHEDULE, "_widen", 0),
        (4, SEVENTH_SCHEDULE, "_widen", 0),
    ],
)
def test_more_positions_are_decided_on_before_any_run_there(
    slots: int, schedule: int, way: str, hard: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the moment at which the first rung gets more positions, no run has been started on them."""
    started: list[RunRequest] = []
    looks: list[tuple[int, int]] = []
    extend = getattr(WarmStart, way)

    def watched(self: WarmStart) -> bool:
        before = self.positions
        extended = bool(extend(self))
        if extended:
            looks.append((before, 1 + max(run.instance for run in started)))
        return extended

    monkeypatch.setattr(WarmStart, way, watched)
    raced_on_hard_first(schedule, slots, started, hard)
    assert looks
    assert all(reached <= before for before, reached in looks)


def several_excellent(rng: np.random.Generator, n_configs: int = 96) -> FloatArray:
    """A third of the configurations answer within a second nearly always, the others on two instances of three."""
    excellent = (np.arange(n_configs) % 3 == 0)[:, None]
    answered = rng.random((n_configs, 400)) < np.where(excellent, 0.99, 0.66)
    return np.where(answered, rng.exponential(0.5, (n_configs, 400)), LIMIT)


def begun_at(schedule: int, epsilon: float, seed: int) -> tuple[int, float]:
    """Where a race begins that has a choice of excellent leaders, and the CPU seconds that it takes."""
    table = table_of(several_excellent(np.random.default_rng(seed)))
    utility = parse_utility("log-laplace(60, 1)")
    race = Race(Problem(table.n_configs, utility, 0.1, epsilon, captime_limit=LIMIT, seed=seed, schedule=schedule))
    evidence = Evidence(table.n_configs, race.plan, utility)
    drive_parallel(race, VirtualExecutor(table, stream_of("replace", table.groups, seed), 1), evidence)
    held, truth = race.certificate(), truth_of(table, "log-laplace(60, 1)")
    assert held.epsilon <= epsilon
    assert truth[held.config] >= truth.max() - epsilon
    return int(str((race.facts() or {})["start"])), float(evidence.tally.seconds.sum())


def test_a_search_among_many_ends_when_one_is_close_to_the_largest_utility() -> None:
    """A lower bound of 1 - epsilon clears all others, so further rungs would save nothing; a finer goal needs them."""
    now, before = (
        [begun_at(schedule, 0.2, seed) for seed in range(5)] for schedule in (SIXTH_SCHEDULE, FIFTH_SCHEDULE)
    )
    assert all(here <= there for (here, _), (there, _) in zip(now, before, strict=True))
    assert any(here < there for (here, _), (there, _) in zip(now, before, strict=True))
    assert sum(cost for _, cost in now) < 0.95 * sum(cost for _, cost in before)
    assert begun_at(SIXTH_SCHEDULE, 0.05, 2)[0] == begun_at(FIFTH_SCHEDULE, 0.05, 2)[0]


def first_orders(seconds: FloatArray, workers: int = 1) -> list[tuple[int, list[int]]]:
    """How far each order goes and which configurations it is for, until each of them has been ordered to run."""
    table, utility = table_of(seconds), parse_utility("uniform(60)")
    n_configs = len(seconds)
    made: list[tuple[int, list[int]]] = []

    class Watched(Race):
        """Every order is written down."""

        def ask(self, slots: int) -> Orders:
            orders = super().ask(slots)
            if len(orders):
                made.append((int(orders.n.max()), orders.config.tolist()))
            return orders

    race = Watched(Problem(n_configs, utility, 0.1, 0.2, captime_limit=LIMIT, seed=4, schedule=SEVENTH_SCHEDULE))
    evidence = Evidence(n_configs, race.plan, utility)
    executor = VirtualExecutor(table, stream_of("given", table.groups, 0), workers)
    drive_parallel(
        race, executor, evidence, interrupted=lambda: len({each for _, ran in made for each in ran}) == n_configs
    )
    return made


@pytest.mark.parametrize(
    ("first", "second", "positions"),
    [(0.3, 0.3, 2), (2.9, 0.3, 2), (11.0, 0.3, 1), (LIMIT, 0.3, 2)],
    ids=["short", "shorter later", "long", "hard"],
)
def test_the_first_rung_has_as_many_positions_as_its_captimes_are_short(
    first: float, second: float, positions: int
) -> None:
    """Eight probes see one position; a second one follows where captimes are short, or where none answers the first."""
    seconds = np.full((48, 400), second)
    seconds[:, 0] = first
    made = first_orders(seconds)
    assert (made[0][0], len(made[0][1])) == (1, 8), "eight probes begin with one position"
    assert all(config == made[0][1] for _, config in made[:-1]), "others run before the probes are done"
    assert made[-1][0] == positions
    assert len(made[-1][1]) >= 40


def test_probes_that_answer_none_of_four_positions_get_no_more() -> None:
    """All configurations run these four then: it may be the probes that are bad."""
    seconds = np.full((48, 400), 0.3)
    seconds[:, :5] = LIMIT
    made = first_orders(seconds)
    assert [n for n, _ in made[:-1]][-1] == 4, "probes go to four positions"
    assert made[-1][0] == 4
    assert len(made[-1][1]) >= 40


def test_many_workers_do_not_wait_for_probes() -> None:
    """All configurations begin with two positions at once."""
    assert first_orders(np.full((48, 400), 5.0), workers=8) == [(2, list(range(48)))]


@pytest.mark.parametrize("slots", [1, 8])
def test_a_first_rung_on_hard_instances_is_the_whole_warm_start(slots: int) -> None:
    """Its ranking is final: other rungs would repeat the hard runs. The race begins behind it, and costs less."""
    now, before = (raced_on_hard_first(schedule, slots, []) for schedule in (SEVENTH_SCHEDULE, SIXTH_SCHEDULE))
    starts = [int(str((race.facts() or {})["start"])) for race in (now, before)]
    assert starts[0] < starts[1]
    assert now._warm.positions == starts[0]
    assert now.spending()["warm_start"] < before.spending()["warm_start"]
    assert now.finished() == "epsilon"
