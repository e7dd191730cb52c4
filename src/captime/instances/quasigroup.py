"""Quasigroup with holes as CNF: a Latin square with some cells erased, to be filled in again.

The choice of restarts and of preprocessing matters much here, because runtimes have heavy tails. Nothing but the
standard library: see `captime.instances`.
"""

import random
import sys

SUFFIX = ".cnf"
Square = list[list[int]]


def draw(seed: int, size: tuple[int, int], holes: float) -> tuple[Square, set[tuple[int, int]]]:
    """Return a Latin square, and which of its cells are erased."""
    rng = random.Random(f"quasigroup {seed}")  # noqa: S311 (an instance, not a secret)
    order = rng.randint(*size)
    square = shuffled(rng, order)
    # The same number of holes in every row and almost in every column: the hardest pattern.
    in_row = max(1, min(order - 1, round(holes * order)))
    left = [in_row] * order
    erased: set[tuple[int, int]] = set()
    for row in range(order):
        # Columns that still need most come first, in random order among equals.
        columns = sorted(range(order), key=lambda column: (-left[column], rng.random()))[:in_row]
        for column in columns:
            left[column] -= 1
            erased.add((row, column))
    return square, erased


def shuffled(rng: random.Random, order: int) -> Square:
    """A Latin square far from the cyclic one it starts from: rows exchange parts that leave all columns Latin."""
    symbols, columns = rng.sample(range(order), order), rng.sample(range(order), order)
    square = [[symbols[(row + column) % order] for column in columns] for row in rng.sample(range(order), order)]
    for _ in range(3 * order):
        one, other = rng.sample(range(order), 2)
        where = {symbol: column for column, symbol in enumerate(square[one])}
        start = column = rng.randrange(order)
        while True:  # the columns in which the two rows hold the same symbols, reached by following them
            square[one][column], square[other][column] = square[other][column], square[one][column]
            column = where[square[one][column]]
            if column == start:
                break
    return square


def generate(seed: int, *, size: tuple[int, int] = (18, 30), holes: float = 0.42) -> str:
    """Return a satisfiable formula: can the erased cells of a Latin square be filled in?

    Hardness: heavy-tailed, and largest at about 42 % holes. At the defaults minisat takes 2 ms to a second; order 35
    takes seconds, order 40 takes minutes on unlucky seeds.

    Args:
        seed: Which formula; the same seed and options give the same bytes.
        size: Smallest and largest order of the square; drawn evenly between them.
        holes: Share of cells that are erased.
    """
    if not (2 <= size[0] <= size[1] and 0 < holes < 1):
        raise ValueError(f"size is {size[0]}-{size[1]}, holes {holes:g}; expected order 2 or more, holes from 0 to 1")
    square, erased = draw(seed, size, holes)
    number = numbering(square, erased)
    groups: dict[tuple[str, int, int], list[int]] = {}
    for (row, column, symbol), variable in number.items():
        for place in (("cell", row, column), ("row", row, symbol), ("column", column, symbol)):
            groups.setdefault(place, []).append(variable)
    lines = []
    for group in groups.values():
        lines.append(" ".join(map(str, (*group, 0))))
        lines += [f"-{one} -{other} 0" for k, one in enumerate(group) for other in group[:k]]
    title = f"c quasigroup with holes: seed {seed}, order {len(square)}, {len(erased)} holes"
    return "\n".join((title, f"p cnf {len(number)} {len(lines)}", *lines, ""))


def numbering(square: Square, erased: set[tuple[int, int]]) -> dict[tuple[int, int, int], int]:
    """Return a variable for every (row, column, symbol) that the cells left standing do not rule out."""
    order = range(len(square))
    missing_in_row = [{square[row][column] for column in order if (row, column) in erased} for row in order]
    missing_in_column = [{square[row][column] for row in order if (row, column) in erased} for column in order]
    possible = [
        (row, column, symbol)
        for row, column in sorted(erased)
        for symbol in sorted(missing_in_row[row] & missing_in_column[column])
    ]
    return {triple: variable for variable, triple in enumerate(possible, start=1)}


if __name__ == "__main__":  # as a plain script; -I leaves the script's own folder out of the path
    from importlib import import_module

    sys.path.insert(0, __file__.rpartition("/")[0])
    sys.exit(import_module("command").run(generate, sys.argv[1:], "quasigroup"))
