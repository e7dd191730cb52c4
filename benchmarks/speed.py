"""Speed of the simulation against a plain per-run loop, on the same table and with the same decisions.

Prints one table; every ratio is measured in this one process. Usage: make bench
"""

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import TypeVar

import numpy as np
from plain_loop import LoopResult, plain_up
from rich.console import Console
from rich.table import Table

from captime import RuntimeTable, Simulation, simulate
from captime.certificate import Orders
from captime.procedures.race import Race
from captime.sources.synthetic import synthetic_table

Result = TypeVar("Result")

N_CONFIGS, N_INSTANCES, LIMIT = 1_000, 20_000, 900.0
DELTA, EPSILON = 0.1, 0.12


@dataclass(frozen=True)
class Case:
    """A utility for the simulation and the same one as a plain function of one number."""

    text: str
    plain: Callable[[float], float]
    top: float


CASES = (
    Case("log-laplace(60, 1)", lambda t: 1 - 0.5 * (t / 60) if t < 60 else 0.5 * 60 / t, LIMIT),
    Case("uniform(60)", lambda t: max(0.0, 1 - t / 60), 60.0),
)


def main() -> None:
    """Measure and print; exit code 1 if the decisions differ."""
    console = Console(highlight=False, width=110)
    table = synthetic_table(7, N_CONFIGS, N_INSTANCES, limit=LIMIT)
    seconds = table.seconds
    shown = Table(
        title=f"UP on {N_CONFIGS:,} x {N_INSTANCES:,} recorded runtimes, delta = {DELTA}", title_justify="left"
    )
    for heading in ("utility", "epsilon", "rounds", "runs", "plain loop", "captime", "ratio"):
        shown.add_column(heading, justify="right")
    same = True
    # Warm both up on a little table: first calls also load and grow things.
    little = synthetic_table(7, 50, 500, limit=LIMIT)
    simulate(little, procedure="up", utility="log-laplace(60, 1)", epsilon=0.0)
    for case in CASES:
        up = partial(simulate, table, procedure="up", utility=case.text, delta=DELTA, epsilon=EPSILON, sampling="given")
        # The best of three: one is over too soon to average out whatever else the machine does.
        fast, took = min((timed(up) for _ in range(3)), key=itemgetter(1))
        console.print(f"{case.text}: captime {took:.2f} s; now the plain loop (about half a minute) ...", style="dim")
        slow, loop_took = timed(
            partial(
                plain_up,
                lambda config, instance: float(seconds[config, instance]),
                N_CONFIGS,
                N_INSTANCES,
                case.plain,
                delta=DELTA,
                epsilon=EPSILON,
                first=1.0,
                top=case.top,
            )
        )
        same &= equal(fast, slow)
        shown.add_row(
            case.text,
            f"{EPSILON}",
            f"{fast.outcome.rounds:,}",
            f"{fast.outcome.runs.sum():,}",
            f"{loop_took:.1f} s",
            f"{took:.2f} s",
            f"{loop_took / took:.0f}x",
        )
    for case in CASES:
        fast, took = timed(partial(simulate, table, procedure="up", utility=case.text, delta=DELTA, epsilon=0.0))
        ended = "to the end" if fast.outcome.stopped == "instances" else fast.outcome.stopped
        shown.add_row(
            case.text, ended, f"{fast.outcome.rounds:,}", f"{fast.outcome.runs.sum():,}", "-", f"{took:.2f} s", "-"
        )
    console.print(shown)
    console.print(race_table(table))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    console.print(f"identical decisions: {'yes' if same else 'NO'}; the table itself {seconds.nbytes / 2**20:.0f} MB")
    console.print(f"peak memory of this process, the loop's dictionary included: {peak:,.0f} MB")
    console.print(f"peak memory of captime alone, to the end of the table: {alone():,.0f} MB")
    sys.exit(0 if same else 1)


def race_table(table: RuntimeTable) -> Table:
    """The race on the same table: how long until epsilon is certified, and how long a decision takes."""
    shown = Table(title="The race on the same table", title_justify="left")
    for heading in ("utility", "epsilon", "orders", "runs", "CPU days simulated", "captime", "ms per order"):
        shown.add_column(heading, justify="right")
    for case in CASES:
        for goal in (0.1, 0.05):
            # What is decided is who runs next and how far: one order for one configuration.
            with counted_orders() as orders:
                result, took = timed(partial(simulate, table, utility=case.text, delta=DELTA, epsilon=goal))
            decisions = sum(orders)
            shown.add_row(
                case.text,
                f"{goal:g}",
                f"{decisions:,}",
                f"{result.outcome.runs.sum():,}",
                f"{result.cpu_seconds / 86400:.1f}",
                f"{took:.2f} s",
                f"{1000 * took / decisions:.2f}",
            )
    return shown


@contextmanager
def counted_orders() -> Iterator[list[int]]:
    """While inside, how many configurations each question of a race was about."""
    orders: list[int] = []
    ask = Race.ask

    def counted(self: Race, slots: int) -> Orders:
        placed = ask(self, slots)
        orders.append(len(placed))
        return placed

    Race.ask = counted  # type: ignore[method-assign]
    try:
        yield orders
    finally:
        Race.ask = ask  # type: ignore[method-assign]


def timed(work: Callable[[], Result]) -> tuple[Result, float]:
    """The result and the CPU seconds it took: the machine may be shared, and one core is what counts."""
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def equal(fast: Simulation, slow: LoopResult) -> bool:
    """Whether both took the same decisions, round by round for the eliminations."""
    outcome = fast.outcome
    gone = [(event.round, event.config) for event in outcome.trace.incidents() if event.kind == "eliminated"]
    return (
        (fast.certificate.config, outcome.rounds, outcome.candidates.tolist(), int(outcome.runs.sum()))
        == (slow.config, slow.rounds, slow.candidates, slow.runs)
        and sorted(gone) == sorted(slow.eliminations)
        and np.array_equal(outcome.captimes, slow.captimes)
        and abs(fast.certificate.epsilon - slow.epsilon) <= 1e-9
        and abs(fast.cpu_seconds - slow.seconds) <= 1e-9 * slow.seconds
    )


def alone() -> float:
    """Peak memory, in MB, of a fresh process that only makes the table and runs UP to its end."""
    code = (
        "import resource; from captime import simulate; from captime.sources.synthetic import synthetic_table;"
        f"table = synthetic_table(7, {N_CONFIGS}, {N_INSTANCES}, limit={LIMIT});"
        "simulate(table, procedure='up', utility='log-laplace(60, 1)', epsilon=0.0);"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return float(done.stdout)


if __name__ == "__main__":
    main()
