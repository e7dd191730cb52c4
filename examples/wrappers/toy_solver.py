# noqa: INP001 (a script beside its scenario, not part of a package)
"""A toy: finds numbers from a list that add up to a goal, by trying subsets in random order. Standard library only.

The wrappers beside this file call it as they would call a real solver. An instance is a file with the goal on its first
line and the numbers on the second.
"""

import random
from pathlib import Path


def solve(instance: str, seed: int, *, largest_first: bool, tries: int) -> list[int] | None:
    """Numbers that add up to the goal; None if no try found any."""
    goal_line, numbers_line = Path(instance).read_text(encoding="utf-8").splitlines()[:2]
    goal, numbers = int(goal_line), [int(word) for word in numbers_line.split()]
    draw = random.Random(seed)  # noqa: S311 (no secret is made here)
    for _ in range(tries):
        draw.shuffle(numbers)
        if largest_first:
            numbers[:3] = sorted(numbers[:3], reverse=True)
        chosen: list[int] = []
        for number in numbers:
            if sum(chosen) + number <= goal:
                chosen.append(number)
        if sum(chosen) == goal:
            return chosen
    return None
