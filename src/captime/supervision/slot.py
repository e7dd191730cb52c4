"""Run as a process of its own: a slot supervisor, which does one launch after the other until its coordinator is gone.

It says `started N` before anything of a launch happens, and waits until that is on its way, so that a launch it never
spoke of has never begun. The words:
`run`, `cancel N`, `withdraw N`, `ping` come in; `ready PID`, `started N`, `progress N nanoseconds`, `withdrawn N`,
`report`, `alive` go out.
"""

import gc
import json
import os
import signal
import socket
from collections import deque
from dataclasses import replace
from pathlib import Path

from captime.supervision.cgroups import GROUP_NOTE, kill_groups
from captime.supervision.launcher import Launcher, SlotPlace
from captime.supervision.messages import Channel, Launch, Report
from captime.supervision.output import IoLoop
from captime.supervision.processes import become_subreaper, die_with_parent
from captime.supervision.scratch import guarded, remove

_FOREVER = 3600.0


class Slot:
    """A supervisor at work.

    Args:
        channel: The conversation with the coordinator.
        place: Where the runs happen.
    """

    def __init__(self, channel: Channel, place: SlotPlace) -> None:
        self._channel = channel
        self._listener = IoLoop(channel)
        self._launcher = Launcher(place, self._listener, self)
        self._waiting: deque[Launch] = deque()
        self._current: int | None = None
        self._cancelled: set[int] = set()

    @property
    def _leaving(self) -> bool:
        return self._channel.closed or self._listener.asked_to_go

    def serve(self) -> None:
        """Serve until the coordinator is gone or asks the supervisor to end; leave nothing behind."""
        self._channel.send("ready", str(os.getpid()))
        try:
            while not self._leaving:
                self.attend(self._listener.wait(0.0 if self._waiting else _FOREVER))
                if self._waiting and not self._leaving:
                    self._do(self._waiting.popleft())
        finally:
            self._launcher.close()

    def _do(self, launch: Launch) -> None:
        self._current = launch.number
        if not self._announced(launch.number):
            return
        report = self._launcher.perform(launch)
        self._current = None
        if report.ended == "cancelled" and launch.number not in self._cancelled:
            # A signal told us to go. The coordinator, if it is there, has not asked for this run to be stopped.
            report = replace(report, ended="lost", problem="its supervisor was told to end during the run")
        self._cancelled.discard(launch.number)
        self._channel.send("report", report.to_json())

    def _announced(self, number: int) -> bool:
        """Say that a launch begins; False if the coordinator is gone before it could be told."""
        self._channel.send("started", str(number))
        # A coordinator that has not read for a long time lets the words pile up on this side. They die with us, and a
        # launch that began unheard would be given to another supervisor.
        while self._channel.waiting and not self._leaving:
            self.attend(self._listener.wait(_FOREVER))
        return not self._leaving

    def attend(self, ready: set[int]) -> bool:
        """Hear the coordinator; True if the run under way shall be stopped."""
        if self._channel.fileno() in ready:
            for word, text in self._channel.receive():
                if word == "run":
                    self._waiting.append(Launch.from_json(text))
                elif word == "cancel":
                    self._cancel(int(text))
                elif word == "withdraw":
                    self._withdraw(int(text))
                elif word == "ping":
                    self._channel.send("alive")
        return self._leaving or self._current in self._cancelled

    def tell(self, seen_ns: int) -> None:
        """Pass on how far the run has come; never mind if the coordinator has not even heard the last of it."""
        if not self._channel.waiting:
            self._channel.send("progress", f"{self._current} {seen_ns}")

    def _cancel(self, number: int) -> None:
        """Stop the run under way, or do not begin at all."""
        if number == self._current:
            self._cancelled.add(number)
        elif self._taken_back(number):
            self._channel.send("report", Report(number, "cancelled").to_json())

    def _withdraw(self, number: int) -> None:
        """Give a launch back that has not begun."""
        if self._taken_back(number):
            self._channel.send("withdrawn", str(number))

    def _taken_back(self, number: int) -> bool:
        for launch in self._waiting:
            if launch.number == number:
                self._waiting.remove(launch)
                return True
        return False


def main(arguments: list[str]) -> None:
    """Take a connection, the process number of the coordinator, and a description of the place."""
    descriptor, coordinator, tied_to_it, description = arguments
    connection = socket.socket(fileno=int(descriptor))
    connection.set_inheritable(False)
    if int(tied_to_it):
        # Not a signal that kills: what it has started has to be cleared away first.
        die_with_parent(signal.SIGTERM)
        if os.getppid() != int(coordinator):
            return
    place = json.loads(description)
    group = place.pop("group")
    adopts = place["isolation"] != "posix"
    guarded(connection, lambda: _remove_leftovers(place["scratch"], group), adopts=adopts)
    if adopts:
        become_subreaper()
    if place["core"] is not None:
        # A process begins where its parent is; and what the supervisor itself does disturbs no other run.
        os.sched_setaffinity(0, {place["core"]})
    slot = Slot(Channel(connection), SlotPlace(**place, group=None if group is None else Path(group)))
    # What exists now lasts until the process ends: the collector need not look at it, nor copy its pages after a fork.
    gc.freeze()
    try:
        slot.serve()
    finally:
        _remove_leftovers(place["scratch"], group)


def _remove_leftovers(folder: str, group: str | None) -> None:
    """The coordinator does the same, unless it is dead; the last supervisor takes away what they all stood in."""
    remove(folder)
    Path(f"{folder}.log").unlink(missing_ok=True)
    if group is not None:
        kill_groups(Path(group))
    if [each.name for each in Path(folder).parent.glob("*")] == [GROUP_NOTE]:
        Path(folder).with_name(GROUP_NOTE).unlink(missing_ok=True)
    for path in [Path(folder).parent, *([] if group is None else [Path(group), Path(group).parent])]:
        try:
            path.rmdir()
        except OSError:
            continue
