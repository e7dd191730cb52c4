"""Quality for money: what incumbents are worth on held-out instances after given minutes of CPU time.

On each example with a parameter space: captime (the growing pool), random search, Optuna (TPE) and SMAC3 (its facade
for algorithm configuration) get the same CPU time, the same instances and the default configuration to begin with. CPU
time is that of the runs and of the method's own process: thinking is not free. Their incumbents at the checkpoints are
then run on the same held-out instances, side by side. Every finished search is written at once, so a benchmark that was
stopped resumes where it was, and more seeds, examples or minutes can be added later. A search takes a quarter of an
hour, and there are many; those that were made so far are on record in benchmarks/recorded/quality, so they need not
be made again. Evaluations take minutes: once an example has a new incumbent, all of its incumbents are run again.

Optuna and SMAC3 are not needed by captime; in an environment that has them (experiments/peers/requirements.txt says how
to make one) they take part, elsewhere they are left out:

    .venv-peers/bin/python benchmarks/quality.py --seeds 1,2,3 --jobs 2
    .venv-peers/bin/python benchmarks/quality.py --report
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
from quality_bench import Bench, default_of, held_out
from quality_methods import METHODS, missing
from quality_report import incumbent_at, report

from captime.arrays import FloatArray

RECORDED = Path(__file__).parent / "recorded" / "quality"
EXAMPLES = ("kissat", "clasp", "compressor", "highs-auctions")
# Held-out instances that one process runs all configurations on.
_BLOCK = 10
Cell = tuple[str, str, int]


def main() -> None:
    """Search what is missing, evaluate what is missing, report everything."""
    wishes = _arguments().parse_args()
    minutes = sorted(float(each) for each in wishes.minutes.split(","))
    wishes.out.mkdir(parents=True, exist_ok=True)
    if not wishes.report:
        methods = [method for method in wishes.methods.split(",") if _can_run(method)]
        seeds = [int(each) for each in wishes.seeds.split(",")]
        wanted = [(name, method, seed) for seed in seeds for name in wishes.examples.split(",") for method in methods]
        known = {key for key, cell in searched(wishes.out).items() if cell["budget"] >= 60.0 * minutes[-1]}
        todo = [cell for cell in wanted if cell not in known]
        for result in _in_parallel(
            search, [(*cell, 60.0 * minutes[-1], wishes.patience) for cell in todo], wishes.jobs
        ):
            _append(wishes.out / "searches.jsonl", result)
            print(
                f"{result['example']}, {result['method']}, seed {result['seed']}: {result['runs']} runs, "
                f"{result['spent']:.0f} s, {result['own_cpu_seconds']:.0f} s of its own",
                flush=True,
            )
        _evaluate(wishes.out, minutes, wishes.held_out, wishes.jobs)
    report(searched(wishes.out), evaluated(wishes.out), minutes, wishes.out)


def _arguments() -> argparse.ArgumentParser:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--minutes", default="1,2,5,10", help="checkpoints in CPU minutes; the last is the budget")
    arguments.add_argument("--examples", default=",".join(EXAMPLES))
    arguments.add_argument("--methods", default=",".join(METHODS))
    arguments.add_argument("--seeds", default="1", help="which seeds, such as 1,2,3")
    arguments.add_argument("--held-out", type=int, default=100, help="instances on which incumbents are compared")
    arguments.add_argument("--jobs", type=int, default=1, help="searches at a time; each makes one run at a time")
    arguments.add_argument("--patience", type=float, default=60.0, help="wall-clock minutes that a search may take")
    arguments.add_argument("--out", type=Path, default=RECORDED)
    arguments.add_argument("--report", action="store_true", help="run nothing: report what is there")
    return arguments


def _can_run(method: str) -> bool:
    reason = missing(method)
    if reason is not None:
        print(f"{method} is left out: {reason}", file=sys.stderr)
    return reason is None


def search(example: str, method: str, seed: int, budget: float, patience: float) -> dict[str, Any]:
    """One search from beginning to end."""
    began, own = time.monotonic(), time.process_time()
    with Bench(example, seed, budget, 60.0 * patience) as bench:
        bench.recommends(bench.space.default)
        METHODS[method](bench)
    return {
        "example": example,
        "method": method,
        "seed": seed,
        "budget": min(budget, bench.spent),  # a method that stopped earlier has no later checkpoints
        "spent": bench.on_runs,
        "runs": bench.runs,
        "wall_seconds": time.monotonic() - began,
        "own_cpu_seconds": time.process_time() - own,
        "short_captimes": bench.short_captimes,
        "story": [[step.spent, step.settings] for step in bench.story],
    }


def evaluate(example: str, configurations: list[dict[str, Any]], first: int, last: int) -> dict[str, Any]:
    """Configurations side by side on some of the held-out instances."""
    scores = held_out(example, configurations, range(first, last))
    return {"example": example, "first": first, "scores": scores.round(5).tolist()}


def _evaluate(out: Path, minutes: list[float], count: int, jobs: int) -> None:
    """Return the incumbents of all checkpoints, and the defaults.

    If one is new, all of the example are run again: what was measured on different days, or on different machines,
    does not compare.
    """
    cells = searched(out)
    wanted = {example: [default_of(example)] for example in dict.fromkeys(key[0] for key in cells)}
    for (example, _, _), cell in cells.items():
        wanted[example] += [incumbent_at(cell, 60.0 * each) for each in minutes if 60.0 * each <= cell["budget"]]
    known = evaluated(out)
    for example, found in wanted.items():
        those = {(example, json.dumps(settings, sort_keys=True)): settings for settings in found}
        if all(len(known.get(key, ())) >= count for key in those):
            continue
        configurations = list(those.values())
        todo = [(example, configurations, first, min(first + _BLOCK, count)) for first in range(0, count, _BLOCK)]
        blocks = []
        for block in _in_parallel(evaluate, todo, jobs):
            blocks.append(block)
            print(
                f"{example}: {len(configurations)} configurations on {len(blocks)} of {len(todo)} blocks of instances",
                file=sys.stderr,
                flush=True,
            )
        blocks.sort(key=lambda block: int(block["first"]))
        _replace(out / "held-out.jsonl", example, configurations, np.hstack([block["scores"] for block in blocks]))


def _replace(path: Path, example: str, configurations: list[dict[str, Any]], scores: FloatArray) -> None:
    """Scores of an example in place of those that were there; a benchmark that is stopped meanwhile loses nothing."""
    lines = [line for line in _lines(path) if line["example"] != example]
    lines += [
        {"example": example, "settings": settings, "scores": row}
        for settings, row in zip(configurations, scores.tolist(), strict=True)
    ]
    beside = path.with_suffix(".new")
    beside.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    beside.replace(path)


def _in_parallel(work: Any, arguments: list[tuple[Any, ...]], jobs: int) -> Iterator[dict[str, Any]]:
    """Results as they come; one process each, so that nothing of one search is left in the next."""
    with ProcessPoolExecutor(jobs, max_tasks_per_child=1) as pool:
        yield from (done.result() for done in as_completed([pool.submit(work, *each) for each in arguments]))


def searched(out: Path) -> dict[Cell, dict[str, Any]]:
    """All searches on record; of several of the same kind the one with the largest budget."""
    found: dict[Cell, dict[str, Any]] = {}
    for cell in _lines(out / "searches.jsonl"):
        key = (cell["example"], cell["method"], cell["seed"])
        if key not in found or cell["budget"] >= found[key]["budget"]:
            found[key] = cell
    return found


def evaluated(out: Path) -> dict[tuple[str, str], list[float]]:
    """Scores on held-out instances, by example and settings."""
    return {
        (line["example"], json.dumps(line["settings"], sort_keys=True)): line["scores"]
        for line in _lines(out / "held-out.jsonl")
    }


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.endswith("}")]


def _append(path: Path, line: dict[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
