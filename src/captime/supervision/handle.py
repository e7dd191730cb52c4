"""A slot supervisor seen from its coordinator: how it is started, spoken to, and cleared away if it died."""

import json
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from captime.supervision import scratch
from captime.supervision.bootstrap import command
from captime.supervision.groups import hand_down_controllers, kill_groups
from captime.supervision.launching import Place
from captime.supervision.messages import Launch
from captime.supervision.sweep import sweep_tag
from captime.supervision.wire import Channel

_GOODBYE_SECONDS = 5.0
_LOG_TAIL = 2000


class SlotHandle:
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
    """

    def __init__(self, index: int, place: Place, tag: str) -> None:
        self.index = index
        self.held: list[int] = []
        self.begun: set[int] = set()
        self.ready = False
        self._place = place
        self._tag = tag
        Path(place.scratch).mkdir(mode=0o700, parents=True)
        if place.group is not None:
            place.group.mkdir()
            hand_down_controllers(place.group)
        self._log = Path(f"{place.scratch}.log")
        ours, theirs = socket.socketpair()
        self.channel = Channel(ours)
        # A supervisor tied to a thread that ends dies with it; only the main thread lives as long as the process.
        tied = threading.current_thread() is threading.main_thread()
        description = json.dumps(asdict(place) | {"group": None if place.group is None else str(place.group)})
        words = (str(theirs.fileno()), str(os.getpid()), str(int(tied)), description)
        with theirs, self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 (our own interpreter and module)
                command("captime.supervision.slot", *words),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[theirs.fileno()],
                # Ctrl-C is for the coordinator, which tells its supervisors what to do.
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Its process number."""
        return self._process.pid

    def give(self, launch: Launch) -> None:
        """Hand it a launch; it does one after the other."""
        self.held.append(launch.number)
        self.channel.send("run", launch.to_json())

    def take_back(self, number: int) -> None:
        """A launch is no longer its business."""
        self.held.remove(number)
        self.begun.discard(number)

    def hear(self) -> Iterator[tuple[str, str]]:
        """What it says."""
        for word, text in self.channel.receive():
            self.ready = self.ready or word == "ready"
            yield word, text

    def end(self) -> None:
        """Make sure that it is dead: it says nothing more, and what it has said can be heard to the end."""
        self._process.kill()
        self._process.wait()

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
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return f"the supervisor of slot {self.index} died ({how}){': ' + log if log else ''}"

    def close(self) -> None:
        """Let it go: it kills what it has started and ends. If it does not, it is ended."""
        self.channel.close()
        try:
            self._process.wait(_GOODBYE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            sweep_tag(f"{self._tag}/")
        if self._place.group is not None:
            kill_groups(self._place.group)
        self._remove_folder()
        self._log.unlink(missing_ok=True)

    def _remove_folder(self) -> None:
        scratch.remove(self._place.scratch)
