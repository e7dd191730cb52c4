"""What the boost B of the random captimes is worth: the race's cost by B, and what choosing B per question could save.

"Chosen" takes, for every table, utility and epsilon, the B that was cheapest on one half of the seeds, and says what it
costs on the other half: a pilot that knew the cost of whole races could do no better than that. (The cheapest of six on
the very seeds on which it is compared looks cheaper than it is.) Usage: python benchmarks/boost.py --seeds 6
"""

import argparse
import math
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from captime import RuntimeTable, parse_utility, read_table, simulate

BOOSTS = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0)
USUAL = 1.25
EPSILONS = (0.2, 0.1, 0.05)
UTILITIES = ("log-laplace(60, 1)", "uniform(60)")
DELTA = 0.1


def main() -> None:
    """Race with every B on the same streams, and print costs relative to the usual one."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seeds", type=int, default=6)
    arguments.add_argument("--only", default="", help="only tables whose name contains this")
    arguments.add_argument("--aslib", type=Path, default=Path(__file__).parents[2] / "shared" / "data" / "aslib")
    wishes = arguments.parse_args()
    costs: dict[tuple[str, str, float], dict[float, list[float]]] = {}
    for path in sorted(wishes.aslib.glob("*")):
        if wishes.only not in path.name or not (path / "algorithm_runs.arff").exists():
            continue
        table = read_table(path)
        for text in UTILITIES:
            for epsilon in EPSILONS:
                costs[path.name, text, epsilon] = {
                    boost: [cost(table, text, epsilon, boost, seed) for seed in range(wishes.seeds)] for boost in BOOSTS
                }
    report(costs)


def cost(table: RuntimeTable, text: str, epsilon: float, boost: float, seed: int) -> float:
    """CPU seconds of one race."""
    return simulate(
        table,
        utility=parse_utility(text),
        options={"boost": boost},
        delta=DELTA,
        epsilon=epsilon,
        sampling="replace",
        seed=seed,
    ).cpu_seconds


def report(costs: dict[tuple[str, str, float], dict[float, list[float]]]) -> None:
    """Geometric means over the cells, by utility and epsilon."""
    shown = Table(title=f"cost of the race relative to B = {USUAL}, geometric means", title_justify="left")
    for heading in ("utility", "epsilon", "cells", *(f"B = {boost:g}" for boost in BOOSTS), "chosen"):
        shown.add_column(heading, justify="right")
    groups = [(text, epsilon) for text in (*UTILITIES, "all") for epsilon in ((0.0,) if text == "all" else EPSILONS)]
    for text, epsilon in groups:
        cells = [spent for (_, u, e), spent in costs.items() if text == "all" or (u, e) == (text, epsilon)]
        by_boost = [[float(np.median(spent[boost]) / np.median(spent[USUAL])) for spent in cells] for boost in BOOSTS]
        chosen = [ratio for spent in cells for ratio in (halves(spent, 0), halves(spent, 1))]
        shown.add_row(
            text,
            "all" if text == "all" else f"{epsilon:g}",
            f"{len(cells)}",
            *(f"{mean(ratios):.2f}" for ratios in (*by_boost, chosen)),
        )
    Console(highlight=False, width=120).print(shown)


def halves(spent: dict[float, list[float]], half: int) -> float:
    """What the B that is cheapest on one half of the seeds costs on the other, relative to the usual one."""
    best = min(BOOSTS, key=lambda boost: float(np.median(spent[boost][half::2])))
    return float(np.median(spent[best][1 - half :: 2]) / np.median(spent[USUAL][1 - half :: 2]))


def mean(ratios: list[float]) -> float:
    """The geometric mean."""
    return math.exp(float(np.mean(np.log(ratios))))


if __name__ == "__main__":
    main()
