"""Writes without end.

Usage: flood.py stdout|stderr|lines|line|file
"""

import os
import sys


def main(where: str) -> None:
    """See the usage."""
    chunk = {"lines": b"y\n" * (1 << 15), "file": b"x" * (1 << 18)}.get(where, os.urandom(1 << 16).replace(b"\n", b"x"))
    descriptor = 2 if where == "stderr" else 1
    if where != "file":
        while True:
            os.write(descriptor, chunk)
    for number in range(1_000_000):
        # Many files, each of modest size: no limit on the size of a file stops it.
        with open(f"{number}", "wb") as file:  # noqa: PTH123 (no imports beyond need)
            file.write(chunk)


if __name__ == "__main__":
    main(sys.argv[1])
