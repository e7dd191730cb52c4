"""What stands on a Dask worker: slots like those at home, and the functions that the coordinator calls there.

A task is one lease: "run this launch on this host through a slot supervisor". A station belongs to one session of one
coordinator and to one process. A lease that was made out to another station is sent back unrun, and so is a lease that
has been here before, whatever Dask may have done with its task; so nothing is ever run twice behind our back.
"""

import os
import queue
import select
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any
from uuid import uuid4

from distributed import get_worker

from captime.executors.dask_files import FilesMissing, FileStore
from captime.executors.local_slots import HELD_TOO_OFTEN, LocalSlots, cores, reference_launch
from captime.runs import Halt
from captime.supervision.messages import Channel, Launch, Report
from captime.supervision.scratch import sweep_tag
from captime.supervision.slot_client import SlotClient

# How often a run looks whether it is still wanted; word from the coordinator comes at once.
_LOOK_SECONDS = 0.5
_IDLE_SECONDS = 600.0
_GOODBYE_SECONDS = 5.0
_FIRST_PROGRESS_NS = 1_000_000_000
_SECOND = 1e9
_REFERENCES = 5

Answer = tuple[Any, ...]
"""Plain values: `("report", text, slot)`; `("missing", files, why)`, `("strange",)` for a lease that was made out to
another station, both unrun; or `("doubled",)` for one that has been here before, with what became of it unknown."""


@dataclass(slots=True)
class _WorkerSlot:
    """One slot: its supervisor, and how it is woken up."""

    index: int
    handle: SlotClient
    heard: socket.socket
    bell: socket.socket


class Station:
    """The slots of a worker, for one session of a coordinator.

    Args:
        tag: Of the campaign.
        slots: How many; as many as the worker has threads.
        isolation: See `LocalExecutor`.
        scratch: See `LocalExecutor`.

    Attributes:
        name: Of this station, in this process, and of no other.
    """

    def __init__(self, tag: str, slots: int, *, isolation: str | None, scratch: str | None) -> None:
        self.name = uuid4().hex
        self._tag = tag
        # A worker that was given exactly as many cores as slots may tie its runs to them; another one would only guess.
        pin = len(cores()) == slots
        self._place = LocalSlots(tag, slots, pin=pin, isolation=isolation, scratch=scratch)
        self._files = FileStore(tag)
        self._lock = threading.Lock()
        self._been_here: set[int] = set()
        self._stopped: set[int] = set()
        self._at: dict[int, _WorkerSlot] = {}
        self._held = 0
        self._used = time.monotonic()
        self._closing = False
        self._slots = [_WorkerSlot(handle.index, handle, *socket.socketpair()) for handle in self._place.handles]
        self._free: queue.SimpleQueue[_WorkerSlot] = queue.SimpleQueue()
        for slot in self._slots:
            slot.heard.setblocking(False)
            slot.bell.setblocking(False)
            self._free.put(slot)

    def facts(self) -> dict[str, Any]:
        """Return what the coordinator has to know."""
        overhead = self._place.overhead
        return {
            "station": self.name,
            "host": socket.gethostname(),
            "slots": len(self._slots),
            "isolation": self._place.isolation,
            "overhead": [overhead.added, overhead.measured, overhead.worst],
            "reference": self.reference(),
            "python": ".".join(map(str, sys.version_info[:3])),
        }

    def reference(self) -> float:
        """CPU seconds of a fixed piece of work here; the least of a few, which other work disturbs least."""
        launch = reference_launch(self._tag)
        slot = self._free.get()
        try:
            reports = [self._perform(slot, launch, lambda: True, lambda *_: None) for _ in range(_REFERENCES)]
        finally:
            self._free.put(slot)
        return min(report.runtime_ns for report in reports) / _SECOND

    def run(self, order: dict[str, Any], wanted: Callable[[], bool], tell: Callable[[float, int], None]) -> Answer:
        """Do what a lease says, once.

        Args:
            order: The lease.
            wanted: Whether the coordinator still waits for it.
            tell: Is told the seconds after which the run was seen unfinished, and in which slot, now and then.
        """
        lease = int(order["lease"])
        with self._lock:
            if lease in self._been_here:
                return ("doubled",)
            self._been_here.add(lease)
        ready = self._files.made_ready(
            Launch.from_json(order["launch"]), [(path, digest) for path, digest in order["files"]], order["instance"]
        )
        if isinstance(ready, FilesMissing):
            return ("missing", ready.to_send, ready.why)
        slot = self._free.get()
        try:
            with self._lock:
                self._at[lease] = slot
                stopped = lease in self._stopped
            if stopped:
                return ("report", Report(lease, "cancelled").to_json(), slot.index)
            report = self._perform(slot, ready.launch, wanted, tell)
        finally:
            with self._lock:
                self._at.pop(lease, None)
                self._stopped.discard(lease)
            self._used = time.monotonic()
            self._free.put(slot)
        return ("report", ready.reworded(report).to_json(), slot.index)

    def _perform(
        self, slot: _WorkerSlot, launch: Launch, wanted: Callable[[], bool], tell: Callable[[float, int], None]
    ) -> Report:
        handle, told, ours = slot.handle, _FIRST_PROGRESS_NS // 2, False
        handle.give(launch)
        while not handle.channel.closed:
            watched: list[Channel | socket.socket] = [handle.channel, slot.heard]
            to_write = [handle.channel] if handle.channel.waiting else []
            rung = slot.heard in select.select(watched, to_write, [], _LOOK_SECONDS)[0]
            handle.channel.flush()
            for word, text in handle.hear():
                if word == "report":
                    handle.take_back(launch.number)
                    report = Report.from_json(text)
                    why = "the worker was closed, or its coordinator is gone"
                    return (
                        replace(report, ended="lost", problem=why) if ours and report.ended == "cancelled" else report
                    )
                if word == "progress" and (seen := int(text.split()[1])) >= 2 * told:
                    told = seen
                    tell(seen / _SECOND, slot.index)
            if rung:
                slot.heard.recv(4096)
                if launch.number in self._stopped:
                    handle.channel.send("cancel", str(launch.number))
            elif not ours and not wanted():
                ours = True
                handle.channel.send("cancel", str(launch.number))
            why = handle.trouble()
            if why:
                return self._clear_dead(slot, launch, why)
        return self._clear_dead(slot, launch)

    def _clear_dead(self, slot: _WorkerSlot, launch: Launch, why: str = "") -> Report:
        """A supervisor is dead, or in trouble: its run is lost, nothing survives, and the slot is opened again."""
        if self._closing:
            return Report(launch.number, "lost", problem="the station was closed")
        how = slot.handle.clear_away()
        sweep_tag(launch.tag, whole=True)
        slot.handle = self._place.open(slot.index)
        with self._lock:
            self._held += bool(why)
            halt = Halt.SUPERVISOR_HELD if why and self._held >= HELD_TOO_OFTEN else None
        return Report(launch.number, "lost", problem=why or how, halt=halt)

    def stop(self, leases: list[int]) -> None:
        """Stop these runs, or do not begin them; they come back as cancelled."""
        with self._lock:
            for lease in leases:
                self._stopped.add(lease)
                slot = self._at.get(lease)
                if slot is not None:
                    slot.bell.send(b"!")

    def take(self, path: str, digest: str, content: bytes) -> None:
        """Keep an instance that was sent."""
        self._files.take(path, digest, content)

    @property
    def idle(self) -> bool:
        """Return whether the station has not been used for a long time."""
        return not self._at and time.monotonic() - self._used > _IDLE_SECONDS

    def close(self) -> None:
        """Close the slots, once what runs in them has been stopped."""
        self._closing = True
        self.stop(list(self._at))
        with suppress(queue.Empty):
            for _ in self._slots:
                self._free.get(timeout=_GOODBYE_SECONDS)
        self._place.close([slot.handle for slot in self._slots])
        for slot in self._slots:
            slot.heard.close()
            slot.bell.close()
        self._files.close()


