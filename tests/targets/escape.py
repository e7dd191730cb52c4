"""Forks, starts sessions, ignores signals, daemonises, closes everything; its main process ends, burns or sleeps.

Usage: escape.py end|burn|sleep
Prints the numbers of all processes that try to survive.
"""

import os
import signal
import sys
import time


def be_stubborn() -> None:
    """Ignore what can be ignored."""
    for number in range(1, signal.NSIG):
        if number not in {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                continue


def stay(said: int) -> None:
    """Tell the own number, close everything, and stay for ever."""
    be_stubborn()
    os.write(said, b"%d\n" % os.getpid())
    os.closerange(0, 256)
    while True:
        time.sleep(60)


def main(manner: str) -> None:
    """A plain child, one in a group of its own, one in a session of its own, and a daemon."""
    heard, said = os.pipe()
    if os.fork() == 0:
        stay(said)
    if os.fork() == 0:
        os.setpgid(0, 0)
        stay(said)
    if os.fork() == 0:
        os.setsid()
        stay(said)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            stay(said)
        os._exit(0)
    told = b""
    while told.count(b"\n") < 4:
        told += os.read(heard, 256)
    os.write(1, told)
    be_stubborn()
    while manner == "burn":
        pass
    while manner == "sleep":
        time.sleep(60)


if __name__ == "__main__":
    main(sys.argv[1])
