# noqa: INP001 (a script beside its scenario, not part of a package)
"""Graphs to be coloured with three colours, one formula per number: `python3 make_colouring.py 7` prints formula 7.

Every graph is made so that a colouring exists: nodes get hidden colours, and edges join different ones. With 2.3 edges
per node that is close to where colourings become rare and hard to find. Standard library only.
"""

import argparse
import random
import sys

COLOURS = range(3)
EDGES_PER_NODE = 2.3


def clauses(number: int, smallest: int, largest: int) -> list[str]:
    """The clauses of that number; variable 3·node + colour + 1 says that the node has the colour."""
    draw = random.Random(f"colouring {number}")  # noqa: S311 (no secret is made here)
    nodes = draw.randint(smallest, largest)
    hidden = [draw.choice(COLOURS) for _ in range(nodes)]
    edges: set[tuple[int, int]] = set()
    while len(edges) < round(EDGES_PER_NODE * nodes):
        one, other = sorted(draw.sample(range(nodes), 2))
        if hidden[one] != hidden[other]:
            edges.add((one, other))
    some_colour = [" ".join(str(3 * node + colour + 1) for colour in COLOURS) for node in range(nodes)]
    different = [
        f"-{3 * one + colour + 1} -{3 * other + colour + 1}" for one, other in sorted(edges) for colour in COLOURS
    ]
    return [f"p cnf {3 * nodes} {len(some_colour) + len(different)}", *some_colour, *different]


def main() -> None:
    """Print one formula in DIMACS format."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("number", type=int)
    parser.add_argument("--nodes", type=int, nargs=2, default=(300, 500), help="fewest and most nodes")
    asked = parser.parse_args()
    head, *rest = clauses(asked.number, *asked.nodes)
    sys.stdout.write(
        "\n".join([f"c planted colouring, number {asked.number}", head, *(f"{each} 0" for each in rest), ""])
    )


if __name__ == "__main__":
    main()
