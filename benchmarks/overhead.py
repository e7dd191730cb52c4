"""What supervision adds to a run, next to plain `subprocess.run`; and how long after its captime a tree is dead.

Both ways take turns on the same commands in the same minutes, so that a busy machine slows both. All figures are
distributions: median, 95th percentile, maximum. Takes about a minute.
Usage: python benchmarks/overhead.py [--runs N] [--isolation LEVEL] [--json]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from itertools import count

from plain_program import PlainProgram, launch_of
from rich.console import Console
from rich.table import Table

from captime.executors.local import LocalExecutor
from captime.runs import RunRequest

COMMANDS = {
    "true": ("true",),
    "sh": ("sh", "-c", "echo s SATISFIABLE"),
    "python, 20 ms": (sys.executable, "-I", "-S", "-c", "import time\nwhile time.process_time() < 0.02: pass"),
}
# Two children in sessions of their own and a burning main process: what a captime has to put an end to.
TREE = """
import os, time
for _ in range(2):
    if os.fork() == 0:
        os.setsid()
        while True: time.sleep(60)
while True: pass
"""
BURN = "while True: pass"
CAPTIME = 0.1


@dataclass(frozen=True, slots=True)
class Spread:
    """A distribution, in milliseconds."""

    what: str
    runs: int
    median: float
    p95: float
    largest: float

    @classmethod
    def of(cls, what: str, seconds: list[float]) -> "Spread":
        """Of these durations."""
        ordered = sorted(1e3 * each for each in seconds)
        return cls(what, len(ordered), statistics.median(ordered), ordered[int(0.95 * (len(ordered) - 1))], ordered[-1])


class Stopwatch:
    """An executor with one slot, and a clock around it."""

    def __init__(self, isolation: str | None) -> None:
        self.program = PlainProgram(launch_of("true"))
        self.executor = LocalExecutor(self.program, 1, tag=f"benchmark-{os.getpid()}", isolation=isolation)
        self._numbers = count()

    def supervised(self) -> float:
        """Seconds from asking to having the outcome."""
        start = time.perf_counter()
        self.executor.submit([RunRequest(0, next(self._numbers), 1.0)])
        while not self.executor.collect():
            pass
        return time.perf_counter() - start


def plainly(words: tuple[str, ...]) -> float:
    """Seconds that `subprocess.run` takes."""
    start = time.perf_counter()
    subprocess.run(words, capture_output=True, check=True, stdin=subprocess.DEVNULL)
    return time.perf_counter() - start


def added_per_run(watch: Stopwatch, runs: int) -> list[Spread]:
    """Both ways in turn, and the difference of each pair."""
    spreads = []
    for name, words in COMMANDS.items():
        watch.program.launch_now = launch_of(*words)
        pairs = [(plainly(words), watch.supervised()) for _ in range(runs)]
        spreads.append(Spread.of(f"{name}: subprocess.run", [plain for plain, _ in pairs]))
        spreads.append(Spread.of(f"{name}: captime", [ours for _, ours in pairs]))
        spreads.append(Spread.of(f"{name}: added", [ours - plain for plain, ours in pairs]))
    return spreads


def after_the_captime(watch: Stopwatch, runs: int) -> list[Spread]:
    """How much CPU time beyond the captime; and how long from the captime to the report, when all are dead."""
    python = (sys.executable, "-I", "-S", "-c")
    watch.program.launch_now = replace(launch_of(*python, BURN), captime=CAPTIME)
    beyond = _collect(runs, lambda: _after(watch, lambda: watch.program.report.cpu_ns / 1e9))
    watch.program.launch_now = replace(launch_of(*python, TREE), captime=CAPTIME, clock="wall")
    late = _collect(runs, lambda: _after(watch, lambda: watch.program.report.wall_ns / 1e9))
    whole = _collect(runs, watch.supervised)
    return [
        Spread.of("CPU time beyond a captime of 100 ms, one process", [seconds - CAPTIME for seconds in beyond]),
        Spread.of("from a wall-clock captime to the decision", [seconds - CAPTIME for seconds in late]),
        Spread.of("from a wall-clock captime to all dead and told, start included", [s - CAPTIME for s in whole]),
    ]


def _after(watch: Stopwatch, reading: Callable[[], float]) -> float:
    watch.supervised()
    return reading()


def _collect(runs: int, measure: Callable[[], float]) -> list[float]:
    return [measure() for _ in range(runs)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--isolation")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    watch = Stopwatch(options.isolation)
    try:
        spreads = added_per_run(watch, options.runs) + after_the_captime(watch, options.runs)
    finally:
        watch.executor.close()
    load = os.getloadavg()[0]
    if options.json:
        told = {"isolation": watch.executor.isolation, "cores": os.cpu_count(), "load": load}
        print(json.dumps(told | {"milliseconds": [asdict(spread) for spread in spreads]}))
        return
    table = Table(title=f"{watch.executor.isolation}, {os.cpu_count()} cores, load {load:.1f}", title_justify="left")
    for heading in ("milliseconds", "runs", "median", "95 %", "largest"):
        table.add_column(heading, justify="left" if heading == "milliseconds" else "right")
    for spread in spreads:
        table.add_row(
            spread.what, f"{spread.runs}", f"{spread.median:.2f}", f"{spread.p95:.2f}", f"{spread.largest:.2f}"
        )
    Console(highlight=False, width=110).print(table)


if __name__ == "__main__":
    main()
