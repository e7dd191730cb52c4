"""The page of results: built from the numbers in experiments/results by this script, never typed by hand."""

import argparse
import math
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from captime.arrays import FloatArray
from captime.experiments.gap import CERTIFIED, NOTHING, PATIENCE, RUNTIME, UTILITY
from captime.experiments.paper import RACE, UP
from captime.experiments.rows import Band, bands, read_rows
from captime.utilities.durations import duration_text

HERE = Path(__file__).parent
FIGURES = {
    "figure-1": "The paper's Figure 1: what Naive costs, by its captime.",
    "figure-2": "The paper's Figure 2: CPU time to certify epsilon, log-Laplace utility.",
    "figure-3": "The paper's Figure 3: the same with the uniform utility, Naive at κ0 and at 10 κ0.",
    "follow-up-1": "OUP beside UP, for both utilities.",
    "follow-up-2": "CPU time spent on each configuration until epsilon 0.1, against its mean utility.",
    "follow-up-3": "COUP, whose pool grows, against OUP run afresh on every pool.",
    "follow-up-6": "Two rules for doubling captimes.",
    "gap": "How good is the answer, and how soon? All methods; and what is certified when.",
}
INTRODUCTION = """\
# The experiments

The paper's figures and those of its follow-up on tables we measured ourselves, with captime's own engine (the race)
beside the papers' methods, and the baselines that the papers name. `make experiments` makes everything on this page
anew, numbers and pictures, from the tables that come with captime (`captime data list`). The page is written by
[build_readme.py](build_readme.py) from the numbers in [results](results); nothing on it was typed by hand.

`captime experiment figure-2 --data TABLE` draws one figure from any table: a CSV or NPZ file, an ASlib scenario folder,
or the published files of the paper. How the tables here were measured is in [measure](measure) and in their datasheets
(`captime data about NAME`).

**How to read it.** The paper's tables have timeouts of 900 s and more and its utilities a scale of κ0 = 60 s. Here all
times are scaled to the table: κ0 is a fifteenth of its timeout, the paper's captimes and its first captime in
proportion. The paper's tables are used without replacement; ours are too small for that, so instances are drawn with
replacement, and "best" means best on these instances. A point of Naive is missing where the paper's would be: u(κ) is
not below epsilon, κ is beyond the timeout, or more than 50,000 runs of each configuration would be needed. Costs are
CPU time with cut runs paid again in full. Curves are medians over seeds (means for the gap), bands are extremes.
"""
Curves = dict[str, dict[str, Band]]


def write_readme(results: Path, readme: Path) -> None:
    """Gather the numbers and write the page."""
    tables = sorted({path.stem.removeprefix("figure-2-") for path in results.glob("figure-2-*.csv")})
    parts = [INTRODUCTION]
    parts += ["\n".join(_table(name, results, os.path.relpath(results, readme.parent))) for name in tables]
    readme.write_text("\n".join(parts), encoding="utf-8")


def _table(name: str, results: Path, pictures: str) -> Iterator[str]:
    """Everything about one table."""
    yield f"## {name}\n"
    found = {each: _curves(results / f"{each}-{name}.csv", mean=each == "gap") for each in FIGURES}
    # Other configurators, if they have been run: see peers/run_peers.py.
    for panel, curves in _curves(results / f"peers-{name}.csv", mean=True).items():
        found["gap"].setdefault(panel, {}).update(curves)
    yield "What of the paper's observations holds here:\n"
    for claim, holds in _claims(found):
        yield f"- {claim}: **{'yes' if holds else 'no'}**"
    yield "\n### What a certificate costs\n"
    yield from _costs(found["follow-up-1"])
    yield "\n### How good the answer is by then\n"
    yield from _gaps(found["gap"])
    yield "\n### Pictures\n"
    for each, about in FIGURES.items():
        if found[each]:
            yield f"{about} [PDF]({pictures}/{each}-{name}.pdf), [numbers]({pictures}/{each}-{name}.csv)\n"
            yield f"![{about}]({pictures}/{each}-{name}.png)\n"


def _curves(path: Path, *, mean: bool) -> Curves:
    if not path.exists():
        return {}
    return bands([row for row in read_rows(path) if not math.isnan(row.x)], mean=mean)


