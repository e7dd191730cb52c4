"""The page of results: built from the numbers in experiments/results by this script, never typed by hand."""

import argparse
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from page_claims import CLAIMS, Curves, Verdict, reading, short
from page_tables import costs, gaps, promises, relative_costs

from captime.errors import ScenarioError
from captime.sources.synthetic import path_of, table_at
from captime.utilities.formula import duration_text
from captime_research.experiments import EXPERIMENTS
from captime_research.experiments.gap import IN_FORCE
from captime_research.experiments.paper import utilities
from captime_research.experiments.rows import Row, bands, read_rows
from captime_research.experiments.setting import Setting

HERE = Path(__file__).parent
FIGURES = {
    "figure-1": "The paper's Figure 1: what Naive costs, by its captime.",
    "figure-2": "The paper's Figure 2: CPU time to certify epsilon, log-Laplace utility.",
    "figure-3": "The paper's Figure 3: the same with the uniform utility, Naive at κ0 and at 10 κ0.",
    "follow-up-1": "OUP beside UP and Naive, for both utilities.",
    "follow-up-2": "CPU time spent on each configuration until epsilon 0.09, against its mean utility.",
    "follow-up-3": "COUP, whose pool grows, against OUP and the race run afresh on every pool; three schedules.",
    "follow-up-6": "Two rules for doubling captimes.",
    "gap": "How good is the answer, and how soon? All methods; and what is certified when. Log-Laplace utility.",
    "gap-uniform": "The same with the uniform utility.",
}
INTRODUCTION = """\
# The experiments

The paper's figures and those of its follow-up on tables we measured ourselves, with captime's own engine (the race)
beside the papers' methods, and the baselines that the papers name ([docs/baselines.md](../docs/baselines.md)). `make
experiments` makes everything on this page anew, numbers and pictures, from the tables that come with captime (`captime
data list`). The page is written by [build_readme.py](build_readme.py) from the numbers in [results](results); nothing
on it was typed by hand.

`captime-experiment figure-2 --data TABLE` (installed by `pip install -e research`) draws one figure from any table: a
CSV or NPZ file, an ASlib scenario folder,
or the published files of the paper. How the tables here were measured is in [measure](measure) and in their datasheets
(`captime data about NAME`).

**How to read it.** The paper's utilities have a scale of κ0 = 60 s, and its tables timeouts of 15 κ0 (minisat) and 167
κ0 (CPLEX). Here κ0 is the table's median runtime, at most a fifteenth of its timeout; the paper's captimes and its
first captime are scaled in proportion. The paper's tables are used without replacement; ours are too small for that,
so instances are drawn with replacement, and "best" means best on these instances. A point of Naive is missing where the
paper's would be: u(κ) is not below epsilon, κ is beyond the timeout, or more than 20,000 runs of each configuration
would be needed. Costs are CPU time with cut runs paid again in full. δ is 0.1, in the pool's figure 0.01 and in the
comparison of answers 0.05, as in the papers. Curves are medians over seeds (means for the gap), bands are extremes.
"""
RELATIVE = """\
## The default engine at equal guarantee

How many times the race's CPU time the others need to certify the same epsilon with the same delta: median of the seeds'
ratios, extremes in brackets. All promise the same: with probability 1 - δ the answer is within epsilon of the best.
"""
WHEN = "What is guaranteed when; median over seeds, extremes in brackets, utility read off the picture's moments:"
Rows = dict[str, list[Row]]


def write_readme(results: Path, readme: Path) -> None:
    """Gather the numbers and write the page."""
    readme.write_text(page_of(results, os.path.relpath(results, readme.parent)), encoding="utf-8")


def page_of(results: Path, pictures: str) -> str:
    """The page, with pictures in the folder of that name."""
    begun = sorted({path.stem.removeprefix("figure-2-") for path in results.glob("figure-2-*.csv")})
    # Of which there are all figures.
    tables = [name for name in begun if all((results / f"{each}-{name}.csv").exists() for each in FIGURES)]
    rows = {name: {each: _rows(each, name, results) for each in FIGURES} for name in tables}
    found = {name: {each: _curves(each, made) for each, made in rows[name].items()} for name in tables}
    verdicts = {claim: {name: judge(found[name]) for name in tables} for claim, judge in CLAIMS.items()}
    parts = [INTRODUCTION, "\n".join(_claims(tables, verdicts)), RELATIVE, "\n".join(relative_costs(rows))]
    parts += ["", "\n".join(_peers(results / "peers.json"))]
    parts += ["\n".join(_table(name, rows[name], found[name], pictures)) for name in tables]
    return "\n".join(parts)


