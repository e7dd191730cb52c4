"""Campaigns on a real Slurm, which these tests start and end (`make slurm`)."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="the extra captime[dask]")
pytest.importorskip("dask_jobqueue", reason="batch queues need dask-jobqueue")

from campaign_stand_ins import folder
from captime.ledger import LedgerReader
from captime.supervision.processes import tagged
from dask_clusters import eventually, with_executor
from scripted_campaign import Scripted, scripted_campaign
from slurm_cluster import Slurm, missing, slurm

__all__ = ["folder"]
pytestmark = [pytest.mark.slurm, pytest.mark.skipif(bool(missing()), reason=missing() or "all there")]

ROOT = Path(__file__).parent.parent.parent
# As in docs/cluster.md, on one small node without a fast network.
OPTIONS = """
[executor.options]
cores = 1
memory = "1GB"
walltime = "00:30:00"
interface = "lo"
"""
LIFETIME = 'worker_extra_args = ["--lifetime", "3h50m", "--lifetime-stagger", "5m"]'


@pytest.fixture(scope="module")
def queue() -> Iterator[Slurm]:
    """A queue for all tests of this file."""
    with slurm() as made:
        yield made


def campaign_on(folder: Path, more: str = "", *, patience: str = "", seconds: float = 0.3) -> Scripted:
    """A campaign whose runs take a while on the clock, on two jobs of Slurm."""
    campaign = scripted_campaign(folder / "campaign", order="arrival")
    program = campaign.folder / "program.sh"
    program.write_text(program.read_text().replace("seconds=", f"sleep {seconds}\nseconds=", 1))
    section = f'kind = "dask"\ncluster = "slurm"\nworkers = 2\nmachines = "any"\n{patience}'
    logs = f'log_directory = "{folder}"\nlocal_directory = "{folder}"'
    with_executor(campaign, f"{section}\n{OPTIONS}{logs}\n{more}")
    return campaign


def outcomes(campaign: Scripted) -> int:
    """How many runs are on record."""
    if not campaign.ledger.exists():
        return 0
    with LedgerReader(campaign.ledger) as reader:
        return len(reader.outcomes()["config"])


def stopped(process: "subprocess.Popen[str]", number: int = signal.SIGTERM) -> tuple[dict[str, object], str]:
    """What a campaign says that is asked to stop."""
    process.send_signal(number)
    out, said = process.communicate(timeout=90)
    assert process.returncode == 128 + number, said
    assert "Traceback" not in said
    told: dict[str, object] = json.loads(out)
    return told, said


def test_the_documented_settings_give_a_certificate_that_verify_confirms(folder: Path, queue: Slurm) -> None:
    """C9: `--lifetime 3h50m` included; no job is left in the queue."""
    campaign = campaign_on(folder, LIFETIME, seconds=0.05)
    code, out, said = campaign.run(**queue.environment)
    assert code == 0, said
    assert json.loads(out)["certificate"]["epsilon"] <= 0.25
    checked = subprocess.run([sys.executable, "-m", "captime", "verify", str(campaign.ledger)], check=False)
    assert checked.returncode == 0
    assert eventually(lambda: queue.jobs() == [])


def test_jobs_that_end_are_replaced(folder: Path, queue: Slurm) -> None:
    """C10: both jobs are cancelled while runs are made; others come, and the campaign continues."""
    campaign = campaign_on(folder)
    process = campaign.begin("--epsilon", "0", **queue.environment)
    assert eventually(lambda: outcomes(campaign) >= 4), process.poll()
    first = queue.jobs()
    queue.call("scancel", *first)
    assert eventually(lambda: bool(set(queue.jobs("RUNNING")) - set(first)))
    seen = outcomes(campaign)
    assert eventually(lambda: outcomes(campaign) >= seen + 6), process.poll()
    told, _ = stopped(process)
    assert told["stopped"] == "interrupted"
    assert eventually(lambda: queue.jobs() == [])
    with LedgerReader(campaign.ledger) as reader:
        ended = [event.facts for event in reader.events() if event.kind == "job-ended"]
    assert {str(facts["job"]) for facts in ended} >= set(first)


def test_workers_that_reach_their_lifetime_are_replaced(folder: Path, queue: Slurm) -> None:
    """C10: a job ends by itself, as it does shortly before its walltime."""
    campaign = campaign_on(folder, 'worker_extra_args = ["--lifetime", "0m 20s"]')
    process = campaign.begin("--epsilon", "0", **queue.environment)
    assert eventually(lambda: outcomes(campaign) >= 2), process.poll()
    first = set(queue.jobs())
    assert eventually(lambda: bool(set(queue.jobs("RUNNING")) - first))
    seen = outcomes(campaign)
    assert eventually(lambda: outcomes(campaign) >= seen + 2), process.poll()
    stopped(process)


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ('queue = "nope"', "invalid partition specified: nope"),
        ('worker_extra_args = ["--no-such-option"]', "No such option"),
        ('python = "/nonexistent/python"', "No such file or directory"),
    ],
)
def test_what_slurm_cannot_do_is_one_sentence(folder: Path, queue: Slurm, more: str, complaint: str) -> None:
    """C10: a refused job, and jobs that end at once; with what Slurm and the job have said."""
    code, _, said = campaign_on(folder, more).run(**queue.environment)
    assert code == 2, said
    told = said.strip().splitlines()[-1]
    assert told.startswith("captime: executor")
    assert complaint in told
    assert "Traceback" not in said


def test_while_jobs_wait_a_signal_gives_the_certificate_and_patience_ends(folder: Path, queue: Slurm) -> None:
    """C10: the queue is closed; a first SIGTERM is enough, and without one `patience` is the limit."""
    waiting = campaign_on(folder / "signal", 'queue = "closed"')
    process = waiting.begin(**queue.environment)
    assert eventually(lambda: waiting.ledger.exists() and len(queue.jobs("PENDING")) == 2), process.poll()
    told, _ = stopped(process)
    assert (told["stopped"], told["certificate"]["epsilon"]) == ("interrupted", 1.0)  # type: ignore[index] # an object
    assert eventually(lambda: queue.jobs() == [])
    limited = campaign_on(folder / "patience", 'queue = "closed"', patience='patience = "15s"')
    code, out, said = limited.run(**queue.environment)
    assert (code, json.loads(out)["stopped"]) == (3, "cluster")
    assert "PENDING (PartitionDown)" in said


def test_nothing_survives_a_coordinator_that_was_killed(folder: Path, queue: Slurm) -> None:
    """P3: its jobs end by themselves, and so do the runs."""
    campaign = campaign_on(folder)
    process = campaign.begin("--epsilon", "0", **queue.environment)
    assert eventually(lambda: outcomes(campaign) >= 2), process.poll()
    process.kill()
    process.communicate()
    with LedgerReader(campaign.ledger) as reader:
        tag = f"{reader.campaign_id}/"
    assert eventually(lambda: tagged(tag) == [])
    assert eventually(lambda: queue.jobs() == [])


def test_the_documented_job_keeps_the_ledger_where_the_next_one_finds_it(folder: Path, queue: Slurm) -> None:
    """C10: asked to stop, it leaves a certificate and a copy; the next job continues from that, and cleans up."""
    campaign = campaign_on(folder, seconds=0.1)
    kept = campaign.scenario.with_suffix(".kept.ledger")
    script = ROOT / "examples" / "slurm" / "coordinate.sh"
    place = folder / "disk of the node"
    place.mkdir()
    bin_folder = Path(sys.executable).parent
    exported = f"ALL,TMPDIR={place},EVERY=2,PATH={bin_folder}:{os.environ['PATH']}"
    submit = ("sbatch", f"--export={exported}", "--mem=500M", "--output=job-%j.out", str(script))

    def outputs() -> list[str]:
        return [path.read_text() for path in sorted(folder.glob("job-*.out"))]

    queue.call(*submit, str(campaign.scenario), "--epsilon", "0.001", folder=folder)
    assert eventually(kept.exists), outputs()
    seen = rows(kept)
    assert eventually(lambda: rows(kept) > seen + 20), outputs()
    (coordinator,) = queue.call("squeue", "-h", "-n", "captime", "-o", "%i").split()
    queue.call("scancel", coordinator)
    assert eventually(lambda: queue.jobs() == [])
    assert "it was interrupted" in outputs()[0]
    first = rows(kept)
    queue.call(*submit, str(campaign.scenario), "--epsilon", "0.25", folder=folder)
    assert eventually(lambda: len(outputs()) == 2 and queue.jobs() == []), outputs()
    assert "it reached the epsilon asked for" in outputs()[1]
    assert rows(kept) >= first
    assert list(place.glob("captime.*/*.ledger"))[1:] == []
    with LedgerReader(kept) as reader:
        kinds = [event.kind for event in reader.events()]
    assert (kinds.count("began"), kinds.count("resumed")) == (1, 1)
    shutil.rmtree(place)


def rows(ledger: Path) -> int:
    """How far a copy has come."""
    with LedgerReader(ledger) as reader:
        return len(reader.outcomes()["config"])
