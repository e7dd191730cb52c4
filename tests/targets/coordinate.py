"""A coordinator to be killed: keeps its slots busy with targets that try to escape.

Usage: coordinate.py TAG SLOTS ISOLATION
Prints the numbers of its supervisors once every slot has a target that runs.
"""

import sys
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from captime.executors.local import LocalExecutor
from captime.runs import RunRequest
from supervised import Plain, target


def main(tag: str, slots: int, isolation: str) -> None:
    """Run until it is stopped."""
    endless = target("escape", "sleep", wall_limit=600.0)
    with LocalExecutor(Plain(endless), slots, tag=tag, isolation=isolation) as executor:
        numbers = count()
        executor.submit([RunRequest(0, next(numbers), 1.0) for _ in range(slots)])
        while len(executor.watch()) < slots:
            executor.collect(0.05)
        sys.stdout.write(" ".join(map(str, executor.pids())) + "\n")
        sys.stdout.flush()
        while True:
            back = executor.collect()
            executor.submit([RunRequest(0, next(numbers), 1.0) for _ in back])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
