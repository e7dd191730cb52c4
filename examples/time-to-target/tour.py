# noqa: INP001 (a script beside its scenario, not part of a package)
"""Search for short round tours, for ever: tour.py INSTANCE SEED KICK NEIGHBOURS. Standard library only.

Prints `o LENGTH` whenever it has found a shorter tour than before, and never ends by itself. An instance is a number,
from which 40 cities are drawn. The search exchanges two edges as long as that helps, and then perturbs the tour: KICK
says how many pieces of it are shuffled, NEIGHBOURS how many near cities are tried as ends of a new edge.
"""

import math
import random
import sys

CITIES = 40


def cities(instance: int) -> list[tuple[float, float]]:
    """Draw points in a square of 1,000 by 1,000."""
    draw = random.Random(instance)  # noqa: S311 (an instance, not a secret)
    return [(draw.uniform(0, 1000), draw.uniform(0, 1000)) for _ in range(CITIES)]


def improve(tour: list[int], far: list[list[float]], near: list[list[int]]) -> None:
    """Exchange two edges for shorter ones until no exchange helps."""
    helped = True
    while helped:
        helped = False
        place = {city: index for index, city in enumerate(tour)}
        for first in range(CITIES):
            a, b = tour[first], tour[(first + 1) % CITIES]
            for c in near[a]:
                second = place[c]
                d = tour[(second + 1) % CITIES]
                if c == b or far[a][c] >= far[a][b]:
                    break
                if far[a][b] + far[c][d] - far[a][c] - far[b][d] > 1e-9:
                    low, high = sorted((first, second))
                    tour[low + 1 : high + 1] = reversed(tour[low + 1 : high + 1])
                    helped = True
                    break
            if helped:
                break


def kicked(tour: list[int], pieces: int, draw: random.Random) -> list[int]:
    """Cut the tour into pieces and put those in the middle together in another order."""
    cuts = sorted(draw.sample(range(1, CITIES), pieces))
    parts = [tour[low:high] for low, high in zip([0, *cuts], [*cuts, CITIES], strict=True)]
    middle = parts[1:-1]
    draw.shuffle(middle)
    return [city for part in (parts[0], *middle, parts[-1]) for city in part]


def main(instance: int, seed: int, kick: int, neighbours: int) -> None:
    """Search until stopped."""
    draw = random.Random(seed)  # noqa: S311 (a search, not a secret)
    points = cities(instance)
    far = [[math.dist(one, other) for other in points] for one in points]
    near = [sorted(range(CITIES), key=row.__getitem__)[1 : neighbours + 1] for row in far]
    best, shortest = draw.sample(range(CITIES), CITIES), math.inf
    tour = best
    while True:
        improve(tour, far, near)
        length = sum(far[tour[index - 1]][tour[index]] for index in range(CITIES))
        if length < shortest - 1e-9:
            best, shortest = list(tour), length
            print(f"o {length:.3f}", flush=True)  # noqa: T201 (its values; flushed, or they would wait in a buffer)
        tour = kicked(best, kick, draw)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
