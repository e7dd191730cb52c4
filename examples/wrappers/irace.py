# noqa: INP001 (a script beside its scenario, not part of a package)
"""A target runner for irace: numbers of configuration and instance, seed, instance, bound, then `--name value`."""

import sys
import time

from toy_solver import solve  # type: ignore[import-not-found]  # beside this file, when run as a script

_configuration, _number, seed, instance, _bound, *words = sys.argv[1:]
settings = dict(zip(words[::2], words[1::2], strict=True))
found = solve(instance, int(seed), largest_first=settings["--largest_first"] == "true", tries=int(settings["--tries"]))
seconds = time.process_time()
print("Inf" if found is None else seconds, seconds)  # noqa: T201 (this is its answer)
