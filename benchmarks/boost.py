"""What the boost B of the random captimes is worth: the race's cost by B, and what choosing B per question could save.

"Best in hindsight" takes, for every table, utility and epsilon, the B with the lowest median cost: no pilot could do
better than that by choosing once. Usage: python benchmarks/boost.py --seeds 3
"""

import argparse
import math
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from captime import parse_utility, read_table, simulate

BOOSTS = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0)
USUAL = 1.25
EPSILONS = (0.2, 0.1, 0.05)
UTILITIES = ("log-laplace(60, 1)", "uniform(60)")
DELTA = 0.1


def main() -> None:
    """Race with every B on the same streams, and print costs relative to the usual one."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--only", default="", help="only tables whose name contains this")
    arguments.add_argument("--aslib", type=Path, default=Path(__file__).parents[2] / "shared" / "data" / "aslib")
    wishes = arguments.parse_args()
    costs: dict[tuple[str, str, float], dict[float, float]] = {}
    for path in sorted(wishes.aslib.glob("*")):
        if wishes.only not in path.name or not (path / "algorithm_runs.arff").exists():
            continue
        table = read_table(path)
        for text in UTILITIES:
            for epsilon in EPSILONS:
                costs[path.name, text, epsilon] = {
                    boost: float(
                        np.median(
                            [
                                simulate(
                                    table,
                                    utility=parse_utility(text),
                                    options={"boost": boost},
                                    delta=DELTA,
                                    epsilon=epsilon,
                                    sampling="replace",
                                    seed=seed,
                                ).cpu_seconds
                                for seed in range(wishes.seeds)
                            ]
                        )
                    )
                    for boost in BOOSTS
                }
    report(costs)


def report(costs: dict[tuple[str, str, float], dict[float, float]]) -> None:
    """Geometric means over the cells, by utility and epsilon."""
    shown = Table(title=f"cost of the race relative to B = {USUAL}, geometric means", title_justify="left")
    for heading in ("utility", "epsilon", "cells", *(f"B = {boost:g}" for boost in BOOSTS), "best in hindsight"):
        shown.add_column(heading, justify="right")
    groups = [(text, epsilon) for text in (*UTILITIES, "all") for epsilon in ((0.0,) if text == "all" else EPSILONS)]
    for text, epsilon in groups:
        cells = [cost for (_, u, e), cost in costs.items() if text == "all" or (u, e) == (text, epsilon)]
        by_boost = [[cost[boost] / cost[USUAL] for cost in cells] for boost in BOOSTS]
        best = [min(cost.values()) / cost[USUAL] for cost in cells]
        shown.add_row(
            text,
            "all" if text == "all" else f"{epsilon:g}",
            f"{len(cells)}",
            *(f"{mean(ratios):.2f}" for ratios in (*by_boost, best)),
        )
    Console(highlight=False, width=120).print(shown)


def mean(ratios: list[float]) -> float:
    """The geometric mean."""
    return math.exp(float(np.mean(np.log(ratios))))


if __name__ == "__main__":
    main()
