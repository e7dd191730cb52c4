"""`python -m captime.instances NAME --seed K [options] [-o FILE]`: one instance, to stdout or to a file."""

import sys

from captime.instances import INSTANCES
from captime.instances.command import run


def main(words: list[str]) -> int:
    """Choose the family by the first word, and let it read the rest."""
    if not words or words[0] not in INSTANCES:
        wrong = f"there is no family of instances {words[0]!r}; " if words and not words[0].startswith("-") else ""
        print(
            f"{wrong}usage: python -m captime.instances NAME --seed K [options] [-o FILE]\n"
            f"NAME: {', '.join(INSTANCES)}; NAME --help tells its options",
            file=sys.stdout if "--help" in words else sys.stderr,
        )
        return 0 if "--help" in words else 2
    name, *rest = words
    return run(INSTANCES[name].generate, rest, f"python -m captime.instances {name}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
