# noqa: INP001 (a script beside its scenario, not part of a package)
"""A wrapper for AClib 2 and SMAC3 version 1: named options, `--config` before the settings, JSON in the answer."""

import argparse
import json
import time

from toy_solver import solve  # type: ignore[import-not-found]  # beside this file, when run as a script

parser = argparse.ArgumentParser()
parser.add_argument("--instance", required=True)
parser.add_argument("--cutoff", type=float)
parser.add_argument("--seed", type=int, required=True)
parser.add_argument("--config", nargs=argparse.REMAINDER, default=[])
asked = parser.parse_args()
settings = dict(zip(asked.config[::2], asked.config[1::2], strict=True))
found = solve(
    asked.instance, asked.seed, largest_first=settings["-largest_first"] == "true", tries=int(settings["-tries"])
)
account = {
    "status": "SUCCESS" if found is not None else "CRASHED",
    "cost": 0,
    "runtime": time.process_time(),
    "misc": "",
}
print("Result of this algorithm run:", json.dumps(account))  # noqa: T201 (this is its answer)
