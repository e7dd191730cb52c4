"""A machine that is out of disk, memory, processes or descriptors decides nothing: its runs are lost and repeated."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from campaign_stand_ins import folder, ledger_in, question_on, small_table, virtual_slots
from captime.arrays import IntArray
from captime.campaign import RunSettings, run_campaign
from captime.campaign.journal import ClockWatch
from captime.errors import MachineUnfit
from captime.executors.protocol import Executor
from captime.executors.retry import ExecutorWrapper, LossLimit, WaitingExecutor
from captime.ledger import LedgerReader
from captime.programs.judge import AnswerRules, judge
from captime.programs.protocol import Program
from captime.runs import UNBEGUN, Measurement, RunOutcome, RunRequest, Shortage, Status, Verdict
from captime.supervision import fitness, processes
from captime.supervision.cgroups import Cgroup
from captime.supervision.fitness import Fitness, lack_behind
from captime.supervision.messages import Report
from supervised import bench, launch

__all__ = ["folder"]

TABLE = small_table()
MEGABYTE = 1 << 20


def room(
    free: int = 10**9, files: int = 10**6, *, read_only: bool = False, size: int = 10**10
) -> Callable[[str], os.statvfs_result]:
    """A file system with this much room, wherever one looks."""
    unit = 4096
    blocks, left = size // unit, free // unit
    flags = os.ST_RDONLY if read_only else 0
    found = os.statvfs_result((unit, unit, blocks, left, left, 10**7, files, files, flags, 255))
    return lambda _: found


@pytest.mark.parametrize(
    ("statvfs", "expected"),
    [
        (room(), None),
        (room(free=0), Shortage.DISK),
        (room(free=63 * MEGABYTE), Shortage.DISK),
        (room(free=65 * MEGABYTE), None),
        (room(free=2 * MEGABYTE, size=4 * MEGABYTE), None),
        (room(free=MEGABYTE // 2, size=4 * MEGABYTE), Shortage.DISK),
        (room(files=0), Shortage.INODES),
        (room(read_only=True), Shortage.READ_ONLY),
    ],
)
def test_the_scratch_folder_is_looked_at(
    statvfs: Callable[[str], os.statvfs_result], expected: Shortage | None
) -> None:
    """Bytes, inodes, read-only; a small file system may be used nearly to its end."""
    lack = Fitness("/scratch", statvfs).before()
    assert (None if lack is None else lack.what) is expected
    assert lack is None or "/scratch" in lack.words


def test_a_vanished_scratch_folder_is_a_shortage(tmp_path: Path) -> None:
    """Nothing can run there, and no configuration is to blame."""
    lack = Fitness(str(tmp_path / "gone")).before()
    assert lack is not None
    assert lack.what is Shortage.SCRATCH


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (errno.ENOSPC, Shortage.DISK),
        (errno.EDQUOT, Shortage.DISK),
        (errno.EROFS, Shortage.READ_ONLY),
        (errno.ENOMEM, Shortage.MEMORY),
        (errno.EAGAIN, Shortage.PROCESSES),
        (errno.EMFILE, Shortage.DESCRIPTORS),
        (errno.ENFILE, Shortage.DESCRIPTORS),
        (errno.EPERM, None),
    ],
)
def test_the_kernel_says_what_is_missing(number: int, expected: Shortage | None) -> None:
    """An error that captime itself is given names a shortage, or none."""
    lack = lack_behind(OSError(number, os.strerror(number)))
    assert (None if lack is None else lack.what) is expected


def test_a_failure_after_the_kernel_killed_somebody_for_memory_is_the_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The counter of the whole machine has grown since the last look; a second failure without that stands."""
    killed = iter([7, 8, 8])
    monkeypatch.setattr(processes, "_killed_for_memory", lambda: next(killed))
    looking = Fitness(str(tmp_path), room())
    lack = looking.after_failure(b"", killer=True)
    assert lack is not None
    assert lack.what is Shortage.MEMORY
    assert looking.after_failure(b"", killer=True) is None


@pytest.mark.parametrize(("attempt", "expected"), [("_fork", errno.EAGAIN), ("_open", errno.ENFILE)])
def test_what_cannot_be_tried_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attempt: str, expected: int
) -> None:
    """No process, no descriptor: the kernel says so to captime itself."""

    def refuse() -> None:
        raise OSError(expected, os.strerror(expected))

    monkeypatch.setattr(fitness, attempt, refuse)
    lack = Fitness(str(tmp_path), room()).after_failure(b"", killer=False)
    assert lack is not None
    assert lack.what is fitness.SHORTAGE_OF[expected]


