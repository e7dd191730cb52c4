"""The book-keeping of the live path: which runs are missing, and what every state of a run is known to be worth."""

import numpy as np
import pytest

from captime.arrays import IntArray
from captime.certificate import Orders
from captime.errors import InvariantViolated
from captime.evidence import Evidence, Prefix
from captime.plans import Ladder, RandomCaptimes, Schedule
from captime.runs import RunOutcome, RunRequest, Status
from captime.utilities import parse_utility

UTILITY = parse_utility("uniform(10)")
"""u(t) = 1 - t/10."""


def evidence_on(*rungs: float, n_configs: int = 1) -> Evidence:
    """Nothing known yet, with these captimes."""
    return Evidence(n_configs, Ladder(UTILITY, np.array(rungs)), UTILITY)


def order(config: int, n: int, level: int = 0, first: int | None = None) -> Orders:
    """One order."""

    def only(value: int) -> IntArray:
        return np.array([value])

    return Orders(only(config), only(n), only(level), None if first is None else only(first))


def done(request: RunRequest, seconds: float) -> RunOutcome:
    """It answered."""
    return RunOutcome(request, Status.COMPLETED, seconds, seconds)


def capped(request: RunRequest, seconds: float | None = None) -> RunOutcome:
    """It was stopped, at its captime unless said otherwise."""
    survived = request.captime if seconds is None else seconds
    return RunOutcome(request, Status.CAPPED, survived, survived)


def ends(evidence: Evidence, config: int = 0) -> list[tuple[float, float]]:
    """Low and high end of every run that was ordered, but for rounding."""
    low, high = evidence.samples(config, 0, int(evidence.tally.n[config]))
    return list(zip(low.round(9).tolist(), high.round(9).tolist(), strict=True))


def test_on_a_ladder_every_state_has_its_interval() -> None:
    """Not started, in flight, seen, completed, capped, late, failed, stopped early, lost: each as the table says."""
    evidence = evidence_on(4.0)
    assert evidence.aim(order(0, 9)) == 9
    assert ends(evidence) == [(0.0, 1.0)] * 9
    runs = evidence.take(8)
    assert [run.instance for run in runs] == list(range(8))
    assert ends(evidence) == [(0.0, 1.0)] * 9
    assert evidence.seen(runs[0], 2.0)
    assert evidence.seen(runs[1], 7.0)
    lost = RunOutcome(runs[6], Status.LOST, 1.0, 1.0)
    failed = RunOutcome(runs[5], Status.FAILED, 0.5, 0.5)
    changed = evidence.add(
        [done(runs[2], 3.0), capped(runs[3]), done(runs[4], 4.0), failed, lost, capped(runs[7], 2.0)]
    )
    assert changed.tolist() == [0]
    floor = 0.6
    assert ends(evidence) == [
        (0.0, 0.8),  # seen after 2 s
        (0.0, floor),  # seen after its captime, about to be stopped
        (0.7, 0.7),
        (0.0, floor),
        (0.0, floor),  # answered at its captime, which is too late
        (0.0, floor),  # a failure is told by u(captime), not 0: see the ladder
        (0.0, 0.9),
        (0.0, 0.8),
        (0.0, 1.0),
    ]
    tally = evidence.tally
    assert (tally.n[0], tally.settled[0], tally.open[0], tally.completed[0]) == (9, 0, 5, 1)
    assert tally.utility_low[0] == pytest.approx(0.7)
    assert tally.utility_high[0] == pytest.approx(sum(high for _, high in ends(evidence)))
    assert tally.seconds[0] == pytest.approx(3.0 + 4.0 + 4.0 + 0.5 + 1.0 + 2.0)
    assert (tally.runs[0], evidence.in_flight, evidence.open) == (8, 2, 5)


