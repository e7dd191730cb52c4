"""Jobs of a batch queue, without a queue: what is submitted, replaced, given up and said, by the word of a test."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("distributed", reason="the extra captime[dask]")

from captime.errors import ScenarioError
from captime.executors import dask_cluster, dask_queue
from captime.executors.dask_cluster import ClusterSettings, _arguments, _for_queue, _started, client_of, examined
from captime.executors.dask_queue import Jobs


class StandInJob:
    """A job as dask-jobqueue has them; submitted and cancelled by a list."""

    submit_command, cancel_command = "sbatch", "scancel"
    submitted: list[str] = []  # noqa: RUF012 (emptied by the fixture)
    cancelled: list[str] = []  # noqa: RUF012 (likewise)
    refusal: str = ""

    def __init__(self, scheduler: str, name: str) -> None:
        self.name = name
        self.job_id: str | None = None

    async def start(self) -> None:
        """Submit it."""
        if StandInJob.refusal:
            raise RuntimeError(StandInJob.refusal)
        self.job_id = str(100 + len(StandInJob.submitted))
        StandInJob.submitted.append(self.name)

    async def close(self) -> None:
        """Cancel it."""
        StandInJob.cancelled.append(str(self.job_id))


class Scripted(Jobs):
    """Jobs of a Slurm that says what the test wants."""

    def __init__(self, wanted: int, kind: str = "slurm") -> None:
        self.workers: dict[str, Any] = {}
        scheduler = SimpleNamespace(workers=self.workers, address="tcp://here:1", contact_address=None)
        cluster = SimpleNamespace(
            scheduler=scheduler,
            new_spec={"cls": StandInJob, "options": {}},
            job_cls=StandInJob,
            loop=SimpleNamespace(asyncio_loop=None),
        )
        super().__init__(cluster, kind, wanted)
        self.states: dict[str, str] | None = {}
        self.told: dict[str, str] = {}

    async def _slurm(self, *command: str) -> str | None:
        if self.states is None or self._kind != "slurm":
            return None
        if command[0] == "squeue":
            return "".join(f"{job}|{state}|Resources\n" for job, state in self.states.items())
        return self.told.get(command[-1])

    def look(self) -> None:
        """Look after the jobs once."""
        asyncio.run(self._look())

    def joins(self, name: str, address: str = "") -> None:
        """A worker of this job is there."""
        self.workers[address or f"tcp://{name}"] = SimpleNamespace(name=name)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that goes when the test says so."""
    StandInJob.submitted, StandInJob.cancelled, StandInJob.refusal = [], [], ""
    found = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(dask_queue, "time", SimpleNamespace(monotonic=lambda: found.now))
    return found


def test_jobs_that_have_ended_are_replaced_and_it_is_on_record(clock: SimpleNamespace) -> None:
    """A worker that was cancelled, or has reached its walltime, is followed by another; nothing is submitted twice."""
    jobs = Scripted(2)
    jobs.look()
    assert StandInJob.submitted == ["captime-1", "captime-2"]
    jobs.states = {"100": "RUNNING", "101": "RUNNING"}
    jobs.joins("captime-1")
    jobs.joins("captime-2")
    clock.now += 100.0
    jobs.look()
    clock.now += 100.0
    jobs.look()
    del jobs.workers["tcp://captime-1"]
    jobs.states["100"] = "TIMEOUT"
    jobs.told["100"] = "JobState=TIMEOUT ExitCode=0:15 StdErr=/nonexistent"
    clock.now += 11.0
    jobs.look()
    assert StandInJob.submitted == ["captime-1", "captime-2", "captime-3"]
    (ended,) = jobs.news()
    assert (ended["job"], ended["used"]) == ("100", True)
    assert "as TIMEOUT" in str(ended["why"])
    clock.now += 11.0
    jobs.look()
    assert len(StandInJob.submitted) == 3
    assert jobs.over == ""


