"""Every figure and number: `python run_all.py` runs all experiments on all shipped tables and writes README.md anew.

Pictures, and the numbers they were drawn from, go to experiments/results. Other tables: `--data PATH`, once for each.
SMAC3, irace and Optuna are run if their environment is there (`make peers`); otherwise what they did last is shown.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from build_readme import write_readme

from captime_research.experiments import EXPERIMENTS

HERE = Path(__file__).parent
# Repetitions of everything; a figure has these seeds in its small print.
SEEDS = dict.fromkeys(EXPERIMENTS, 3)


def main() -> None:
    """One after the other, with a line for each; the cores work on its seeds."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--data", action="append", help="a table by name or path; all shipped ones by default")
    arguments.add_argument("--only", action="append", choices=list(SEEDS), help="some of the experiments")
    arguments.add_argument("--out", type=Path, default=HERE / "results")
    arguments.add_argument("--readme", type=Path, default=HERE / "README.md")
    arguments.add_argument("--seeds", type=int, help="the same number for all")
    arguments.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments.add_argument(
        "--peers", type=Path, default=HERE.parent / ".venv-peers" / "bin" / "python", help="Python that has them"
    )
    wishes = arguments.parse_args()
    tables = wishes.data or shipped()
    if not tables:
        sys.exit("no tables are shipped with this copy; name one with --data, or measure one: see measure/measure.py")
    wishes.out.mkdir(parents=True, exist_ok=True)
    names = wishes.only or list(SEEDS)
    began = time.monotonic()
    done, total = 0, len(tables) * (len(names) + 1)
    for table in tables:
        for step in (None, *names):
            done += 1
            about = "other configurators" if step is None else step
            clock = f"{time.monotonic() - began:.0f} s, {os.times().children_user:.0f} s of CPU time"
            print(f"[{done}/{total}, {clock}] {about} on {table}", file=sys.stderr, flush=True)
            if step is None:
                run_peers(table, wishes)
            else:
                run_experiment(step, table, wishes)
    write_readme(wishes.out, wishes.readme)
    used = os.times()
    cpu = used.children_user + used.children_system
    print(f"{wishes.readme} written after {time.monotonic() - began:.0f} s, {cpu:.0f} s of CPU time", file=sys.stderr)


def run_experiment(name: str, table: str, wishes: argparse.Namespace) -> None:
    """One figure of one table, with what the other configurators did if it is known."""
    words = [name, "--data", table, "--out", str(wishes.out), "--jobs", str(wishes.jobs)]
    words += ["--seeds", str(wishes.seeds or SEEDS[name])]
    for path in sorted(wishes.out.glob(f"peers-{name}-{Path(table).stem}.csv")):
        words += ["--also", str(path)]
    subprocess.run([sys.executable, "-m", "captime_research", *words], check=True, stdout=subprocess.DEVNULL)


def run_peers(table: str, wishes: argparse.Namespace) -> None:
    """SMAC3, irace and Optuna, if they are there."""
    if not wishes.peers.exists():
        stored = wishes.out / "peers.json"
        last = "their rows of the last run are shown" if stored.exists() else "there are no rows of theirs"
        print(f"  no environment at {wishes.peers} (make peers makes it); {last}", file=sys.stderr)
        return
    words = [
        table,
        "--results",
        str(wishes.out),
        "--jobs",
        str(wishes.jobs),
        "--seeds",
        str(wishes.seeds or SEEDS["gap"]),
    ]
    done = subprocess.run([str(wishes.peers), str(HERE / "peers" / "run_peers.py"), *words], check=False)
    if done.returncode:
        # Other people's programs: what they did last is still true, and our own figures do not need them.
        print("  they have not come to an end; their rows of the last run are shown", file=sys.stderr)


def shipped() -> list[str]:
    """The names of the tables that come with captime."""
    said = subprocess.run(
        [sys.executable, "-m", "captime", "data", "list", "--json"], check=True, capture_output=True, text=True
    )
    return list(json.loads(said.stdout))


if __name__ == "__main__":
    main()