def test_with_random_captimes_every_state_has_its_interval() -> None:
    """The seven rows of the table for random captimes, B = 2 and runs stopped after 6 s at the latest."""
    plan = RandomCaptimes(UTILITY, 5, Schedule(2.0), Schedule(6.0))
    evidence = Evidence(1, plan, UTILITY)
    evidence.aim(order(0, 40))
    position = np.arange(40)
    drawn = UTILITY.inverse(plan.draws(position) / 2.0)
    short, long = np.flatnonzero(drawn < 6.0), np.flatnonzero(drawn > 7.0)
    runs = evidence.take(30)
    a, b, c = (runs[k] for k in short[:3])
    d, e, f, g = (runs[k] for k in long[:4])
    assert a.captime == drawn[a.instance]
    assert d.captime == 6.0
    evidence.seen(e, 2.0)
    evidence.seen(c, float(drawn[c.instance]) * 1.001)
    crash = RunOutcome(b, Status.FAILED, 0.1, 0.1)
    evidence.add([capped(a), crash, done(d, 3.0), capped(f), capped(g, 5.5)])
    found = ends(evidence)
    assert found[a.instance] == (0.0, 0.0)
    assert found[b.instance] == (0.0, 0.0)
    assert found[c.instance] == (0.0, 0.0)
    assert found[d.instance] == pytest.approx((0.7, 0.7))
    assert found[e.instance] == pytest.approx((0.0, 0.8))
    assert found[f.instance] == pytest.approx((0.0, 0.5))
    assert found[g.instance] == pytest.approx((0.0, 0.5))
    assert found[39] == (0.0, 1.0)
    assert evidence.tally.open[0] == 40 - 4


def test_settled_is_the_longest_prefix_without_a_gap() -> None:
    """A fast finisher behind a slow one waits for it."""
    evidence = evidence_on(4.0)
    evidence.aim(order(0, 4))
    runs = evidence.take(4)
    evidence.add([done(runs[1], 1.0), done(runs[3], 1.0)])
    assert (evidence.tally.settled[0], evidence.tally.open[0]) == (0, 2)
    evidence.add([done(runs[0], 3.0)])
    assert (evidence.tally.settled[0], evidence.tally.open[0]) == (2, 1)
    evidence.add([capped(runs[2])])
    assert (evidence.tally.settled[0], evidence.tally.open[0]) == (4, 0)


def test_an_order_is_expanded_once_and_only_ever_grows() -> None:
    """The same order again opens nothing; a longer one opens what it adds; a shorter one takes nothing back."""
    evidence = evidence_on(4.0, n_configs=2)
    assert [evidence.aim(order(1, n)) for n in (2, 2, 5, 3)] == [2, 0, 3, 0]
    assert [run.instance for run in evidence.take(100)] == [0, 1, 2, 3, 4]
    assert evidence.take(100) == []
    assert evidence.tally.n.tolist() == [0, 5]


def test_skipped_positions_are_never_run_and_count_as_nothing_known() -> None:
    """`first` steps over what was not ordered before; sums leave it out, samples say from 0 to 1."""
    evidence = evidence_on(4.0)
    evidence.aim(order(0, 2))
    evidence.aim(order(0, 6, first=4))
    runs = evidence.take(10)
    assert [run.instance for run in runs] == [0, 1, 4, 5]
    evidence.add(done(run, 1.0) for run in runs)
    tally = evidence.tally
    assert (tally.n[0], tally.skipped[0], tally.settled[0], tally.open[0]) == (6, 2, 6, 0)
    assert tally.utility_high[0] == pytest.approx(4 * 0.9)
    assert ends(evidence)[2:4] == [(0.0, 1.0)] * 2
    assert evidence.aim(order(0, 6, first=0)) == 0


def test_a_raised_level_asks_for_the_cut_runs_again_and_for_no_others() -> None:
    """Completed and failed runs are known for good; what was cut counts by how long it was seen."""
    evidence = evidence_on(2.0, 8.0)
    evidence.aim(order(0, 4))
    runs = evidence.take(4)
    late, crash = done(runs[2], 3.0), RunOutcome(runs[3], Status.FAILED, 1.0, 1.0)
    evidence.add([done(runs[0], 1.0), capped(runs[1]), late, crash])
    assert ends(evidence) == [(0.9, 0.9), (0.0, 0.8), (0.0, 0.8), (0.0, 0.8)]
    assert evidence.aim(order(0, 5, level=1)) == 2
    assert ends(evidence) == [(0.9, 0.9), (0.0, 0.8), (0.7, 0.7), (0.0, 0.2), (0.0, 1.0)]
    assert evidence.tally.settled[0] == 1
    again = evidence.take(9)
    assert again == [RunRequest(0, 1, 8.0, attempt=1), RunRequest(0, 4, 8.0)]
    evidence.add([done(again[0], 6.0), capped(again[1])])
    assert ends(evidence)[1] == pytest.approx((0.4, 0.4))
    assert (evidence.tally.settled[0], evidence.tally.completed[0], evidence.tally.runs[0]) == (5, 3, 6)