def test_a_job_whose_worker_has_made_a_run_was_worth_it(clock: SimpleNamespace) -> None:
    """However short it was: workers with a short lifetime are replaced for ever."""
    jobs = Scripted(1)
    for number in range(1, 8):
        jobs.look()
        jobs.joins(f"captime-{number}", "tcp://a:1")
        jobs.states = {str(99 + number): "RUNNING"}
        clock.now += 11.0
        jobs.look()
        jobs.useful("tcp://a:1")
        jobs.workers.clear()
        jobs.states = {str(99 + number): "COMPLETED"}
        clock.now += 11.0
        jobs.look()
    assert len(StandInJob.submitted) == 8
    assert jobs.over == ""


def test_jobs_that_come_to_nothing_are_asked_for_ever_more_rarely_and_then_given_up(
    clock: SimpleNamespace, tmp_path: Path
) -> None:
    """The reason is the last line of the job's own output; with other workers there the campaign continues."""
    output = tmp_path / "job-%J.err"
    jobs = Scripted(1)
    gaps, last = [], clock.now
    while not jobs.over and clock.now < 2000.0:
        before = len(StandInJob.submitted)
        jobs.look()
        if len(StandInJob.submitted) > before:
            gaps.append(clock.now - last)
            last = clock.now
            number = str(99 + len(StandInJob.submitted))
            jobs.states = {number: "FAILED"}
            jobs.told[number] = f"JobState=FAILED ExitCode=2:0 StdErr={output}"
            Path(str(output).replace("%J", number)).write_text(
                "Usage\nError: No such \x1b[31moption\n 1 - INFO - bye\n"
            )
        clock.now += 3.0
    assert gaps == sorted(gaps)
    assert len(gaps) == 3
    assert "exit code 2" in jobs.over
    assert jobs.over.endswith("Error: No such \\x1b[31moption")


def test_while_a_worker_is_there_nothing_is_given_up(clock: SimpleNamespace) -> None:
    """One bad node takes job after job; the good one continues."""
    jobs = Scripted(2)
    jobs.look()
    jobs.joins("captime-1")
    for _ in range(150):
        jobs.states = {str(100 + number): "FAILED" for number in range(1, len(StandInJob.submitted))}
        jobs.states["100"] = "RUNNING"
        clock.now += 13.0
        jobs.look()
    assert jobs.over == ""
    assert len(StandInJob.submitted) < 20


def test_a_queue_that_does_not_answer_proves_nothing(clock: SimpleNamespace) -> None:
    """Jobs that may be waiting are kept; those whose worker is long gone are cancelled and replaced."""
    jobs = Scripted(1)
    jobs.states = None
    jobs.look()
    clock.now += 5000.0
    jobs.look()
    assert StandInJob.submitted == ["captime-1"]
    jobs.joins("captime-1")
    clock.now += 100.0
    jobs.look()
    jobs.workers.clear()
    clock.now += 11.0
    jobs.look()
    clock.now += 30.0
    jobs.look()
    assert StandInJob.cancelled == []
    clock.now += 31.0
    jobs.look()
    clock.now += 6.0
    jobs.look()
    assert (StandInJob.cancelled, len(StandInJob.submitted)) == (["100"], 2)


def test_a_queue_that_is_down_for_a_while_is_asked_again(clock: SimpleNamespace) -> None:
    """A refusal in the middle of a campaign is said, and is no reason to give up."""
    jobs = Scripted(1)
    StandInJob.refusal = "Command exited with non-zero exit code.\nstderr:\nsbatch: error: no controller\n"
    for _ in range(50):
        jobs.look()
        clock.now += 13.0
    assert jobs.over == ""
    assert "sbatch: error: no controller" in jobs.words()
    StandInJob.refusal = ""
    clock.now += 61.0
    jobs.look()
    assert StandInJob.submitted
    jobs.states = {"100": "PENDING"}
    clock.now += 11.0
    jobs.look()
    assert jobs.words().startswith("slurm: job 100 is PENDING (Resources)")


