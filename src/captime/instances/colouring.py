"""Planted 3-colouring as CNF: a graph that has a 3-colouring because it was built around one.

Nothing but the standard library, so that it also runs as a plain script, which starts much faster than the package:
`python -I .../captime/instances/colouring.py --seed 7 -o 7.cnf`.
"""

import random
import sys

SUFFIX = ".cnf"
COLOURS = 3


def draw(seed: int, size: tuple[int, int], density: float) -> tuple[list[int], list[tuple[int, int]]]:
    """Return a colour (0 to 2) for each node, and edges between nodes of different colours, the smaller node first.

    Plain lists, because `dataclasses` would double the start-up time.
    """
    rng = random.Random(f"colouring {seed}")  # noqa: S311 (an instance, not a secret)
    nodes = rng.randint(*size)
    # Balanced colours: with unequal shares the planted colouring gives itself away.
    colours = [node % COLOURS for node in range(nodes)]
    rng.shuffle(colours)
    shares = [colours.count(colour) for colour in range(COLOURS)]
    possible = shares[0] * shares[1] + shares[0] * shares[2] + shares[1] * shares[2]
    wanted = min(possible, round(density * nodes))
    edges: set[tuple[int, int]] = set()
    while len(edges) < wanted:
        one, other = rng.randrange(nodes), rng.randrange(nodes)
        if colours[one] != colours[other]:
            edges.add((min(one, other), max(one, other)))
    return colours, sorted(edges)


def generate(seed: int, *, size: tuple[int, int] = (80, 200), density: float = 2.3) -> str:
    """Return a satisfiable formula: can the nodes of a random graph be coloured with three colours?

    Hardness: grows with the number of nodes, and is largest at about 2.3 edges a node. At the defaults
    a modern solver takes 1 to 20 ms; 400 nodes take tenths of a second, and far fewer if preprocessing is left out.

    Args:
        seed: Which formula; the same seed and options give the same bytes.
        size: Fewest and most nodes; the number is drawn evenly between them.
        density: Edges a node.
    """
    if not (COLOURS <= size[0] <= size[1] and density > 0):
        raise ValueError(
            f"size is {size[0]}-{size[1]} at density {density:g}; expected 3 or more nodes, density above 0"
        )
    colours, edges = draw(seed, size, density)
    nodes = len(colours)
    lines = [f"{_has(node, 0)} {_has(node, 1)} {_has(node, 2)} 0" for node in range(nodes)]
    lines += [f"-{_has(node, a)} -{_has(node, b)} 0" for node in range(nodes) for a, b in ((0, 1), (0, 2), (1, 2))]
    lines += [f"-{_has(one, c)} -{_has(other, c)} 0" for one, other in edges for c in range(COLOURS)]
    title = f"c planted 3-colouring: seed {seed}, {nodes} nodes, {len(edges)} edges"
    return "\n".join((title, f"p cnf {COLOURS * nodes} {len(lines)}", *lines, ""))


def _has(node: int, colour: int) -> int:
    """Return the variable that says so."""
    return COLOURS * node + colour + 1


if __name__ == "__main__":  # as a plain script; -I leaves the script's own folder out of the path
    from importlib import import_module

    sys.path.insert(0, __file__.rpartition("/")[0])
    sys.exit(import_module("command").run(generate, sys.argv[1:], "colouring"))