def test_processes_killed_within_their_limit_were_killed_from_outside(tmp_path: Path) -> None:
    """The kernel counts both in one file; only the group's own limit makes it the run's own verdict."""
    group = Cgroup(tmp_path / "group")
    events = tmp_path / "group" / "memory.events"
    events.write_text("low 0\nhigh 0\nmax 3\noom 1\noom_kill 1\noom_group_kill 0\n")
    assert group.ran_out_of_memory()
    assert not group.killed_from_outside()
    events.write_text("low 0\nhigh 0\nmax 0\noom 0\noom_kill 1\noom_group_kill 0\n")
    assert not group.ran_out_of_memory()
    assert group.killed_from_outside()
    events.write_text("low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n")
    assert not group.ran_out_of_memory()
    assert not group.killed_from_outside()


def test_a_run_that_found_no_room_says_so() -> None:
    """For real: a device that is always full. A failure without such a word stays what it is."""
    with bench("posix", "unfit", slots=1) as opened:
        full, plain = opened.run(
            [launch("/bin/sh", "-c", "cat /etc/passwd > /dev/full"), launch("/bin/sh", "-c", "echo no >&2; exit 1")]
        )
    assert (full.shortage, full.ended) == (Shortage.DISK, "exit")
    assert (plain.shortage, plain.ended) == (None, "exit")


def test_a_folder_that_vanished_between_two_runs_refuses_the_next() -> None:
    """The run has not begun; that is said, and nothing about the program is."""
    with bench("posix", "vanished", slots=1) as opened:
        place = Path(opened.executor._place._folder)
        assert opened.one(launch("/bin/true")).ended == "exit"
        moved = place.rename(place.with_name(f"{place.name}-moved"))
        refused = opened.one(launch("/bin/true"))
        moved.rename(place)
        assert opened.one(launch("/bin/true")).ended == "exit"
    assert (refused.ended, refused.shortage) == ("unfit", Shortage.SCRATCH)


# ------------------------------------------------------------------ judging

REQUEST = RunRequest(0, 3, 2.5)


def judged(ended: Any, *, repeatable: bool = True, **more: Any) -> RunOutcome:
    """The outcome of a run on a machine without room."""
    known: dict[str, Any] = {"runtime_ns": 10**9, "shortage": Shortage.DISK, "short": "no room"}
    return judge(REQUEST, Report(1, ended, **known | more), AnswerRules(pattern=True), repeatable=repeatable)


@pytest.mark.parametrize(
    "more",
    [
        {"exit_code": 1},
        {"exit_code": None, "signal": 9},
        {"exit_code": 0},
    ],
)
def test_a_failure_on_an_unfit_machine_is_no_verdict(more: dict[str, Any]) -> None:
    """Lost and repeated; if the program cannot repeat itself, given up as a run of which nothing is known."""
    lost = judged("exit", **more)
    assert (lost.status, lost.verdict, lost.runtime) == (Status.LOST, Verdict.LOST, 0.0)
    assert lost.shortage is Shortage.DISK
    assert not lost.unbegun
    given_up = judged("exit", repeatable=False, **more)
    assert (given_up.status, given_up.verdict, given_up.runtime) == (Status.ABANDONED, Verdict.LOST, 0.0)
    fit = judged("exit", shortage=None, **more)
    assert fit.status is Status.FAILED


def test_a_cut_run_on_an_unfit_machine_is_no_verdict_either() -> None:
    """It may have waited for room until its captime."""
    assert judged("captime", runtime_ns=25 * 10**8).status is Status.LOST
    assert judged("wall").status is Status.LOST


def test_an_answer_and_a_limit_of_its_own_stand() -> None:
    """An answer is one wherever it was found; who exceeds a limit of its own has done so on any machine."""
    assert judged("exit", exit_code=0, matches={"answer": b"yes"}).status is Status.COMPLETED
    assert judged("memory", exit_code=None, signal=9).verdict is Verdict.MEMOUT
    assert judged("disk", exit_code=1).verdict is Verdict.OUTPUT
    assert judged("output", exit_code=1).verdict is Verdict.OUTPUT
    assert judged("cancelled").verdict is Verdict.CANCELLED


