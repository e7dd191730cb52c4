"""What a certificate about an endless space costs: captime's pool against COUP, at the same (epsilon, gamma, delta).

Rows of a table are the random draws. The made-up tables are shaped like the paper's data; of ASlib scenarios, which
have few solvers, rows are drawn with replacement, so that the space is those solvers. COUP decides exactly as its
published code, in two settings: with the published schedule of phases, where the pool is asked for whatever gamma COUP
has when it reaches epsilon; and with one phase made for the goal, which is the best case for it. Instances are drawn
with replacement, restart accounting, medians over seeds.

Usage: make bench-cost, or: python benchmarks/pool_cost.py --seeds 3 --out bench-out/pool_cost.csv
"""

import argparse
import csv
import math
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from captime import RuntimeTable, Simulation, parse_utility, read_table, simulate
from captime.sources.synthetic import synthetic_table

DELTA = 0.1
EPSILONS = (0.3, 0.2, 0.1)
GAMMA = 0.1
UTILITIES = ("log-laplace(60, 1)", "uniform(60)")
PUBLISHED, ONE_PHASE = "published schedule", "one phase"
_ROWS, _INSTANCES = 1200, 6000


@dataclass(frozen=True)
class Cell:
    """One comparison.

    Attributes:
        table: Where.
        utility: What answers are worth, as text.
        setting: How COUP is set.
        epsilon: Goal.
        gamma: Goal; what COUP came to.
        seed: Of the stream.
        coup: CPU seconds of COUP; cells where its pool outgrew the table are left out.
        pool: CPU seconds of the pool.
        wrong: Answers that were not within the goals of the table's own rows.
    """

    table: str
    utility: str
    setting: str
    epsilon: float
    gamma: float
    seed: int
    coup: float
    pool: float
    wrong: int


def tables(folder: Path, only: str) -> Iterator[tuple[str, Callable[[int], RuntimeTable]]]:
    """Names and makers; a maker takes a seed for the order of the draws."""
    made: list[tuple[str, Callable[[int], RuntimeTable]]] = [
        ("minisat-like", _made_up(1, limit=900.0, first_log_speed=1.0, hardness=2.0)),
        ("rcw-like", _made_up(2, limit=10_000.0, first_log_speed=3.5)),
        ("regions-like", _made_up(3, limit=10_000.0, first_log_speed=1.0, hardness=0.8, noise=0.4)),
    ]
    found = [path for path in sorted(folder.glob("*")) if (path / "algorithm_runs.arff").exists()]
    if not found:
        print(f"no ASlib scenarios in {folder}: only the made-up tables are measured", file=sys.stderr)
    made += [(path.name, _drawn_from(path)) for path in found]
    yield from ((name, make) for name, make in made if any(part in name for part in only.split(",")))


def _made_up(key: int, **shape: float) -> Callable[[int], RuntimeTable]:
    """Rows in random order, each a little slower than another; spread as far as the tables of cost.py are."""
    spread = {1: 0.003, 2: 0.004, 3: 0.003}[key] * 972 / _ROWS

    def make(seed: int) -> RuntimeTable:
        return synthetic_table(100 * key + seed, _ROWS, _INSTANCES, spread=spread, **shape)  # type: ignore[arg-type]  # all are numbers

    return make


def _drawn_from(path: Path) -> Callable[[int], RuntimeTable]:
    """Rows of a recorded table, drawn with replacement: independent draws from the space of its solvers."""

    def make(seed: int) -> RuntimeTable:
        recorded = read_table(path)
        rows = np.random.default_rng((7, seed)).integers(recorded.n_configs, size=_ROWS)
        names = (f"draw {place}: {recorded.configs[row]}" for place, row in enumerate(rows.tolist()))
        return RuntimeTable.build(path.name, names, recorded.instances, recorded.seconds[rows], timeout=recorded.limit)

    return make


def _run(table: RuntimeTable, text: str, procedure: str, epsilon: float, seed: int, **options: Any) -> Simulation:
    return simulate(
        table,
        utility=text,
        procedure=procedure,
        options=options,
        delta=DELTA,
        epsilon=epsilon,
        sampling="replace",
        seed=seed,
    )


