"""Table and picture of benchmarks/search.py: held-out utility of incumbents against CPU hours, intervals over seeds."""

import csv
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import stats
from search_methods import LABELS

from captime.arrays import FloatArray

CHECKPOINTS = (1.0, 3.0, 10.0, 30.0, 100.0)
OURS = "captime"
EFFORTS = (OURS, "balanced", "certify")
"""Captime itself, by effort: the first is compared with other methods, all of them with each other."""
ALL = "all targets"
_CONFIDENCE = 0.95
# With fewer seeds no interval is drawn.
_ENOUGH_SEEDS = 4
Cells = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Point:
    """A method at a checkpoint of a target, or of all targets together.

    Attributes:
        target: Which.
        method: Which.
        hours: CPU hours of runs.
        seeds: How many seeds both captime and the method have there.
        worth: Mean held-out utility.
        error: Half the width of the 95 % interval around it, over seeds.
        ahead: How far captime is ahead on the same seeds.
        noise: Half the width of the 95 % interval around that.
    """

    target: str
    method: str
    hours: float
    seeds: int
    worth: float
    error: float
    ahead: float
    noise: float

    @property
    def verdict(self) -> str:
        """In a word, where the interval excludes 0."""
        if self.method == OURS or not abs(self.ahead) > self.noise:
            return ""
        return "ahead" if self.ahead > 0.0 else "BEHIND"


def points_of(cells: Cells) -> list[Point]:
    """Every method at every checkpoint, per target and over all targets, on seeds with the same landscapes."""
    worth = {
        (cell["target"], cell["method"], cell["seed"], hours): value
        for cell in cells
        for hours, value in zip(cell["hours"], cell["worths"], strict=True)
    }
    grown = {(cell["target"], cell["method"], cell["seed"]): cell.get("landscape") for cell in cells}
    names = sorted({key[0] for key in worth})
    methods = [method for method in LABELS if any(key[1] == method for key in worth)]
    moments = sorted({key[3] for key in worth})
    points = []
    for target in [*names, ALL]:
        over = names if target == ALL else [target]
        for hours in moments:
            for method in methods:
                seeds = [
                    seed
                    for seed in sorted({key[2] for key in worth})
                    if all((each, who, seed, hours) in worth for each in over for who in (OURS, method))
                    and all(grown[each, method, seed] == grown[each, OURS, seed] for each in over)
                ]
                if not seeds:
                    continue
                theirs = np.array([np.mean([worth[each, method, seed, hours] for each in over]) for seed in seeds])
                ours = np.array([np.mean([worth[each, OURS, seed, hours] for each in over]) for seed in seeds])
                points.append(Point(target, method, hours, len(seeds), *_interval(theirs), *_interval(ours - theirs)))
    return points


def _interval(values: FloatArray) -> tuple[float, float]:
    """Mean, and half the width of its interval by Student's t; infinite with a single seed."""
    if len(values) < 2:
        return float(values.mean()), math.inf
    wide = float(stats.t.ppf(0.5 + _CONFIDENCE / 2.0, len(values) - 1))
    return float(values.mean()), wide * float(values.std(ddof=1)) / math.sqrt(len(values))


