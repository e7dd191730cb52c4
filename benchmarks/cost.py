"""What a certificate costs: CPU time to certify epsilon, by procedure, on real and on made-up solvers.

Sampling with replacement, restart accounting, medians over seeds. Every ratio is measured in this one run, on the same
streams. Usage: make bench-cost, or: python benchmarks/cost.py --seeds 5 --out bench-out/cost.csv
"""

import argparse
import csv
import math
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from clairvoyant import cheapest_certificate
from rich.console import Console
from rich.table import Table

from captime import RuntimeTable, parse_utility, read_table, simulate
from captime.arrays import FloatArray
from captime.sources.synthetic import synthetic_table

EPSILONS = (0.2, 0.1, 0.05)
DELTA = 0.1
UTILITIES = ("log-laplace(60, 1)", "uniform(60)")


@dataclass(frozen=True)
class Contender:
    """A procedure with its options.

    Attributes:
        label: What to call it.
        procedure: Name in the register.
        options: Its options.
        needs_goal: Run it once per epsilon; the others do not look at their goal and are run once, to the smallest.
        bounded: Stop it once it has spent four times what the race spent on the smallest epsilon. Its simulation is
            slow, and whether the race is beaten is known by then.
    """

    label: str
    procedure: str
    options: dict[str, Any]
    needs_goal: bool = False
    bounded: bool = False


CONTENDERS = (
    Contender("UP (paper)", "up", {"variant": "paper"}),
    Contender("OUP (new rule)", "oup", {"rule": "new"}),
    Contender("COUP+ finite part", "coup-plus", {}, bounded=True),
    # Looks as coarse as the race's own strides: the default ones take three times as long to simulate.
    Contender("fixed captimes + betting", "fixed-captimes", {"pace": 10}, bounded=True),
    Contender("race, unpaired", "race", {"paired": False}, needs_goal=True, bounded=True),
    Contender("race", "race", {}, needs_goal=True),
)
REFERENCE = "clairvoyant"


CONFIGURED_LIMIT = 300.0
"""The timeout of the recorded configuration tables, in seconds."""


def tables(folder: Path, configured: Path, only: str) -> Iterator[tuple[str, Callable[[], RuntimeTable]]]:
    """Names and makers: one table is in memory at a time.

    Args:
        folder: Of ASlib scenarios.
        configured: Of recorded configuration tables, many random configurations of one solver each.
        only: Parts of names, separated by commas.
    """
    made: list[tuple[str, Callable[[], RuntimeTable]]] = [
        (f"configured/{path.parent.name}", lambda path=path: read_table(path, timeout=CONFIGURED_LIMIT))  # type: ignore[misc]
        for path in sorted(configured.glob("*/runs.csv"))
    ]
    if not made:
        print(f"no configuration tables in {configured}: they are left out", file=sys.stderr)
    scenarios: list[tuple[str, Callable[[], RuntimeTable]]] = [
        (path.name, lambda path=path: read_table(path))  # type: ignore[misc]
        for path in sorted(folder.glob("*"))
        if (path / "algorithm_runs.arff").exists()
    ]
    if not scenarios:
        print(f"no ASlib scenarios in {folder}: they are left out", file=sys.stderr)
    made += scenarios
    made += [
        (
            "minisat-like",
            lambda: synthetic_table(1, 972, 20_118, limit=900.0, spread=0.003, first_log_speed=1.0, hardness=2.0),
        ),
        ("rcw-like", lambda: synthetic_table(2, 2_000, 35_640, limit=10_000.0, spread=0.002, first_log_speed=3.5)),
        (
            "regions-like",
            lambda: synthetic_table(
                3, 2_000, 50_000, limit=10_000.0, spread=0.0015, first_log_speed=1.0, hardness=0.8, noise=0.4
            ),
        ),
    ]
    yield from ((name, make) for name, make in made if any(part in name for part in only.split(",")))


Row = tuple[str, str, int, float, float, bool]
_TABLE: RuntimeTable | None = None  # what the workers, forked after it was made, share
_TRUTH: dict[str, FloatArray] = {}  # mean utilities on that table