def _claims(found: dict[str, Curves]) -> Iterator[tuple[str, bool]]:
    """Observations of the paper, and whether the numbers bear them out."""
    for panel, curves in found["figure-1"].items():
        cost = np.array(curves["Naive"].middle)
        known = np.flatnonzero(~np.isnan(cost))
        if len(known):
            best = known[np.argmin(cost[known])]
            times = f"the shortest one that is possible costs {cost[known[0]] / cost[best]:.1f} times the least"
            yield f"Naive has a best captime between the extremes ({panel}; {times})", bool(known[0] < best < known[-1])
    curves = next(iter(found["figure-2"].values()))
    up, naive = np.array(curves[UP].middle), _least(curves, "Naive")
    yield "UP costs less than Naive for the smallest epsilon, log-Laplace", bool(not up[0] >= naive[0])
    right = _ratio(found["figure-3"]["Naive at κ = κ0"], "Naive, κ = κ0", UP)
    wrong = _ratio(found["figure-3"]["Naive at κ = 10 κ0"], "Naive, κ = 10 κ0", UP)
    yield f"with the uniform utility Naive at κ0 keeps up with UP ({_range(right)} times UP's cost)", max(right) <= 1.2
    yield f"at ten times that captime it costs far more than UP ({_range(wrong)} times)", min(wrong) >= 1.5
    race = np.array(curves[RACE].middle)
    times = f"{_range(np.fmin(up, naive) / race)} times less than the cheaper of them"
    yield f"the race costs less than both at every epsilon ({times})", bool((race < np.fmin(up, naive)).all())


def _least(curves: dict[str, Band], prefix: str) -> FloatArray:
    """The cheapest of several curves, point by point; infinite where none has a number."""
    middles = [curve.middle for label, curve in curves.items() if label.startswith(prefix)]
    stacked: FloatArray = np.array(middles)
    least: FloatArray = np.where(np.isnan(stacked), np.inf, stacked).min(axis=0)
    return least


def _ratio(curves: dict[str, Band], one: str, other: str) -> list[float]:
    pairs = zip(curves[one].middle, curves[other].middle, strict=True)
    return [a / b for a, b in pairs if not math.isnan(a) and not math.isnan(b)] or [math.nan]


def _range(values: object) -> str:
    known = [each for each in np.asarray(values, dtype=float).tolist() if math.isfinite(each)]
    return f"{_short(min(known))} to {_short(max(known))}" if known else "no"


def _short(value: float) -> str:
    """Two digits, without powers of ten."""
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def _costs(curves: Curves) -> Iterator[str]:
    """CPU time to certify, by method and epsilon, and how many times the race's cost that is."""
    for panel, methods in curves.items():
        goals = [goal for goal in methods[RACE].x if goal in (0.1, 0.15, 0.2, 0.25)]
        yield f"{panel}; median over seeds, extremes in brackets, and in bold how many times the race's cost:\n"
        yield f"| | {' | '.join(f'ε = {goal:g}' for goal in goals)} |\n|---|{'---|' * len(goals)}"
        for label, band in methods.items():
            cells = []
            for goal in goals:
                place = list(band.x).index(goal)
                cost, reference = band.middle[place], methods[RACE].middle[list(methods[RACE].x).index(goal)]
                if math.isnan(cost):
                    cells.append("-")
                    continue
                extremes = f"{duration_text(band.low[place])} to {duration_text(band.high[place])}"
                cells.append(
                    "-" if math.isnan(cost) else f"{duration_text(cost)} [{extremes}], **{cost / reference:.2g}**"
                )
            yield f"| {label} | {' | '.join(cells)} |"
        yield ""


def _gaps(curves: Curves) -> Iterator[str]:
    """Relative gap at four budgets, by method, with the epsilon it has certified where it certifies any."""
    if not curves:
        return
    moments = curves[UTILITY][RACE].x
    places = [len(moments) // 4, len(moments) // 2, 3 * len(moments) // 4, len(moments) - 1]
    times = ", ".join(_short(PATIENCE * moments[place] / moments[-1]) for place in places)
    yield (
        "Relative gap to the best configuration, 1 - U / max U, mean over seeds with extremes in brackets, after so "
        "much CPU time; for methods with a guarantee on utility also the epsilon they have certified by then. The "
        f"columns are {times} times what the race needs to certify 0.1.\n"
    )
    heading = " | ".join(duration_text(moments[place]) for place in places)
    yield f"| | guarantee | {heading} |\n|---|---|{'---|' * len(places)}"
    for promise in (UTILITY, RUNTIME, NOTHING):
        for label, band in curves[promise].items():
            if label == RACE and promise != UTILITY:
                continue
            certified = curves[CERTIFIED].get(label) if promise == UTILITY else None
            cells = [_gap_cell(band, certified, place) for place in places]
            yield f"| {label} | {_PROMISES[promise]} | {' | '.join(cells)} |"


_PROMISES = {UTILITY: "on utility", RUNTIME: "on mean runtime", NOTHING: "none"}


def _gap_cell(band: Band, certified: Band | None, place: int) -> str:
    if math.isnan(band.middle[place]):
        return "-"
    told = f"{band.middle[place]:.3f} [{band.low[place]:.3f}, {band.high[place]:.3f}]"
    return told if certified is None else f"{told}, ε {certified.middle[place]:.2f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--readme", type=Path, default=HERE / "README.md")
    chosen = parser.parse_args()
    write_readme(chosen.results, chosen.readme)
