# noqa: INP001 (a script beside its scenario, not part of a package)
"""Files to be compressed, one per number: `python3 make_file.py 7` prints file 7.

Each is a log of a made-up machine park: its number of machines, how chatty it is, how often lines repeat and how many
random identifiers it holds are drawn. So files differ in what compresses them well. Standard library only.
"""

import argparse
import random
import sys

WORDS = ["started", "stopped", "waiting", "ready", "failed", "retry", "timeout", "queue", "worker", "cache", "merge"]


def lines(number: int) -> list[str]:
    """The lines of that file."""
    draw = random.Random(f"log {number}")  # noqa: S311 (no secret is made here)
    machines = [f"node-{draw.randrange(10**4):04d}" for _ in range(draw.randint(3, 300))]
    sayings = [" ".join(draw.choices(WORDS, k=draw.randint(3, 12))) for _ in range(draw.randint(20, 2000))]
    noise, echo = draw.uniform(0, 0.5), draw.uniform(0, 0.6)
    second = 0
    found: list[str] = []
    for _ in range(draw.randint(2_000, 15_000)):
        second += draw.choice((0, 0, 0, 1, 2))
        if found and draw.random() < echo:
            found.append(draw.choice(found[-200:]))
            continue
        identifier = f" id={draw.getrandbits(64):016x}" if draw.random() < noise else ""
        found.append(f"{second:08d} {draw.choice(machines)} {draw.choice(sayings)}{identifier}")
    return found


def main() -> None:
    """Print one file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("number", type=int)
    sys.stdout.write("\n".join([*lines(parser.parse_args().number), ""]))


if __name__ == "__main__":
    main()
