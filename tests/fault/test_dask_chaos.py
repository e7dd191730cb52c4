"""Whole campaigns on clusters of real processes, while workers, scheduler or coordinator are killed."""

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("distributed", reason="the extra captime[dask]")

from campaign_stand_ins import folder
from captime.campaign import run_campaign
from captime.campaign.measurement import survey_of
from captime.executors.dask import DaskExecutor, DaskTerms
from captime.executors.dask_client import DaskClient, WorkerLeft
from captime.executors.dask_workers import SpeedTerms
from captime.executors.protocol import Executor
from captime.ledger import LedgerReader
from captime.ledger.reading import FLAT_COLUMNS, STATUSES
from captime.programs.protocol import Program
from captime.runs import RunRequest, Status
from captime.scenario import load_scenario
from captime.supervision.processes import tagged
from dask_clusters import PATIENCE, Chaos, cluster, connected, eventually, local_cluster, with_executor
from scripted_campaign import CONFIGS, Scripted, scripted_campaign
from supervised import Plain, launch

__all__ = ["folder"]

Record = Callable[[str, object], None]
ANY = DaskTerms(machines=SpeedTerms("any"))


class FlakyLink(DaskClient):
    """Says now and then that a worker has gone which has not, and delivers what it answers all the same.

    Args:
        client: See `DaskClient`.
        topic: Likewise.
        every: After this many calls.
    """

    def __init__(self, client: Any, topic: str, every: int) -> None:
        super().__init__(client, topic)
        self._every = every
        self._made = 0

    def call(self, call: Any, address: str, *arguments: Any, **more: Any) -> None:
        """See the link."""
        super().call(call, address, *arguments, **more)
        self._made += 1
        if self._made % self._every == 0:
            self._say(WorkerLeft(address))

    def forget(self, calls: Sequence[Any]) -> None:
        """The workers are not told, so late answers arrive."""


def slow(campaign: Scripted, seconds: float) -> None:
    """Every run takes a while on the clock."""
    program = campaign.folder / "program.sh"
    program.write_text(program.read_text().replace("seconds=", f"sleep {seconds}\nseconds=", 1))


def scripted_seconds(campaign: Scripted, name: str) -> list[float]:
    """What an instance says about each configuration."""
    return [float(line) for line in (campaign.folder / "instances" / name).read_text().split()]


@pytest.mark.parametrize(
    ("instances", "workers", "every"), [(14, 2, 12), pytest.param(667, 4, 10, marks=pytest.mark.fault)]
)
def test_whoever_dies_no_run_is_missing_and_none_counts_twice(
    folder: Path, instances: int, workers: int, every: int, record_property: Record
) -> None:
    """F6, F7: workers exit, are closed, are shot, or are only said to be; each run counts once, as it was scripted."""
    campaign = scripted_campaign(folder, order="arrival", instances=instances)
    slow(campaign, 0.1)
    spec = load_scenario(campaign.scenario).build()
    with local_cluster(workers) as client:
        chaos = Chaos(client, every)

        def make(program: Program, tag: str) -> Executor:
            return DaskExecutor(program, partial(FlakyLink, client, every=17), tag=tag, terms=ANY)

        run_campaign(
            survey_of(spec.question, 1000.0, instances),
            campaign.ledger,
            spec.settings,
            make_executor=make,
            observer=lambda _, evidence, __: chaos(int(evidence.tally.runs.sum())),
        )
    with LedgerReader(campaign.ledger) as reader:
        columns, samples, tag = reader.outcomes(), reader.samples(), reader.campaign_id
    record_property("deaths", chaos.deaths)
    record_property("outcomes", len(columns["config"]))
    record_property("orphans", int(columns["orphan"].sum()))
    _each_run_counts_once_and_as_scripted(campaign, columns, samples, instances)
    assert sum(chaos.deaths.values()) >= 3 * instances // every
    assert min(chaos.deaths.values()) > 0
    assert columns["orphan"].any()
    assert eventually(lambda: tagged(f"{tag}/") == [])


def _each_run_counts_once_and_as_scripted(
    campaign: Scripted, columns: dict[str, Any], samples: dict[str, Any], instances: int
) -> None:
    names = dict(zip(samples["position"].tolist(), samples["instance"].tolist(), strict=True))
    newest: Counter[tuple[int, int]] = Counter()
    counted: Counter[tuple[int, int]] = Counter()
    for row in range(len(columns["config"])):
        key = int(columns["config"][row]), int(columns["position"][row])
        status, attempt = STATUSES[columns["status"][row]], int(columns["attempt"][row])
        if columns["orphan"][row]:
            continue
        assert attempt >= newest[key]
        newest[key] = attempt
        if status is Status.LOST:
            continue
        counted[key] += 1
        assert status in (Status.COMPLETED, Status.ABANDONED)
        if status is Status.COMPLETED:
            wanted = scripted_seconds(campaign, Path(names[key[1]]).name)[key[0]]
            assert columns["runtime"][row] == wanted
    assert counted == {(config, position): 1 for config in range(len(CONFIGS)) for position in range(instances)}


def test_a_cluster_certifies_what_this_machine_certifies(folder: Path) -> None:
    """The same outcomes in the same order: the certificate and the number of decisions are the same to the last bit."""
    here = scripted_campaign(folder / "here").certificate()
    there = scripted_campaign(folder / "there")
    with_executor(there, 'kind = "dask"\ncluster = "local"\nworkers = 2\nmachines = "any"')
    assert there.certificate() == here
    with LedgerReader(there.ledger) as reader:
        machines = [event for event in reader.events() if event.kind == "machine"]
        hosts = {row[FLAT_COLUMNS.index("host")] for row in reader.flat()}
    assert len(machines) == 2
    assert all(float(str(machine.facts["reference"])) > 0.0 for machine in machines)
    assert hosts == {machine.facts["host"] for machine in machines}


