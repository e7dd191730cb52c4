"""Resuming later: added configurations and other goals continue the same ledger, every run is reused, and nothing else.

Virtual slots answer from a table, so whole campaigns take moments; the command line has its own tests.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from campaign_stand_ins import Numbered, PulledThePlug, folder, ledger_in, question_on, virtual_slots
from captime.campaign import CampaignResult, RunSettings, StopRules, run_campaign
from captime.campaign.changes import AddedConfigurations, MoreInstances, change_of
from captime.errors import ReplayDiverged, ScenarioDiffers, ScenarioError
from captime.evidence import Evidence
from captime.executors.protocol import Executor
from captime.ledger import LedgerReader
from captime.ledger.reading import STATUSES
from captime.ledger.rows import Noted
from captime.live import drive_parallel
from captime.procedures.protocol import Procedure
from captime.runs import Status
from captime.scenario.spec import Goal, goal_of
from captime.spaces import Proposer
from space_campaigns import TABLE, Section, asked, go, on_space, search
from written_ledgers import audited

__all__ = ["folder"]

ORDERS = ("arrival", "fixed")
# Fixed order is the same machinery on a space; there it is only looked at when there is time.
ON_SPACE = ("arrival", pytest.param("fixed", marks=pytest.mark.slow))


def n_outcomes(path: Path) -> int:
    """Runs on record."""
    with LedgerReader(path) as reader:
        return len(reader.outcomes()["config"])


PROCEDURES: dict[str, dict[str, Any]] = {"race": {}, "pool": {"options": {"gamma": 0.6}}}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("procedure", PROCEDURES)
def test_added_configurations_continue_the_ledger(folder: Path, procedure: str, order: str) -> None:
    """Runs made before are not made again, the certificate speaks of all, and the newcomer that is best wins."""
    path = ledger_in(folder)
    more: dict[str, Any] = {"procedure": procedure, **PROCEDURES[procedure]}
    first = go(asked(5, 5, **more), path, order)
    made = n_outcomes(path)
    second = go(asked(8, 5, **more), path, order)
    truth = question_on(TABLE).utility(TABLE.seconds).mean(axis=1)
    assert truth.argmax() >= 5
    assert second.certificate.n_configs == 8
    assert second.certificate.epsilon <= 0.2
    assert truth.max() - truth[second.certificate.config] <= 0.2
    assert second.config_name == TABLE.configs[second.certificate.config]
    assert n_outcomes(path) == made + int(second.outcome.runs.sum()) - int(first.outcome.runs.sum()) or order == "fixed"
    with LedgerReader(path) as reader:
        assert [config.name for config in reader.configs] == list(TABLE.configs)
        positions = reader.outcomes()
    old = positions["position"][:made].max()
    assert positions["position"][positions["config"] >= 5].min() > old
    again = go(asked(8, 5, **more), path, order)
    assert again.certificate == second.certificate
    assert n_outcomes(path) == made + len(positions["config"]) - made


@pytest.mark.parametrize("order", ORDERS)
def test_a_campaign_that_is_cut_off_remembers_who_joined(folder: Path, order: str) -> None:
    """However often the plug is pulled after a configuration joined: the same decisions, the same certificate."""
    whole, cut = ledger_in(folder, "whole"), ledger_in(folder, "cut")
    for path in (whole, cut):
        go(asked(5, 5), path, order)
    end = go(asked(8, 5), whole, order)
    rng = np.random.default_rng(3)
    for _ in range(4):
        with pytest.raises(PulledThePlug):
            go(asked(8, 5), cut, order, observer=plug(int(rng.integers(1, 14))))
    gone_on = go(asked(8, 5), cut, order)
    assert gone_on.certificate.epsilon <= 0.2
    assert gone_on.certificate.n_configs == 8
    if order == "fixed":
        assert gone_on.certificate == end.certificate


def plug(laps: int) -> Callable[[Procedure, Evidence, Executor], None]:
    """Ends without a farewell after this many laps."""
    left = iter(range(laps))

    def observe(procedure: Procedure, evidence: Evidence, executor: Executor) -> None:
        if next(left, None) is None:
            raise PulledThePlug

    return observe


def test_somebody_who_joins_during_the_warm_start_waits_for_the_race(folder: Path) -> None:
    """What is run before is a pilot; no configuration joins it."""
    path = ledger_in(folder)
    # A coarser goal needs no warm start.
    with pytest.raises(PulledThePlug):
        go(asked(5, 5, epsilon=0.06), path, "arrival", observer=plug(3))
    result = go(asked(8, 5, epsilon=0.06), path, "arrival")
    with LedgerReader(path) as reader:
        facts = [note.facts for note in reader.events() if note.kind == "facts" and "start" in note.facts]
        runs = reader.outcomes()
    assert facts[0]["joined"] == [[5, facts[0]["start"]], [6, facts[0]["start"]], [7, facts[0]["start"]]]
    assert runs["position"][runs["config"] >= 5].min() == facts[0]["start"]
    assert result.certificate.n_configs == 8
    check_book(result)


@pytest.mark.parametrize("order", ORDERS)
def test_the_book_of_cpu_time_holds_late_configurations_too(folder: Path, order: str) -> None:
    """A configuration that joins after the warm start is booked as leader or challenger, and the book adds up."""
    path = ledger_in(folder)
    before = go(asked(5, 5), path, order).outcome
    result = go(asked(8, 5), path, order)
    check_book(result)
    book = result.outcome.spending
    late = float(result.outcome.seconds[5:].sum())
    assert late > 0.0
    assert book["warm_start"] == pytest.approx(before.spending["warm_start"])
    assert sum(book.values()) - book["warm_start"] >= late


def check_book(result: CampaignResult) -> None:
    """Every CPU second of the campaign has one purpose."""
    book, seconds = result.outcome.spending, result.outcome.seconds
    assert sum(book.values()) == pytest.approx(float(seconds.sum()))
    assert all(booked >= 0.0 for booked in book.values())
    assert book["leader"] <= float(seconds[result.certificate.config])


@pytest.mark.parametrize("order", ORDERS)
def test_joining_and_another_goal_come_in_the_order_in_which_they_were_asked_for(folder: Path, order: str) -> None:
    """A smaller epsilon before or after a configuration joins: all is reached, and nothing is run twice."""
    path = ledger_in(folder)
    go(asked(5, 5, epsilon=0.3), path, order)
    go(asked(5, 5, epsilon=0.2), path, order)
    go(asked(7, 5, epsilon=0.2), path, order)
    go(asked(8, 5, epsilon=0.15), path, order)
    last = go(asked(8, 5, epsilon=0.25), path, order)
    # With fixed order a larger goal stops sooner; otherwise everything on record is known.
    assert last.certificate.epsilon <= (0.25 if order == "fixed" else 0.15)
    assert last.certificate.n_configs == 8
    with LedgerReader(path) as reader:
        changes = [change_of(note) for note in reader.events()]
        runs = reader.outcomes()
    kinds = [type(change) for change in changes if change is not None]
    assert kinds == [Goal, AddedConfigurations, AddedConfigurations, Goal, Goal]
    keys = list(zip(runs["config"].tolist(), runs["position"].tolist(), strict=True))
    # What was under way at an end is stopped, and made again.
    assert len(keys) - len(set(keys)) <= 5 * 2 * 8


@pytest.mark.parametrize("order", ["arrival", "fixed"])
@pytest.mark.parametrize("kind", ["space", "list"])
def test_whoever_does_not_repeat_itself_gets_no_second_try(folder: Path, order: str, kind: str) -> None:
    """What was under way when the plug was pulled is given up: long runs are more often, and would be lucky twice."""

    def on(**more: Any) -> None:
        if kind == "space":
            search(on_space(1, repeatable=False), path, order, **more)
        else:
            go(asked(5, 5, repeatable=False), path, order, **more)

    path = ledger_in(folder)
    with pytest.raises(PulledThePlug):
        on(observer=plug(30))
    on()
    with LedgerReader(path) as reader:
        runs = reader.outcomes()
    given_up = runs["status"] == STATUSES.index(Status.ABANDONED)
    assert given_up.any()
    assert not (runs["attempt"] > 0).any()
    assert audited(path).verdict == "confirmed"


@pytest.mark.parametrize("order", ["arrival", "fixed"])
def test_a_gamma_asked_for_from_the_start_is_bet_on(folder: Path, order: str) -> None:
    """On the command line as in the scenario: it takes fewer draws than one that is changed to on the way."""
    sizes = []
    for name, gammas in {"start": [0.3], "later": [0.5, 0.3]}.items():
        path = ledger_in(folder, name)
        for gamma in gammas:
            result = search(on_space(1).with_goal(None, gamma), path, order)
        sizes.append(result.certificate.n_configs)
        assert audited(path).verdict == "confirmed"
    assert sizes[0] < sizes[1]


def test_removing_or_reordering_configurations_is_refused(folder: Path) -> None:
    """And so is adding one between others; each with its name."""
    path = ledger_in(folder)
    go(asked(5, 5), path, "arrival")
    go(asked(7, 5), path, "arrival")
    for order, what in (
        ([0, 1, 2, 3], "gone"),
        ([1, 0, 2, 3, 4, 5, 6], "order"),
        ([0, 1, 7, 2, 3, 4, 5, 6], "between"),
    ):
        with pytest.raises(ScenarioDiffers, match=what):
            go(asked(0, 5, order=order), path, "arrival")
    with pytest.raises(ScenarioDiffers, match="gone"):
        go(asked(6, 5), path, "arrival")


@pytest.mark.parametrize("more", [{"procedure": "up"}, {"options": {"mode": "simultaneous"}}])
def test_whoever_has_no_share_of_delta_left_refuses_newcomers(folder: Path, more: dict[str, Any]) -> None:
    """Fixed captimes share delta among those there are, and so does a race that covers every interval."""
    path = ledger_in(folder)
    go(asked(3, 3, epsilon=0.4, **more), path, "arrival")
    for order in ORDERS:
        with pytest.raises(ScenarioDiffers, match="added"):
            go(asked(4, 3, epsilon=0.4, **more), path, order)
    # Nothing was written down that would be in the way of resuming as before.
    assert go(asked(3, 3, epsilon=0.4, **more), path, "arrival").outcome.stopped == "epsilon"


def test_at_the_end_of_the_stream_newcomers_wait_for_more_instances() -> None:
    """They would be judged on what the user has seen before; the certificate says what is known, which is little."""
    for name, options in (("race", {}), ("pool", {"gamma": 0.6})):
        question = asked(5, 5, procedure=name, options=options, epsilon=0.01)
        procedure = replace(question, stream=Numbered(24)).build()
        evidence = Evidence(5, procedure.plan, question.utility)
        executor = virtual_slots(TABLE, 2)(question.program, "")
        assert drive_parallel(procedure, executor, evidence).stopped == "instances"
        assert procedure.newcomers(1, 24) == 5  # type: ignore[attr-defined] # race and pool have it
        evidence.grow(6)
        evidence.retire(procedure.candidates)
        executor = virtual_slots(TABLE, 2)(question.program, "")
        assert drive_parallel(procedure, executor, evidence).stopped == "instances"
        assert evidence.tally.runs[5] == 0
        procedure.more_instances(60)  # type: ignore[attr-defined] # likewise
        drive_parallel(procedure, executor, evidence)
        assert evidence.tally.runs[5] > 0
        assert evidence.tally.skipped[5] == 24


# ---------------------------------------------------------------------------- on a space


@pytest.mark.parametrize("order", ON_SPACE)
@pytest.mark.parametrize("model", [True, False])
def test_added_favourites_join_a_pool_where_it_stands(folder: Path, order: str, model: bool) -> None:
    """They come next, begin behind everything that was run, and shift neither draws nor proposals."""
    path = ledger_in(folder)
    search(on_space(1, model=model), path, order)
    with LedgerReader(path) as reader:
        before, frontier = reader.configs, int(reader.samples()["position"].max()) + 1
    result = search(on_space(3, model=model), path, order)
    assert result.certificate.epsilon <= 0.3
    assert result.certificate.gamma is not None
    assert result.certificate.gamma <= 0.5
    with LedgerReader(path) as reader:
        after, runs = reader.configs, reader.outcomes()
    late = [config.index for config in after if config.origin == "favourite" and config.index > 1]
    assert late == [late[0], late[0] + 1]
    assert late[0] >= len(before) or order == "fixed"
    assert result.certificate.n_configs > late[1] or result.certificate.gamma == 0.0
    assert [after[index].settings["settings"] for index in late] == [{"x": 0.2}, {"x": pytest.approx(0.3)}]
    if order == "arrival":
        assert runs["position"][np.isin(runs["config"], late)].min() >= frontier
    draws = [config.settings for config in after if config.origin == "random"]
    space = Section().space()
    assert draws == [{"settings": space.draw(0, number)} for number in range(len(draws))]
    made = n_outcomes(path)
    assert search(on_space(3, model=model), path, order).certificate == result.certificate
    assert n_outcomes(path) == made


def test_another_space_is_told_once_and_with_what_can_be_learnt_from(folder: Path) -> None:
    """Favourites are told among the configurations, those added since included; --learn-from only where it works."""
    path = ledger_in(folder)
    search(on_space(1), path)
    search(on_space(3), path)
    with pytest.raises(ScenarioDiffers) as refused:
        search(on_space(2), path)
    told = str(refused.value)
    assert "configurations: 1 gone ('favourite-3')" in told
    assert "space.favourites" not in told
    assert f"--ledger NEW --learn-from {path}" in told
    assert "(Favourites and instances may be added" in told
    with pytest.raises(ScenarioDiffers) as refused:
        search(replace(on_space(3), identity={**on_space(3).identity, "clock": "wall"}), path)
    assert "--learn-from" not in str(refused.value)
    with pytest.raises(ScenarioDiffers) as refused:
        search(on_space(3, model=False), path)
    assert "--learn-from" not in str(refused.value)


def test_a_roster_that_is_not_the_recorded_one_is_noticed(folder: Path) -> None:
    """A favourite where the ledger has a draw: our bug, said so, and nothing continues."""
    path = ledger_in(folder)
    search(on_space(1), path)
    with pytest.raises(ReplayDiverged):
        search(replace(on_space(1), proposer=Proposer(Section(2).space(), 0)), path)


@pytest.mark.parametrize("order", ON_SPACE)
def test_gamma_can_be_changed_on_the_way(folder: Path, order: str) -> None:
    """Smaller: more draws, and the same ledger is resumed. Larger: content at once. Both are on record."""
    path = ledger_in(folder)
    coarse = search(on_space(1), path, order)
    fine = search(on_space(1, options={"gamma": 0.4}), path, order)
    assert coarse.certificate.gamma is not None
    assert fine.certificate.gamma is not None
    assert 0.4 < coarse.certificate.gamma <= 0.5
    assert fine.certificate.gamma <= 0.4
    made = n_outcomes(path)
    back = search(on_space(1, options={"gamma": 0.7}), path, order)
    assert back.outcome.stopped == "epsilon"
    assert n_outcomes(path) == made
    with LedgerReader(path) as reader:
        assert [note.facts for note in reader.events() if note.kind == "goal"] == [
            {"epsilon": 0.3, "gamma": 0.4, "stop": "both"},
            {"epsilon": 0.3, "gamma": 0.7, "stop": "both"},
        ]


@pytest.mark.parametrize("order", ON_SPACE)
def test_which_goals_count_can_be_changed_on_the_way(folder: Path, order: str) -> None:
    """Content with one goal, then with the other, then with both."""
    path = ledger_in(folder)
    near = search(on_space(1, options={"gamma": 0.2, "stop": "epsilon"}), path, order)
    assert near.certificate.epsilon <= 0.3
    assert (near.certificate.gamma or 0.0) > 0.2
    wide = search(on_space(1, epsilon=0.05, options={"gamma": 0.3, "stop": "gamma"}), path, order)
    assert (wide.certificate.gamma or 0.0) <= 0.3
    assert wide.certificate.epsilon > 0.05
    both = search(on_space(1, epsilon=0.25, options={"gamma": 0.3}), path, order)
    assert both.certificate.epsilon <= 0.25
    assert (both.certificate.gamma or 0.0) <= 0.3
    assert both.outcome.stopped == "epsilon"


def test_a_gamma_where_there_is_none_is_refused() -> None:
    """A list has no top fraction; and a fraction is between 0 and 1."""
    with pytest.raises(ScenarioError, match="gamma"):
        asked(3, 3).with_goal(0.1, 0.2)
    with pytest.raises(ScenarioError, match="gamma"):
        on_space(1).with_goal(None, 1.5).build()
    assert on_space(1).with_goal(None, 0.2).goal == Goal(0.3, 0.2, "both")


def test_goals_are_read_as_they_were_noted() -> None:
    """Also those of ledgers that know nothing of gamma."""
    for goal in (Goal(0.1), Goal(0.1, 0.2, "both"), Goal(0.0, 0.0, "gamma")):
        assert change_of(Noted(1, "goal", goal.facts())) == goal
    assert change_of(Noted(1, "instances", {"list": [], "length": 9})) == MoreInstances(9)
    assert change_of(Noted(1, "configurations", {"list": [{}, {}], "earliest": 4})) == AddedConfigurations(2, 4)
    assert change_of(Noted(1, "stopped", {"because": "budget"})) is None
    assert goal_of("race", {"boost": 2.0}, 0.1) == Goal(0.1)
    assert goal_of("pool", {"gamma": "0.3"}, 0.1) == Goal(0.1, 0.3, "both")


# ------------------------------------------------------------------ the clock


def test_the_clock_of_a_campaign_goes_on_like_its_cost(folder: Path) -> None:
    """Two calls of 40 s are 80 s, on every certificate and at the end; the stop rule is each call's."""
    path = ledger_in(folder)
    manner = RunSettings(jobs=2, stop=StopRules(wall=40.0))
    first, second = (
        run_campaign(asked(5, 5, epsilon=0.01), path, manner, make_executor=virtual_slots(TABLE, 2)) for _ in range(2)
    )
    assert (first.outcome.stopped, second.outcome.stopped) == ("deadline", "deadline")
    assert first.outcome.wall_seconds == pytest.approx(40.0)
    assert second.outcome.wall_seconds == pytest.approx(80.0)
    with LedgerReader(path) as reader:
        clocks = [certified.wall_seconds for certified in reader.certificates()]
        assert reader.clock() == pytest.approx(80.0)
    assert clocks == sorted(clocks)
    assert clocks[-1] > 40.0


