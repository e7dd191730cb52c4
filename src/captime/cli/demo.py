"""`captime demo`: Naive and UP on a made-up table, with the certificate and one picture."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from captime.cli.interrupts import asking_to_stop
from captime.cli.live import live_view
from captime.cli.simulate import print_certificate
from captime.report.figures.epsilon import draw_epsilon
from captime.report.trace_file import write_trace
from captime.report.words import rounded_up
from captime.simulation import Simulation, simulate
from captime.sources.synthetic import synthetic_table

_UTILITY = "log-laplace(60, 1)"
_EPSILON = 0.1
_NAIVE_EPSILONS = (0.3, 0.25, 0.2, 0.17, 0.15, 0.13, 0.12, 0.11, 0.1)


def demo_command(
    out: Annotated[Path, typer.Option(help="Folder for the picture and the trace.")] = Path("demo-out"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the table and of the sampling.")] = 1,
) -> None:
    """Compare Naive and UP on a small made-up table, and show what a certificate looks like."""
    console = Console(highlight=False)
    table = synthetic_table(seed, 40, 20_000, limit=900.0, name="made-up-solver")
    console.print(
        f"A made-up solver with {table.n_configs} configurations on {table.n_instances:,} instances (seed {seed})."
    )
    console.print(
        f"An answer is worth {_UTILITY}: half of its worth is gone after a minute. Goal: epsilon = {_EPSILON}.\n"
    )
    with asking_to_stop() as interrupted, live_view(table.configs, "up", wanted=True) as observer:
        up = simulate(table, utility=_UTILITY, epsilon=_EPSILON, seed=seed, observer=observer, interrupted=interrupted)
    naive = [simulate(table, utility=_UTILITY, procedure="naive", epsilon=goal, seed=seed) for goal in _NAIVE_EPSILONS]
    _compare(console, up, naive)
    print_certificate(up)
    out.mkdir(parents=True, exist_ok=True)
    draw_epsilon({"UP": up}, out / "epsilon.png", {"Naive, captime where u = epsilon / 2": naive})
    write_trace(up.outcome.trace, table.configs, out / "up.jsonl")
    console.print(f"\nPicture: {out / 'epsilon.png'}   every decision of UP: {out / 'up.jsonl'}")
    console.print("Next: captime simulate YOUR-TABLE.csv --utility 'log-laplace(60, 1)' --epsilon 0.1")


def _compare(console: Console, up: Simulation, naive: list[Simulation]) -> None:
    """When UP held each epsilon that Naive was asked for, and what either had cost."""
    made = up.outcome.trace.decisions()
    shown = Table(title="CPU days until epsilon is certified", title_justify="left")
    for heading in ("epsilon", "Naive", "UP", "Naive / UP"):
        shown.add_column(heading, justify="right")
    for run in naive:
        there = np.flatnonzero(made.epsilon <= run.epsilon)
        if len(there):
            spent = float(made.seconds[there[0]])
            ratio = f"{run.cpu_seconds / spent:.1f}"
            shown.add_row(rounded_up(run.epsilon, 2), f"{run.cpu_seconds / 86400:.1f}", f"{spent / 86400:.1f}", ratio)
    console.print(shown)