@pytest.fixture
def running() -> Iterator[Scripted]:
    """Jobs whose loop goes round in a thread, as Dask's does."""
    StandInJob.submitted, StandInJob.cancelled, StandInJob.refusal = [], [], ""
    jobs, loop = Scripted(1), asyncio.new_event_loop()
    jobs._cluster.loop.asyncio_loop = loop
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield jobs
    jobs.close()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_the_first_refusal_is_one_sentence_and_the_end_cancels_everything(running: Scripted) -> None:
    """Before anything is begun; and closing after a refusal is no error."""
    StandInJob.refusal = "Command exited\nstderr:\nsbatch: error: invalid partition\n specified: nope\n"
    with pytest.raises(ScenarioError, match=r"refused the first job: sbatch: error: invalid partition specified: nope"):
        running.begin(lambda: False)
    StandInJob.refusal = ""
    running.begin(lambda: False)
    running.close()
    assert StandInJob.cancelled == ["100"]


def test_a_job_that_was_being_submitted_when_it_was_stopped_is_cancelled(running: Scripted) -> None:
    """A signal in the middle of the first submission leaves nothing in the queue."""
    running.begin(lambda: True)
    running.close()
    assert len(StandInJob.submitted) >= 1
    assert len(StandInJob.cancelled) == len(StandInJob.submitted)


# ------------------------------------------------------------------ what is refused before anything is started


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--lifetime", "3h50m", "--nanny"], ["--lifetime", "13800s", "--nanny"]),
        (["--lifetime=3h 50min", "--lifetime-stagger", "5m"], ["--lifetime=13800s", "--lifetime-stagger", "300s"]),
        (["--lifetime", "03:50:00"], ["--lifetime", "13800s"]),
        (["--lifetime", "1-00:00:01"], ["--lifetime", "86401s"]),
        (["--death-timeout", "90"], ["--death-timeout", "90s"]),
        (["--name", "3h50m"], ["--name", "3h50m"]),
    ],
)
def test_times_reach_dask_as_it_reads_them(words: Sequence[str], told: list[str]) -> None:
    """Dask cannot read 3h50m, and a worker that was told so dies."""
    assert _arguments(words) == told


@pytest.mark.parametrize(
    "words", [["--lifetime", "3h5x"], ["--lifetime=soon"], ["--lifetime"], "--lifetime 3h", ["--lifetime", "-1h"]]
)
def test_times_that_are_none_are_refused(words: object) -> None:
    """In a sentence that names the place."""
    with pytest.raises(ScenarioError, match=r"executor\.options\.worker_extra_args.*3h50m"):
        _arguments(words)


def test_a_missing_sbatch_or_network_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Before anything is submitted; `captime doctor` says the same."""
    pytest.importorskip("dask_jobqueue", reason="batch queues need dask-jobqueue")
    wishes = ClusterSettings(cluster="slurm", options={"cores": 1, "memory": "1GB", "interface": "ib77"})
    with pytest.raises(ScenarioError, match=r"executor\.workers"):
        _for_queue({"n_workers": 2})
    monkeypatch.setenv("PATH", str(tmp_path))
    for look in (_started, lambda asked: examined(asked, 0.1)):
        with pytest.raises(ScenarioError, match="no program sbatch here"):
            look(wishes)
    (tmp_path / "sbatch").write_text("#!/bin/sh\n", encoding="ascii")
    (tmp_path / "sbatch").chmod(0o755)
    for look in (_started, lambda asked: examined(asked, 0.1)):
        with pytest.raises(ScenarioError, match=r"names the network 'ib77'.*expected one of .*lo"):
            look(wishes)


def test_a_signal_need_not_wait_until_nobody_has_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted while it connects: there is no client and no error, and one that comes late is closed."""
    answer, closed = threading.Event(), threading.Event()

    def connect(**_: object) -> object:
        answer.wait(60.0)
        return SimpleNamespace(close=closed.set)

    monkeypatch.setattr(dask_cluster, "_make_client", connect)
    with client_of(ClusterSettings(address="tcp://192.0.2.1:1"), lambda: True) as reached:
        assert reached.client is None
        answer.set()
        assert closed.wait(60.0)
    with client_of(ClusterSettings(address="tcp://192.0.2.1:1")) as reached:
        assert reached.client is not None
