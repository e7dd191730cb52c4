# noqa: INP001 (a script beside its scenario, not part of a package)
"""A script target for SMAC3 version 2: everything as `--name=value`, the answer as `key=value;`."""

import argparse
import time

from toy_solver import solve  # type: ignore[import-not-found]  # beside this file, when run as a script

parser = argparse.ArgumentParser()
for name in ("instance", "seed", "largest_first", "tries"):
    parser.add_argument(f"--{name}", required=True)
asked = parser.parse_args()
found = solve(asked.instance, int(asked.seed), largest_first=asked.largest_first == "true", tries=int(asked.tries))
status = "SUCCESS" if found is not None else "CRASHED"
print(f"cost=0; runtime={time.process_time()}; status={status}")  # noqa: T201 (this is its answer)
