"""Measure one of the shipped tables: `python measure.py minisat-fuzz` runs the solver and writes table and datasheet.

Meant for an otherwise idle machine: a quarter of an hour or so with two cores. Interrupted, the same command resumes
where it stopped. The table goes to src/captime/data/NAME.npz, the datasheet beside it, the ledger stays here.
"""

import argparse
import importlib.metadata
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from captime import RuntimeTable, read_table
from captime.arrays import FloatArray
from captime.ledger import LedgerReader

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
HIGHS = ROOT / "examples" / "highs-auctions"
# What each table is of, and how its solver says which version it is.
TABLES = {
    "minisat-fuzz": (
        "minisat on fuzzed formulas",
        ["dpkg-query", "-W", "-f", "minisat ${Version} (Debian)", "minisat"],
    ),
    "highs-auction": ("HiGHS on combinatorial auctions", [str(HIGHS / "highs" / "bin" / "highs"), "--version"]),
    "highs-cascade": ("HiGHS on conservation plans", [str(HIGHS / "highs" / "bin" / "highs"), "--version"]),
    "cplex-auction": ("CPLEX, community edition, on combinatorial auctions", []),
}


def main() -> None:
    """Measure, and describe what was measured."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("name", choices=sorted(TABLES))
    arguments.add_argument("--instances", type=int, default=500)
    arguments.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments.add_argument("--out", type=Path, default=ROOT / "src" / "captime" / "data")
    wishes = arguments.parse_args()
    scenario, table = HERE / f"{wishes.name}.toml", wishes.out / f"{wishes.name}.npz"
    ledger = HERE / f"{wishes.name}.ledger"
    if wishes.name.startswith("highs"):
        subprocess.run([sys.executable, str(HIGHS / "prepare.py")], check=True)
    if wishes.name.startswith("cplex"):
        link_cplex()
    wishes.out.mkdir(parents=True, exist_ok=True)
    words = ["measure", str(scenario), "--out", str(table), "--ledger", str(ledger)]
    more = ["--instances", str(wishes.instances), "--jobs", str(wishes.jobs)]
    subprocess.run([sys.executable, "-m", "captime", *words, *more], check=True)
    table.with_suffix(".md").write_text(datasheet(wishes.name, table, ledger, wishes.jobs), encoding="utf-8")
    print(table, table.with_suffix(".md"), sep="\n")


def link_cplex(folder: Path = HERE / "cplex-run") -> None:
    """Put the interpreter and the wheel where the scenario looks for them; without the wheel, say how to get it."""
    wheel = find_spec("cplex")
    if wheel is None or wheel.origin is None:
        sys.exit(
            "CPLEX is not installed. Its community edition comes as a wheel with a licence of its own, which only "
            "you can accept; if you do, install the wheel cplex into this environment: pip install cplex"
        )
    folder.mkdir(exist_ok=True)
    for name, target in {"python": Path(sys.executable).resolve(), "lib": Path(wheel.origin).parents[1]}.items():
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)


def datasheet(name: str, path: Path, ledger: Path, jobs: int) -> str:
    """What was measured, with what, where and when, and what the numbers look like."""
    table = read_table(path)
    reader = LedgerReader(ledger)
    made, conflicts = reader.outcomes(), sum(note.kind == "conflict" for note in reader.events())
    scenario, configurations = f"{name}.toml", f"{name.partition('-')[0]}.csv"
    wall, waited, cpu = (np.asarray(made[f"{each}_ns"], dtype=float) for each in ("wall", "queue_wait", "cpu"))
    shares = waited / np.maximum(wall, 1.0)
    begun, ended = (datetime.fromtimestamp(int(each) / 1e9, UTC) for each in (min(made["at_ns"]), max(made["at_ns"])))
    system = f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, Python {platform.python_version()}"
    rows = {
        "configurations": f"{table.n_configs}: the default and others, {_link(configurations)}",
        "instances": f"{table.n_instances}, made by `captime.instances`, seeds from 0 on; see the scenario",
        "seeds": f"a seed of the solver for each instance, the same for all configurations, from the scenario's seed "
        f"{reader.scenario['seed']}",
        "scenario": f"{_link(scenario)}: commands, sizes, and what counts as an answer",
        "captime": f"{table.limit:g} s of CPU time; {table.censored:.2%} of the runs reached it, "
        f"{table.never_finished:.2%} failed",
        "answers": f"{conflicts} contradictions between configurations, compared instance by instance",
        "solver": _said(TABLES[name][1]) if TABLES[name][1] else f"CPLEX {importlib.metadata.version('cplex')}",
        "machine": f"{_processor()}, {system}",
        "measured": f"{begun:%Y-%m-%d %H:%M} to {ended:%H:%M} UTC, {jobs} at a time, with `captime measure`",
        "CPU time": f"{cpu.sum() / 1e9 / 60:.0f} minutes of the solver",
        "disturbance": f"runs waited {np.median(shares):.1%} of their wall-clock time for a core (median), "
        f"{np.mean(shares > 0.05):.0%} of them more than 5 %",
    }
    lines = [f"# {name}: {TABLES[name][0]}", "", "| | |", "|---|---|"]
    lines += [f"| {what} | {told} |" for what, told in rows.items()]
    return "\n".join((*lines, "", *_numbers(table), "", _CAVEAT))


def _numbers(table: RuntimeTable) -> list[str]:
    """What the runtimes look like; runs that were cut count as the captime."""
    finished = np.where(table.seconds < table.limit, table.seconds, table.limit)
    means = finished.mean(axis=1)
    best, worst, default = int(means.argmin()), int(means.argmax()), table.configs.index("default")
    quantiles = np.quantile(finished, [0.05, 0.25, 0.5, 0.75, 0.95, 0.99])
    return [
        f"Runtimes in milliseconds at the quantiles 5, 25, 50, 75, 95, 99 %: {_milliseconds(quantiles)}.",
        f"Mean runtime in milliseconds: best {_milliseconds(means[[best]])} (`{table.configs[best]}`),",
        f"default {_milliseconds(means[[default]])}, worst {_milliseconds(means[[worst]])} (`{table.configs[worst]}`).",
    ]


_CAVEAT = """\
Every run is one measurement on one machine. Times of the same run vary by some percent, those of short runs by more.
Which settings are good here says little about other instances, other versions or other machines. This page was written
by `experiments/measure/measure.py`, from the ledger of the measurement.
"""


def _link(file: str) -> str:
    return f"[{file}](../../../experiments/measure/{file})"


def _milliseconds(seconds: FloatArray) -> str:
    return ", ".join(f"{1000 * each:.3g}" for each in seconds.tolist())


def _said(command: list[str]) -> str:
    """What a program says about itself, in one line."""
    libraries = os.environ | {"LD_LIBRARY_PATH": str(HIGHS / "highs" / "lib")}
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False, env=libraries)
    except OSError:
        return "unknown version"
    return (found.stdout or found.stderr).strip().partition("\n")[0] or "unknown version"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown processor"
    )


if __name__ == "__main__":
    main()