def test_a_run_under_way_when_its_level_rises_is_asked_for_once_more() -> None:
    """Its attempt continues to the old captime, and that is not enough any more."""
    evidence = evidence_on(2.0, 8.0)
    evidence.aim(order(0, 1))
    (first,) = evidence.take(1)
    assert evidence.aim(order(0, 1, level=1)) == 0
    assert evidence.take(1) == []
    evidence.add([capped(first)])
    assert ends(evidence) == [(0.0, 0.8)]
    assert evidence.take(1) == [RunRequest(0, 0, 8.0, attempt=1)]


def test_a_lost_run_is_asked_for_again_and_its_late_echo_is_ignored() -> None:
    """One attempt counts: the one that is under way, never the first to arrive."""
    evidence = evidence_on(4.0)
    evidence.aim(order(0, 2))
    first, _ = evidence.take(2)
    evidence.add([RunOutcome(first, Status.LOST, 0.0, 2.5)])
    (second,) = evidence.take(5)
    assert (second.instance, second.attempt) == (0, 1)
    assert evidence.add([done(first, 1.0)]).size == 0
    assert not evidence.seen(first, 3.0)
    assert (ends(evidence)[0], evidence.ignored) == ((0.0, 1.0), 1)
    evidence.add([done(second, 2.0), done(second, 2.0)])
    assert evidence.ignored == 2
    assert ends(evidence)[0] == pytest.approx((0.8, 0.8))
    assert evidence.tally.seconds[0] == pytest.approx(4.5)


def test_runs_of_the_retired_wait_and_go_on_when_they_come_back() -> None:
    """The eliminated cost nothing; a configuration that is a candidate again finds its order standing."""
    evidence = evidence_on(4.0, n_configs=2)
    evidence.aim(Orders(np.array([0, 1]), np.array([2, 2]), np.array([0, 0])))
    (run,) = evidence.take(1)
    assert evidence.retire(np.array([False, True])).tolist() == [0]
    assert (evidence.open, evidence.tally.open.tolist()) == (2, [2, 2])
    evidence.add([capped(run, 1.0)])
    assert {each.config for each in evidence.take(9)} == {1}
    assert evidence.retire(np.array([True, True])).size == 0
    assert [(each.config, each.instance) for each in evidence.take(9)] == [(0, 0), (0, 1)]
    assert ends(evidence)[0] == pytest.approx((0.0, 0.9))


def test_a_run_that_answers_sooner_than_it_was_seen_counts_as_it_was_seen() -> None:
    """A run that is tried twice must not be lucky twice."""
    evidence = evidence_on(2.0, 8.0)
    evidence.aim(order(0, 1))
    evidence.add([capped(evidence.take(1)[0])])
    evidence.aim(order(0, 1, level=1))
    evidence.add([done(evidence.take(1)[0], 1.5)])
    assert ends(evidence) == [(0.8, 0.8)]
    assert evidence.disagreements == 1


def test_samples_beyond_what_was_ordered_are_unknown() -> None:
    """Asking far ahead is answered honestly, asking backwards is refused."""
    evidence = evidence_on(4.0)
    evidence.aim(order(0, 1))
    low, high = evidence.samples(0, 0, 40)
    assert (low.tolist(), high.tolist()) == ([0.0] * 40, [1.0] * 40)
    low, high = evidence.samples(0, 30, 40)
    assert (len(low), high.min()) == (10, 1.0)
    with pytest.raises(InvariantViolated, match="first <= last"):
        evidence.samples(0, 3, 2)


@pytest.mark.parametrize("seconds", [np.nan, np.inf, -1.0])
def test_an_outcome_that_cannot_be_does_not_exist(seconds: float) -> None:
    """Times are finite and not negative; a run that never answers says so by its status."""
    with pytest.raises(InvariantViolated, match="CPU seconds"):
        RunOutcome(RunRequest(0, 0, 1.0), Status.COMPLETED, seconds, 1.0)
    with pytest.raises(InvariantViolated, match="CPU seconds"):
        RunOutcome(RunRequest(0, 0, 1.0), Status.CAPPED, 1.0, seconds)