def compare(table: RuntimeTable, name: str, text: str, seed: int) -> Iterator[Cell]:
    """Both settings at every epsilon."""
    utility = parse_utility(text)
    truth = np.array([float((utility(row) * (row < table.limit)).mean()) for row in table.seconds])
    for epsilon in EPSILONS:
        rates = {"epsilon_rate": -math.log(epsilon) + 1e-9, "gamma_rate": -math.log(GAMMA) + 1e-9}
        for setting, options in ((PUBLISHED, {}), (ONE_PHASE, rates)):
            coup = _run(table, text, "coup", epsilon, seed, variant="as-published", **options)
            gamma = coup.certificate.gamma or 1.0
            reached = coup.outcome.stopped == "epsilon"
            if not reached:
                continue
            pool = _run(table, text, "pool", epsilon, seed, gamma=gamma)
            wrong = sum(
                bool(truth[said.config] < np.quantile(truth, 1.0 - (said.gamma or 0.0)) - said.epsilon)
                for said in (coup.certificate, pool.certificate)
            )
            if pool.outcome.stopped != "epsilon":
                raise SystemExit(
                    f"{name}, epsilon {epsilon}, gamma {gamma:g}: the pool ended by {pool.outcome.stopped}"
                )
            yield Cell(name, text, setting, epsilon, gamma, seed, coup.cpu_seconds, pool.cpu_seconds, wrong)


def main() -> None:
    """Measure everything, print the table, write the numbers."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--only", default="", help="only tables whose name contains one of these, a,b,c")
    arguments.add_argument("--aslib", type=Path, default=Path(__file__).parents[2] / "shared" / "data" / "aslib")
    arguments.add_argument("--out", type=Path, default=Path("bench-out/pool_cost.csv"))
    arguments.add_argument("--again", type=Path, nargs="+", help="measure nothing: report what these files say")
    wishes = arguments.parse_args()
    console = Console(highlight=False, width=130)
    if wishes.again:
        report(console, read_cells(wishes.again))
        return
    wishes.out.parent.mkdir(parents=True, exist_ok=True)
    cells: list[Cell] = []
    for name, make in tables(wishes.aslib, wishes.only):
        started = time.monotonic()
        for seed in range(wishes.seeds):
            table = make(seed)
            cells += [cell for text in UTILITIES for cell in compare(table, name, text, seed)]
        console.print(f"{name}: {time.monotonic() - started:.0f} s", style="dim")
        with wishes.out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(Cell.__annotations__)
            writer.writerows([getattr(cell, column) for column in Cell.__annotations__] for cell in cells)
    report(console, cells)


def read_cells(paths: list[Path]) -> list[Cell]:
    """What earlier measurements wrote."""
    cells = []
    for path in paths:
        with path.open(newline="", encoding="utf-8") as file:
            for table, utility, setting, epsilon, gamma, seed, coup, pool, wrong in list(csv.reader(file))[1:]:
                numbers = (float(epsilon), float(gamma), int(seed), float(coup), float(pool), int(wrong))
                cells.append(Cell(table, utility, setting, *numbers))
    return cells


def report(console: Console, cells: list[Cell]) -> None:
    """Medians and ratios per cell, geometric means per setting of COUP."""
    grouped: dict[tuple[str, str, str, float, float], list[Cell]] = defaultdict(list)
    for cell in cells:
        grouped[cell.setting, cell.table, cell.utility, cell.epsilon, cell.gamma].append(cell)
    ratios: dict[str, list[float]] = defaultdict(list)
    shown = Table(
        title=f"CPU days to reach (epsilon, gamma), delta = {DELTA}, medians over seeds", title_justify="left"
    )
    for heading in ("COUP's setting", "table", "utility", "epsilon", "gamma", "COUP", "pool", "COUP / pool"):
        shown.add_column(heading, justify="right")
    for (setting, table, utility, epsilon, gamma), same in sorted(grouped.items(), reverse=True):
        coup, pool = (float(np.median([getattr(cell, who) for cell in same])) for who in ("coup", "pool"))
        ratios[setting].append(coup / pool)
        days = (f"{seconds / 86400:.3g}" for seconds in (coup, pool))
        shown.add_row(setting, table, utility, f"{epsilon:g}", f"{gamma:.3g}", *days, f"{coup / pool:.1f}")
    console.print(shown)
    for setting, found in ratios.items():
        mean = math.exp(float(np.mean(np.log(found))))
        spread = f"from {min(found):.1f} to {max(found):.1f}"
        console.print(f"COUP ({setting}) / pool, geometric mean over {len(found)} cells: {mean:.1f} ({spread})")
    wrong = sum(cell.wrong for cell in cells)
    console.print(f"answers outside their goals: {wrong} of {2 * len(cells)} (at most {DELTA:.0%} are allowed)")


if __name__ == "__main__":
    main()
