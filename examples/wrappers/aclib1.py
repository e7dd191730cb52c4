# noqa: INP001 (a script beside its scenario, not part of a package)
"""A wrapper for ParamILS, SMAC 2 and AClib: instance, specifics, cutoff, run length, seed, then `-name value`."""

import sys
import time

from toy_solver import solve  # type: ignore[import-not-found]  # beside this file, when run as a script

instance, _specifics, _cutoff, _length, seed, *words = sys.argv[1:]
settings = dict(zip(words[::2], words[1::2], strict=True))
found = solve(instance, int(seed), largest_first=settings["-largest_first"] == "true", tries=int(settings["-tries"]))
status = "SUCCESS" if found is not None else "CRASHED"
print(f"Result for SMAC: {status}, {time.process_time()}, 0, 0, {seed}")  # noqa: T201 (this is its answer)
