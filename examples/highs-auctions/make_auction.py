# noqa: INP001 (a script beside its scenario, not part of a package)
"""Combinatorial auctions, one per number: `python3 make_auction.py 7` prints auction 7 as a model in LP format.

Goods are the fields of a square map. A bidder wants a connected piece of it, and pays by area with a discount that is
its own, plus something for how much it likes each field. Each bidder makes a few bids of which it gets at most one.
Choose bids so that no good is sold twice and the most is earned. Standard library only.
"""

import argparse
import random
import sys


def piece(draw: random.Random, side: int, start: int, size: int) -> list[int]:
    """A connected piece of the map that grows from one field."""
    fields = [start]
    while len(fields) < size:
        row, column = divmod(draw.choice(fields), side)
        row, column = draw.choice([(row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)])
        field = row * side + column
        if 0 <= row < side and 0 <= column < side and field not in fields:
            fields.append(field)
    return sorted(fields)


def bids(draw: random.Random, side: int, bidders: int) -> list[tuple[int, float, list[int]]]:
    """Every bid: who makes it, what it pays, for which goods."""
    worth = [draw.uniform(1, 2) for _ in range(side * side)]
    found: list[tuple[int, float, list[int]]] = []
    for bidder in range(bidders):
        home, discount = draw.randrange(side * side), draw.uniform(0.9, 1.15)
        liking = [each * draw.uniform(0.8, 1.2) for each in worth]
        for _ in range(draw.randint(2, 5)):
            goods = piece(draw, side, home, 1 + min(int(draw.expovariate(0.3)), 12))
            price = sum(liking[good] for good in goods) * len(goods) ** (discount - 1)
            found.append((bidder, round(price, 3), goods))
    return found


def model(number: int) -> str:
    """The auction of that number as an integer program."""
    draw = random.Random(f"auction {number}")  # noqa: S311 (no secret is made here)
    side = draw.randint(8, 11)
    offered = bids(draw, side, bidders=round(side * side * draw.uniform(2.0, 3.0)))
    rows: dict[str, list[int]] = {}
    for place, (bidder, _, goods) in enumerate(offered):
        for name in (f"bidder{bidder}", *(f"good{good}" for good in goods)):
            rows.setdefault(name, []).append(place)
    lines = ["Maximize", " earned: " + _sum([f"{price} x{place}" for place, (_, price, _) in enumerate(offered)])]
    lines += ["Subject To"]
    lines += [f" {name}: {_sum([f'x{place}' for place in places])} <= 1" for name, places in rows.items()]
    lines += ["Binary", *(f" x{place}" for place in range(len(offered))), "End", ""]
    return "\n".join(lines)


def _sum(terms: list[str]) -> str:
    """A sum, a few terms to a line: the format does not like long ones."""
    return "\n  ".join(" ".join(f"+ {term}" for term in terms[first : first + 8]) for first in range(0, len(terms), 8))


def main() -> None:
    """Print one model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("number", type=int)
    sys.stdout.write(model(parser.parse_args().number))


if __name__ == "__main__":
    main()
