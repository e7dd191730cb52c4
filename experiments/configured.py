"""The paper's Figures 1 to 3 on recorded configuration tables: `python configured.py --tables FOLDER`.

FOLDER has one folder per table with a `runs.csv` in it: a configuration per row, an instance per column, seconds. The
tables are not part of this repository, so nothing is computed when the folder is absent. Pictures and numbers go to
experiments/results/configured; configured.md is written from the numbers alone.
"""

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from page_claims import CLAIMS, Curves, Found, Verdict, at_least, ratios, reading

from captime.utilities.formula import duration_text
from captime_research.experiments.paper import RACE
from captime_research.experiments.rows import Band, bands, read_rows

HERE = Path(__file__).parent
FIGURES = {
    "figure-1": "Figure 1: CPU time of Naive by its captime, for three values of epsilon.",
    "figure-2": "Figure 2: CPU time to certify epsilon, log-Laplace utility.",
    "figure-3": "Figure 3: the same with the uniform utility, Naive at κ0 and at 10 κ0.",
}
# What the tables are of, by folder. A table that is not named here is shown without a description.
ABOUT = {
    "cplex_rcw2": "CPLEX on conservation problems (rcw), 100 random configurations x 990 instances, timeout 300 s",
    "cplex_regions200": "CPLEX on combinatorial auctions (regions), 100 x 999, timeout 300 s",
    "kissat_ibm": "kissat on hardware verification, 100 x 684, timeout 300 s",
    "spear_swv": "SPEAR on software verification, 1,000 x 604, timeout 300 s",
}
TIMEOUT = "300"
SEEDS = 3
INTRODUCTION = """\
# The paper's Figures 1 to 3 on recorded configuration tables

The paper runs its experiments on random configurations of CPLEX and minisat. Its own files were not available here; the
tables below are of the same kind. Those of CPLEX are from the paper's own instance families, rcw and regions. The rows
come from two public repositories: [MPSEAS](https://github.com/Theomat/MPSEAS) (CPLEX and kissat, MIT licence) and
[EPM_DNN](https://github.com/mlindauer/EPM_DNN) (SPEAR, BSD licence). The tables are not copied into this repository.
With the folder at hand and the package of experiments installed (`pip install -e research`),

```text
python experiments/configured.py --tables FOLDER
```

computes everything again and writes this page from the numbers. Without the folder it only writes the page.

**Scale.** The timeout of these tables is 300 s and not the paper's 10,000 s, so the paper's κ0 of 60 s is scaled as on
the [page of all experiments](README.md): κ0 is the median runtime of the table, at most a fifteenth of the timeout.
Instances are drawn with replacement. A point of Naive is missing where u(κ) is not below epsilon, where κ exceeds the
timeout, or where more than 20,000 runs of each configuration would be needed. Costs are CPU time of the runs, with
capped runs paid again in full. δ is 0.1. Curves are medians over 3 seeds, bands are extremes. SPEAR's figures
were computed later than the others, with a newer version of the race: compare methods within a table, not tables.
"""


def race_cheapest(found: Found) -> Verdict:
    """Compare the race with UP and Naive at every epsilon of Figures 2 and 3."""
    times: list[float] = []
    for figure in ("figure-2", "figure-3"):
        for curves in found[figure].values():
            for other in sorted(curves.keys() - {RACE}):
                times += ratios(curves, other, RACE)
    return at_least(times, 1.0, "times the race's cost")


OBSERVATIONS = {claim: judge for claim, judge in CLAIMS.items() if "(Fig." in claim} | {
    "captime's race costs less than UP and Naive at every epsilon of Figures 2 and 3 (ours)": race_cheapest
}


