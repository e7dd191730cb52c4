"""Targets that attack what is above them: their supervisor, and the guardian above that."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from captime.ledger import LedgerReader
from captime.ledger.rows import Observed
from captime.runs import Halt, RunOutcome, Status
from captime.supervision import slot_client
from captime.supervision.messages import FunctionCall, Report
from captime.supervision.process_tree import ISOLATIONS
from captime.supervision.processes import Process, look_at, tagged
from captime.supervision.scratch import sweep
from supervised import TARGETS, Bench, bench, comes_true, dead, launch, target

PATIENCE = 180.0


@pytest.fixture(scope="module", params=ISOLATIONS)
def level(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """An executor on each isolation level."""
    with bench(request.param, "above") as opened:
        yield opened


def parent_of(pid: int) -> int:
    """Who stands above a process."""
    found = look_at(pid)
    assert found is not None
    return found.parent


def supervisors_of(opened: Bench) -> list[int]:
    """The supervisors; until a slot that was opened again is ready, its number would be the guardian's."""
    while not all(handle.ready for handle in opened.executor._handles):
        opened.one(launch("sleep", "0.05"))
    return opened.executor.pids()


def first_outcome(opened: Bench) -> RunOutcome:
    """What comes back next, within reasonable time."""
    deadline = time.monotonic() + PATIENCE
    while not (back := opened.executor.collect(1.0)):
        assert time.monotonic() < deadline
    return back[0]


def outcome_of(opened: Bench, habit: str) -> RunOutcome:
    """Run a target with a bad habit; what came of it, within reasonable time."""
    opened.program.reports.clear()
    opened.program.launches = {0: target("misbehave", habit, wall_limit=600.0)}
    opened.executor.submit(opened.requests([0]))
    return first_outcome(opened)


@pytest.mark.parametrize("habit", ["stop-parent", "stop-ancestors", "trace-parent"])
def test_who_stops_or_traces_its_supervisor_is_lost(level: Bench, habit: str) -> None:
    """The supervisor is replaced and nothing of it or of its run is left; captimes hold for the next run."""
    before = supervisors_of(level)
    guardians = [parent_of(pid) for pid in before]
    outcome = outcome_of(level, habit)
    if habit == "trace-parent" and outcome.status is Status.FAILED:
        pytest.skip("this system lets no process trace the one that started it")
    assert outcome.status is Status.LOST
    assert "stopped" in outcome.detail or "traced" in outcome.detail
    replaced = [index for index, pid in enumerate(level.executor.pids()) if pid != before[index]]
    assert len(replaced) == 1
    assert all(dead(before[index]) and dead(guardians[index]) for index in replaced)
    assert level.survivors() == []
    assert level.one(target("burn", "plain", 60, captime=0.05)).ended == "captime"


def test_who_does_it_again_stops_the_campaign() -> None:
    """The first time may be an accident; the second time the outcome says that everything has to stop."""
    with bench("posix", "again", slots=1) as opened:
        first, second = (outcome_of(opened, "stop-parent") for _ in range(2))
    assert (first.halt, second.halt) == (None, Halt.SUPERVISOR_HELD)


