import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from captime.runs import RunOutcome
from captime.supervision.process_tree import ISOLATIONS
from captime.supervision.processes import tagged
from captime.supervision.scratch import sweep
from supervised import TARGETS, Bench, bench, comes_true, dead, launch, target

TRIALS = [0, *(pytest.param(trial, marks=pytest.mark.fault) for trial in range(1, 30))]
PATIENCE = 180.0


class Coordinator:
    """A process with slots of its own, busy with targets that try to escape."""

    def __init__(self, isolation: str) -> None:
        self.tag = f"test-kills-{isolation}-{os.getpid()}-{time.monotonic_ns()}"
        words = [sys.executable, str(TARGETS / "coordinate.py"), self.tag, "2", isolation]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.supervisors = [int(pid) for pid in self.process.stdout.readline().split()]
        assert len(self.supervisors) == 2

    def end(self) -> None:
        """Kill it for good and forget it."""
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def coordinator(request: pytest.FixtureRequest) -> Iterator[Coordinator]:
    """One on the level that the test asks for."""
    if request.param == "cgroup2":
        # Where there can be none, this skips the test.
        with bench(request.param, "try"):
            pass
    started = Coordinator(request.param)
    yield started
    started.end()
    sweep(started.tag)


@pytest.mark.parametrize("coordinator", ISOLATIONS, indirect=True)
@pytest.mark.parametrize("trial", TRIALS)
def test_a_killed_coordinator_leaves_nothing(coordinator: Coordinator, trial: int) -> None:
    """F1: its supervisors notice, kill what they have started, and end."""
    # Both targets have begun; on a busy machine it takes a while until they have forked.
    assert comes_true(lambda: len(tagged(f"{coordinator.tag}/")) >= 10)
    coordinator.process.kill()
    assert comes_true(lambda: not tagged(f"{coordinator.tag}/"))
    assert comes_true(lambda: all(map(dead, coordinator.supervisors)))


@pytest.mark.parametrize("coordinator", ISOLATIONS, indirect=True)
@pytest.mark.parametrize("trial", TRIALS)
def test_the_sweep_finds_what_everybodys_death_has_left(coordinator: Coordinator, trial: int) -> None:
    """F5: coordinator and supervisors killed at once; the next start clears up before it launches anything."""
    for pid in [*coordinator.supervisors, coordinator.process.pid]:
        os.kill(pid, signal.SIGSTOP)
    for pid in [*coordinator.supervisors, coordinator.process.pid]:
        os.kill(pid, signal.SIGKILL)
    coordinator.process.wait()
    sweep(coordinator.tag)
    assert tagged(f"{coordinator.tag}/") == []
    assert sweep(coordinator.tag) == 0


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("trials", [2, pytest.param(50, marks=pytest.mark.fault)])
def test_a_killed_supervisor_costs_one_run(isolation: str, trials: int) -> None:
    """F4: its run is lost, what it held and had not begun is done, the other slot is left alone, nothing survives."""
    with bench(isolation, "supervisors") as opened:
        for _ in range(trials):
            opened.program.reports.clear()
            opened.program.launches = {0: target("escape", "sleep", wall_limit=600.0), 1: launch("true")}
            victim, other = opened.executor.pids()
            opened.executor.submit(opened.requests([0, 0, 1, 1]))
            # Slots measure their cores after ten seconds; short runs may then end on one slot before the other begins.
            outcomes: list[RunOutcome] = []
            assert comes_true(lambda: opened.gather(outcomes) < 3 and len(opened.executor.watch()) == 2)  # noqa: B023
            os.kill(victim, signal.SIGKILL)
            assert comes_true(lambda: opened.gather(outcomes) == 3)  # noqa: B023
            assert sorted(report.ended for report in opened.program.reports) == ["exit", "exit", "lost"]
            assert victim not in opened.executor.pids()
            assert other in opened.executor.pids()
            opened.executor.stop()
            while not opened.executor.collect(PATIENCE):
                pass
            assert opened.survivors() == []


@pytest.mark.parametrize("coordinator", ["subreaper"], indirect=True)
def test_a_terminated_supervisor_clears_up_first(coordinator: Coordinator) -> None:
    """SIGTERM, which is also what it gets when the coordinator's thread is gone."""
    coordinator.process.send_signal(signal.SIGSTOP)
    for pid in coordinator.supervisors:
        os.kill(pid, signal.SIGTERM)
    assert comes_true(lambda: not tagged(f"{coordinator.tag}/"))
    assert all(comes_true(lambda pid=pid: dead(pid)) for pid in coordinator.supervisors)  # type: ignore[misc]  # bound now


def test_a_stopped_coordinator_changes_nothing() -> None:
    """C3: slots enforce captimes without it; the results wait for it."""
    opened = Bench(f"test-stopped-{os.getpid()}", slots=1)
    try:
        opened.program.launches = {0: target("burn", "plain", 60, captime=0.1), 1: launch("true")}
        opened.executor.submit(opened.requests([0, 1]))
        # Outcomes are not collected: that is what a stopped coordinator looks like to a slot.
        assert comes_true(lambda: not opened.survivors())
        outcomes = opened.executor.collect(PATIENCE) + opened.executor.collect(PATIENCE)
        assert [report.ended for report in opened.program.reports] == ["captime", "exit"]
        assert len(outcomes) == 2
        assert opened.program.reports[0].cpu_ns < 0.1e9 + 0.15e9
    finally:
        opened.executor.close()


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_stopped_supervisor_lets_nothing_count_that_was_late(isolation: str) -> None:
    """C3: the kernel's clock decides; a run that burned past its captime meanwhile is capped, however it ended."""
    with bench(isolation, "halted", slots=1) as opened:
        opened.program.launches = {0: target("burn", "plain", 0.5, captime=0.3)}
        opened.executor.submit(opened.requests([0]))
        (supervisor,) = opened.executor.pids()
        assert comes_true(lambda: len(opened.survivors()) == 1)
        os.kill(supervisor, signal.SIGSTOP)
        assert comes_true(lambda: all(map(dead, opened.survivors())))
        os.kill(supervisor, signal.SIGCONT)
        while not opened.executor.collect(PATIENCE):
            pass
        (report,) = opened.program.reports
        assert report.ended == "captime"
        assert report.runtime_ns >= 0.3e9
