# noqa: INP001 (a script beside its scenario, not part of a package)
"""Random 3-SAT formulas near the threshold, one per number: `python3 make_cnf.py 7` prints formula 7 in DIMACS format.

Standard library only. The same number gives the same formula on every machine.
"""

import argparse
import random
import sys

RATIO = 4.26  # clauses per variable where satisfiable and unsatisfiable formulas are about as frequent


def formula(number: int, smallest: int, largest: int) -> str:
    """The formula of that number, its size drawn as well."""
    draw = random.Random(number)  # noqa: S311 (no secret is made here)
    variables = draw.randint(smallest, largest)
    clauses = [
        " ".join(str(draw.choice((-1, 1)) * variable) for variable in draw.sample(range(1, variables + 1), 3))
        for _ in range(round(RATIO * variables))
    ]
    lines = [f"c random 3-SAT, number {number}", f"p cnf {variables} {len(clauses)}"]
    return "\n".join([*lines, *(f"{clause} 0" for clause in clauses), ""])


def main() -> None:
    """Print one formula."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("number", type=int)
    parser.add_argument("--smallest", type=int, default=100, help="fewest variables")
    parser.add_argument("--largest", type=int, default=200, help="most variables")
    asked = parser.parse_args()
    sys.stdout.write(formula(asked.number, asked.smallest, asked.largest))


if __name__ == "__main__":
    main()
