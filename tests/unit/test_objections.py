"""When a program is given up: never because a few settings of many are good for nothing."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from captime.campaign.objections import Objections
from captime.errors import TargetProgramError
from captime.runs import RunOutcome, RunRequest, Status, Verdict


def objections(*, drawn: bool) -> Objections:
    """With a program and a stream that are there to be named in messages only."""
    program = SimpleNamespace(how_started=lambda config, instance, seed: f"The command was: solve -c{config} {seed}")
    element = SimpleNamespace(instance=SimpleNamespace(path="file", name="file"), seed=1)
    stream = SimpleNamespace(at=lambda position: element)
    return Objections(cast("Any", program), cast("Any", stream), [], lambda *_, **__: None, None, drawn=drawn)


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