def test_a_campaign_that_was_cut_off_goes_on_from_its_newest_certificate(folder: Path) -> None:
    """The moment at which the plug was pulled is not on record."""
    path = ledger_in(folder)
    with pytest.raises(PulledThePlug):
        go(asked(5, 5, epsilon=0.01), path, "arrival", observer=plug(60))
    with LedgerReader(path) as reader:
        newest = reader.last_certificate()
        assert newest is not None
        assert reader.clock() == newest.wall_seconds > 0.0
    go(asked(5, 5), path, "arrival")
    with LedgerReader(path) as reader:
        assert reader.certificates(newest.sequence)[0].wall_seconds >= newest.wall_seconds


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("begun", "then"), [(0.2, 0.06), (0.06, 0.2)])
def test_a_race_keeps_the_beginning_it_had_when_its_goal_changes(
    folder: Path, begun: float, then: float, order: str
) -> None:
    """Whether there is a warm start follows from the goal that the campaign was begun with, also after a resume."""
    path = ledger_in(folder)
    with pytest.raises(PulledThePlug):
        go(asked(5, 5, epsilon=begun), path, order, observer=plug(12))
    held = go(asked(5, 5, epsilon=then), path, order).certificate
    assert held.epsilon <= then
    with LedgerReader(path) as reader:
        starts = {note.facts["start"] for note in reader.events() if note.kind == "facts" and "start" in note.facts}
    assert len(starts) == 1
    assert (starts == {0}) == (begun == 0.2)
    assert audited(path).verdict == "confirmed"
