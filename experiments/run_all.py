"""Every figure and number: `python run_all.py` runs all experiments on all shipped tables and writes README.md anew.

Pictures, and the numbers they were drawn from, go to experiments/results. Other tables: `--data PATH`, once for each.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from build_readme import write_readme

HERE = Path(__file__).parent
# How many seeds; the one with all the baselines takes longest.
SEEDS = {
    "figure-1": 5,
    "figure-2": 5,
    "figure-3": 5,
    "follow-up-1": 5,
    "follow-up-2": 3,
    "follow-up-3": 5,
    "follow-up-6": 5,
    "gap": 5,
}


def main() -> None:
    """One after the other, with a line for each; the cores work on its seeds."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--data", action="append", help="a table by name or path; all shipped ones by default")
    arguments.add_argument("--out", type=Path, default=HERE / "results")
    arguments.add_argument("--readme", type=Path, default=HERE / "README.md")
    arguments.add_argument("--seeds", type=int, help="the same number for all")
    arguments.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    wishes = arguments.parse_args()
    tables = wishes.data or shipped()
    if not tables:
        sys.exit("no tables are shipped with this copy; name one with --data, or measure one: see measure/measure.py")
    began = time.monotonic()
    for count, (table, name) in enumerate([(table, name) for table in tables for name in SEEDS], start=1):
        seeds = wishes.seeds or SEEDS[name]
        words = ["experiment", name, "--data", table, "--out", str(wishes.out), "--seeds", str(seeds)]
        done = f"[{count}/{len(tables) * len(SEEDS)}, {time.monotonic() - began:.0f} s]"
        print(f"{done} {name} on {table}", file=sys.stderr, flush=True)
        subprocess.run(
            [sys.executable, "-m", "captime", *words, "--jobs", str(wishes.jobs)], check=True, stdout=subprocess.DEVNULL
        )
    write_readme(wishes.out, wishes.readme)
    print(f"{wishes.readme} written after {time.monotonic() - began:.0f} s", file=sys.stderr)


def shipped() -> list[str]:
    """The names of the tables that come with captime."""
    said = subprocess.run(
        [sys.executable, "-m", "captime", "data", "list", "--json"], check=True, capture_output=True, text=True
    )
    return list(json.loads(said.stdout))


if __name__ == "__main__":
    main()
