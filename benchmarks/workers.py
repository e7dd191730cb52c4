"""What more workers buy: utilisation, price and epsilon against virtual wall-clock time, for 1 to 1,000 workers.

Synthetic tables with a mean runtime of about 10 s, the race, one virtual clock; nothing sleeps. The small question is
over too soon for a thousand workers, and shows what that costs; the large one keeps them at work. Takes some minutes.
Usage: make bench-workers, or: python benchmarks/workers.py --only small
"""

import argparse
import time
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from captime.evidence import Evidence
from captime.executors import VirtualExecutor
from captime.live import LiveOutcome, drive_parallel
from captime.procedures import PROCEDURES, Problem
from captime.sources.synthetic import synthetic_table
from captime.sources.table import RuntimeTable
from captime.sources.window import stream_of
from captime.utilities import parse_utility

WORKERS = (1, 8, 64, 256, 1_000)
DELTA = 0.1
UTILITY = parse_utility("log-laplace(20, 1)")


@dataclass(frozen=True)
class Question:
    """A table and a goal.

    Attributes:
        name: What to call it.
        n_configs: How many configurations.
        first: Logarithm of the fastest configuration's median runtime, in seconds.
        span: By how much that of the slowest is larger.
        epsilon: The goal.
        moments: Wall-clock seconds at which epsilon is shown.
    """

    name: str
    n_configs: int
    first: float
    span: float
    epsilon: float
    moments: tuple[float, ...]

    def table(self) -> RuntimeTable:
        """Runs of about 10 s on average; some take 300 s."""
        return synthetic_table(
            7,
            self.n_configs,
            20_000,
            limit=300.0,
            first_log_speed=self.first,
            spread=self.span / self.n_configs,
            hardness=0.9,
        )


QUESTIONS = (
    Question("small", 40, 0.6, 2.0, 0.06, (30.0, 60.0, 120.0, 300.0)),
    Question("large", 1_000, 1.2, 1.0, 0.02, (60.0, 300.0, 1_200.0, 3_600.0)),
)


def main() -> None:
    """Ask the same questions with ever more workers and print what became of them."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--only", default="", help="small or large")
    arguments.add_argument("--workers", default=",".join(map(str, WORKERS)), help="numbers of workers, a,b,c")
    wishes = arguments.parse_args()
    console = Console(highlight=False, width=140)
    for question in QUESTIONS:
        if wishes.only in question.name:
            console.print(answered(question, [int(workers) for workers in wishes.workers.split(",")], console))


def answered(question: Question, numbers: list[int], console: Console) -> Table:
    """One row per number of workers."""
    table = question.table()
    shown = Table(
        title=f"race, {question.n_configs:,} configurations, mean runtime {table.seconds.mean():.1f} s, "
        f"epsilon {question.epsilon}",
        title_justify="left",
    )
    for heading in ("workers", "wall", "CPU", "runs", "busy", "speed-up", "CPU price", "ms per run"):
        shown.add_column(heading, justify="right")
    for moment in question.moments:
        shown.add_column(f"ε at {moment:g} s", justify="right")
    alone: tuple[float, float] | None = None
    for workers in numbers:
        outcome, busy, took = raced(question, table, workers)
        cpu = float(outcome.seconds.sum())
        alone = alone or (outcome.wall_seconds, cpu)
        shown.add_row(
            f"{workers:,}",
            f"{outcome.wall_seconds:,.0f} s",
            f"{cpu:,.0f} s",
            f"{outcome.runs.sum():,}",
            f"{busy:.1%}",
            f"{alone[0] / outcome.wall_seconds:.1f}x",
            f"{cpu / alone[1]:.2f}x",
            f"{1000.0 * took / outcome.runs.sum():.2f}",
            *(epsilon_at(outcome, moment) for moment in question.moments),
        )
        console.print(f"{question.name}, {workers:,} workers: {took:.0f} s", style="dim")
    return shown


def raced(question: Question, table: RuntimeTable, workers: int) -> tuple[LiveOutcome, float, float]:
    """One race: what became of it, the share of worker seconds spent on runs, and our own CPU seconds."""
    problem = Problem(question.n_configs, UTILITY, DELTA, question.epsilon, captime_limit=table.limit)
    procedure = PROCEDURES["race"](problem)
    executor = VirtualExecutor(table, stream_of("replace", table.groups, 0), workers)
    start = time.process_time()
    outcome = drive_parallel(procedure, executor, Evidence(question.n_configs, procedure.plan, UTILITY))
    return outcome, executor.utilisation, time.process_time() - start


def epsilon_at(outcome: LiveOutcome, moment: float) -> str:
    """What was certified by then; nothing yet is 1."""
    decisions = int(np.searchsorted(outcome.wall, moment, side="right"))
    return f"{outcome.trace.decisions().epsilon[decisions - 1]:.3f}" if decisions else "1.000"


if __name__ == "__main__":
    main()