def test_a_refused_run_has_not_begun() -> None:
    """For any program: nothing has happened that a second try could repair."""
    refused = judged("unfit", repeatable=False, runtime_ns=0)
    assert (refused.status, refused.shortage) == (Status.LOST, Shortage.DISK)
    assert refused.unbegun


# ------------------------------------------------------------------ waiting


class Scripted:
    """An executor that answers as it is told: a function from a request to its outcome."""

    slots, ahead, now = 2, 0, 0.0

    def __init__(self, answer: Callable[[RunRequest], RunOutcome]) -> None:
        self.answer = answer
        self.submitted: list[RunRequest] = []
        self._open: list[RunRequest] = []

    def submit(self, requests: Sequence[RunRequest]) -> None:
        """See the protocol."""
        self.submitted += requests
        self._open += requests

    def collect(self, timeout: float | None = None) -> list[RunOutcome]:
        """See the protocol."""
        answered, self._open = [self.answer(request) for request in self._open], []
        return answered

    def watch(self) -> list[tuple[RunRequest, float]]:
        """See the protocol."""
        return []

    def cancel(self, configs: IntArray) -> None:
        """See the protocol."""

    def stop(self) -> None:
        """See the protocol."""

    def close(self) -> None:
        """See the protocol."""


class Clock:
    """A clock that advances during a sleep."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        """Now."""
        return self.seconds

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self.seconds += max(seconds, 0.01)


def lost(request: RunRequest, *flags: str, status: Status = Status.LOST) -> RunOutcome:
    """Lost on a machine without room."""
    measured = Measurement(0, 0, flags=(Shortage.DISK.value, *flags))
    return RunOutcome(request, status, 0.0, 0.0, "no room", Verdict.LOST, measured)


def well(request: RunRequest) -> RunOutcome:
    """Answered."""
    return RunOutcome(request, Status.COMPLETED, 0.1, 0.1, verdict=Verdict.ANSWERED)


def waiting(
    answer: Callable[[RunRequest], RunOutcome], clock: Clock, **more: Any
) -> tuple[WaitingExecutor, Scripted, list[str]]:
    """An executor that waits, what it stands around, and the kinds of events it writes down."""
    inner, kinds = Scripted(answer), cast("list[str]", [])
    known: dict[str, Any] = {"patience": 60.0, "repeatable": True}
    made = WaitingExecutor(
        inner,
        note=lambda kind, **_: kinds.append(kind),
        clock=clock,
        sleep=clock.sleep,
        **known | more,
    )
    return made, inner, kinds


def first_of(executor: WaitingExecutor, laps: int = 1000) -> list[RunOutcome]:
    """What comes back first; nothing if it gives up."""
    for _ in range(laps):
        if executor.gave_up is not None or (came := executor.collect(5.0)):
            return [] if executor.gave_up is not None else came
    return []


def test_a_refused_run_is_submitted_again_as_the_same_attempt() -> None:
    """It has not begun, so there is no second chance in it; no caller hears of it."""
    clock = Clock()
    executor, inner, kinds = waiting(lambda each: well(each) if clock() > 30 else lost(each, UNBEGUN), clock)
    executor.submit([REQUEST])
    assert [outcome.status for outcome in first_of(executor)] == [Status.COMPLETED]
    assert set(inner.submitted) == {REQUEST}
    assert 20 < len(inner.submitted) < 40
    assert kinds == ["unfit", "fit"]


def test_a_machine_that_stays_unfit_is_given_up() -> None:
    """After the time one waits, and not before."""
    clock = Clock()
    executor, _, _ = waiting(lambda each: lost(each, UNBEGUN), clock)
    executor.submit([REQUEST])
    assert first_of(executor) == []
    assert executor.gave_up is not None
    assert executor.gave_up.configs == ()
    assert clock() == pytest.approx(60.0, abs=2.0)
    executor.stop()
    dropped = executor.collect()
    assert [outcome.verdict for outcome in dropped] == [Verdict.CANCELLED]
    assert dropped[0].measured == Measurement(0, 0)


@pytest.mark.parametrize("repeatable", [True, False])
def test_a_configuration_that_makes_the_machine_unfit_itself_is_named(repeatable: bool) -> None:
    """Lost again and again although others end well meanwhile."""
    clock = Clock()
    status = Status.LOST if repeatable else Status.ABANDONED
    executor, inner, _ = waiting(
        lambda each: lost(each, status=status) if each.config == 1 else well(each), clock, repeatable=repeatable
    )
    for attempt in range(10):
        place = 0 if repeatable else attempt
        executor.submit([RunRequest(0, attempt, 1.0), RunRequest(1, place, 1.0, attempt if repeatable else 0)])
        if not first_of(executor):
            break
    assert executor.gave_up is not None
    assert executor.gave_up.configs == (1,)
    assert len([each for each in inner.submitted if each.config == 1]) == 4


def test_what_is_lost_at_once_is_one_incident() -> None:
    """Eight runs of one configuration that were under way when the disk became full do not accuse it."""
    clock = Clock()
    executor, _, _ = waiting(lambda each: lost(each) if each.attempt == 0 else well(each), clock)
    executor.submit([RunRequest(0, place, 1.0) for place in range(8)])
    assert len(first_of(executor)) == 8
    executor.submit([RunRequest(0, place, 1.0, 1) for place in range(8)])
    assert len(first_of(executor)) == 8
    assert executor.gave_up is None


def test_losses_of_an_unfit_machine_do_not_use_up_the_retries_of_a_run() -> None:
    """Three losses of our own and a run is given up; a machine may be unfit as often as it likes."""
    losses = LossLimit(cast("Executor", Scripted(lost)), repeatable=True)
    for attempt in range(20):
        losses.submit([RunRequest(0, 0, 1.0, attempt)])
        assert [outcome.status for outcome in losses.collect()] == [Status.LOST]
    ours = LossLimit(
        cast("Executor", Scripted(lambda each: RunOutcome(each, Status.LOST, 0.0, 0.0, "died", Verdict.LOST))),
        repeatable=True,
    )
    statuses = []
    for attempt in range(3):
        ours.submit([RunRequest(0, 0, 1.0, attempt)])
        statuses += [outcome.status for outcome in ours.collect()]
    assert statuses == [Status.LOST, Status.LOST, Status.ABANDONED]


# ------------------------------------------------------------------ whole campaigns


class OutOfRoom(ExecutorWrapper):
    """Slots on a machine that has no room for a while; the configuration that answers best is hit hardest."""

    def __init__(self, inner: Executor, flags: tuple[str, ...], laps: Sequence[int], victim: int) -> None:
        super().__init__(inner)
        self._flags, self._laps, self._victim = flags, set(laps), victim
        self._lap = 0

    def collect(self, timeout: float | None = None) -> list[RunOutcome]:
        """See the protocol."""
        self._lap += 1
        hit = self._lap in self._laps
        return [
            lost(outcome.request, *self._flags) if hit and outcome.request.config == self._victim else outcome
            for outcome in super().collect(timeout)
        ]


def campaign(path: Path, flags: tuple[str, ...], laps: Sequence[int], victim: int, *, patience: float = 0.0) -> Any:
    """A campaign on the small table, on a machine that is out of room during those laps."""
    made = virtual_slots(TABLE, 1)

    def make(program: Program, tag: str) -> Executor:
        return OutOfRoom(made(program, tag), flags, laps, victim)

    return run_campaign(question_on(TABLE), path, RunSettings(patience=patience), make_executor=make)


@pytest.fixture(scope="module")
def best() -> int:
    """Who is best on the small table."""
    return int(np.argmax([np.mean(np.clip(1 - row / 10, 0, 1)) for row in TABLE.seconds]))


def test_a_shortage_on_the_way_changes_nothing(folder: Path, best: int) -> None:
    """Runs that were lost for want of room are repeated: the certificate is the one of a machine with room."""
    whole = run_campaign(question_on(TABLE), ledger_in(folder, "whole"), make_executor=virtual_slots(TABLE, 1))
    for name, flags in (("lost", ()), ("refused", (UNBEGUN,))):
        result = campaign(ledger_in(folder, name), flags, range(3, 60, 9), best, patience=0.001)
        assert result.certificate == whole.certificate
        assert result.outcome.stopped == "epsilon"
        assert result.trouble is None
        assert result.census.verdicts["blocked"] == 0


def test_a_machine_that_stays_out_of_room_never_certifies_a_loser(folder: Path, best: int) -> None:
    """It stops and says why; a configuration that is lost again and again is named, and nothing is certified."""
    result = campaign(ledger_in(folder, "refused"), (UNBEGUN,), range(1000), best)
    assert result.outcome.stopped == "machine"
    assert "the machine stays unfit" in str(result.trouble)
    assert result.certificate.epsilon >= 0.2
    with pytest.raises(MachineUnfit, match=f"configuration {TABLE.configs[best]!r} was lost again and again"):
        campaign(ledger_in(folder, "lost"), (), range(1000), best)
    with LedgerReader(ledger_in(folder, "lost")) as reader:
        assert [event.facts["because"] for event in reader.events() if event.kind == "stopped"] == ["machine"]


class Broken(ExecutorWrapper):
    """Slots whose machine cannot continue after some laps."""

    def __init__(self, inner: Executor, laps: int) -> None:
        super().__init__(inner)
        self._laps = laps

    def collect(self, timeout: float | None = None) -> list[RunOutcome]:
        """See the protocol."""
        self._laps -= 1
        if self._laps == 0:
            raise MachineUnfit("no supervisor can be started")
        return super().collect(timeout)


def test_a_machine_that_breaks_down_ends_the_campaign_with_its_certificate(folder: Path) -> None:
    """What was certified is told, what was under way is written down, and the same ledger is resumed."""
    made = virtual_slots(TABLE, 2)
    whole = run_campaign(question_on(TABLE), ledger_in(folder, "whole"), make_executor=virtual_slots(TABLE, 1))
    path = ledger_in(folder, "broken")
    result = run_campaign(question_on(TABLE), path, make_executor=lambda program, tag: Broken(made(program, tag), 30))
    assert result.outcome.stopped == "machine"
    assert isinstance(result.trouble, MachineUnfit)
    with LedgerReader(path) as reader:
        assert [event.facts["because"] for event in reader.events() if event.kind == "stopped"] == ["machine"]
        assert reader.in_flight() == []
    later = run_campaign(question_on(TABLE), path, make_executor=made)
    assert later.outcome.stopped == "epsilon"
    assert later.certificate.config == whole.certificate.config


SCENARIO = """
utility = "uniform(1)"
jobs = 1
isolation = "posix"
[target]
command = ["/bin/sh", "-c", "{script}"]
answer = "^ok"
repeatable = true
[instances]
values = [1, 2, 3]
sampling = "replace"
[configurations]
writes = { script = "cat /etc/passwd > /dev/full && echo ok" }
burns = { script = "i=0; while [ $i -lt 9000 ]; do i=$((i+1)); done; echo ok" }
[stop]
epsilon = 0.3
"""


def captime(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command, as a user gives it."""
    return subprocess.run(
        [sys.executable, "-m", "captime", *words], cwd=cwd, capture_output=True, text=True, check=False
    )