def test_a_supervisor_is_stopped_only_if_it_stays_so(level: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three looks say nothing; silence is asked about after half a minute, and takes ten to count."""
    handle = level.executor._handles[0]

    def trouble() -> str:
        handle._next_look = 0.0
        return handle.trouble()

    def in_state(state: str) -> bool:
        found = Process(handle.pid, 1, 1, state, 1, 0, 0, 0)
        monkeypatch.setattr(slot_client, "look_at", lambda _: found)
        return bool(trouble())

    assert list(map(in_state, "TTTSTTTSttttTSS")) == [False] * 11 + [True, True, False, False]
    monkeypatch.undo()
    while not any(word == "alive" for word, _ in handle.hear()):
        assert trouble() == ""
    silent = [trouble() for _ in range(1199)]
    assert not any(silent)
    assert "has not answered" in trouble()
    assert comes_true(lambda: any(word == "alive" for word, _ in handle.hear()))
    assert trouble() == ""


@pytest.mark.parametrize("isolation", ["cgroup2", "subreaper"])
@pytest.mark.parametrize("runs", [2, pytest.param(24, marks=pytest.mark.fault)])
def test_a_daemon_without_environment_dies_with_its_supervisor(isolation: str, runs: int, tmp_path: Path) -> None:
    """Its ancestry tells where it belongs, whichever process adopted it: the target kills its supervisor."""
    with bench(isolation, "hidden", slots=1) as opened:
        for _ in range(runs):
            report = opened.one(target("misbehave", "hide-and-kill-parent", directory=str(tmp_path), wall_limit=600.0))
            assert report.ended == "lost"
            daemon = int((tmp_path / "daemon").read_text(encoding="ascii"))
            assert dead(daemon)
        assert opened.one(launch("true")).exit_code == 0


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_stopped_supervisor_does_not_outlive_its_coordinator(isolation: str) -> None:
    """The guardian above it wakes it up, or ends it."""
    with bench(isolation, "try"):
        pass
    tag = f"test-above-{isolation}-{os.getpid()}"
    words = [sys.executable, str(TARGETS / "coordinate.py"), tag, "1", isolation]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as coordinator:
        assert coordinator.stdout is not None
        (supervisor,) = map(int, coordinator.stdout.readline().split())
        guardian = parent_of(supervisor)
        os.kill(supervisor, signal.SIGSTOP)
        coordinator.kill()
    assert comes_true(lambda: dead(supervisor) and dead(guardian))
    assert comes_true(lambda: not tagged(f"{tag}/"))


@pytest.mark.parametrize("isolation", ["subreaper"])
def test_the_sweep_finds_supervisors_that_were_stopped_with_all_above_them(isolation: str) -> None:
    """Guardian and supervisor are stopped, the coordinator is dead; the next start clears them away."""
    tag = f"test-halted-{isolation}-{os.getpid()}"
    words = [sys.executable, str(TARGETS / "coordinate.py"), tag, "1", isolation]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as coordinator:
        assert coordinator.stdout is not None
        (supervisor,) = map(int, coordinator.stdout.readline().split())
        guardian = parent_of(supervisor)
        os.kill(guardian, signal.SIGSTOP)
        os.kill(supervisor, signal.SIGSTOP)
        coordinator.kill()
    assert not dead(supervisor)
    sweep(tag)
    assert comes_true(lambda: dead(supervisor) and dead(guardian))
    assert tagged(f"{tag}/") == []


def test_a_killed_guardian_leaves_nothing(level: Bench) -> None:
    """Its supervisor clears away and ends; the run is lost, and the slot comes back."""
    before = supervisors_of(level)
    level.program.launches = {0: target("escape", "sleep", wall_limit=600.0)}
    level.executor.submit(level.requests([0]))
    assert comes_true(lambda: not level.executor.collect(0.05) and len(level.executor.watch()) == 1)
    for supervisor in before:
        os.kill(parent_of(supervisor), signal.SIGKILL)
    assert first_outcome(level).status is Status.LOST
    assert level.survivors() == []
    assert level.one(launch("true")).exit_code == 0
    assert comes_true(lambda: all(map(dead, before)))


def test_nobody_takes_the_core_from_its_supervisor(level: Bench) -> None:
    """A real-time priority is refused, to root as well, with and without an exec; so the captime comes in time."""
    report = level.one(target("misbehave", "real-time", captime=0.2))
    assert report.stdout_head == b"refused: 1\npolicy 0\n"
    assert report.ended == "captime"
    call = FunctionCall(b"", "misbehave:real_time", pickle.dumps(((), {})), (str(TARGETS),))
    called = level.one(launch(call=call))
    assert called.returned is not None
    assert pickle.loads(called.returned) == "refused: 1"


SCENARIO = """\
utility = "uniform(2s)"
jobs = 2
ledger = "campaign.ledger"
[target]
command = ["sh", "-c", {script}, "sh", "{{burn}}", "{{seed}}", "{{instance}}"]
[configurations]
meek = {{ burn = 0.02 }}
fierce = {{ burn = 0.15 }}
[instances]
files = "*.cnf"
[stop]
{stop}
"""


def campaign(folder: Path, script: str, stop: str) -> subprocess.CompletedProcess[str]:
    """Run a campaign of a shell script, as a person would."""
    for number in range(60):
        (folder / f"{number}.cnf").write_text(str(number), encoding="utf-8")
    path = folder / "scenario.toml"
    path.write_text(SCENARIO.format(script=json.dumps(script), stop=stop), encoding="utf-8")
    words = [sys.executable, "-m", "captime", "run", str(path)]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE)


def ended_as(folder: Path) -> Counter[str]:
    """How often each verdict is in the ledger."""
    with LedgerReader(folder / "campaign.ledger") as reader:
        found = [outcome for event in reader.replay() if isinstance(event, Observed) for outcome in event.outcomes]
    return Counter("none" if outcome.verdict is None else outcome.verdict.value for outcome in found)


def test_a_campaign_ends_with_a_word_if_its_program_stops_supervisors(tmp_path: Path) -> None:
    """Both runs are on record as lost; the configuration and the command are named, and the exit code is 7."""
    done = campaign(tmp_path, 'if [ "$1" = 0.15 ]; then kill -STOP $PPID; sleep 600; fi', "epsilon = 0.05")
    assert done.returncode == 7, done.stderr
    assert "configuration 'fierce': the supervisor of slot" in done.stderr
    assert "must neither stop nor trace the process that started it" in done.stderr
    assert "Traceback" not in done.stderr
    assert ended_as(tmp_path)["lost"] == 2


def test_the_wall_clock_of_a_campaign_holds_although_its_supervisors_are_stopped(tmp_path: Path) -> None:
    """It ends by its own rule, with a certificate, and not when a user comes to look."""
    done = campaign(tmp_path, "kill -STOP $PPID; sleep 600", 'wall = "1s"')
    assert "Traceback" not in done.stderr
    assert done.returncode in {0, 7}, done.stderr


def test_on_a_worker_of_a_cluster_it_is_the_same() -> None:
    """The station there replaces the supervisor, and says the second time that everything has to stop."""
    stations = pytest.importorskip("captime.executors.dask_worker", reason="Dask is not installed")
    station = stations.Station(f"test-station-{os.getpid()}", 1, isolation=None, scratch=None)
    try:
        halts = []
        for lease in (1, 2):
            stopping = target("misbehave", "stop-parent", number=lease, tag=f"test-station-{os.getpid()}/{lease}")
            order: dict[str, object] = {"lease": lease, "launch": stopping.to_json(), "files": [], "instance": None}
            word, text, _ = station.run(order, lambda: True, lambda *_: None)
            report = Report.from_json(text)
            assert (word, report.ended) == ("report", "lost")
            halts.append(report.halt)
        assert halts == [None, Halt.SUPERVISOR_HELD]
        assert tagged(f"test-station-{os.getpid()}/") == []
    finally:
        station.close()
