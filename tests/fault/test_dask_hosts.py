"""Campaigns on other hosts: two with networks, names and files of their own, and a batch queue that is a script."""

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="the extra captime[dask]")

from campaign_stand_ins import folder
from captime.ledger import LedgerReader
from captime.ledger.reading import FLAT_COLUMNS
from dask_clusters import cluster, eventually, with_executor
from scripted_campaign import Scripted, scripted_campaign

__all__ = ["folder"]

NETWORK = "10.213.77"
# A worker in a network, with a host name and a view of the files of its own, in which the instances are not there.
_NODE = 'hostname "$1" && mount -t tmpfs none "$2" && shift 2 && exec "$@"'
# What dask-jobqueue calls: it prints the job's number, and the job begins at once. Like the real one it keeps a copy of
# the script, because dask-jobqueue deletes its file as soon as the number is printed.
_SBATCH = """#!/bin/sh
kept="$(mktemp "$(dirname "$0")/script.XXXXXX")" && cp "$1" "$kept" || exit 1
setsid sh "$kept" >/dev/null 2>&1 &
echo $! >> "$(dirname "$0")/jobs"
echo "Submitted batch job $!"
"""
_SCANCEL = """#!/bin/sh
for job in "$@"; do kill -9 -- "-$job"; done
"""


def hosts(campaign: Scripted) -> set[object]:
    """Where runs were made."""
    with LedgerReader(campaign.ledger) as reader:
        # A run that was cancelled before it began was made nowhere.
        return {host for row in reader.flat() if (host := row[FLAT_COLUMNS.index("host")]) != ""}


def ip(*words: str) -> subprocess.CompletedProcess[bytes]:
    """Change the network."""
    return subprocess.run(["ip", *words], check=False, capture_output=True)


@contextmanager
def two_hosts() -> Iterator[list[tuple[str, str]]]:
    """Names and addresses of two network namespaces, on one bridge with us."""
    own = f"cap{os.getpid() % 10000}"
    nodes = [(f"{own}{letter}", f"{NETWORK}.{number}") for letter, number in (("a", 2), ("b", 3))]
    made = ip("link", "add", own, "type", "bridge")
    if made.returncode:
        pytest.skip(f"networks of our own cannot be made here: {made.stderr.decode().strip()}")
    try:
        ip("addr", "add", f"{NETWORK}.1/24", "dev", own)
        ip("link", "set", own, "up")
        for name, address in nodes:
            ip("netns", "add", name)
            ip("link", "add", f"{name}h", "type", "veth", "peer", "name", f"{name}n", "netns", name)
            ip("link", "set", f"{name}h", "master", own, "up")
            ip("-n", name, "addr", "add", f"{address}/24", "dev", f"{name}n")
            ip("-n", name, "link", "set", f"{name}n", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield nodes
    finally:
        for name, _ in nodes:
            ip("netns", "del", name)
            ip("link", "del", f"{name}h")
        ip("link", "del", own)


@pytest.mark.skipif(shutil.which("ip") is None or os.geteuid() != 0, reason="needs the right to make networks")
def test_hosts_without_a_shared_folder_get_their_instances_and_certify_the_same(folder: Path) -> None:
    """Two hosts that do not see the instances: sent once to each, told apart in the ledger, the same certificate."""
    here = scripted_campaign(folder / "here").certificate()
    there = scripted_campaign(folder / "there")
    with two_hosts() as nodes, cluster(folder, host=f"{NETWORK}.1") as made:
        for name, address in nodes:
            hidden = ("sh", "-c", _NODE, "node", name, str(there.folder / "instances"))
            made.add_worker(host=address, inside=("ip", "netns", "exec", name, "unshare", "--uts", "--mount", *hidden))
        section = f'kind = "dask"\naddress = "{made.address}"\nmachines = "any"\ntransfer = true'
        with_executor(there, section)
        assert there.certificate() == here
    assert hosts(there) == {name for name, _ in nodes}


def test_a_batch_queue_is_asked_for_workers_and_its_jobs_end_with_the_campaign(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`cluster = "slurm"`, with a queue that is a script: jobs are submitted, used and cancelled."""
    pytest.importorskip("dask_jobqueue", reason="batch queues need dask-jobqueue")
    queue = folder / "queue"
    queue.mkdir()
    for name, text in (("sbatch", _SBATCH), ("scancel", _SCANCEL)):
        (queue / name).write_text(text, encoding="ascii")
        (queue / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{queue}:{os.environ['PATH']}")
    campaign = scripted_campaign(folder / "campaign", order="arrival")
    options = f'cores = 1, memory = "1GB", interface = "lo", local_directory = "{folder}"'
    with_executor(
        campaign, f'kind = "dask"\ncluster = "slurm"\nworkers = 2\nmachines = "any"\noptions = {{ {options} }}'
    )
    code, _, said = campaign.run()
    assert code == 0, said
    jobs = (queue / "jobs").read_text(encoding="ascii").split()
    assert len(jobs) >= 2
    assert eventually(lambda: not any(at_work(job) for job in jobs))


_STRANGERS = {
    "without": "import sys\nsys.modules['captime'] = None\n",
    "another": "import importlib.metadata as found\nhere = found.version\n"
    "found.version = lambda name: '0.0.1' if name == 'captime' else here(name)\n",
}


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [
        ("without", "captime cannot be loaded there"),
        pytest.param("another", "it has captime 0.0.1", marks=pytest.mark.fault),
    ],
)
def test_a_worker_without_this_captime_is_refused_and_lives_on(folder: Path, kind: str, complaint: str) -> None:
    """D14: one sentence and exit code 2; the question does not kill a worker that other users may share."""
    campaign = scripted_campaign(folder / "campaign", order="arrival", instances=20)
    code = f"{_STRANGERS[kind]}from distributed.cli.dask_worker import main\nmain()"
    with cluster(folder) as made:
        with_executor(campaign, f'kind = "dask"\naddress = "{made.address}"\nmachines = "any"')
        words = ("--no-nanny", "--no-dashboard", "--nthreads", "1", "--memory-limit", "0")
        command = [sys.executable, "-W", "ignore", "-c", code, made.address, *words, "--local-directory", str(folder)]
        made.workers.append(
            subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        )
        ended, _, said = campaign.run()
        assert ended == 2, said
        assert complaint in said.strip().splitlines()[-1]
        assert made.workers[0].poll() is None


def at_work(job: str) -> bool:
    """Whether a process is there and more than a memory."""
    try:
        status = Path(f"/proc/{job}/stat").read_text(encoding="ascii")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