def test_a_program_without_room_is_not_beaten_by_one_that_needs_none(tmp_path: Path) -> None:
    """Before, the one that found no room had crashed, and the other was certified as the best, with exit code 0."""
    (tmp_path / "s.toml").write_text(SCENARIO)
    done = captime("run", "s.toml", "--quiet", "--patience", "0s", cwd=tmp_path)
    assert done.returncode == 6, done.stderr
    assert "configuration 'writes' was lost again and again" in done.stderr
    assert "of the best" not in done.stdout
    assert "Traceback" not in done.stderr


# ------------------------------------------------------------------ the time of day


def test_a_clock_that_was_set_is_noticed_and_one_that_is_corrected_is_not() -> None:
    """Forward and back, once each; an hour of corrections is no step."""
    clocks = SimpleNamespace(day=10**18, steady=0)
    watch = ClockWatch(lambda: clocks.day, lambda: clocks.steady)

    def passes(seconds: float, *, day: float) -> float | None:
        clocks.steady += round(seconds * 1e9)
        clocks.day += round(day * 1e9)
        return watch.step()

    assert passes(1.0, day=1.0) is None
    assert passes(1.0, day=3601.0) == pytest.approx(3600.0)
    assert passes(1.0, day=1.0) is None
    assert passes(1.0, day=-59.0) == pytest.approx(-60.0)
    assert passes(1.0, day=0.8) == pytest.approx(-0.2)
    assert passes(3600.0, day=3601.8) is None


def test_a_clock_step_is_written_down(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an event of the campaign, before the rows that are dated by it."""
    steps = iter([None, None, None, -7200.0])
    monkeypatch.setattr(ClockWatch, "step", lambda _: next(steps, None))
    run_campaign(question_on(TABLE), ledger_in(folder), make_executor=virtual_slots(TABLE, 1))
    with LedgerReader(ledger_in(folder)) as reader:
        assert [event.facts for event in reader.events() if event.kind == "clock-step"] == [{"seconds": -7200.0}]
