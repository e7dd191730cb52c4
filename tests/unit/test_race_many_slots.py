"""The race with many slots: it does not wait for stragglers, leaves none out, and decides everything in time."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

from captime.arrays import FloatArray, IntArray
from captime.certificate import Orders
from captime.evidence import Evidence
from captime.executors import VirtualExecutor
from captime.live import drive_parallel
from captime.procedures import Problem
from captime.procedures.agenda import Agenda, Rivals, WarmStart, runs_missing
from captime.procedures.board import Board, cuts
from captime.procedures.race import Race
from captime.sources.synthetic import synthetic_table
from captime.sources.table import RuntimeTable
from captime.sources.window import stream_of
from captime.utilities import parse_utility
from race_mutants import StragglersAreLeftOut
from runtime_laws import table_of

UTILITY = parse_utility("log-laplace(20, 1)")
LIMIT = 300.0


@dataclass
class Story:
    """What a race with many workers asked for, and when it began in earnest.

    Attributes:
        race: The race, at its end.
        warm_orders: Configurations and lengths of every order of the warm start, in order.
        started_before: Positions on which runs had been submitted when the race's start was fixed.
        open_at_start: Runs of the warm start that were under way then.
        ordered: Positions of the warm start that all were told to run.
        counted: Scores of the warm start that upper bounds counted just then, by configuration.
        utilisation: The share of worker seconds spent on runs.
    """

    race: Race
    warm_orders: list[tuple[list[int], list[int]]] = field(default_factory=list)
    started_before: set[int] = field(default_factory=set)
    open_at_start: int = 0
    ordered: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    counted: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    utilisation: float = 0.0


def told(
    table: RuntimeTable,
    workers: int,
    *,
    kind: type[Race] = Race,
    epsilon: float = 0.1,
    whole: bool = False,
    short: bool = True,
) -> Story:
    """One race with this number of virtual workers, or its warm start alone."""
    problem = Problem(table.n_configs, UTILITY, 0.1, epsilon, captime_limit=table.limit, short_captimes=short)
    story = Story(kind(problem))
    race, evidence = story.race, Evidence(table.n_configs, story.race.plan, UTILITY)
    executor = VirtualExecutor(table, stream_of("given", table.groups, 0), workers)
    ask, begin, submit = race.ask, race._begin, executor.submit

    def hear(slots: int) -> Orders:
        orders = ask(slots)
        if race._start is None:
            story.warm_orders.append((orders.config.tolist(), orders.n.tolist()))
        return orders

    def note(ranking: IntArray) -> None:
        story.ordered = race._agenda.ordered.copy()
        begin(ranking)
        story.open_at_start = int(evidence.tally.open.sum())
        board = race._board
        story.counted = board._high_counts.sum(axis=1)
        for config, counts in board._awaited.items():
            story.counted[config] += counts.sum()

    def watch(requests: list[object]) -> None:
        if race._start is None:
            story.started_before |= {request.instance for request in requests}  # type: ignore[attr-defined]
        submit(requests)  # type: ignore[arg-type]

    race.ask, race._begin, executor.submit = hear, note, watch  # type: ignore[method-assign, assignment]
    drive_parallel(race, executor, evidence, interrupted=lambda: race._start is not None and not whole)
    story.utilisation = executor.utilisation
    return story


def spread_out(n_configs: int, seed: int = 7, n_instances: int = 4000) -> RuntimeTable:
    """Runs of about 10 s on average, some of 300 s."""
    return synthetic_table(
        seed, n_configs, n_instances, limit=LIMIT, first_log_speed=0.6, spread=2.0 / n_configs, hardness=0.9
    )


# ---------------------------------------------------------------- no waiting


@pytest.mark.parametrize(("workers", "epsilon"), [(8, 0.1), (64, 0.1), (256, 0.06)])
def test_slots_are_at_work_from_the_first_second_to_the_last(workers: int, epsilon: float) -> None:
    """95 % of all worker seconds, the warm start included, although some runs take thirty times the mean."""
    assert told(spread_out(40), workers, epsilon=epsilon, whole=True).utilisation >= 0.95


# ---------------------------------------------------------------- decided in time


def members_by_position(story: Story) -> list[set[int]]:
    """Who was told to run each position of the warm start."""
    assert story.race._start is not None
    ends = story.race._pilot_end
    return [set(np.flatnonzero(ends > position).tolist()) for position in range(story.race._start)]


@pytest.mark.parametrize("workers", [8, 64, 300])
def test_who_runs_a_position_of_the_warm_start_is_decided_at_once_for_all(workers: int) -> None:
    """The first order that reaches a position names all that will ever run it: none is let in later."""
    story = told(spread_out(40), workers)
    for position, members in enumerate(members_by_position(story)):
        first = next(set(config) for config, n in story.warm_orders if n and max(n) > position)
        assert first == members


@pytest.mark.parametrize("workers", [1, 8, 64, 300])
def test_the_prior_is_final_before_anybody_is_started_on_a_position_of_the_race(workers: int) -> None:
    """By the order in which runs were handed to workers, stragglers or not."""
    story = told(spread_out(40), workers)
    assert story.race._start is not None
    assert max(story.started_before) < story.race._start
    if workers > 1:
        assert story.open_at_start > 0, "there should have been stragglers to wait for"


def changed_from(table: RuntimeTable, position: int) -> RuntimeTable:
    """The same runtimes up to there, and entirely others later."""
    seconds = table.seconds.copy()
    seconds[:, position:] = seconds[::-1, position:] * 0.5
    return table_of(seconds, LIMIT)


@pytest.mark.parametrize("workers", [1, 8, 64, 300])
def test_later_positions_decide_neither_who_takes_part_nor_the_prior(workers: int) -> None:
    """Other results from some position on: everything fixed for earlier positions is as before."""
    table = spread_out(40)
    first = told(table, workers)
    assert first.race._start is not None
    ends = sorted(set(first.race._pilot_end.tolist()))
    for position in (*ends[:-1], first.race._start):
        other = told(changed_from(table, position), workers)
        mine, others = members_by_position(first), members_by_position(other)
        # Who runs `position` itself is decided before that, too.
        assert mine[: position + 1] == others[: position + 1]
    assert other.race._start == first.race._start
    np.testing.assert_array_equal(other.race.levels.log_rank, first.race.levels.log_rank)


# ---------------------------------------------------------------- none left out


@pytest.mark.parametrize("workers", [8, 64, 300])
def test_upper_bounds_count_every_run_of_the_warm_start_also_those_under_way(workers: int) -> None:
    """As many scores as positions ordered; a race that leaves its stragglers out is caught by that."""
    story = told(spread_out(40), workers)
    assert story.open_at_start > 0
    np.testing.assert_array_equal(story.counted, story.ordered)
    left_out = told(spread_out(40), workers, kind=StragglersAreLeftOut)
    assert (left_out.counted < left_out.ordered).any()


def test_a_straggler_counts_up_to_what_it_may_still_be_worth_and_with_its_score_in_the_end() -> None:
    """One configuration hangs on a position of the warm start while all others race."""
    seconds = np.full((2, 400), 2.0)
    seconds[1] = 3.0
    seconds[1, 1] = 290.0
    story = told(table_of(seconds, LIMIT), 16, epsilon=0.02, whole=True)
    assert story.open_at_start > 0
    race = story.race
    ran = int(race._board._high_counts[1].sum()) + int(sum(c.sum() for k, c in race._board._awaited.items() if k == 1))
    assert ran >= int(race._pilot_end[1])
    assert race.upper[1] >= float(UTILITY(seconds[1]).mean())


# ---------------------------------------------------------------- rungs


def test_a_rung_can_be_lengthened_but_not_beyond_an_eighth_of_the_stream() -> None:
    """More positions for all who take part, as many as there are slots for."""
    warm = WarmStart(10, 4, 2, 80)
    assert warm.lengthen(40)
    assert warm.positions == 8
    assert warm.lengthen(1)
    assert warm.positions == 9
    assert warm.lengthen(1_000)
    assert warm.positions == 10
    assert not warm.lengthen(1_000)


def test_a_rung_that_cannot_keep_the_slots_at_work_is_left_out() -> None:
    """With few slots halving continues to two; with many the race begins at once."""
    means = np.linspace(0.0, 1.0, 40)
    assert WarmStart(40, 4, 2, None).judge(means, slots=8) is None
    ranking = WarmStart(40, 4, 2, None).judge(means, slots=500)
    assert ranking is not None
    assert ranking.tolist() == list(range(39, -1, -1))


# ---------------------------------------------------------------- who runs next


def rivals(urgency: list[float], open_runs: list[int], missing: list[float] | None = None) -> Rivals:
    """Configurations 1, 2, … behind leader 0."""
    n = len(urgency)
    return Rivals(
        np.arange(1, n + 1), np.array(urgency), np.array(missing or [0.0] * n), np.array(open_runs, dtype=np.int64)
    )


def one_level(config: int) -> tuple[int, bool]:
    """Every run may use up its draw."""
    del config
    return 0, False


def test_whoever_holds_epsilon_up_comes_first_and_the_leader_stays_ahead() -> None:
    """One slot: the most urgent idle challenger, and the leader as far."""
    agenda = Agenda(Board(4, 0.8), 0.1, np.inf)
    order = agenda.for_challengers(0, rivals([0.2, 0.5, 0.3], [0, 0, 0]), 1, one_level)
    assert order.config.tolist() == [0, 2]
    busy = agenda.for_challengers(0, rivals([0.2, 0.5, 0.3], [0, 1, 0]), 1, one_level)
    assert 3 in busy.config.tolist(), "the most urgent has work in hand already"


def test_runs_ahead_of_results_go_to_those_who_will_need_many() -> None:
    """Two challengers with as much in hand; the one that is nearly cleared can wait."""
    agenda = Agenda(Board(3, 0.8), 0.1, np.inf)
    agenda.ordered[:] = 100
    order = agenda.for_challengers(0, rivals([0.3, 0.2], [20, 20], [1.0, 300.0]), 1, one_level)
    assert order.config.tolist()[-1] == 2


def test_about_four_times_the_runs_halve_a_width() -> None:
    """A challenger that seems equal, shown to be at most 0.2 better by 100 runs, needs 400 for 0.1."""
    missing = runs_missing(np.array([0.2]), np.array([0.0]), np.array([100]), 0.1)
    assert missing.tolist() == pytest.approx([300.0])


def test_bounds_are_read_before_runs_just_ordered_and_behind_single_stragglers() -> None:
    """Cuts: up to the first open run, up to where 2 % are open, and up to where a tenth is."""
    through = np.ones(200, dtype=np.bool_)
    through[50] = False
    through[180:] = False
    assert cuts(through[10:], 10) == [40, 172, 188]
    assert cuts(np.zeros(5, dtype=np.bool_), 0) == []


# ---------------------------------------------------------------- facts


def test_facts_say_what_a_checker_cannot_read_off_the_runs() -> None:
    """None at first; start, ranking and terms once the race has begun, in plain values that never change later."""
    race = Race(Problem(40, UTILITY, 0.1, 0.1, captime_limit=LIMIT))
    assert race.facts() is None
    assert race.longest_captime == pytest.approx(min(LIMIT, float(UTILITY.inverse(np.array(0.01)))))
    story = told(spread_out(40), 64, whole=True)
    facts = story.race.facts()
    assert facts is not None
    assert facts["start"] == story.race._start
    ranking = facts["ranking"]
    assert isinstance(ranking, list)
    assert sorted(ranking) == list(range(40))
    expected = 1.0 / ((np.arange(40) + 1.0) * (np.arange(40) + 2.0))
    np.testing.assert_allclose(np.exp(-story.race.levels.log_rank)[ranking], expected)
    assert (facts["mode"], facts["boost"], facts["nodes"], facts["fractions"]) == ("selection", 1.25, 24, 16)
    longest = facts["longest_captimes"]
    assert isinstance(longest, list)
    assert longest[-1][1] == story.race.longest_captime


def test_a_champion_sent_ahead_is_among_the_facts() -> None:
    """With one worker and many configurations: who, from where on, at which level."""
    table = table_of(np.full((60, 2000), 0.5), LIMIT)
    story = told(table, 1, epsilon=0.2, whole=True, short=False)
    facts = story.race.facts()
    assert facts is not None
    assert "start" not in facts, "the scout was content before the race began"
    scout = facts["scout"]
    assert isinstance(scout, dict)
    assert scout["champion"] == story.race.certificate().config
    assert scout["start"] == 16
    assert scout["count"] > 0
    assert scout["level"] == pytest.approx(-np.log(0.04 * 0.1))


# ---------------------------------------------------------------- anytime


def certified(epsilon: float, budget_share: Callable[[FloatArray], float]) -> float:
    """What one worker has certified after this many CPU seconds of a race with that goal."""
    table = spread_out(60)
    problem = Problem(60, UTILITY, 0.1, epsilon, captime_limit=LIMIT)
    race = Race(problem)
    executor = VirtualExecutor(table, stream_of("given", table.groups, 0), 1)
    budget = budget_share(table.seconds)
    drive_parallel(race, executor, Evidence(60, race.plan, UTILITY), budget=budget)
    return race.certificate().epsilon


def test_without_a_goal_something_is_certified_before_everybody_has_run() -> None:
    """Goal 0: the scout's champion alone says something while the warm start has hardly begun."""
    assert certified(0.0, lambda seconds: float(seconds.mean()) * 120) < 0.7
