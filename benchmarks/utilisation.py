"""How much of the cores' time is spent in targets, with as many jobs as cores and targets of 100 ms; no ledger.

On a machine that others use too, the time they take is not ours to spend; the second share leaves it out.
Usage: python benchmarks/utilisation.py [--runs N] [--jobs N] [--json]
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

from plain_program import PlainProgram, launch_of
from rich.console import Console
from rich.table import Table

from captime.executors.local import LocalExecutor
from captime.runs import RunRequest
from captime.supervision.processes import cpu_clock_ns

BURN = "import time\nwhile time.process_time() < 0.1: pass"


def busy_seconds() -> float:
    """Return the CPU seconds that all processes of this machine have used since it was started."""
    fields = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:]
    idle = int(fields[3]) + int(fields[4])
    return (sum(map(int, fields[:8])) - idle) / os.sysconf("SC_CLK_TCK")


def measure(jobs: int, runs: int) -> dict[str, float | int | str]:
    """Keep all slots busy, as a coordinator would: one request in hand per slot beyond the one under way."""
    program = PlainProgram(launch_of(sys.executable, "-I", "-S", "-c", BURN))
    with LocalExecutor(program, jobs, tag=f"benchmark-{os.getpid()}", ahead=jobs) as executor:
        supervisors = executor.pids()
        before = busy_seconds(), time.process_time(), sum(cpu_clock_ns(pid) or 0 for pid in supervisors)
        start = time.monotonic()
        asked = 2 * jobs
        executor.submit([RunRequest(0, number, 1.0) for number in range(asked)])
        back = 0
        while back < runs:
            came = len(executor.collect())
            back += came
            more = min(came, runs - asked)
            executor.submit([RunRequest(0, asked + number, 1.0) for number in range(more)])
            asked += more
        wall = time.monotonic() - start
        busy = busy_seconds() - before[0]
        coordinator = time.process_time() - before[1]
        supervising = (sum(cpu_clock_ns(pid) or 0 for pid in supervisors) - before[2]) / 1e9
        isolation = executor.isolation
    others = max(0.0, busy - coordinator - supervising - program.cpu_seconds)
    cores = min(jobs, os.cpu_count() or jobs)
    return {
        "isolation": isolation,
        "jobs": jobs,
        "runs": back,
        "wall_seconds": wall,
        "target_seconds": program.cpu_seconds,
        "supervisor_seconds": supervising,
        "coordinator_seconds": coordinator,
        "other_seconds": others,
        "share": program.cpu_seconds / (cores * wall),
        "share_without_others": program.cpu_seconds / max(1e-9, cores * wall - others),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.jobs, options.runs)
    if options.json:
        print(json.dumps(found))
        return
    table = Table(title=f"targets of 100 ms, load {os.getloadavg()[0]:.1f}", title_justify="left")
    table.add_column("what")
    table.add_column("value", justify="right")
    for name, value in found.items():
        shown = (
            f"{value:.1%}" if name.startswith("share") else f"{value:.2f}" if isinstance(value, float) else f"{value}"
        )
        table.add_row(name.replace("_", " "), shown)
    Console(highlight=False, width=80).print(table)


if __name__ == "__main__":
    main()
