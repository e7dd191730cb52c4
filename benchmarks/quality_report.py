"""Tables and pictures of benchmarks/quality.py: held-out utility against CPU minutes, with intervals."""

import csv
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from quality_methods import LABELS
from rich.console import Console
from rich.table import Table
from scipy import stats

from captime.arrays import FloatArray

OURS, RANDOM = "captime", "random"
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Point:
    """A method at a checkpoint of an example.

    Attributes:
        example: Which.
        method: Who.
        minutes: CPU minutes.
        seeds: How many searches.
        worth: Mean held-out utility over seeds and instances.
        error: Half the width of the 95 % interval around that mean.
        ahead: How far captime is ahead of it, on the same instances and seeds.
        noise: Half the width of the 95 % interval around that.
    """

    example: str
    method: str
    minutes: float
    seeds: int
    worth: float
    error: float
    ahead: float
    noise: float


def incumbent_at(cell: Mapping[str, Any], spent: float) -> dict[str, Any]:
    """Return the incumbent once `spent` CPU seconds were used."""
    known = [settings for moment, settings in cell["story"] if moment <= spent]
    found: dict[str, Any] = known[-1] if known else cell["story"][0][1]
    return found


def points_of(
    cells: Mapping[tuple[str, str, int], Mapping[str, Any]],
    scores: Mapping[tuple[str, str], list[float]],
    minutes: Sequence[float],
) -> list[Point]:
    """Everything that was searched and evaluated, in the order of the report."""

    def held_out(example: str, method: str, seed: int, minute: float) -> FloatArray | None:
        cell = cells.get((example, method, seed))
        if cell is None or cell["budget"] < 60.0 * minute:
            return None
        key = (example, json.dumps(incumbent_at(cell, 60.0 * minute), sort_keys=True))
        return np.array(scores[key]) if key in scores else None

    points = []
    seeds = sorted({key[2] for key in cells})
    for example in dict.fromkeys(key[0] for key in cells):
        for minute in minutes:
            found = {
                method: {seed: row for seed in seeds if (row := held_out(example, method, seed, minute)) is not None}
                for method in LABELS
            }
            points += _points(example, minute, {method: rows for method, rows in found.items() if rows})
    return points


def _points(example: str, minute: float, found: Mapping[str, Mapping[int, FloatArray]]) -> list[Point]:
    """All methods at one checkpoint: they are compared seed by seed, and share what is known about luck."""
    ours = found.get(OURS, {})
    worths = {method: [rows[seed] for seed in sorted(rows)] for method, rows in found.items()}
    leads = {
        method: [_minus(ours[seed], rows[seed]) for seed in sorted(rows.keys() & ours.keys())]
        for method, rows in found.items()
    }
    apart = {method: rows for method, rows in leads.items() if method != OURS}
    return [
        Point(example, method, minute, len(rows), *interval(rows, worths), *interval(leads[method], apart))
        for method, rows in worths.items()
    ]


def _minus(ours: FloatArray, theirs: FloatArray) -> FloatArray:
    count = min(len(ours), len(theirs))
    return ours[:count] - theirs[:count]


def interval(rows: Sequence[FloatArray], alike: Mapping[str, Sequence[FloatArray]]) -> tuple[float, float]:
    """A mean over searches and instances, and half the width of its interval: instances are shared, searches differ.

    Args:
        rows: A row of held-out scores for each search.
        alike: Rows of others that are as much a matter of luck: how much, two or three searches cannot tell.
    """
    if not rows:
        return math.nan, math.nan
    count = min(len(row) for row in rows)
    matrix = np.stack([row[:count] for row in rows])
    error = 0.0
    if count > 1:
        error = float(
            matrix.mean(axis=0).std(ddof=1) / math.sqrt(count) * stats.t.ppf(0.5 + _CONFIDENCE / 2, count - 1)
        )
    means = [np.array([row.mean() for row in each]) for each in alike.values() if len(each) > 1]
    freedom = sum(len(each) - 1 for each in means)
    if freedom:
        spread = math.sqrt(sum(float(((each - each.mean()) ** 2).sum()) for each in means) / freedom)
        error = math.hypot(error, spread / math.sqrt(len(rows)) * _quantile(freedom))
    return float(matrix.mean()), error


def _quantile(freedom: int) -> float:
    """How many standard errors an interval is wide, to either side."""
    return float(stats.t.ppf(0.5 + _CONFIDENCE / 2, freedom))


def report(
    cells: Mapping[tuple[str, str, int], Mapping[str, Any]],
    scores: Mapping[tuple[str, str], list[float]],
    minutes: Sequence[float],
    out: Path,
) -> None:
    """Print the table and the verdict, write the numbers, draw the picture."""
    show(points_of(cells, scores, minutes), cells, out, "held-out instances")