def _rows(experiment: str, table: str, results: Path) -> list[Row]:
    """The numbers of an experiment, and what other configurators did there."""
    paths = [results / f"{experiment}-{table}.csv", results / f"peers-{experiment}-{table}.csv"]
    return [row for path in paths if path.exists() for row in read_rows(path)]


def _curves(experiment: str, rows: list[Row]) -> Curves:
    known = [row for row in rows if not math.isnan(row.x) and row.panel != IN_FORCE]
    return bands(known, mean=EXPERIMENTS[experiment].x == "time")


def _claims(tables: list[str], verdicts: dict[str, dict[str, Verdict]]) -> Iterator[str]:
    """What of the papers' observations holds, table by table."""
    yield "## What holds here\n"
    yield from (f"{line}" for line in reading(verdicts))
    yield f"\n| | {' | '.join(tables)} |\n|---|{'---|' * len(tables)}"
    for claim, by_table in verdicts.items():
        yield f"| {claim} | {' | '.join(str(by_table[name]) for name in tables)} |"
    yield ""


def _peers(path: Path) -> Iterator[str]:
    """Which other configurators were run when."""
    if not path.exists():
        yield "SMAC3, irace and Optuna have not been run (`make peers`, then `make experiments`).\n"
        return
    known = json.loads(path.read_text(encoding="utf-8"))
    told = ", ".join(f"{label} {each['version']} (run {each['run']})" for label, each in known.items())
    yield (
        f"Other configurators on the same streams, with the same captime and the same accounting: {told}. They choose "
        "settings; a choice stands for the table's configuration that differs in the fewest. Their own computing time "
        "is not counted.\n"
    )


def _table(name: str, rows: Rows, found: dict[str, Curves], pictures: str) -> Iterator[str]:
    """Everything about one table."""
    yield f"## {name}\n"
    yield from _about(name)
    yield "### What a certificate costs\n"
    yield from costs(found["follow-up-1"])
    for experiment, utility in (("gap", "log-Laplace"), ("gap-uniform", "uniform")):
        yield f"### How good the answer is by then, {utility} utility\n"
        yield from gaps(found[experiment])
        yield f"\n{WHEN}\n"
        yield from promises(rows[experiment])
        yield ""
    yield "### Pictures\n"
    for each, about in FIGURES.items():
        if found[each]:
            yield f"{about} [PDF]({pictures}/{each}-{name}.pdf), [numbers]({pictures}/{each}-{name}.csv)\n"
            yield f"![{about}]({pictures}/{each}-{name}.png)\n"


def _about(name: str) -> Iterator[str]:
    """What the table is of, if it is one of those that come with captime."""
    try:
        path = path_of(name)
    except ScenarioError:
        return
    setting = Setting(table_at(name))
    table = setting.table
    sheet = Path(os.path.relpath(path.with_suffix(".md"), HERE)).as_posix()
    scale = setting.time(60.0)
    longest = short(float(np.quantile(table.seconds, 0.99)) / scale)
    worths = [setting.truth(utility) for utility in utilities(setting).values()]
    near = [int(np.count_nonzero(worth >= worth.max() - 0.1)) for worth in worths]
    yield (
        f"{table.n_configs} configurations, {table.n_instances} instances, timeout {duration_text(table.limit)}, "
        f"{table.censored:.1%} of the runs cut. κ0 = {duration_text(scale)}; one run in 100 takes {longest} κ0 or "
        f"more. Within 0.1 of the best, so that they need not be told apart for that epsilon, are {near[0]} "
        f"configurations by the log-Laplace utility and {near[1]} by the uniform one. [Datasheet]({sheet}).\n"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--readme", type=Path, default=HERE / "README.md")
    chosen = parser.parse_args()
    write_readme(chosen.results, chosen.readme)
