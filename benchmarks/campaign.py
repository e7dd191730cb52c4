"""How much of the cores' time a whole campaign spends in its targets: ledger on disk, decisions, and all.

Targets of 100 ms, as many jobs as cores, the race. On a machine that others use too, the time they take is not ours to
spend; the second share leaves it out. Usage: python benchmarks/campaign.py [--seconds N] [--json]
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table
from utilisation import BURN, busy_seconds

import captime


def measure(seconds: float) -> dict[str, float | int]:
    """Run one campaign of `seconds` on the clock; its start-up is not counted, its ledger is."""
    jobs = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(dir=".") as folder:
        before_busy, before_own = busy_seconds(), time.process_time()
        result = captime.configure(
            [sys.executable, "-I", "-S", "-c", BURN, "{seed}", "{settings}", "{instance}"],
            instances={"values": list(range(100_000)), "sampling": "replace"},
            configurations={f"c{number}": {"number": number} for number in range(6)},
            utility="uniform(10)",
            epsilon=0.0,
            jobs=jobs,
            oversubscribe=True,
            wall=seconds,
            ledger=Path(folder) / "benchmark.ledger",
            progress=False,
        )
        busy, own = busy_seconds() - before_busy, time.process_time() - before_own
    wall = result.outcome.wall_seconds
    others = max(0.0, busy - own - result.cpu_seconds)
    return {
        "jobs": jobs,
        "runs": int(result.outcome.runs.sum()),
        "wall_seconds": wall,
        "target_seconds": result.cpu_seconds,
        "coordinator_seconds": own,
        "coordinator_ms_per_run": 1e3 * own / max(1, int(result.outcome.runs.sum())),
        "share": result.cpu_seconds / (jobs * wall),
        "share_of_what_others_left": result.cpu_seconds / max(1e-9, jobs * wall - others),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--json", action="store_true")
    wishes = parser.parse_args()
    found = measure(wishes.seconds)
    if wishes.json:
        print(json.dumps(found, indent=2))
        return
    shown = Table(title="a whole campaign, targets of 100 ms", title_justify="left")
    for name in found:
        shown.add_column(name.replace("_", " "), justify="right")
    shown.add_row(*(f"{value:.3g}" if isinstance(value, float) else f"{value:,}" for value in found.values()))
    Console(highlight=False, width=140).print(shown)


if __name__ == "__main__":
    main()
