"""C8: a machine that becomes slower or faster is found out by a fixed piece of work, and its runs are flagged."""

import math
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from captime.executors import LocalExecutor, local_slots
from captime.executors.local_slots import REMEASURE_SECONDS, TIMES, SpeedChecks
from captime.runs import RunOutcome, RunRequest
from supervised import Bench, Plain, comes_true, launch


@pytest.fixture
def pulse() -> SpeedChecks:
    """Of two slots."""
    return SpeedChecks(range(2), now=0.0)


def hear(pulse: SpeedChecks, slot: int, *seconds: float) -> bool:
    """The piece of work was done; whether the slot has drifted."""
    for each in seconds:
        pulse.hear(slot, each)
    return pulse.has_drifted(slot)


def test_each_slot_is_measured_early_and_then_every_ten_minutes(pulse: SpeedChecks) -> None:
    """Not at the very beginning: there, cores that have nothing to do are faster than they will be."""
    assert not pulse.is_due(0, 0.0)
    assert pulse.is_due(0, 11.0)
    assert not pulse.is_due(0, 12.0)
    assert pulse.is_due(1, 12.0)
    assert not pulse.is_due(0, 10.0 + REMEASURE_SECONDS)
    assert pulse.is_due(0, 11.0 + REMEASURE_SECONDS)


@pytest.mark.parametrize(("later", "drifted"), [(0.052, False), (0.056, True), (0.044, True), (0.046, False)])
def test_more_than_a_tenth_is_a_drift(pulse: SpeedChecks, later: float, drifted: bool) -> None:
    """In either direction; and only that slot has it."""
    assert pulse.is_due(0, 11.0)
    assert not hear(pulse, 0, 0.05, 0.09, 0.07)
    assert pulse.is_due(0, 1000.0)
    assert hear(pulse, 0, 0.1, later, 0.1) is drifted
    assert not pulse.has_drifted(1)


def test_a_drift_ends_when_the_machine_is_as_it_was(pulse: SpeedChecks) -> None:
    """Compared with the first time, not with the last."""
    for now, seconds, drifted in (
        (11.0, 0.05, False),
        (700.0, 0.07, True),
        (1400.0, 0.07, True),
        (2100.0, 0.05, False),
    ):
        assert pulse.is_due(0, now)
        assert hear(pulse, 0, *[seconds] * TIMES) is drifted


def test_a_piece_of_work_that_came_to_nothing_says_nothing(pulse: SpeedChecks) -> None:
    """Nor does one that was done too few times."""
    assert pulse.is_due(0, 11.0)
    assert not hear(pulse, 0, *[math.inf] * TIMES)
    assert pulse.is_due(0, 700.0)
    assert not hear(pulse, 0, *[0.05] * TIMES)
    assert pulse.is_due(0, 1400.0)
    assert not hear(pulse, 0, *[0.09] * (TIMES - 1))


def runs_until(executor: LocalExecutor, there: Callable[[RunOutcome], bool]) -> list[RunOutcome]:
    """Make runs until one is like that; all of them."""
    made: list[RunOutcome] = []
    patience = time.monotonic() + 60.0
    while not made or not there(made[-1]):
        assert time.monotonic() < patience
        executor.submit([RunRequest(0, len(made), 1.0)])
        made += executor.collect(10.0)
    return made


def test_runs_on_a_machine_that_became_slower_are_flagged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The piece of work takes twice as long after a while, and then as long as before."""
    burn = tmp_path / "seconds"
    burn.write_text("0.05", encoding="ascii")
    work = f"import time\nwhile time.process_time() < float(open({str(burn)!r}).read()): pass"
    monkeypatch.setattr(local_slots, "_WORK", work)
    monkeypatch.setattr(local_slots, "_FIRST_SECONDS", 0.0)
    monkeypatch.setattr(local_slots, "REMEASURE_SECONDS", 1.5)

    def flagged(outcome: RunOutcome) -> bool:
        return outcome.measured is not None and "drifted" in outcome.measured.flags

    with LocalExecutor(Plain(launch("true")), 1, tag=f"test-drift-{os.getpid()}", ahead=1) as executor:
        began = time.monotonic()
        assert not any(map(flagged, runs_until(executor, lambda _: time.monotonic() - began > 2.0)))
        burn.write_text("0.1", encoding="ascii")
        assert runs_until(executor, flagged)
        burn.write_text("0.05", encoding="ascii")
        assert runs_until(executor, lambda outcome: not flagged(outcome))


def test_a_run_in_front_of_that_work_is_taken_over_by_an_idle_slot() -> None:
    """A run waits behind a long one, and the piece of work behind both: the slot that is free does the run."""
    opened = Bench(f"test-share-{os.getpid()}")
    executor, outcomes = opened.executor, list[RunOutcome]()
    try:
        opened.program.launches = {0: launch("sleep", "600", wall_limit=600.0), 1: launch("true")}
        executor._pulse._due = {0: math.inf, 1: math.inf}
        executor.submit(opened.requests([0, 1, 1, 1]))
        executor._pulse._due[0] = 0.0
        executor.submit(opened.requests([1]))
        assert len(executor._handles[0].held) == 2 + TIMES
        assert comes_true(lambda: opened.gather(outcomes) == 4)
        assert {outcome.request.config for outcome in outcomes} == {1}
    finally:
        executor.close()
