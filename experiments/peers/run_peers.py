"""The configurators SMAC3, irace and Optuna on a table: `python run_peers.py TABLE` makes their curves for the gap.

Writes peers-gap-TABLE.csv and peers-gap-uniform-TABLE.csv, which `captime-experiment gap --also FILE` draws beside the
others, and their versions to peers.json. Of a configurator that is not installed the rows of the last run are kept.
Their own computing time is not counted, only that of the runs, as for all other methods.
"""

import argparse
import json
import math
import sys
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path

import irace_peer
import optuna_peer
import smac_peer
from on_table import TableTarget, rows_of

from captime.sources.synthetic import table_at
from captime_research.experiments import EXPERIMENTS
from captime_research.experiments.contenders import CONFIGURATORS
from captime_research.experiments.gap import moments_of
from captime_research.experiments.growing import renumbered
from captime_research.experiments.paper import LOG_LAPLACE, UNIFORM, utilities
from captime_research.experiments.rows import Row, read_rows, write_rows
from captime_research.experiments.setting import Setting

PEERS = {"optuna": optuna_peer, "smac": smac_peer, "irace": irace_peer}
UTILITIES = {"gap": LOG_LAPLACE, "gap-uniform": UNIFORM}
Task = tuple[str, str, Setting, int, list[float]]


def main() -> None:
    """Every peer that is there, every seed."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("table", help="a shipped table by name, or a path")
    arguments.add_argument("--results", type=Path, default=Path(__file__).parents[1] / "results")
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--jobs", type=int, default=1)
    arguments.add_argument("--peers", default=",".join(PEERS), help="some of them, with commas")
    wishes = arguments.parse_args()
    table = table_at(wishes.table)
    wishes.results.mkdir(parents=True, exist_ok=True)
    reasons = {name: PEERS[name].missing() for name in wishes.peers.split(",")}
    there = [name for name, reason in reasons.items() if reason is None]
    for name in reasons.keys() - there:
        print(f"{name} is left out, its last rows are kept: {reasons[name]}", file=sys.stderr)
    for experiment, kind in UTILITIES.items():
        setting = Setting(table, delta=EXPERIMENTS[experiment].delta)
        utility = utilities(setting)[kind]
        moments = moments_of(setting, utility).tolist()
        tasks = [(name, utility, setting, seed, moments) for name in there for seed in range(wishes.seeds)]
        path = wishes.results / f"peers-{experiment}-{table.name}.csv"
        rows = kept(path, {PEERS[name].LABEL for name in there})
        with get_context("spawn").Pool(wishes.jobs) as pool:
            for found in pool.imap(searched, tasks):
                rows += found
        write_rows(rows, path)
    tell(wishes.results / "peers.json", there)


def kept(path: Path, renewed: set[str]) -> list[Row]:
    """Rows of the last run, but for those that are made anew."""
    return [row for row in read_rows(path) if row.label not in renewed] if path.exists() else []


def searched(task: Task) -> list[Row]:
    """One configurator, one seed: a search for each of its forms."""
    name, utility, setting, seed, moments = task
    peer, shuffled = PEERS[name], renumbered(setting, seed)
    targets = []
    for form in peer.FORMS:
        target = TableTarget(shuffled, utility, seed, moments[-1])
        peer.search(target, form)
        targets.append(target)
        spent, runs = target.bench.spent, int(target.bench.runs.sum())
        print(f"{name} ({form}), {utility}, seed {seed}: {spent:.3g} s of CPU time, {runs} runs", file=sys.stderr)
    rows = rows_of(targets, peer.LABEL, CONFIGURATORS, moments, shuffled)
    if all(math.isnan(row.y) for row in rows):
        print(f"{name} has given no answer; is it installed completely?", file=sys.stderr)
    return rows


def tell(path: Path, there: list[str]) -> None:
    """Write down who has been run when, in which version."""
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    now = f"{datetime.now(UTC):%Y-%m-%d}"
    known |= {PEERS[name].LABEL: {"version": PEERS[name].which(), "run": now} for name in there}
    path.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