def show(
    points: Sequence[Point], cells: Mapping[tuple[str, str, int], Mapping[str, Any]], out: Path, where: str
) -> None:
    """The same for points that are there already; `where` says where utilities are from."""
    console = Console(highlight=False, width=130)
    shown = Table(title=f"Utility of incumbents on {where}, with 95 % intervals", title_justify="left")
    for heading in ("example", "CPU min", "method", "searches", "utility", "captime ahead by", ""):
        shown.add_column(heading, justify="left" if heading in ("example", "method", "") else "right")
    for point in points:
        clear = abs(point.ahead) > point.noise and point.method != OURS
        shown.add_row(
            point.example,
            f"{point.minutes:g}",
            LABELS[point.method],
            str(point.seeds),
            f"{point.worth:.4f} ± {point.error:.4f}",
            "" if point.method == OURS or math.isnan(point.ahead) else _signed(point),
            ("ahead" if point.ahead > 0 else "BEHIND") if clear else "",
        )
    console.print(shown)
    _print_costs(console, cells)
    for line in verdict(points):
        console.print(line)
    with (out / "quality.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(Point.__annotations__)
        writer.writerows([getattr(point, column) for column in Point.__annotations__] for point in points)
    _draw(points, out / "quality.png", where)


def _signed(point: Point) -> str:
    return f"{point.ahead:+.4f} ± {point.noise:.4f}"


def verdict(points: Sequence[Point]) -> list[str]:
    """Say whether captime is behind another method by more than noise, and ahead of random search at the end."""
    others = [point for point in points if point.method != OURS and not math.isnan(point.ahead)]
    behind = [point for point in others if point.ahead < -point.noise]
    lines = [f"behind by more than noise: {len(behind)} of {len(others)} comparisons"]
    lines += [f"  {point.example}, {point.minutes:g} min: {point.ahead:+.4f} to {point.method}" for point in behind]
    for example in dict.fromkeys(point.example for point in others):
        last = [point for point in others if point.example == example and point.method == RANDOM]
        if last:
            final = max(last, key=lambda point: point.minutes)
            lines.append(f"{example}, {final.minutes:g} min: {_signed(final)} to random search")
    return lines


def _print_costs(console: Console, cells: Mapping[tuple[str, str, int], Mapping[str, Any]]) -> None:
    """What went into runs, and into the methods' own computing."""
    shown = Table(title="What searches took, means over seeds", title_justify="left")
    for heading in ("example", "method", "CPU s of runs", "runs", "own CPU s", "wall s"):
        shown.add_column(heading, justify="left" if heading in ("example", "method") else "right")
    for example, method in dict.fromkeys(key[:2] for key in cells):
        those = [cell for key, cell in cells.items() if key[:2] == (example, method)]
        fields = ("spent", "runs", "own_cpu_seconds", "wall_seconds")
        shown.add_row(example, LABELS[method], *(f"{np.mean([cell[name] for cell in those]):,.0f}" for name in fields))
    console.print(shown)


def _draw(points: Sequence[Point], path: Path, where: str) -> None:
    """A panel for each example."""
    try:
        import matplotlib.pyplot as plt  # noqa: PLC0415 (optional)
    except ImportError:
        print(f"{path.name} is not drawn anew: that needs matplotlib, as in pip install '.[plot]'", file=sys.stderr)
        return
    examples = list(dict.fromkeys(point.example for point in points))
    if not examples:
        return
    figure, panels = plt.subplots(1, len(examples), figsize=(4 * len(examples), 3.6), squeeze=False)
    for panel, example in zip(panels[0], examples, strict=True):
        for place, (method, label) in enumerate(LABELS.items()):
            curve = [point for point in points if (point.example, point.method) == (example, method)]
            # Side by side, so that no interval hides another.
            moments = [point.minutes * 1.03**place for point in curve]
            errors = [point.error for point in curve]
            panel.errorbar(moments, [point.worth for point in curve], errors, label=label, marker="o", capsize=2)
        panel.set_xscale("log")
        panel.set_xticks(sorted({point.minutes for point in points}))
        panel.get_xaxis().set_major_formatter("{x:g}")
        panel.minorticks_off()
        panel.set_title(example)
        panel.set_xlabel("CPU minutes")
    panels[0][0].set_ylabel(f"utility on {where}")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), frameon=False)
    figure.tight_layout(rect=(0.0, 0.07, 1.0, 1.0))
    figure.savefig(path, dpi=150)
    plt.close(figure)
