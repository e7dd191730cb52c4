"""Fuzzed CNF: formulas of three makes, as a solver's fuzzer would throw at it, from trivial to hard.

Layers of variables with clauses of mixed lengths and gates between layers; systems of parities (XORs) with clauses
among them; and random 3-SAT near the threshold. Nothing but the standard library: see `captime.instances`.
"""

import random
import sys

SUFFIX = ".cnf"
Clauses = list[list[int]]


def threshold(rng: random.Random, variables: int) -> Clauses:
    """Random 3-SAT with 4.26 clauses a variable, give or take 6 %: where most formulas are hard."""
    count = round(rng.uniform(4.0, 4.52) * variables)
    return [_signed(rng, rng.sample(range(1, variables + 1), 3)) for _ in range(count)]


def layers(rng: random.Random, variables: int) -> Clauses:
    """Layers of clauses of mixed lengths over their own and earlier variables, and gates that tie layers together."""
    clauses: Clauses = []
    n_layers = rng.randint(3, 8)
    density = rng.uniform(3.3, 3.85)
    for layer in range(n_layers):
        first, last = layer * variables // n_layers + 1, (layer + 1) * variables // n_layers
        own = range(first, last + 1)
        for _ in range(round(density * len(own))):
            length = 2 if rng.random() < 0.02 else 3 if rng.random() < 0.85 else rng.randint(4, 6)
            clauses.append(_signed(rng, _mixed(rng, own, first - 1, length, 0.45)))
        for _ in range(len(own) // 10 if layer else 0):
            a, b, out = *_signed(rng, _mixed(rng, range(1, first), first - 1, 2, 0.5)), rng.choice(own)
            clauses += [[-out, a], [-out, b], [out, -a, -b]]
    return clauses


def parities(rng: random.Random, variables: int) -> Clauses:
    """Parities of three or four variables, not quite enough to fix everything, and clauses that need them."""
    clauses: Clauses = []
    for _ in range(round(rng.uniform(0.35, 0.5) * variables)):
        clauses += parity(rng.sample(range(1, variables + 1), 3 if rng.random() < 0.7 else 4), odd=rng.random() < 0.5)
    for _ in range(round(rng.uniform(2.1, 2.75) * variables)):
        clauses.append(_signed(rng, rng.sample(range(1, variables + 1), 3)))
    return clauses


def parity(variables: list[int], *, odd: bool) -> Clauses:
    """Return the clauses that say: an odd (or even) number of these variables is true.

    >>> parity([1, 2], odd=True)
    [[1, 2], [-1, -2]]
    """
    clauses: Clauses = [[]]
    for variable in variables:
        clauses = [[*clause, sign * variable] for clause in clauses for sign in (1, -1)]
    # A clause forbids the one assignment that makes all its literals false; its negative literals are true there.
    return [clause for clause in clauses if (sum(each < 0 for each in clause) % 2 == 1) != odd]


# How many variables each make has for a size of 1: chosen so that all three are about equally hard.
MAKES = {"threshold": (threshold, 1.0), "layers": (layers, 3.6), "parities": (parities, 1.05)}


def generate(seed: int, *, size: tuple[int, int] = (80, 200)) -> str:
    """A formula of a make drawn at random: 3-SAT near the threshold, layers with gates, or parities with clauses.

    Hardness: exponential in the size. At the defaults minisat takes 2 ms to a second; size 250 takes seconds, size
    350 minutes. Satisfiable and unsatisfiable formulas are both common.

    Args:
        seed: Which formula; the same seed and options give the same bytes.
        size: Smallest and largest size, drawn evenly between them: about the number of variables; layered formulas
            have 3.6 times as many, because they are easier.
    """
    if not 30 <= size[0] <= size[1]:
        raise ValueError(f"size is {size[0]}-{size[1]}; expected at least 30, the smaller number first")
    rng = random.Random(f"fuzz {seed}")  # noqa: S311 (an instance, not a secret)
    make = rng.choice(list(MAKES))
    builder, factor = MAKES[make]
    variables = round(factor * rng.randint(*size))
    clauses = builder(rng, variables)
    title = f"c fuzzed formula: seed {seed}, {make}"
    lines = [" ".join(map(str, (*clause, 0))) for clause in clauses]
    return "\n".join((title, f"p cnf {variables} {len(lines)}", *lines, ""))


def _signed(rng: random.Random, variables: list[int]) -> list[int]:
    return [variable if rng.random() < 0.5 else -variable for variable in variables]


def _mixed(rng: random.Random, own: range, earlier: int, length: int, share: float) -> list[int]:
    """Different variables, each from an earlier layer with that probability if there is one."""
    found: set[int] = set()
    while len(found) < length:
        found.add(rng.randint(1, earlier) if earlier and rng.random() < share else rng.choice(own))
    return sorted(found)


if __name__ == "__main__":  # as a plain script; -I leaves the script's own folder out of the path
    from importlib import import_module

    sys.path.insert(0, __file__.rpartition("/")[0])
    sys.exit(import_module("command").run(generate, sys.argv[1:], "fuzz"))