def report(cells: Cells, out: Path | None) -> None:
    """Print tables and verdict; write the numbers and draw the picture, unless there is no folder for them."""
    console = Console(highlight=False, width=150)
    points = points_of(cells)
    if not points:
        console.print("nothing has been searched with captime yet")
        return
    methods = [
        method
        for method in LABELS
        if (method == OURS or method not in EFFORTS) and any(point.method == method for point in points)
    ]
    shown = Table(title="Utility of incumbents on held-out instances; captime's lead with 95 % intervals over seeds")
    for heading in ("target", "CPU h", *(LABELS[method] for method in methods), "seeds"):
        shown.add_column(heading, justify="left" if heading == "target" else "right")
    for target, hours in dict.fromkeys((point.target, point.hours) for point in points):
        here = {point.method: point for point in points if (point.target, point.hours) == (target, hours)}
        counts = sorted({point.seeds for point in here.values()})
        row = [_cell(here.get(method)) for method in methods]
        shown.add_row(
            target, f"{hours:g}", *row, "-".join(str(each) for each in dict.fromkeys((counts[0], counts[-1])))
        )
    console.print(shown)
    _costs(console, cells)
    _efforts(console, cells)
    _lost_in_naming(console, cells)
    for line in verdict(points):
        console.print(line)
    if out is None:
        return
    with (out / "search.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        columns = Point.__dataclass_fields__
        writer.writerow(columns)
        writer.writerows([getattr(point, column) for column in columns] for point in points)
    _draw(points, out / "search.png")


def _cell(point: Point | None) -> str:
    if point is None:
        return ""
    if point.method == OURS:
        return f"{point.worth:.3f}"
    noise = "?" if math.isinf(point.noise) else f"{point.noise:.3f}"
    mark = {"ahead": " +", "BEHIND": " -", "": ""}[point.verdict]
    return f"{point.worth:.3f} ({point.ahead:+.3f} ± {noise}){mark}"


def verdict(points: Sequence[Point]) -> list[str]:
    """Where captime is ahead or behind by more than the seeds' noise, in plain words."""
    single = [point for point in points if point.target != ALL and point.method not in EFFORTS]
    behind = [point for point in single if point.verdict == "BEHIND"]
    ahead = sum(point.verdict == "ahead" for point in single)
    lines = [f"single targets: ahead beyond noise in {ahead}, behind in {len(behind)} of {len(single)} comparisons"]
    lines += [f"  behind: {_told(point)}" for point in behind]
    mean = [point for point in points if point.target == ALL and point.method not in EFFORTS and point.hours >= 3.0]
    clear = sum(point.verdict == "ahead" for point in mean)
    lines.append(
        f"mean over targets, from 3 CPU hours on: ahead in {sum(point.ahead > 0.0 for point in mean)}, ahead beyond "
        f"noise in {clear} of {len(mean)} comparisons"
    )
    lines += [f"  not ahead: {_told(point)}" for point in mean if point.ahead <= 0.0]
    return lines


def _told(point: Point) -> str:
    return f"{point.target}, {point.hours:g} h, {LABELS[point.method]}: {point.ahead:+.4f} ± {point.noise:.4f}"


def _costs(console: Console, cells: Cells) -> None:
    shown = Table(title="What searches took, means over seeds", title_justify="left")
    for heading in ("target", "method", "searches", "CPU h of runs", "runs", "own CPU s", "ended before its budget"):
        shown.add_column(heading, justify="left" if heading in ("target", "method") else "right")
    for target, method in dict.fromkeys((cell["target"], cell["method"]) for cell in cells):
        those = [cell for cell in cells if (cell["target"], cell["method"]) == (target, method)]
        early = [
            cell["seed"] for cell in those if any(each.startswith(("patience", "no answer")) for each in cell["ended"])
        ]
        shown.add_row(
            target,
            LABELS[method],
            str(len(those)),
            f"{np.mean([cell['spent'][-1] for cell in those]) / 3600.0:,.0f}",
            f"{np.mean([cell['runs'] for cell in those]):,.0f}",
            f"{np.mean([cell['thinking'][-1] for cell in those]):,.0f}",
            ", ".join(f"seed {each}" for each in early),
        )
    console.print(shown)


def _efforts(console: Console, cells: Cells) -> None:
    """What each effort buys: utility of incumbents and certified epsilon, on the seeds and targets that all have."""
    by = {
        effort: {(cell["target"], cell["seed"]): cell for cell in cells if cell["method"] == effort}
        for effort in EFFORTS
    }
    common = sorted(set.intersection(*(set(each) for each in by.values())))
    if not common:
        return
    shown = Table(title=f"What efforts buy, means over {len(common)} searches each", title_justify="left")
    hours = by[OURS][common[0]]["hours"]
    for heading in ("effort", "held-out utility at", *(f"{each:g} h" for each in hours), "epsilon at", *(
        f"{each:g} h" for each in hours
    )):  # fmt: skip
        shown.add_column(heading, justify="right")
    for effort in EFFORTS:
        worths, epsilons = (
            np.mean([by[effort][key][name] for key in common], axis=0) for name in ("worths", "epsilons")
        )
        shown.add_row(
            effort if effort != OURS else "search",
            "",
            *(f"{each:.3f}" for each in worths),
            "",
            *(f"{each:.2f}" for each in epsilons),
        )
    console.print(shown)


def _lost_in_naming(console: Console, cells: Cells) -> None:
    """Show what incumbents of pools are worth beside the best configuration that their pool held."""
    those = [cell for cell in cells if cell.get("best")]
    if not those:
        return
    shown = Table(title="Incumbents, and the best configuration of their pool then, means", title_justify="left")
    moments = sorted({hours for cell in those for hours in cell["hours"]})
    for heading in ("target", "method", "searches", *(f"{each:g} h" for each in moments)):
        shown.add_column(heading, justify="left" if heading in ("target", "method") else "right")
    names = sorted({cell["target"] for cell in those})
    for target, method in [(target, method) for target in [*names, ALL] for method in LABELS]:
        here = [cell for cell in those if cell["method"] == method and target in (cell["target"], ALL)]
        if not here:
            continue
        row = []
        for hours in moments:
            pairs = [
                (named, best)
                for cell in here
                for at, named, best in zip(cell["hours"], cell["worths"], cell["best"], strict=True)
                if at == hours
            ]
            row.append("{:.3f} of {:.3f}".format(*np.mean(pairs, axis=0)) if pairs else "")
        shown.add_row(target, LABELS[method], str(len(here)), *row)
    console.print(shown)


def _draw(points: Sequence[Point], path: Path) -> None:
    """A panel for each target, and one for their mean."""
    try:
        import matplotlib.pyplot as plt  # noqa: PLC0415 (optional)
    except ImportError:
        print(f"{path.name} is not drawn anew: that needs matplotlib, as in pip install '.[plot]'", file=sys.stderr)
        return
    names = list(dict.fromkeys(point.target for point in points))
    figure, panels = plt.subplots(1, len(names), figsize=(3.6 * len(names), 3.6), squeeze=False)
    for panel, target in zip(panels[0], names, strict=True):
        for place, (method, label) in enumerate(LABELS.items()):
            if method in EFFORTS and method != OURS:
                continue
            curve = [point for point in points if (point.target, point.method) == (target, method)]
            # Side by side, so that no interval hides another.
            moments = [point.hours * 1.04**place for point in curve]
            # Of two or three seeds the interval says nothing but that they are few.
            errors = [point.error if point.seeds >= _ENOUGH_SEEDS else 0.0 for point in curve]
            wide = 2.2 if method == OURS else 1.2
            panel.errorbar(
                moments, [point.worth for point in curve], errors, label=label, marker="o", capsize=2, linewidth=wide,
                markersize=4,
            )  # fmt: skip
        panel.set_xscale("log")
        panel.set_xticks(sorted({point.hours for point in points}))
        panel.get_xaxis().set_major_formatter("{x:g}")
        panel.minorticks_off()
        panel.set_title(target)
        panel.set_xlabel("CPU hours of runs")
    panels[0][0].set_ylabel("utility on held-out instances")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), frameon=False)
    figure.tight_layout(rect=(0.0, 0.08, 1.0, 1.0))
    figure.savefig(path, dpi=130)
    plt.close(figure)
