import os
import re
import statistics
from collections.abc import Iterator

import pytest

from captime.supervision.messages import Report
from captime.supervision.process_tree import ISOLATIONS
from supervised import Bench, bench, launch, target

SIZES = [0.1, pytest.param(2.0, marks=pytest.mark.fault)]


@pytest.fixture(scope="module", params=ISOLATIONS)
def level(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """An executor on each isolation level."""
    with bench(request.param, "measured") as opened:
        yield opened


def told(report: Report) -> float:
    """CPU seconds that the processes of a run say they have used."""
    return sum(int(used) for used in re.findall(rb"^used (\d+)$", report.stdout_tail, flags=re.MULTILINE)) / 1e9


def close_to(measured_ns: int, truth: float) -> bool:
    """P1: within 20 ms or 2 %."""
    return abs(measured_ns / 1e9 - truth) <= max(0.02, 0.02 * truth)


@pytest.mark.parametrize("seconds", SIZES)
@pytest.mark.parametrize("manner", ["plain", "threads", "waited", "unwaited", "killed", "ignored"])
def test_cpu_time_is_that_of_the_whole_tree(level: Bench, manner: str, seconds: float) -> None:
    """P1, A20: threads, children that were waited for, never waited for, killed, or never reaped."""
    report = level.one(target("burn", manner, seconds, 3))
    assert report.ended == "exit", report
    assert told(report) >= seconds
    # Of processes that were never waited for and are in no control group, only the last look is known.
    for_nobody = {"subreaper": {"ignored"}, "posix": {"ignored", "unwaited", "killed"}}
    unseen = 0.2 if manner in for_nobody.get(level.executor.isolation, ()) else 0.0
    assert close_to(report.cpu_ns, told(report)) or 0 <= told(report) - report.cpu_ns / 1e9 <= unseen, report


@pytest.mark.parametrize("seconds", SIZES)
def test_children_that_outlive_their_parent_are_counted(level: Bench, seconds: float) -> None:
    """The run ends with its main process; what its children have burned by then, or until they were killed, counts."""
    report = level.one(target("burn", "outlived", seconds, 2))
    assert report.ended == "exit"
    assert report.leftovers == 2
    if level.executor.isolation != "posix":
        assert report.cpu_ns >= report.runtime_ns


@pytest.mark.parametrize("manner", ["plain", "threads", "waited"])
def test_the_captime_is_one_for_the_whole_tree(level: Bench, manner: str) -> None:
    """P2: three burning processes or threads together reach it, and are stopped soon after."""
    report = level.one(target("burn", manner, 60, 3, captime=0.2))
    assert report.ended == "captime"
    assert report.runtime_ns / 1e9 >= 0.2
    # A look every 50 ms and every thread on a core of its own are the worst case; a loaded machine adds to it.
    assert report.cpu_ns / 1e9 <= 0.2 + 0.15 * (os.cpu_count() or 1)


@pytest.mark.parametrize("runs", [12, pytest.param(200, marks=pytest.mark.fault)])
def test_a_single_process_is_capped_to_the_millisecond(level: Bench, runs: int) -> None:
    """The median overshoot of CPU time beyond the captime is a few milliseconds at most, on any level."""
    reports = level.run([target("burn", "plain", 60, captime=0.05)] * runs)
    assert {report.ended for report in reports} == {"captime"}
    assert statistics.median(report.cpu_ns / 1e9 - 0.05 for report in reports) < 0.01


def test_the_wall_clock_can_be_the_clock(level: Bench) -> None:
    """A sleeper is capped on it, and its runtime is wall-clock time."""
    report = level.one(launch("sleep", "60", clock="wall", captime=0.2))
    assert report.ended == "captime"
    assert 0.2 <= report.runtime_ns / 1e9 < 10.0
    quick = level.one(launch("sleep", "0.1", clock="wall", captime=30.0))
    assert quick.ended == "exit"
    assert 0.1 <= quick.runtime_ns / 1e9 < 10.0


def test_doing_nothing_takes_next_to_nothing(level: Bench) -> None:
    """T19: the median of `true` is below 10 ms, none is negative, and starting it is no part of it."""
    reports = level.run([launch("true")] * 20)
    assert all(report.runtime_ns >= 0 for report in reports)
    assert statistics.median(report.runtime_ns for report in reports) < 10e6


def test_waiting_for_a_core_is_told() -> None:
    """P6: four that burn on one core wait for each other, which their flags say."""
    with bench("subreaper", "crowd", slots=4 * (os.cpu_count() or 1)) as crowd:
        reports = crowd.run([target("burn", "plain", 0.1)] * (4 * (os.cpu_count() or 1)))
    assert sum("contended" in report.flags for report in reports) >= len(reports) // 2
    assert max(report.queue_wait_ns for report in reports) > 10e6
