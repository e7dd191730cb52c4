"""One bad habit per word.

Usage: misbehave.py signal N | stop | bomb N | close | keep-pipe | kill-group | kill-parent | deep N | tell
"""

import json
import os
import signal
import sys
import time


def die(number: int) -> None:
    """End by a signal that is not blocked, ignored or handled."""
    if number not in {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    # Some signals are ignored by default; who raises one is not content with itself all the same.
    sys.exit(70)


def bomb(most: int) -> None:
    """Fork until there are so many, each of which forks as well; none ever ends."""
    for _ in range(most.bit_length()):
        try:
            os.fork()
        except OSError:
            break
    while True:
        time.sleep(60)


def close_and_compute() -> None:
    """Close the output at once and go on for a while."""
    os.close(1)
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass


def keep_the_pipe() -> None:
    """End, while a daemon keeps the output open."""
    os.write(1, b"done\n")
    if os.fork() == 0:
        os.setsid()
        time.sleep(60)


def tell() -> None:
    """What a target sees of the world."""
    told = {
        "descriptors": sorted(int(name) for name in os.listdir("/proc/self/fd"))[:-1],  # noqa: PTH208 (no imports)
        "arguments": [os.fsencode(word).hex() for word in sys.argv[2:]],
        "environment": dict(os.environ),
        "directory": os.getcwd(),  # noqa: PTH109 (no imports beyond need)
        "session": os.getsid(0) == os.getpid(),
        "terminal": os.isatty(0) or os.isatty(1) or os.isatty(2),
        "cores": sorted(os.sched_getaffinity(0)),
    }
    os.write(1, json.dumps(told).encode() + b"\n")


def main(habit: str, number: int) -> None:
    """See the usage."""
    if habit == "signal":
        die(number)
    elif habit == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif habit == "bomb":
        bomb(number)
    elif habit == "close":
        close_and_compute()
    elif habit == "keep-pipe":
        keep_the_pipe()
    elif habit == "kill-group":
        os.kill(0, signal.SIGKILL)
    elif habit == "kill-parent":
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
    elif habit == "deep":
        for _ in range(number):
            os.mkdir("d")  # noqa: PTH102 (no imports beyond need)
            os.chdir("d")
    else:
        tell()


if __name__ == "__main__":
    word = sys.argv[2] if len(sys.argv) > 2 else ""
    main(sys.argv[1], int(word) if word.isdigit() and sys.argv[1] != "tell" else 0)
