# noqa: INP001 (a script beside its scenario, not part of a package)
"""Make the folder `instances`: small tables of orders, one CSV file each. `python3 make_tables.py` makes 40 of them.

Standard library only. The same number gives the same table on every machine.
"""

import argparse
import random
from pathlib import Path


def table(number: int) -> str:
    """Return table `number`; its size is drawn as well."""
    draw = random.Random(number)  # noqa: S311 (no secret is made here)
    rows, customers = draw.randint(1000, 6000), draw.randint(50, 400)
    lines = [f"{row},{draw.randrange(customers)},{draw.randint(1, 500)}" for row in range(rows)]
    return "\n".join(["id,customer,amount", *lines, ""])


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("instances"))
    parser.add_argument("--first", type=int, default=0, help="number of the first table")
    parser.add_argument("--count", type=int, default=40, help="how many")
    asked = parser.parse_args()
    asked.folder.mkdir(exist_ok=True)
    for number in range(asked.first, asked.first + asked.count):
        (asked.folder / f"orders-{number:04d}.csv").write_text(table(number), encoding="ascii")


if __name__ == "__main__":
    main()