@pytest.mark.parametrize("trials", [1, pytest.param(20, marks=pytest.mark.fault)])
def test_when_the_scheduler_dies_the_campaign_goes_on_or_ends_with_its_certificate(
    folder: Path, trials: int, record_property: Record
) -> None:
    """F9: half of the time it comes back; otherwise exit code 3, and nothing is lost."""
    for trial in range(trials):
        campaign = scripted_campaign(folder / f"{trial}", order="arrival", instances=400)
        slow(campaign, 0.05)
        with cluster(folder, workers=1) as made:
            with_executor(campaign, f'kind = "dask"\naddress = "{made.address}"\nmachines = "any"')
            process = campaign.begin()
            assert eventually(partial(_has_outcomes, campaign, 3, process)), process.communicate()
            if trial % 2:
                made.restart_scheduler()
                made.add_worker()
                seen = n_outcomes(campaign)
                assert eventually(partial(_has_outcomes, campaign, seen + 10))
            made.kill_scheduler()
            killed = time.monotonic()
            out, said = process.communicate(timeout=PATIENCE)
            took = time.monotonic() - killed
        assert process.returncode == 3, said
        told = json.loads(out)
        assert told["stopped"] == "cluster"
        record_property("seconds", took)
        with LedgerReader(campaign.ledger) as reader:
            assert reader.certificates()
            assert reader.in_flight() == []


def n_outcomes(campaign: Scripted) -> int:
    """How many runs are on record; 0 before there is a ledger."""
    if not campaign.ledger.exists():
        return 0
    with LedgerReader(campaign.ledger) as reader:
        return len(reader.outcomes()["config"])


def _has_outcomes(campaign: Scripted, number: int, process: subprocess.Popen[str] | None = None) -> bool:
    """Whether this many runs are on record; a process that has ended before is asked what was wrong."""
    if process is not None and process.poll() is not None:
        raise AssertionError(process.communicate())
    return n_outcomes(campaign) >= number


@pytest.mark.parametrize(("idle", "allowed"), [(3.0, 0.1), pytest.param(60.0, 0.01, marks=pytest.mark.fault)])
def test_nothing_survives_worker_or_coordinator_and_all_workers_may_come_back(
    folder: Path, record_property: Record, idle: float, allowed: float
) -> None:
    """F10, P3: kill -9 of the worker, then of the coordinator; in between it waits, idle, and continues."""
    campaign = scripted_campaign(folder, order="arrival", instances=400)
    program = campaign.folder / "program.sh"
    program.write_text(program.read_text().replace("seconds=", "(setsid sleep 300 &)\nsleep 0.2\nseconds=", 1))
    with cluster(folder, workers=1) as made:
        with_executor(campaign, f'kind = "dask"\naddress = "{made.address}"\nmachines = "any"')
        process = campaign.begin()
        assert eventually(partial(_has_outcomes, campaign, 3, process))
        with LedgerReader(campaign.ledger) as reader:
            tag = f"{reader.campaign_id}/"
        made.kill_workers()
        assert eventually(lambda: tagged(tag) == [])
        assert process.poll() is None
        busy = [_cpu_seconds(process.pid)]
        time.sleep(idle)
        busy.append(_cpu_seconds(process.pid))
        share = (busy[1] - busy[0]) / idle
        record_property("share of a core", share)
        assert share < allowed
        seen = n_outcomes(campaign)
        made.add_worker(2)
        assert eventually(partial(_has_outcomes, campaign, seen + 4))
        process.kill()
        process.communicate()
        assert eventually(lambda: tagged(tag) == [])
        assert len(made.workers) == 1
        assert made.workers[0].poll() is None


@pytest.mark.fault
def test_ctrl_c_in_the_terminal_stops_the_runs_of_a_local_cluster_in_good_order(folder: Path) -> None:
    """The signal reaches every process of the terminal; workers leave it to the coordinator, so nothing is lost."""
    campaign = scripted_campaign(folder, order="arrival", instances=400)
    slow(campaign, 0.3)
    with_executor(campaign, 'kind = "dask"\ncluster = "local"\nworkers = 2\nmachines = "any"')
    process = campaign.begin()
    assert eventually(partial(_has_outcomes, campaign, 5, process))
    os.killpg(process.pid, signal.SIGINT)
    out, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGINT, said
    told = json.loads(out)
    assert (told["stopped"], told["statuses"].get("lost", 0)) == ("interrupted", 0)
    assert told["statuses"]["cancelled"] > 0


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_the_same_run_asked_for_fifty_times_is_made_fifty_times(folder: Path) -> None:
    """F8: nothing comes from a cache, whatever Dask thinks of equal questions."""
    script = 'echo $$ >> "$0"'
    marks = folder / "marks"
    program = Plain(launch("/bin/sh", "-c", script, str(marks)))
    with (
        cluster(folder, workers=1) as made,
        connected(made.address) as client,
        DaskExecutor(program, partial(DaskClient, client), tag="fifty", terms=ANY) as executor,
    ):
        executor.submit([RunRequest(0, 0, 5.0, attempt) for attempt in range(50)])
        back = 0
        while back < 50:
            back += len(executor.collect(60.0))
    assert len(marks.read_text().split()) == 50
    assert np.unique([report.number for report in program.reports]).size == 50
