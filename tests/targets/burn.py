"""Burns CPU time in several ways and prints how much each process really used.

Usage: burn.py plain|threads|waited|unwaited|ignored|killed|outlived SECONDS [PROCESSES]
"""

import os
import signal
import sys
import threading
import time


def burn(seconds: float) -> None:
    """Use this much CPU time, then say how much this process has used in all."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    tell()


def tell() -> None:
    """One line, in one write, so that lines of several processes do not mix."""
    os.write(1, b"used %d\n" % time.process_time_ns())


def main(manner: str, seconds: float, processes: int) -> None:
    """See the usage."""
    if manner == "plain":
        burn(seconds)
    elif manner == "threads":
        burn_in_threads(seconds, processes)
    else:
        burn_in_processes(manner, seconds, processes)


def burn_in_threads(seconds: float, number: int) -> None:
    """This much in all."""
    threads = [threading.Thread(target=burn_quietly, args=(seconds / number,)) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tell()


def burn_in_processes(manner: str, seconds: float, processes: int) -> None:
    """This much in each."""
    if manner == "ignored":
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    children = [child(seconds, manner) for _ in range(processes)]
    if manner == "waited":
        for pid in children:
            os.waitpid(pid, 0)
    elif manner != "outlived":
        wait_without_reaping(children, manner)
    if manner == "killed":
        for pid in children:
            os.kill(pid, signal.SIGKILL)
    tell()


def burn_quietly(seconds: float) -> None:
    """For a thread: by its own clock."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def child(seconds: float, manner: str) -> int:
    """A process that burns, and then ends or continues for ever."""
    pid = os.fork()
    if pid == 0:
        burn(seconds)
        while manner in {"killed", "outlived"}:
            time.sleep(60)
        os._exit(0)
    return pid


def wait_without_reaping(children: list[int], manner: str) -> None:
    """Until all have burned what they shall."""
    while children:
        children = [pid for pid in children if not done(pid, manner)]
        time.sleep(0.005)


def done(pid: int, manner: str) -> bool:
    """Ended, as a zombie or for good; or asleep after its work."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:  # noqa: PTH123 (no imports beyond need)
            state = file.read().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z" or (manner == "killed" and state == "S")


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1)