def test_a_request_that_cannot_be_does_not_exist() -> None:
    """Indices count from 0 and captimes are numbers."""
    with pytest.raises(InvariantViolated, match="count from 0"):
        RunRequest(-1, 0, 1.0)
    with pytest.raises(InvariantViolated, match="captime"):
        RunRequest(0, 0, np.nan)


def test_an_abandoned_run_is_settled_for_ever_with_what_was_seen_of_it() -> None:
    """It is never asked for again, at no level, and counts up to what an answer just then would have been worth."""
    evidence = evidence_on(4.0, 8.0)
    evidence.aim(order(0, 2))
    first, second = evidence.take(2)
    evidence.add([RunOutcome(first, Status.ABANDONED, 1.0, 1.0), done(second, 2.0)])
    assert ends(evidence) == [(0.0, 0.9), (0.8, 0.8)]
    assert (evidence.tally.settled[0], evidence.tally.open[0], evidence.tally.completed[0]) == (2, 0, 1)
    evidence.aim(order(0, 2, level=1))
    assert evidence.take(5) == []
    assert ends(evidence) == [(0.0, 0.9), (0.8, 0.8)]


@pytest.mark.parametrize("status", [Status.CAPPED, Status.LOST])
def test_a_program_that_cannot_repeat_itself_gets_no_second_chance(status: Status) -> None:
    """Stopped early or lost, such a run stays an interval; a program that can repeat itself is asked again."""
    for repeatable in (True, False):
        plan = RandomCaptimes(UTILITY, 1, Schedule(1.25), Schedule(10.0))
        evidence = Evidence(1, plan, UTILITY, repeatable=repeatable)
        evidence.aim(order(0, 1))
        (run,) = evidence.take(1)
        evidence.add([RunOutcome(run, status, 0.01, 0.01)])
        assert ends(evidence) == [(0.0, 0.999)]
        assert [again.attempt for again in evidence.take(1)] == ([1] if repeatable else [])
        assert evidence.tally.open[0] == (1 if repeatable else 0)


def test_who_begins_far_down_the_stream_takes_no_room_for_what_comes_before() -> None:
    """Thousands join late in a long campaign; entries for all that they have missed would fill the memory."""
    runs = Prefix()
    runs.begin_at(10**9)
    runs.grow(10**9 + 3)
    assert len(runs.seen) == len(runs.settled) < 100
    runs.low[:3], runs.high[:3], runs.cost[:3], runs.settled[:2] = [0.5, 0.25, 0.0], [0.5, 0.25, 1.0], 2.0, True
    sums, _, still_open = runs.totals(10**9 + 3)
    assert (sums.tolist(), still_open, runs.done) == ([0.75, 1.75, 6.0], 1, 10**9 + 2)


def test_a_late_beginner_is_judged_by_its_own_positions() -> None:
    """Captimes, scores and sums are those of the positions it was run on, at every level."""
    plan = RandomCaptimes(UTILITY, 7, Schedule(1.25), Schedule(9.0))
    late, whole = (Evidence(1, plan, UTILITY) for _ in range(2))
    late.aim(order(0, 12, first=4))
    whole.aim(order(0, 12))
    for evidence in (late, whole):
        evidence.add(done(each, 0.5 + each.instance % 3) for each in evidence.take(20)[:-1])
    low, high = late.samples(0, 0, 14)
    assert (low[:4].tolist(), high[:4].tolist()) == ([0.0] * 4, [1.0] * 4)
    assert [low[4:].tolist(), high[4:].tolist()] == [end[4:].tolist() for end in whole.samples(0, 0, 14)]
    assert late.tally.utility_low[0] == pytest.approx(low.sum())
    assert (late.tally.settled[0], late.tally.open[0]) == (11, 1)


def test_a_late_beginner_can_be_raised() -> None:
    """What was cut at the first captime is run again, at its own positions."""
    evidence = evidence_on(2.0, 8.0)
    evidence.aim(order(0, 7, first=4))
    evidence.add(capped(each) if each.instance == 5 else done(each, 1.0) for each in evidence.take(10))
    evidence.aim(order(0, 7, level=1, first=4))
    (again,) = evidence.take(10)
    assert (again.instance, again.captime, again.attempt) == (5, 8.0, 1)
    evidence.add([done(again, 5.0)])
    assert ends(evidence)[4:] == [(0.9, 0.9), (0.5, 0.5), (0.9, 0.9)]