def measure(task: tuple[Contender, str, int, float]) -> list[Row]:
    """(label, utility, seed, epsilon, CPU seconds, whether the answer is epsilon-optimal) of one contender."""
    contender, text, seed, budget = task
    table = _TABLE
    assert table is not None  # noqa: S101 (set before the workers are forked)
    utility, truth = parse_utility(text), _TRUTH[text]
    goals = EPSILONS if contender.needs_goal else (min(EPSILONS),)
    found = []
    for goal in goals:
        result = simulate(
            table,
            utility=utility,
            procedure=contender.procedure,
            options=contender.options,
            delta=DELTA,
            epsilon=goal,
            sampling="replace",
            seed=seed,
            budget=budget,
        )
        made = result.outcome.trace.decisions()
        for epsilon in (goal,) if contender.needs_goal else EPSILONS:
            there = np.flatnonzero(made.epsilon <= epsilon)
            seconds = float(made.seconds[there[0]]) if len(there) else math.inf
            config = int(made.config[there[0]]) if len(there) else 0
            right = not len(there) or bool(truth[config] >= truth.max() - epsilon)
            found.append((contender.label, text, seed, epsilon, seconds, right))
    return found


def main() -> None:
    """Measure everything, print tables, write the numbers."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seeds", type=int, default=5)
    arguments.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments.add_argument("--only", default="", help="only tables whose name contains one of these, a,b,c")
    arguments.add_argument("--contenders", default="", help="only these, by their labels: 'UP (paper);race'")
    arguments.add_argument("--aslib", type=Path, default=Path(__file__).parents[2] / "shared" / "data" / "aslib")
    arguments.add_argument(
        "--configured", type=Path, default=Path(__file__).parents[2] / "shared" / "data" / "configured"
    )
    arguments.add_argument("--out", type=Path, default=Path("bench-out/cost.csv"))
    arguments.add_argument("--again", type=Path, nargs="+", help="measure nothing: report what these files say")
    wishes = arguments.parse_args()
    console = Console(highlight=False, width=150)
    wanted = wishes.contenders.split(";") if wishes.contenders else [each.label for each in CONTENDERS]
    contenders = [each for each in CONTENDERS if each.label in wanted]
    if wishes.again:
        report(console, read_rows(wishes.again), [each.label for each in contenders])
        return
    wishes.out.parent.mkdir(parents=True, exist_ok=True)
    # Line by line: what was measured stays measured if the benchmark is interrupted.
    with wishes.out.open("w", newline="", encoding="utf-8", buffering=1) as file:
        writer = csv.writer(file)
        writer.writerow(("table", "label", "utility", "seed", "epsilon", "cpu_seconds", "right"))
        for name, make in tables(wishes.aslib, wishes.configured, wishes.only):
            started = time.monotonic()
            table = make()
            for row in measure_table(table, contenders, wishes.seeds, wishes.jobs):
                writer.writerow((name, *row))
            took = time.monotonic() - started
            console.print(f"{name}: {table.n_configs} x {table.n_instances}, {took:.0f} s", style="dim")
    report(console, read_rows([wishes.out]), [each.label for each in contenders])


def measure_table(table: RuntimeTable, contenders: list[Contender], seeds: int, jobs: int) -> Iterator[Row]:
    """All contenders on one table, in parallel; the race first, because it bounds the patience with some others."""
    global _TABLE  # noqa: PLW0603 (forked workers share it instead of copying a gigabyte)
    _TABLE = table
    for text in UTILITIES:
        utility = parse_utility(text)
        _TRUTH[text] = np.array([float((utility(row) * (row < table.limit)).mean()) for row in table.seconds])
    rows: list[Row] = []
    tasks = [(text, epsilon) for text in UTILITIES for epsilon in EPSILONS]
    with get_context("fork").Pool(jobs) as pool:
        for (text, epsilon), limit in zip(tasks, pool.imap(reference, tasks), strict=True):
            yield REFERENCE, text, 0, epsilon, limit, True
        race = [
            (each, text, seed, math.inf) for each in contenders if each.label == "race" for text, seed in grid(seeds)
        ]
        for found in pool.imap_unordered(measure, race):
            rows += found
            yield from found
        patience = {
            text: 4
            * float(np.median([row[4] for row in rows if row[1] == text and row[3] == min(EPSILONS)] or [math.inf]))
            for text in UTILITIES
        }
        others = [
            (each, text, seed, patience[text] if each.bounded else math.inf)
            for each in contenders
            if each.label != "race"
            for text, seed in grid(seeds)
        ]
        for found in pool.imap_unordered(measure, others):
            yield from found


def read_rows(paths: list[Path]) -> list[tuple[str, str, str, int, float, float, bool]]:
    """What earlier measurements wrote."""
    rows = []
    for path in paths:
        with path.open(newline="", encoding="utf-8") as file:
            for table, label, text, seed, epsilon, seconds, right in list(csv.reader(file))[1:]:
                rows.append((table, label, text, int(seed), float(epsilon), float(seconds), right == "True"))
    return rows


def grid(seeds: int) -> list[tuple[str, int]]:
    """Every utility with every seed."""
    return [(text, seed) for text in UTILITIES for seed in range(seeds)]


def reference(task: tuple[str, float]) -> float:
    """The clairvoyant's cost."""
    assert _TABLE is not None  # noqa: S101 (set before the workers are forked)
    return cheapest_certificate(_TABLE, parse_utility(task[0]), task[1], DELTA)