def main() -> None:
    """Compute the figures if the tables are there, and write the page."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--tables", type=Path, default=HERE.parents[1] / "shared" / "data" / "configured")
    arguments.add_argument("--only", action="append", help="some of the tables, by folder name")
    arguments.add_argument("--figure", action="append", choices=list(FIGURES), help="some of the figures")
    arguments.add_argument("--out", type=Path, default=HERE / "results" / "configured")
    arguments.add_argument("--page", type=Path, default=HERE / "configured.md")
    arguments.add_argument("--seeds", type=int, default=SEEDS)
    arguments.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = arguments.parse_args()
    tables = sorted(options.tables.glob("*/runs.csv"))
    if not tables:
        print(f"no tables in {options.tables}: the page is written from the stored numbers", file=sys.stderr)
    for path in tables:
        if not options.only or path.parent.name in options.only:
            for figure in options.figure or FIGURES:
                compute(figure, path, options.out, options.seeds, options.jobs)
    options.page.write_text(page_of(options.out, os.path.relpath(options.out, options.page.parent)), encoding="utf-8")


def compute(figure: str, path: Path, out: Path, seeds: int, jobs: int) -> None:
    """Draw one figure of one table with `captime-experiment`."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        # The name of a table is the name of its file.
        named = Path(folder) / f"{path.parent.name}.csv"
        named.symlink_to(path.resolve())
        words = [figure, "--data", str(named), "--timeout", TIMEOUT, "--out", str(out)]
        words += ["--seeds", str(seeds), "--jobs", str(jobs)]
        subprocess.run([sys.executable, "-m", "captime_research", *words], check=True, stdout=subprocess.DEVNULL)
    print(f"{figure} on {path.parent.name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


def page_of(results: Path, pictures: str) -> str:
    """Return the page, from the numbers in a folder; the pictures are linked in that folder."""
    stored = {
        each: {path.stem.removeprefix(f"{each}-"): path for path in results.glob(f"{each}-*.csv")} for each in FIGURES
    }
    tables = sorted({name for paths in stored.values() for name in paths})
    found = {name: {each: _curves(paths[name]) for each, paths in stored.items() if name in paths} for name in tables}
    verdicts = {claim: {name: _judged(judge, found[name]) for name in tables} for claim, judge in OBSERVATIONS.items()}
    lines = [INTRODUCTION, "## What holds and what does not\n", *reading(verdicts)]
    lines += [f"\n| | {' | '.join(tables)} |", f"|---|{'---|' * len(tables)}"]
    for claim, by_table in verdicts.items():
        lines.append(f"| {claim} | {' | '.join(str(by_table[name]) for name in tables)} |")
    for name in tables:
        lines += ["", *_table(name, found[name], pictures)]
    return "\n".join(lines) + "\n"


def _judged(judge: Callable[[Found], Verdict], found: Found) -> Verdict:
    """Judge an observation; it cannot be told where a figure that it needs has not been computed."""
    try:
        return judge(found)
    except KeyError as missing:
        if missing.args[0] not in FIGURES:
            raise
        return Verdict(None, f"{_short(missing.args[0])} was not computed")


def _short(figure: str) -> str:
    return figure.replace("figure-", "Figure ")


def _curves(path: Path) -> Curves:
    return bands([row for row in read_rows(path) if not math.isnan(row.x)], mean=False)


def _table(name: str, found: Found, pictures: str) -> Iterator[str]:
    """Yield what is on the page about one table."""
    yield f"## {name}\n"
    if name in ABOUT:
        yield f"{ABOUT[name]}.\n"
    yield from _costs(found)
    for figure, about in FIGURES.items():
        if figure not in found:
            yield f"\n{_short(figure)} was not computed; the command above computes it."
            continue
        yield f"\n{about} [PDF]({pictures}/{figure}-{name}.pdf), [numbers]({pictures}/{figure}-{name}.csv)\n"
        yield f"![{about}]({pictures}/{figure}-{name}.png)"


def _costs(found: Found) -> Iterator[str]:
    """Yield a table of median costs at the smallest, a middle and the largest epsilon of Figures 2 and 3."""
    rows: dict[tuple[str, str], Band] = {}
    for figure, utility in (("figure-2", "log-Laplace"), ("figure-3", "uniform")):
        for curves in found.get(figure, {}).values():
            rows |= {(utility, label): band for label, band in curves.items()}
    goals = next(iter(rows.values())).x
    shown = [len(goals) - 1, len(goals) // 2 - 1, 0]
    yield f"| utility | method | {' | '.join(f'ε = {goals[place]:.2g}' for place in shown)} |"
    yield f"|---|---|{'---|' * len(shown)}"
    for (utility, label), band in rows.items():
        cells = [band.middle[place] for place in shown]
        told = ["-" if np.isnan(cell) else duration_text(float(cell)) for cell in cells]
        yield f"| {utility} | {label} | {' | '.join(told)} |"


if __name__ == "__main__":
    main()
