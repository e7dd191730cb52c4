"""Combinatorial auctions of the "regions" kind as a MIP: who wins what, so that the bids accepted bring in most?

Goods are plots of land on a map; a bidder wants connected regions around a plot it likes, several of them as
alternatives to each other. The idea is that of the auction test suite CATS ("regions"), the code and the numbers are
our own. Nothing but the standard library: see `captime.instances`.
"""

import random
import sys

SUFFIX = ".lp"
Bid = tuple[float, list[int]]


def neighbours(rng: random.Random, goods: int) -> list[list[int]]:
    """Return a map: plots on a grid, next to each other up, down, left and right, some also across a corner."""
    side = max(1, round(goods**0.5))
    touching: list[set[int]] = [set() for _ in range(goods)]
    for good in range(goods):
        column = good % side
        right = column + 1 < side
        near = [good + 1, good + side] if right else [good + side]
        # Only the one diagonal, so that the map stays planar.
        if right and rng.random() < 0.1:
            near.append(good + side + 1)
        for other in near:
            if other < goods:
                touching[good].add(other)
                touching[other].add(good)
    return [sorted(each) for each in touching]


def draw(seed: int, size: tuple[int, int], bids: float) -> tuple[int, list[Bid], list[list[int]]]:
    """Number of goods, bids as (price, goods), and groups of bids of which at most one may win."""
    rng = random.Random(f"auction {seed}")  # noqa: S311 (an instance, not a secret)
    goods = rng.randint(*size)
    touching = neighbours(rng, goods)
    common = [rng.uniform(1.0, 100.0) for _ in range(goods)]
    made: list[Bid] = []
    groups: list[list[int]] = []
    seen: set[tuple[int, ...]] = set()
    while len(made) < round(bids * goods):
        # What a plot is worth to this bidder: what it is worth to all bidders, and a taste of its own.
        private = [value + rng.uniform(-0.5, 0.5) * value for value in common]
        start = rng.choices(range(goods), weights=private)[0]
        group = []
        for _ in range(rng.randint(1, 5)):
            region = _region(rng, touching, private, start)
            if tuple(region) not in seen:
                seen.add(tuple(region))
                group.append(len(made))
                # Larger regions are worth more than their parts.
                price = sum(private[good] for good in region) * (1.0 + 0.05 * (len(region) - 1) ** 0.5)
                made.append((round(price, 2), region))
        if len(group) > 1:
            groups.append(group)
    return goods, made, groups


def _region(rng: random.Random, touching: list[list[int]], private: list[float], start: int) -> list[int]:
    """Return a connected region that grows from `start` as long as chance wants, towards plots the bidder likes."""
    region = {start}
    while rng.random() < 0.85:
        around = sorted({other for good in region for other in touching[good]} - region)
        if not around:
            break
        region.add(rng.choices(around, weights=[private[other] for other in around])[0])
    return sorted(region)


def generate(seed: int, *, size: tuple[int, int] = (30, 100), bids: float = 5.0) -> str:
    """Winner determination: choose bids that share no good, at most one of each bidder's alternatives.

    Hardness: grows with goods and with bids a good. At the defaults HiGHS takes 20 ms to a second; 150 goods with 8
    bids a good take seconds, more of either minutes.

    Args:
        seed: Which auction; the same seed and options give the same bytes.
        size: Fewest and most goods; the number is drawn evenly between them.
        bids: Bids a good.
    """
    if not (4 <= size[0] <= size[1] and bids > 0):
        raise ValueError(f"size is {size[0]}-{size[1]} at {bids:g} bids a good; expected 4 or more goods, some bids")
    goods, made, groups = draw(seed, size, bids)
    wanted: list[list[int]] = [[] for _ in range(goods)]
    for number, (_, region) in enumerate(made):
        for good in region:
            wanted[good].append(number)
    lines = [f"\\ auction: seed {seed}, {goods} goods, {len(made)} bids", "Maximize", " revenue:"]
    lines += [f"  + {price:.2f} x{number}" for number, (price, _) in enumerate(made)]
    lines.append("Subject To")
    for name, rows in (("good", wanted), ("bidder", groups)):
        for number, row in enumerate(rows):
            if len(row) > 1:
                # One term a line: lines of an LP file may not be long.
                lines += [f" {name}{number}:", *(f"  + x{each}" for each in row), "  <= 1"]
    lines += ["Binary", *(f" x{number}" for number in range(len(made))), "End", ""]
    return "\n".join(lines)


if __name__ == "__main__":  # as a plain script; -I leaves the script's own folder out of the path
    from importlib import import_module

    sys.path.insert(0, __file__.rpartition("/")[0])
    sys.exit(import_module("command").run(generate, sys.argv[1:], "auction"))