def report(console: Console, rows: list[tuple[str, str, str, int, float, float, bool]], labels: list[str]) -> None:
    """Medians, ratios to the race, geometric means. A cell that was not measured is left empty."""
    cells: dict[tuple[str, str, float], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for table, label, text, _, epsilon, seconds, _ in rows:
        cells[table, text, epsilon][label].append(seconds)
    shown = Table(title=f"CPU days to certify epsilon, delta = {DELTA}, medians over seeds", title_justify="left")
    for heading in ("table", "utility", "epsilon", *labels, "race / best other", "race / clairvoyant"):
        shown.add_column(heading, justify="right")
    ratios: dict[str, list[float]] = defaultdict(list)
    by_place: dict[str, dict[int, float]] = defaultdict(dict)
    worst = 0.0
    for place, ((table, text, epsilon), by_label) in enumerate(cells.items()):
        cost = {label: float(np.median(values)) / 86400 for label, values in by_label.items()}
        race = cost.get("race", math.nan)
        for label, value in cost.items():
            ratios[label].append(value / race)
            by_place[label][place] = value / race
        others = min((cost[label] for label in labels if label in cost and label != "race"), default=math.nan)
        worst = max(worst, race / others)
        shown.add_row(
            table,
            text,
            f"{epsilon:g}",
            *(_days(cost.get(label)) for label in labels),
            f"{race / others:.2f}",
            f"{race / cost.get(REFERENCE, math.nan):.1f}",
        )
    console.print(shown)
    for family in sorted({_family(table) for table, _, _ in cells}):
        where = [place for place, (table, _, _) in enumerate(cells) if _family(table) == family]
        parts = []
        for label in (*(each for each in labels if each != "race"), REFERENCE):
            known = [ratio for place in where if math.isfinite(ratio := by_place[label].get(place, math.inf))]
            parts.append(f"{label} {_mean(known):.2f} ({len(known)} cells)")
        console.print(f"{family}: geometric means of costs relative to the race: {', '.join(parts)}")
    for label in (each for each in labels if each != "race"):
        known = [ratio for ratio in ratios[label] if math.isfinite(ratio)]
        # Where it gave up it had spent four times the race's cost on the smallest epsilon: at least that.
        gave_up = f" ({len(ratios[label]) - len(known)} more: it had not certified at 4 times the race's cost)"
        more = gave_up if len(known) < len(ratios[label]) else ""
        console.print(f"{label} / race, geometric mean over {len(known)} cells: {_mean(known):.1f}{more}")
    console.print(
        f"race / clairvoyant, geometric mean over {len(ratios[REFERENCE])} cells: {1 / _mean(ratios[REFERENCE]):.1f}"
    )
    console.print(f"race / best other, worst cell: {worst:.2f}")
    judged = [right for _, label, *_, right in rows if label != REFERENCE]
    wrong = len(judged) - sum(judged)
    console.print(f"answers that were not epsilon-optimal: {wrong} of {len(judged)} (at most {DELTA:.0%} are allowed)")


def _family(table: str) -> str:
    """Which collection a table is from: configuration tables and made-up ones say so in their names."""
    if table.startswith("configured/"):
        return "configured"
    return "made up" if table.endswith("-like") else "ASlib"


def _days(cost: float | None) -> str:
    if cost is None:
        return ""
    return f"{cost:.3g}" if math.isfinite(cost) else "gave up"


def _mean(ratios: list[float]) -> float:
    return math.nan if not ratios else math.exp(float(np.mean(np.log(ratios))))


if __name__ == "__main__":
    main()
