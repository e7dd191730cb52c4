"""What a cluster costs: runs per second on a Dask cluster and on this machine, and the coordinator's own CPU per run.

Both executors take turns on the same targets on the same machine, with one slot per core, so a busy machine slows both.
The cluster has its scheduler in a process of its own, as large clusters have. From the coordinator's CPU time per run
follows how many workers one coordinator can feed: an extrapolation, from a loop without a ledger and a procedure; what
those add is measured by `benchmarks/campaign.py`. For a simulation of 1,000 workers with the real procedure see
`benchmarks/workers.py`. Takes some minutes.
Usage: python benchmarks/cluster.py [--seconds S] [--json]
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count
from typing import Any

from distributed import Client
from plain_program import PlainProgram, launch_of
from rich.console import Console
from rich.table import Table

from captime.executors.dask import DaskExecutor, DaskTerms
from captime.executors.dask_client import DaskClient
from captime.executors.dask_workers import SpeedTerms
from captime.executors.local import LocalExecutor
from captime.executors.local_slots import cores
from captime.executors.protocol import Executor
from captime.runs import RunRequest

TARGETS = {"10 ms": 0.01, "100 ms": 0.1, "1 s": 1.0}
BURN = "import time\nwhile time.process_time() < {}: pass"
# A coordinator that is busy for more than this share of its core makes workers wait.
_FULL = 0.7
_NUMBERS = count()


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast runs were made.

    Attributes:
        target: What each run burns.
        where: On which executor.
        runs: How many there were.
        per_second: Runs per second of wall-clock time.
        own_cpu: CPU milliseconds of the coordinator per run.
        busy: The share of all slot seconds that the programs themselves were running.
    """

    target: str
    where: str
    runs: int
    per_second: float
    own_cpu: float
    busy: float

    @property
    def feeds(self) -> float:
        """How many workers with runs of this length one coordinator can feed."""
        return _FULL * TARGETS[self.target] / (self.own_cpu / 1e3)


def pace(executor: Executor, program: PlainProgram, target: str, where: str, seconds: float) -> Pace:
    """Keep all slots at work for so long."""
    program.launch_now = launch_of(sys.executable, "-I", "-S", "-c", BURN.format(TARGETS[target]))
    _one_each(executor)
    before, own, used = time.perf_counter(), time.process_time(), program.cpu_seconds
    runs = under_way = 0
    while (elapsed := time.perf_counter() - before) < seconds or not runs:
        free = executor.slots + executor.ahead - under_way
        executor.submit([RunRequest(0, next(_NUMBERS), 60.0) for _ in range(free)])
        came = len(executor.collect(60.0))
        under_way += free - came
        runs += came
    spent, burnt = time.process_time() - own, program.cpu_seconds - used
    while under_way:
        under_way -= len(executor.collect(60.0))
    return Pace(target, where, runs, runs / elapsed, 1e3 * spent / runs, burnt / (elapsed * executor.slots))


def _one_each(executor: Executor) -> None:
    """Until every slot is there and has done something."""
    wanted = len(cores()) or 1
    while True:
        number = executor.slots + executor.ahead
        executor.submit([RunRequest(0, next(_NUMBERS), 60.0) for _ in range(number)])
        while number:
            number -= len(executor.collect(60.0))
        if executor.slots >= wanted:
            return


@contextmanager
def cluster(workers: int) -> Iterator[Any]:
    """Yield a client of a scheduler with this many workers, each a process of its own on the loopback device."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    settings = {
        "DASK_LOGGING__DISTRIBUTED": "critical",
        "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
        "DASK_DISTRIBUTED__SCHEDULER__WORK_STEALING": "False",
    }
    host = ("--host", "127.0.0.1", "--no-dashboard")
    commands: list[tuple[str, ...]] = [("scheduler", "--port", address.rpartition(":")[2], *host)]
    commands += [("worker", address, "--no-nanny", "--nthreads", "1", "--memory-limit", "0", *host)] * workers
    started = []
    try:
        for kind, *words in commands:
            command = [sys.executable, "-W", "ignore", "-m", f"distributed.cli.dask_{kind}", *words]
            quiet = subprocess.DEVNULL
            started.append(subprocess.Popen(command, env={**os.environ, **settings}, stdout=quiet, stderr=quiet))
        make: Callable[..., Any] = Client
        with make(address, timeout=60.0, set_as_default=False) as client:
            yield client
    finally:
        for process in started:
            process.kill()
            process.wait()


def measured(seconds: float) -> list[Pace]:
    """Every target on both executors, in turns."""
    slots, tag, paces = len(cores()) or 1, f"benchmark-{os.getpid()}", []
    here, there = PlainProgram(launch_of("true")), PlainProgram(launch_of("true"))
    terms = DaskTerms(machines=SpeedTerms("any"))
    with (
        cluster(slots) as client,
        LocalExecutor(here, slots, tag=f"{tag}-here", ahead=slots) as local,
        DaskExecutor(there, partial(DaskClient, client), tag=f"{tag}-there", terms=terms) as dask,
    ):
        for target in TARGETS:
            paces.append(pace(local, here, target, "this machine", seconds))
            paces.append(pace(dask, there, target, "cluster", seconds))
    return paces


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="for each target on each executor")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    paces = measured(arguments.seconds)
    if arguments.json:
        print(json.dumps([{**asdict(each), "feeds": each.feeds} for each in paces], indent=2))
        return
    table = Table(title=f"{len(cores()) or 1} slots", title_justify="left")
    for heading in ("target", "on", "runs", "runs/s", "slots busy", "coordinator CPU per run", "workers it can feed"):
        table.add_column(heading, justify="left" if heading == "on" else "right")
    for each in paces:
        table.add_row(
            each.target,
            each.where,
            f"{each.runs:,}",
            f"{each.per_second:.1f}",
            f"{each.busy:.0%}",
            f"{each.own_cpu:.2f} ms",
            f"{each.feeds:,.0f}" if each.where == "cluster" else "",
        )
    Console(highlight=False, width=120).print(table)


if __name__ == "__main__":
    main()
