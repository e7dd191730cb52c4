# noqa: INP001 (a script beside its scenario, not part of a package)
"""Load a table into SQLite and ask it for every customer's orders: `python3 query.py INDEX BATCH FILE`.

INDEX is none, customer or covering; BATCH is how many customers one query asks for. Prints the sum over all answers.
"""

import csv
import sqlite3
import sys
from pathlib import Path

INDEXES = {
    "none": "",
    "customer": "CREATE INDEX by_customer ON orders (customer)",
    "covering": "CREATE INDEX by_customer ON orders (customer, amount)",
}


def total(index: str, batch: int, path: Path) -> int:
    """Return the sum of every customer's largest order."""
    with path.open(newline="", encoding="ascii") as stream:
        rows = [(int(row["customer"]), int(row["amount"])) for row in csv.DictReader(stream)]
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE orders (customer INTEGER, amount INTEGER)")
    database.executemany("INSERT INTO orders VALUES (?, ?)", rows)
    database.execute(INDEXES[index])
    customers = sorted({customer for customer, _ in rows})
    found = 0
    for place in range(0, len(customers), batch):
        asked = customers[place : place + batch]
        marks = ", ".join("?" * len(asked))
        # The marks are ours; what is asked for is bound to them.
        query = f"SELECT max(amount) FROM orders WHERE customer IN ({marks}) GROUP BY customer"  # noqa: S608
        found += sum(amount for (amount,) in database.execute(query, asked))
    return found


if __name__ == "__main__":
    print(f"total {total(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))}")  # noqa: T201 (this is its answer)
