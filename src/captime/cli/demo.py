"""`captime demo`: Naive, UP and the race on a made-up table, with the certificate and one picture."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from captime.cli.interrupts import asking_to_stop
from captime.cli.live import live_view
from captime.cli.printing import print_certificate
from captime.report.figures.epsilon import draw_epsilon
from captime.report.simulated import account_of_simulation
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
    """Compare Naive, UP and the race on a small made-up table, and show what a certificate looks like."""
    console = Console(highlight=False, soft_wrap=True)
    table = synthetic_table(seed, 40, 20_000, limit=900.0, name="made-up-solver")
    console.print(f"A made-up solver: {table.n_configs} configurations, {table.n_instances:,} instances (seed {seed}).")
    console.print(f"An answer is worth {_UTILITY}: half of its worth is gone after a minute. Goal: {_EPSILON}.\n")
    found: dict[str, Simulation] = {}
    with asking_to_stop() as interrupted:
        for procedure in ("up", "race"):
            with live_view(table.configs, procedure, wanted=True) as observer:
                found[procedure] = simulate(
                    table,
                    utility=_UTILITY,
                    procedure=procedure,
                    epsilon=_EPSILON,
                    seed=seed,
                    observer=observer,
                    interrupted=interrupted,
                )
    naive = [simulate(table, utility=_UTILITY, procedure="naive", epsilon=goal, seed=seed) for goal in _NAIVE_EPSILONS]
    _compare(console, found["up"], found["race"], naive)
    print_certificate(account_of_simulation(found["race"]))
    out.mkdir(parents=True, exist_ok=True)
    curves = {"UP (the paper)": found["up"], "race (captime's default)": found["race"]}
    draw_epsilon(curves, out / "epsilon.png", {"Naive, captime where u = epsilon / 2": naive})
    write_trace(found["race"].outcome.trace, table.configs, out / "race.jsonl")
    console.print(f"\nPicture: {out / 'epsilon.png'}   every decision of the race: {out / 'race.jsonl'}")
    console.print("Next: captime simulate YOUR-TABLE.csv --utility 'log-laplace(60, 1)' --epsilon 0.1")


def _compare(console: Console, up: Simulation, race: Simulation, naive: list[Simulation]) -> None:
    """When UP and the race held each epsilon that Naive was asked for, and what each had cost."""
    shown = Table(title="CPU days until epsilon is certified", title_justify="left")
    for heading in ("epsilon", "Naive", "UP", "race", "UP / race"):
        shown.add_column(heading, justify="right")
    for run in naive:
        by_up, by_race = _spent(up, run.epsilon), _spent(race, run.epsilon)
        if by_up is not None and by_race is not None:
            days = [f"{seconds / 86400:.2f}" for seconds in (run.cpu_seconds, by_up, by_race)]
            shown.add_row(rounded_up(run.epsilon, 2), *days, f"{by_up / by_race:.0f}")
    console.print(shown)


def _spent(result: Simulation, epsilon: float) -> float | None:
    """CPU seconds until this epsilon was certified; None if it never was."""
    made = result.outcome.trace.decisions()
    there = np.flatnonzero(made.epsilon <= epsilon)
    return float(made.seconds[there[0]]) if len(there) else None
