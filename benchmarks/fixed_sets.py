"""What a claim about exactly these instances costs, relative to running every configuration on every instance.

Subsets of recorded tables: 60 instances, 200 instances, and all of them; two utilities; epsilon 0.1, 0.05 and 0. The
cost of a cell is the median over subsets of CPU time / `matrix_cpu_seconds`, the CPU time of the whole matrix up to the
longest captime that is of use. Bars: at most 0.85 in every cell with epsilon >= 0.05 and at most 1.05 with epsilon 0;
geometric mean at epsilon 0.1 at most 0.30, 0.12 and 0.05 for the three sizes. The exit code is 1 if a bar is missed.

    python benchmarks/fixed_sets.py [--only SAT] [--sizes 60,200,all] [--subsets 3] [--out FILE.csv]
"""

import argparse
import csv
import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from captime.simulation import simulate
from captime.sources import RuntimeTable, read_table

UTILITIES = ("uniform(60)", "log-laplace(60, 1)")
EPSILONS = (0.1, 0.05, 0.0)
MEANS = {"60": 0.30, "200": 0.12, "all": 0.05}
"""Bars of the geometric means at epsilon 0.1, by size."""
MOST, MOST_EXACT = 0.85, 1.05
CONFIGURED_LIMIT = 300.0
SHARED = Path(__file__).parents[2] / "shared" / "data"


class Cell(NamedTuple):
    """A table, a size, a utility and a goal, with what they came to."""

    table: str
    size: str
    utility: str
    goal: float
    ratio: float
    epsilon: float
    drawn: float
    gap: float
    stopped: str
    seconds: float


def tables(aslib: Path, configured: Path, only: str) -> Iterator[tuple[str, RuntimeTable]]:
    """Yield the recorded tables whose names contain `only`, with their names."""
    for path in sorted(aslib.glob("*")):
        if only in path.name:
            yield path.name, read_table(path)
    for path in sorted(configured.glob("*/runs.csv")):
        if only in path.parent.name:
            yield path.parent.name, read_table(path, timeout=CONFIGURED_LIMIT)


def subset(table: RuntimeTable, size: int | None, seed: int) -> RuntimeTable:
    """Return a random subset of the instances, or all of them."""
    if size is None or size >= table.n_instances:
        return table
    chosen = np.sort(np.random.default_rng((size, seed)).choice(table.n_instances, size, replace=False))
    names = [table.instances[index] for index in chosen.tolist()]
    return RuntimeTable.build(table.name, table.configs, names, table.seconds[:, chosen], timeout=table.limit)


def measured(table: RuntimeTable, size: str, utility: str, goal: float, subsets: int) -> Cell:
    """Return the medians over subsets."""
    began, rows = time.perf_counter(), []
    for seed in range(subsets if size != "all" else 1):
        part = subset(table, None if size == "all" else int(size), seed)
        result = simulate(part, utility=utility, epsilon=goal, population="these", seed=seed)
        held = result.certificate
        worth = result.utility(np.where(part.seconds >= part.limit, np.inf, part.seconds)).mean(axis=1)
        rows.append(
            (
                result.cpu_seconds / (result.matrix_cpu_seconds or math.inf),
                held.epsilon,
                1.0 if held.other is None else held.other.epsilon,
                float(worth.max() - worth[held.config]),
            )
        )
    ratio, epsilon, drawn, gap = np.median(np.array(rows), axis=0).tolist()
    spent = time.perf_counter() - began
    return Cell(table.name, size, utility, goal, ratio, epsilon, drawn, gap, result.outcome.stopped, spent)


def main() -> int:
    """Measure all cells, print them and the bars; 1 if a bar is missed."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--aslib", type=Path, default=SHARED / "aslib")
    arguments.add_argument("--configured", type=Path, default=SHARED / "configured")
    arguments.add_argument("--only", default="", help="only tables whose names contain this")
    arguments.add_argument("--sizes", default="60,200,all")
    arguments.add_argument("--subsets", type=int, default=3)
    arguments.add_argument("--out", type=Path)
    wishes = arguments.parse_args()
    cells: list[Cell] = []
    for name, table in tables(wishes.aslib, wishes.configured, wishes.only):
        for size in wishes.sizes.split(","):
            for utility in UTILITIES:
                for goal in EPSILONS:
                    cells.append(measured(table, size, utility, goal, wishes.subsets)._replace(table=name))
                    print(_row(cells[-1]), flush=True)
    if not cells:
        print(f"no tables in {wishes.aslib} and {wishes.configured}: nothing is measured", file=sys.stderr)
        return 0
    if wishes.out is not None:
        wishes.out.parent.mkdir(parents=True, exist_ok=True)
        with wishes.out.open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(Cell._fields)
            writer.writerows(cells)
    return int(_missed(cells))


def _row(cell: Cell) -> str:
    return (
        f"{cell.table:22} {cell.size:>4} {cell.utility:20} epsilon {cell.goal:4}: {cell.ratio:.3f} of the matrix; "
        f"certified {cell.epsilon:.4f}, drawn {cell.drawn:.3f}, really {cell.gap:.4f}; {cell.stopped}; "
        f"{cell.seconds:.1f} s"
    )


def _missed(cells: list[Cell]) -> bool:
    """Print the bars; return whether one is missed."""
    missed = False
    for goal, most in ((EPSILONS[0], MOST), (EPSILONS[1], MOST), (EPSILONS[2], MOST_EXACT)):
        worst = max((cell for cell in cells if cell.goal == goal), key=lambda cell: cell.ratio)
        missed |= worst.ratio > most
        print(f"epsilon {goal}: at most {worst.ratio:.3f} ({worst.table}, {worst.size}, {worst.utility}); bar {most}")
    for size, bar in MEANS.items():
        ratios = [cell.ratio for cell in cells if cell.size == size and cell.goal == EPSILONS[0]]
        if ratios:
            mean = math.exp(float(np.mean(np.log(ratios))))
            missed |= mean > bar
            print(f"size {size}, epsilon {EPSILONS[0]}: geometric mean {mean:.3f}; bar {bar}")
    return missed


if __name__ == "__main__":
    raise SystemExit(main())
