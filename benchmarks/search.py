"""Better configurations for the same CPU time? Captime, SMAC3, irace, Optuna, Hyperband and random search compared.

Targets are learnt from recorded tables (captime.simulation.Learnt): a run costs its simulated seconds, so that a search
of a hundred CPU hours takes minutes. All methods go through the same door, with the same captime, seeds and runtimes.
At each checkpoint the incumbent is worth what it is worth on held-out instances, which is known exactly. What a method
computes itself is measured and told beside: with runs of seconds to minutes it hardly counts, with runs of milliseconds
it may be all that counts. Searches that are on disk are not made again; `--report` shows what there is.

    make bench-search                                                    # 3 seeds; hours
    .venv-peers/bin/python benchmarks/search.py --seeds 20 --jobs 2      # more, later
    python benchmarks/search.py --report --out benchmarks/recorded/search   # what is on record
    python benchmarks/search.py --report --first-seed 7 --out benchmarks/recorded/search   # of seeds from 7 on
"""

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from search_bench import TABLES, SearchBench, targets
from search_methods import LABELS, METHODS, OWN_SEARCH_PER_BUDGET, missing, version_of_irace
from search_report import CHECKPOINTS, report

Cell = tuple[str, str, int]
_HOUR = 3600.0


def search(cell: Cell, hours: list[float], patience: float) -> dict[str, Any]:
    """One search, or one for each budget, and what incumbents are worth at the checkpoints."""
    target, method, seed = cell
    began = time.monotonic()
    worths: list[float] = []
    spent: list[float] = []
    thinking: list[float] = []
    ended: list[str] = []
    epsilons: list[float] = []
    runs = 0
    last = SearchBench(target, seed, 0.0).space.default
    for budgets in [[each] for each in hours] if method in OWN_SEARCH_PER_BUDGET else [hours]:
        bench = SearchBench(target, seed, _HOUR * budgets[-1], patience)
        METHODS[method](bench)
        if method in OWN_SEARCH_PER_BUDGET:
            # Without an answer for this budget, the one for a smaller budget stands.
            last = bench.story[-1].settings if bench.ended == "answer" else last
            found = [last]
        else:
            found = [[step for step in bench.story if step.spent <= _HOUR * each][-1].settings for each in budgets]
        worths += bench.worths(found).tolist()
        for each in budgets:
            steps = [step for step in bench.story if step.spent <= _HOUR * each]
            spent.append(min(_HOUR * each, bench.on_runs))
            thinking.append(bench.thinking if each == budgets[-1] else steps[-1].thinking)
            epsilons += [epsilon for at, epsilon in [(0.0, 1.0), *bench.certified] if at <= _HOUR * each][-1:]
        ended.append(bench.ended)
        runs = bench.runs
        best = bench.best_members([_HOUR * each for each in budgets]) if bench.members else []
    return {
        "target": target,
        "method": method,
        "seed": seed,
        "landscape": bench.landscape,
        "version": _version(method),
        "hours": hours,
        "worths": worths,
        "best": best,
        "spent": spent,
        "thinking": thinking,
        "ended": ended,
        "epsilons": epsilons if bench.certified else [],
        "runs": runs,
        "wall_seconds": time.monotonic() - began,
    }


def _version(method: str) -> str:
    if method == "irace":
        return version_of_irace()
    try:
        return version(method if method in ("optuna", "smac") else "captime")
    except PackageNotFoundError:
        return ""


def main() -> None:
    """Search what is missing, and report."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument(
        "--hours", default=",".join(f"{each:g}" for each in CHECKPOINTS), help="checkpoints, in CPU h"
    )
    arguments.add_argument("--targets", default="", help="some of them, with commas; left out, all there are")
    arguments.add_argument("--methods", default=",".join(METHODS))
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--first-seed", type=int, default=1)
    arguments.add_argument("--jobs", type=int, default=1)
    arguments.add_argument(
        "--patience", type=float, default=30.0, help="CPU minutes that a method itself may take for one search"
    )
    arguments.add_argument("--report", action="store_true", help="report what is there, and search nothing")
    arguments.add_argument("--out", type=Path, default=Path("bench-out/search"))
    wishes = arguments.parse_args()
    wishes.out.mkdir(parents=True, exist_ok=True)
    if not wishes.report:
        _search_all(wishes)
    found = _searched(wishes.out)
    if wishes.report and wishes.first_seed > 1:
        report([cell for cell in found if cell["seed"] >= wishes.first_seed], None)
    else:
        report(found, wishes.out)


def _searched(out: Path) -> list[dict[str, Any]]:
    """The searches in a folder: a file each, or those that were collected in searches.jsonl."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(out.glob("*--*.json"))]
    collected = out / "searches.jsonl"
    if collected.exists():
        texts += collected.read_text(encoding="utf-8").splitlines()
    return [json.loads(text) for text in texts]


def _search_all(wishes: argparse.Namespace) -> None:
    there = targets()
    if not there:
        raise SystemExit(f"{TABLES} has no target; expected folders with params.pcs, configlist.csv and runs.csv. "
                         "Name another folder in the variable CAPTIME_TABLES")  # fmt: skip
    hours = sorted(float(each) for each in wishes.hours.split(","))
    methods = []
    for method in wishes.methods.split(","):
        reason = missing(method)
        if reason is None:
            methods.append(method)
        else:
            print(f"{LABELS[method]} is left out: {reason}")
    seeds = range(wishes.first_seed, wishes.first_seed + wishes.seeds)
    names = wishes.targets.split(",") if wishes.targets else there
    wanted = [(target, method, seed) for seed in seeds for target in names for method in methods]
    waiting = [cell for cell in wanted if not _path(wishes.out, cell).exists()]
    with ProcessPoolExecutor(wishes.jobs) as pool:
        begun = [pool.submit(search, cell, hours, 60.0 * wishes.patience) for cell in waiting]
        for count, done in enumerate(as_completed(begun), start=1):
            found = done.result()
            path = _path(wishes.out, (found["target"], found["method"], found["seed"]))
            path.with_suffix(".part").write_text(json.dumps(found), encoding="utf-8")
            path.with_suffix(".part").rename(path)
            best = ", ".join(f"{worth:.4f}" for worth in found["worths"])
            took = f"{found['wall_seconds']:.0f} s, {found['thinking'][-1]:.0f} s of its own, {found['runs']} runs"
            print(f"{count} of {len(begun)}: {path.stem}: {best}; {took}, {found['ended'][-1]}", flush=True)


def _path(out: Path, cell: Cell) -> Path:
    target, method, seed = cell
    return out / f"{target}--{method}--{seed}.json"


if __name__ == "__main__":
    main()
