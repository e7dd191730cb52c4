"""Eats memory until it is stopped.

Usage: eat.py PROCESSES   (0: the main process itself)
"""

import os
import sys
import time


def eat() -> None:
    """A few megabytes at a time, every page touched."""
    held = []
    while True:
        held.append(bytearray(4 << 20))
        held[-1][::4096] = b"x" * 1024
        time.sleep(0.0005)


def main(processes: int) -> None:
    """See the usage."""
    for _ in range(processes):
        if os.fork() == 0:
            eat()
    if processes == 0:
        eat()
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main(int(sys.argv[1]))
