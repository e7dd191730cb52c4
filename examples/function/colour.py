# noqa: INP001 (a module beside its scenario, not part of a package)
"""Can the nodes of a random graph be coloured with three colours? A search in plain Python, with a setting or two.

Standard library only. captime calls `solve` in a process of its own for every run.
"""

import random
from typing import Any

NODES, DEGREE, COLOURS = 60, 4.6, 3


def graph(number: int) -> list[set[int]]:
    """Return the neighbours of every node of random graph `number`; the same on every machine."""
    draw = random.Random(number)  # noqa: S311 (no secret is made here)
    neighbours: list[set[int]] = [set() for _ in range(NODES)]
    for _ in range(round(DEGREE * NODES / 2)):
        one, other = draw.sample(range(NODES), 2)
        neighbours[one].add(other)
        neighbours[other].add(one)
    return neighbours


def solve(instance: int, seed: int, order: str, shuffle: bool = False) -> dict[str, Any]:
    """Colour graph `instance`, or find out that it cannot be done.

    Args:
        instance: The number of the graph.
        seed: For ties, if they are broken at random.
        order: Which node is coloured next: `given`, `degree` (most neighbours) or `saturation` (fewest colours left).
        shuffle: Break ties at random.

    Returns:
        What captime reads: `answer`, which it compares between configurations.
    """
    neighbours = graph(instance)
    nodes = list(range(NODES))
    if shuffle:
        random.Random(seed).shuffle(nodes)  # noqa: S311 (no secret is made here)
    if order == "degree":
        nodes.sort(key=lambda node: -len(neighbours[node]))
    free = [set(range(COLOURS)) for _ in range(NODES)]
    return {"answer": "sat" if _coloured(nodes, neighbours, free, order) else "unsat"}


def _coloured(left: list[int], neighbours: list[set[int]], free: list[set[int]], order: str) -> bool:
    """Colour the nodes that are left; whether that is possible."""
    if not left:
        return True
    node = min(left, key=lambda each: len(free[each])) if order == "saturation" else left[0]
    rest = [each for each in left if each != node]
    for colour in sorted(free[node]):
        touched = [each for each in rest if each in neighbours[node] and colour in free[each]]
        for each in touched:
            free[each].discard(colour)
        if all(free[each] for each in touched) and _coloured(rest, neighbours, free, order):
            return True
        for each in touched:
            free[each].add(colour)
    return False
