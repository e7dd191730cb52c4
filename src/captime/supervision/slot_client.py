"""A slot supervisor seen from its coordinator: how it is started, spoken to, and cleared away if it died."""

import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from captime.supervision import scratch
from captime.supervision.cgroups import hand_down_controllers, kill_groups
from captime.supervision.launcher import SlotPlace
from captime.supervision.messages import Channel, Launch
from captime.supervision.process_tree import strike
from captime.supervision.processes import SLOT, Process, command, descendants, look_at, tracer_of
from captime.supervision.scratch import SIGNALLED, kill_below, sweep_tag

LOOK_SECONDS = 0.5
"""How often a coordinator looks after its supervisors."""

_GOODBYE_SECONDS = 5.0
_LOG_TAIL = 2000
# Looks in a row. A stopped supervisor enforces no captime, so it is not waited for. One that is silent may be busy on a
# busy machine, with a folder of a million files. Looks are counted, not seconds: while the coordinator is itself
# stopped, with all that it has started perhaps, there are none.
_STOPPED_LOOKS = 4
_SILENT_LOOKS_BEFORE_PING, _SILENT_LOOKS = 60, 1200


class SlotClient:
    """One slot supervisor, running.

    Args:
        index: Which slot.
        place: Where it runs its programs; the directory and the group are made here, and taken away at the end.
        tag: What the tags of all its runs begin with.

    Attributes:
        index: Which slot.
        held: Numbers of the launches it has been given and not reported yet, in the order in which it does them.
        begun: Those of them that it has begun.
        ready: Whether it has ever been ready for a launch.
        was_killed: Whether a signal ended it; known after it was cleared away.
    """

    def __init__(self, index: int, place: SlotPlace, tag: str) -> None:
        self.index = index
        self.held: list[int] = []
        self.begun: set[int] = set()
        self.ready = False
        self.was_killed = False
        self._supervisor: Process | None = None
        self._next_look = 0.0
        self._stopped_looks = self._silent_looks = 0
        self._place = place
        self._tag = tag
        Path(place.scratch).mkdir(mode=0o700, parents=True)
        if place.group is not None:
            place.group.mkdir()
            hand_down_controllers(place.group)
        self._log = Path(f"{place.scratch}.log")
        ours, theirs = socket.socketpair()
        self.channel = Channel(ours)
        # A supervisor tied to a thread that ends dies with it; only the main thread lasts as long as the process.
        tied = threading.current_thread() is threading.main_thread()
        description = json.dumps(asdict(place) | {"group": None if place.group is None else str(place.group)})
        words = (str(theirs.fileno()), str(os.getpid()), str(int(tied)), description)
        with theirs, self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 (our own interpreter and module)
                command("captime.supervision.slot", *words),
                env={**os.environ, SLOT: f"{tag}/{os.getpid()}"},
                # Its end tells the guardian that the coordinator is gone.
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=[theirs.fileno()],
                # Ctrl-C is for the coordinator, which tells its supervisors what to do.
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Its process number; until it is ready, that of the process we have started."""
        return self._process.pid if self._supervisor is None else self._supervisor.pid

    def give(self, launch: Launch) -> None:
        """Hand it a launch; it does one after the other."""
        self.held.append(launch.number)
        self.channel.send("run", launch.to_json())

    def take_back(self, number: int) -> None:
        """A launch is no longer its business."""
        self.held.remove(number)
        self.begun.discard(number)

    def hear(self) -> Iterator[tuple[str, str]]:
        """Yield what it says."""
        for word, text in self.channel.receive():
            self._silent_looks = 0
            if word == "ready":
                self.ready = True
                self._supervisor = look_at(int(text))
            yield word, text

    def trouble(self) -> str:
        """Return what keeps the supervisor from its work, "" if nothing does.

        To be asked again and again; it takes a few looks to tell. A supervisor in trouble has to be cleared away.
        """
        now = time.monotonic()
        if now < self._next_look:
            return ""
        self._next_look = now + LOOK_SECONDS
        found = [look_at(pid) for pid in {self.pid, self._process.pid}]
        stopped = any(each is not None and each.stopped for each in found)
        self._stopped_looks = self._stopped_looks + 1 if stopped else 0
        if self._stopped_looks >= _STOPPED_LOOKS:
            return f"the supervisor of slot {self.index} was stopped by a signal, or is held by a tracer"
        tracer = tracer_of(self.pid)
        if tracer and tracer in {each.pid for each in descendants([self.pid])}:
            return f"the supervisor of slot {self.index} is traced by a process of its own run"
        self._silent_looks += 1
        if self._silent_looks == _SILENT_LOOKS_BEFORE_PING:
            self.channel.send("ping")
        if self._silent_looks >= _SILENT_LOOKS:
            seconds = self._silent_looks * LOOK_SECONDS
            return f"the supervisor of slot {self.index} has not answered for {seconds:.0f} s"
        return ""

    def end(self) -> None:
        """Make sure that it is dead: it says nothing more, and what it has said can be heard to the end.

        Nothing that it has started is left below it or below its guardian.
        """
        found = None if self._supervisor is None else look_at(self._supervisor.pid)
        if found is not None and self._supervisor is not None and found.started == self._supervisor.started:
            # If its guardian is dead, nothing will tell afterwards that these were below it. It comes first itself.
            for each in list(descendants([found.pid])):
                strike(each)
        if self._process.poll() is None:
            # A stopped guardian neither waits nor kills, but it has adopted what is to be killed.
            kill_below(self._process.pid)
            self._process.send_signal(signal.SIGCONT)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_GOODBYE_SECONDS)
        self._process.kill()
        self._process.wait()
        self._let_go()

    def clear_away(self) -> str:
        """After its death: kill what is left of its run; how it died, in words."""
        self.end()
        code = self._process.returncode
        self.channel.close()
        if self._place.group is not None:
            kill_groups(self._place.group)
        sweep_tag(f"{self._tag}/functions.{self.pid}", whole=True)
        self._remove_folder()
        log = self._log.read_bytes()[-_LOG_TAIL:].decode("utf-8", "replace").strip() if self._log.exists() else ""
        self._log.unlink(missing_ok=True)
        signalled = _signal_of(code)
        self.was_killed = signalled > 0
        how = f"signal {signalled}" if signalled > 0 else f"exit code {code}"
        return f"the supervisor of slot {self.index} died ({how}){': ' + log if log else ''}"

    def close(self) -> None:
        """Let it go: it kills what it has started and ends. If it does not, it is ended."""
        self.channel.close()
        try:
            self._process.wait(_GOODBYE_SECONDS)
        except subprocess.TimeoutExpired:
            self.end()
            sweep_tag(f"{self._tag}/")
        self._let_go()
        if self._place.group is not None:
            kill_groups(self._place.group)
        self._remove_folder()
        self._log.unlink(missing_ok=True)

    def _let_go(self) -> None:
        """End the pipe by which its guardian knows that we are there."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _remove_folder(self) -> None:
        scratch.remove(self._place.scratch)


def _signal_of(code: int) -> int:
    """Return the signal that ended a process; 0 or less if none did."""
    return -code if code < 0 else code - SIGNALLED
