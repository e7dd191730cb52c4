"""The process above a slot supervisor: it adopts what outlives the supervisor, and kills it.

A supervisor adopts the orphans of its runs. If it is killed itself, they would go to the first process of the machine,
where a daemon that has emptied its environment cannot be told from any other process. With a guardian in between,
everything below it belongs to the slot. It holds no connection and does no work: it waits.
"""

import os
import select
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from captime.supervision.kernel import become_subreaper, die_with_parent
from captime.supervision.process_tree import strike
from captime.supervision.processes import children_of, descendants, look_at

SIGNALLED = 128
"""A guardian's exit code is that of its supervisor, or this and the number of the signal that killed it."""

# How long something that was killed may take to die; see `captime.supervision.process_tree`.
_KILL_PATIENCE = 60.0
# After the coordinator's end a supervisor has this long to kill what it has started and to remove its folders.
_LEAVING_PATIENCE = 600.0
_LOOK_SECONDS = 0.5
_STOPPED_LOOKS = 4


def guarded(connection: socket.socket, leave_nothing: Callable[[], None], *, adopts: bool) -> None:
    """Fork a supervisor; returns there. This process becomes its guardian, and ends after it.

    Args:
        connection: The supervisor's, which is to end with the supervisor.
        leave_nothing: Removes the folders of the slot, if neither supervisor nor coordinator is left to do it.
        adopts: Orphans of the supervisor become the guardian's children; False on level `posix`.
    """
    if adopts:
        become_subreaper()
    here = os.getpid()
    supervisor = os.fork()
    if supervisor != 0:
        connection.close()
        _Guardian(supervisor, leave_nothing).run_until_end()
    # Its own session: a terminal's signals are for the coordinator, and what carries a run's tag but is no run, such as
    # a fork server, is told by the session.
    os.setsid()
    die_with_parent(signal.SIGTERM)
    if os.getppid() != here:
        os._exit(1)
    nowhere = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nowhere, 0)
    os.close(nowhere)


def kill_below(*roots: int) -> bool:
    """Kill everything below these processes, but not themselves; whether nothing is left.

    A supervisor among them dies before the processes it watches, so it reports none of their deaths.
    """
    deadline = time.monotonic() + _KILL_PATIENCE
    looks_without_any = 0
    while looks_without_any < 2 and time.monotonic() < deadline:
        below = (child for root in roots for child in children_of(root))
        living = [each for each in descendants(below) if each.alive]
        looks_without_any = 0 if living else looks_without_any + 1
        for each in living:
            strike(each)
        if living:
            time.sleep(0.002)
    return looks_without_any >= 2


class _Guardian:
    """Waits for the end of a supervisor."""

    def __init__(self, supervisor: int, leave_nothing: Callable[[], None]) -> None:
        self._supervisor = supervisor
        self._leave_nothing = leave_nothing
        # A pipe from the coordinator, in which nothing is ever written: its end is the coordinator's.
        self._coordinator = 0
        self._gone = False
        self._heard, bell = os.pipe()
        os.set_blocking(self._heard, False)
        os.set_blocking(bell, False)
        signal.set_wakeup_fd(bell, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._pass_on)

    def _pass_on(self, number: int, _frame: object) -> None:
        os.kill(self._supervisor, number)

    def run_until_end(self) -> NoReturn:
        """Wait until the supervisor has ended, kill what it has left, and end."""
        status, looks, stopped = self._ended(), 0, 0
        while status is None:
            watched = [self._heard] if self._gone else [self._heard, self._coordinator]
            ready = select.select(watched, [], [], _LOOK_SECONDS if self._gone else None)[0]
            if self._heard in ready:
                with suppress(BlockingIOError):
                    os.read(self._heard, 4096)
            self._gone = self._gone or self._coordinator in ready
            status = self._ended()
            if status is None and self._gone:
                # Its connection has ended too, so it is about to leave; unless a program of its own has stopped it.
                os.kill(self._supervisor, signal.SIGCONT)
                process = look_at(self._supervisor)
                looks, stopped = looks + 1, stopped + 1 if process is not None and process.stopped else 0
                if stopped >= _STOPPED_LOOKS or looks * _LOOK_SECONDS > _LEAVING_PATIENCE:
                    os.kill(self._supervisor, signal.SIGKILL)
        kill_below(os.getpid())
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if self._gone:
            self._leave_nothing()
        os._exit(SIGNALLED + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))

    def _ended(self) -> int | None:
        pid, status = os.waitpid(self._supervisor, os.WNOHANG)
        return status if pid else None