_STATIONS: dict[str, Station] = {}
_DOOR = threading.Lock()


# ------------------------------------------------------------------ what the coordinator calls


def open_station(session: str, tag: str, isolation: str | None, scratch: str | None) -> dict[str, Any]:
    """Open slots on this worker, one per thread, and tell what kind of place it is."""
    with _DOOR:
        if session not in _STATIONS:
            threads = int(get_worker().state.nthreads)
            _STATIONS[session] = Station(tag, threads, isolation=isolation, scratch=scratch)
            _look_later(session)
        station = _STATIONS[session]
    return {**station.facts(), "captime": version("captime"), "pid": os.getpid()}


def run_lease(order: dict[str, Any]) -> Answer:
    """Do what a lease says."""
    station = _STATIONS.get(order["session"])
    if station is None or station.name != order["station"]:
        return ("strange",)
    worker = get_worker()
    key = worker.get_current_task()
    topic, lease = topic_of(order["session"]), order["lease"]

    def wanted() -> bool:
        task = worker.state.tasks.get(key)
        closing = worker.status.name in ("closing", "closed", "failed")
        return not closing and task is not None and task.state in ("executing", "long-running")

    return station.run(order, wanted, lambda seconds, slot: worker.log_event(topic, [lease, seconds, slot]))


def measure_again(session: str) -> float | None:
    """Return the reference once more; None if the station is gone."""
    station = _STATIONS.get(session)
    return None if station is None else station.reference()


def take_file(session: str, path: str, digest: str, content: bytes) -> None:
    """Keep an instance."""
    if (station := _STATIONS.get(session)) is not None:
        station.take(path, digest, content)


def stop_leases(session: str, leases: list[int]) -> None:
    """Stop these runs."""
    if (station := _STATIONS.get(session)) is not None:
        station.stop(leases)


def close_station(session: str) -> None:
    """Close the station: its coordinator has ended."""
    with _DOOR:
        station = _STATIONS.pop(session, None)
    if station is not None:
        # Not in the worker's own thread, which has to keep talking to its scheduler.
        threading.Thread(target=station.close, name="captime-closing", daemon=True).start()


def topic_of(session: str) -> str:
    """Under which name a session's stations tell how far their runs have come."""
    return f"captime-{session}"


def _look_later(session: str) -> None:
    """A coordinator that was killed cannot close its stations: they close themselves when unused."""

    def look() -> None:
        station = _STATIONS.get(session)
        if station is not None and station.idle:
            close_station(session)
        elif station is not None:
            _look_later(session)

    timer = threading.Timer(_IDLE_SECONDS / 10.0, look)
    timer.daemon = True
    timer.start()
