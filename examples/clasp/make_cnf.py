# noqa: INP001 (a script beside its scenario, not part of a package)
"""Formulas of many makes, one per number: `python3 make_cnf.py 7` prints formula 7 in DIMACS format.

The make, the size and the density are drawn for each: random clauses of three or five literals near the threshold,
systems of parities over three variables, and chains of gates whose output is forced. So no single strategy fits them
all. Standard library only; the same number gives the same formula on every machine.
"""

import argparse
import itertools
import random
import sys

Clause = tuple[int, ...]


def random_clauses(draw: random.Random, size: int, width: int, ratio: float) -> list[Clause]:
    """Return `ratio` clauses per variable, each with `width` different variables."""
    count = round(ratio * draw.uniform(0.95, 1.05) * size)
    return [
        tuple(draw.choice((-1, 1)) * variable for variable in draw.sample(range(1, size + 1), width))
        for _ in range(count)
    ]


def parities(draw: random.Random, size: int) -> list[Clause]:
    """Equations x + y + z = 0 or 1; slightly more of them than variables contradict each other."""
    clauses: list[Clause] = []
    for _ in range(round(draw.uniform(0.85, 1.0) * size)):
        variables, total = draw.sample(range(1, size + 1), 3), draw.randint(0, 1)
        # Every wrong assignment is excluded by one clause: it has an odd number of wrong values.
        wrong = [signs for signs in itertools.product((1, -1), repeat=3) if (signs.count(-1) + total) % 2 == 1]
        clauses += [tuple(sign * each for sign, each in zip(signs, variables, strict=True)) for signs in wrong]
    return clauses


def gates(draw: random.Random, size: int) -> list[Clause]:
    """Layers of and-gates and exclusive-or-gates over earlier signals; some late signals are forced."""
    clauses: list[Clause] = []
    inputs = size // 4
    for output in range(inputs + 1, size + 1):
        one, other = (draw.choice((-1, 1)) * each for each in draw.sample(range(1, output), 2))
        if draw.random() < 0.6:
            clauses += [(-output, one), (-output, other), (output, -one, -other)]
        else:
            clauses += [(-output, one, other), (-output, -one, -other), (output, -one, other), (output, one, -other)]
    forced = draw.sample(range(inputs + 1, size + 1), size // 8)
    return clauses + [(draw.choice((-1, 1)) * signal, draw.choice((-1, 1)) * draw.choice(forced)) for signal in forced]


def formula(number: int) -> tuple[int, list[Clause]]:
    """The formula of that number: how many variables, and the clauses."""
    draw = random.Random(f"formula {number}")  # noqa: S311 (no secret is made here)
    make = draw.randrange(4)
    if make == 0:
        size = draw.randint(140, 240)
        return size, random_clauses(draw, size, 3, 4.26)
    if make == 1:
        size = draw.randint(40, 52)
        return size, random_clauses(draw, size, 5, 21.1)
    if make == 2:
        size = draw.randint(200, 350)
        return size, parities(draw, size)
    size = draw.randint(2000, 8000)
    return size, gates(draw, size)


def main() -> None:
    """Print one formula."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("number", type=int)
    variables, clauses = formula(parser.parse_args().number)
    lines = [" ".join(map(str, (*clause, 0))) for clause in clauses]
    sys.stdout.write("\n".join([f"p cnf {variables} {len(clauses)}", *lines, ""]))


if __name__ == "__main__":
    main()
