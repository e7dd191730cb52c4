"""When a program is given up: never because a few settings of many are good for nothing."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from captime.campaign.abort_rules import AbortRules
from captime.campaign.result import OutcomeCounts
from captime.errors import TargetProgramError
from captime.runs import RunOutcome, RunRequest, Status, Verdict


def objections(*, drawn: bool) -> AbortRules:
    """With a program and a stream that are there to be named in messages only."""
    program = SimpleNamespace(how_started=lambda config, instance, seed: f"The command was: solve -c{config} {seed}")
    element = SimpleNamespace(instance=SimpleNamespace(path="file", name="file"), seed=1)
    stream = SimpleNamespace(at=lambda position: element)
    return AbortRules(cast("Any", program), cast("Any", stream), [], lambda *_, **__: None, None, drawn=drawn)


def outcome(config: int, instance: int, status: Status = Status.FAILED) -> RunOutcome:
    """A run that failed, if nothing else is said."""
    verdict = Verdict.WRONG if status is Status.FAILED else Verdict.ANSWERED
    return RunOutcome(RunRequest(config, instance, 1.0), status, 0.1, 0.1, "wrong answer", verdict)


def given_up_after(drawn: bool, per_config: int) -> int:
    """How many failed runs it takes, if each configuration is tried so often."""
    look, number = objections(drawn=drawn), 0

    def fail_on() -> None:
        nonlocal number
        while number < 1000:
            number += 1
            look([outcome((number - 1) // per_config, (number - 1) % per_config)])

    with pytest.raises(TargetProgramError, match="runs all failed, the last one so: wrong answer") as stopped:
        fail_on()
    assert f"the first {number} runs" in str(stopped.value)
    return number


def test_a_list_whose_first_runs_all_fail_is_given_up_soon() -> None:
    """Whatever the configurations are."""
    assert given_up_after(drawn=False, per_config=1) == 20
    assert given_up_after(drawn=False, per_config=4) == 20


def test_in_a_space_many_configurations_have_to_fail() -> None:
    """Most of a space may be good for nothing; but a program that never works is given up all the same."""
    assert given_up_after(drawn=True, per_config=4) == 97
    assert given_up_after(drawn=True, per_config=1) == 25
    assert given_up_after(drawn=True, per_config=1000) == 400


@pytest.mark.parametrize("drawn", [False, True])
def test_one_answer_and_there_is_hope_for_ever(drawn: bool) -> None:
    """It works somewhere."""
    look = objections(drawn=drawn)
    look([outcome(0, 0), outcome(0, 1, Status.COMPLETED)])
    for number in range(500):
        look([outcome(number, 2)])


def wall(config: int, instance: int) -> RunOutcome:
    """A run that the wall-clock guard stopped."""
    request = RunRequest(config, instance, 1.0)
    return RunOutcome(request, Status.ABANDONED, 0.01, 0.01, "stopped after 6 s of wall-clock time", Verdict.WALL)


def test_cut_runs_are_no_hope_where_everything_else_fails() -> None:
    """A pattern that never matches: some runs are cut, the others fail, and every configuration has failed."""
    look = objections(drawn=False)
    for number in range(19):
        look([outcome(number % 2, number), outcome(number % 2, number + 100, Status.CAPPED)])
    with pytest.raises(TargetProgramError, match="20 runs failed and none answered"):
        look([outcome(0, 50)])


def test_a_configuration_that_was_only_cut_may_still_answer() -> None:
    """One that crashes always says nothing about another that needs more time."""
    look = objections(drawn=False)
    for number in range(100):
        look([outcome(0, number), outcome(1, number, Status.CAPPED)])


def test_a_guard_that_stops_everything_is_told_with_the_other_clock() -> None:
    """Programs that wait have hardly any CPU time."""
    look = objections(drawn=False)
    for number in range(19):
        look([wall(number % 2, number)])
    with pytest.raises(TargetProgramError, match=r'the wall-clock guard stopped 20 runs.*clock = "wall"'):
        look([wall(1, 19)])


@pytest.mark.parametrize("status", [Status.CAPPED, Status.FAILED, Status.ABANDONED])
def test_a_campaign_without_any_answer_is_no_success(status: Status) -> None:
    """Whatever happened to its runs; one answer in an earlier call is enough."""
    census, look = OutcomeCounts(), objections(drawn=False)
    runs = [outcome(0, number, status) for number in range(5)]
    census.take(runs)
    look(runs)
    with pytest.raises(TargetProgramError, match="not one of 5 runs answered"):
        look.at_the_end(census)
    census.take([outcome(0, 9, Status.COMPLETED)])
    look.at_the_end(census)


def test_a_campaign_without_any_run_is_nobodys_fault() -> None:
    """A single configuration, or everything lost."""
    census = OutcomeCounts()
    census.take([outcome(0, 0, Status.LOST)])
    objections(drawn=False).at_the_end(census)
