"""What more workers buy: utilisation, price and epsilon against virtual wall-clock time, for 1 to 256 virtual workers.

A synthetic table with a mean runtime of about 10 s, the race, one virtual clock; nothing sleeps. Takes half a minute.
Usage: python benchmarks/workers.py
"""

import time

import numpy as np
from rich.console import Console
from rich.table import Table

from captime.evidence import Evidence
from captime.executors import VirtualExecutor
from captime.live import LiveOutcome, drive_parallel
from captime.procedures import PROCEDURES, Problem
from captime.sources.sampling import stream_of
from captime.sources.synthetic import synthetic_table
from captime.utilities import parse_utility

WORKERS = (1, 8, 64, 256)
MOMENTS = (60.0, 120.0, 300.0, 1200.0)
N_CONFIGS, DELTA, EPSILON = 40, 0.1, 0.06
UTILITY = parse_utility("log-laplace(20, 1)")


def main() -> None:
    """Run the same question with ever more workers and print what became of it."""
    console = Console(highlight=False, width=120)
    table = synthetic_table(
        7, N_CONFIGS, 20_000, limit=300.0, first_log_speed=0.6, spread=2.0 / N_CONFIGS, hardness=0.9
    )
    shown = Table(
        title=f"race, {N_CONFIGS} configurations, mean runtime {table.seconds.mean():.1f} s, epsilon {EPSILON}",
        title_justify="left",
    )
    for heading in ("workers", "wall", "CPU", "runs", "busy", "speed-up", "took"):
        shown.add_column(heading, justify="right")
    for moment in MOMENTS:
        shown.add_column(f"ε at {moment:g} s", justify="right")
    alone = None
    for workers in WORKERS:
        problem = Problem(N_CONFIGS, UTILITY, DELTA, EPSILON, captime_limit=table.limit)
        procedure = PROCEDURES["race"](problem)
        executor = VirtualExecutor(table, stream_of("replace", table.groups, 0), workers)
        start = time.process_time()
        outcome = drive_parallel(procedure, executor, Evidence(N_CONFIGS, procedure.plan, UTILITY))
        took = time.process_time() - start
        alone = alone or outcome.wall_seconds
        shown.add_row(
            f"{workers}",
            f"{outcome.wall_seconds:,.0f} s",
            f"{outcome.seconds.sum():,.0f} s",
            f"{outcome.runs.sum():,}",
            f"{executor.utilisation:.0%}",
            f"{alone / outcome.wall_seconds:.1f}x",
            f"{took:.1f} s",
            *(epsilon_at(outcome, moment) for moment in MOMENTS),
        )
    console.print(shown)


def epsilon_at(outcome: LiveOutcome, moment: float) -> str:
    """What was certified by then; nothing yet is 1."""
    decisions = int(np.searchsorted(outcome.wall, moment, side="right"))
    return f"{outcome.trace.decisions().epsilon[decisions - 1]:.3f}" if decisions else "1.000"


if __name__ == "__main__":
    main()
