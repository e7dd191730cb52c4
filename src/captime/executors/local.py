"""Runs on this machine: one slot supervisor per job, each with one program at a time.

The supervisors run, cap, measure and clear away; this side hands out requests, and asks the program what the reports
mean. It never waits for a single slot, and no program is ever its child.
"""

import math
import selectors
import socket
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Self

from captime.arrays import IntArray
from captime.errors import InvariantViolated, MachineUnfit, ScenarioError
from captime.executors.local_slots import HELD_TOO_OFTEN, TIMES, LocalSlots, Overhead, SpeedChecks, reference_launch
from captime.executors.protocol import NoBoard, SlotDisplay, signals_heard
from captime.ledger.ownership import SlotId
from captime.programs.protocol import Program
from captime.runs import Halt, RunOutcome, RunRequest
from captime.supervision.messages import Report
from captime.supervision.processes import MemoryKiller
from captime.supervision.scratch import sweep_tag
from captime.supervision.slot_client import LOOK_SECONDS, SlotClient

__all__ = ["LocalExecutor", "Overhead"]

_SECOND = 1e9
# A supervisor that dies before it has said a word will do so again.
_FUTILE_STARTS = 3


class LocalExecutor:
    """Runs programs on this machine, several at once.

    Args:
        program: Turns requests into launches and reports into outcomes.
        slots: How many runs at once.
        tag: What the tags of all processes begin with: the id of the ledger, without a slash.
        pin: Tie each slot to a core of its own, if there are enough.
        ahead: Requests that slots hold beyond the one under way, so that none waits for us between two runs.
        isolation: `cgroup2`, `subreaper` or `posix`; None for the best that holds here.
        scratch: Where the directories of runs are made; the usual place for temporary files if left out.

    Attributes:
        slots: How many runs at once.
        ahead: As given.
        isolation: The level that was tried and holds.
        limits_memory: The kernel limits and counts the memory of runs; it is watched by looking otherwise.
        overhead: What running a program costs beyond what the program itself takes, measured at the start.
    """

    def __init__(
        self,
        program: Program,
        slots: int,
        *,
        tag: str,
        pin: bool = True,
        ahead: int = 0,
        isolation: str | None = None,
        scratch: str | None = None,
    ) -> None:
        if slots < 1:
            raise ScenarioError(f"jobs must be at least 1, got {slots}")
        self.slots = slots
        self.ahead = max(0, ahead)
        self._begun = time.monotonic()
        self._program = program
        self._tag = tag
        self._numbers = count(1)
        self._requests: dict[int, RunRequest] = {}
        self._waiting: deque[int] = deque()
        self._seen: dict[int, float] = {}
        self._unwanted: set[int] = set()
        self._back: list[RunOutcome] = []
        self._futile = 0
        self._stopping = False
        self._held = 0
        self._references: dict[int, int] = {}
        self._pulse = SpeedChecks(range(slots), self.now)
        self._memory_killer = MemoryKiller()
        self._board: SlotDisplay = NoBoard()
        self._place = LocalSlots(tag, slots, pin=pin, isolation=isolation, scratch=scratch)
        self.isolation = self._place.isolation
        self.limits_memory = self._place.limits_memory
        self.overhead = self._place.overhead
        self._selector = selectors.DefaultSelector()
        self._handles: list[SlotClient] = []
        for handle in self._place.handles:
            self._handles.append(handle)
            self._selector.register(handle.channel, selectors.EVENT_READ, handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def now(self) -> float:
        """See the protocol."""
        return time.monotonic() - self._begun

    def pids(self) -> list[int]:
        """Return the process numbers of the slot supervisors."""
        return [handle.pid for handle in self._handles]

    def show_on(self, board: SlotDisplay) -> None:
        """See the protocol."""
        self._board = board
        for handle in self._handles:
            board.idle(_seat(handle))

    def submit(self, requests: Sequence[RunRequest]) -> None:
        """See the protocol."""
        for request in requests:
            number = next(self._numbers)
            self._requests[number] = request
            self._waiting.append(number)
        self._hand_out()

    def collect(self, timeout: float | None = None) -> list[RunOutcome]:
        """See the protocol. Empty also when a signal has arrived, so that the caller can look."""
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        with signals_heard(self._selector) as bell:
            while not self._back and self._requests:
                left = deadline - time.monotonic()
                for key, _ in self._selector.select(min(max(0.0, left), LOOK_SECONDS)):
                    if key.data is not None:
                        self._receive(key.data)
                self._check_supervisors()
                # What was stopped is waited for, however often that is asked for: it has to be paid.
                if (bell.was_signalled() and not self._stopping) or time.monotonic() >= deadline:
                    break
        back, self._back = self._back, []
        return back

    def watch(self) -> list[tuple[RunRequest, float]]:
        """See the protocol. Runs that were not seen yet are left out."""
        return [(self._requests[number], seconds) for number, seconds in self._seen.items()]

    def cancel(self, configs: IntArray) -> None:
        """See the protocol."""
        unwanted = {int(config) for config in configs}
        self._cancel([number for number, request in self._requests.items() if request.config in unwanted])

    def stop(self) -> None:
        """See the protocol."""
        self._stopping = True
        self._cancel(list(self._requests))

    def close(self) -> None:
        """See the protocol."""
        self._selector.close()
        self._place.close(self._handles)
        self._handles = []
        self._requests.clear()
        self._waiting.clear()
        self._seen.clear()
        self._unwanted.clear()
        self._references.clear()

    # ------------------------------------------------------------------ giving

    def _hand_out(self) -> None:
        """Give every free slot something to do; then something to do next, if there is more."""
        for handle in self._handles if self._waiting else ():
            if self._pulse.is_due(handle.index, self.now):
                self._measure(handle)
        deepest = 1 + math.ceil(self.ahead / self.slots)
        for depth in range(1, deepest + 1):
            for handle in self._handles:
                if self._waiting and len(handle.held) < depth:
                    self._give(handle, self._waiting.popleft())
        if not self._waiting:
            self._share()

    def _give(self, handle: SlotClient, number: int) -> None:
        request = self._requests[number]
        handle.give(self._program.launch(request, number, self._tag_of(request)))
        self._send_pending(handle)

    def _measure(self, handle: SlotClient) -> None:
        """Have a slot do the piece of work that tells whether its core is as fast as it was."""
        for _ in range(TIMES):
            number = next(self._numbers)
            self._references[number] = handle.index
            handle.give(reference_launch(self._tag, number))
        self._send_pending(handle)

    def _tag_of(self, request: RunRequest) -> str:
        return f"{self._tag}/{request.config}.{request.instance}.{request.attempt}"

    def _share(self) -> None:
        """A slot with nothing to do takes over what another one has not begun."""
        for idle in self._handles:
            if idle.held:
                continue
            busiest = max(self._handles, key=lambda handle: len(self._still_to_come(handle)))
            if to_come := self._still_to_come(busiest):
                busiest.channel.send("withdraw", str(to_come[-1]))
                self._send_pending(busiest)

    def _still_to_come(self, handle: SlotClient) -> list[int]:
        """Return the requests behind the run under way; a piece of work that measures the slot stays with it."""
        return [number for number in handle.held[1:] if number in self._requests]

    def _cancel(self, numbers: Sequence[int]) -> None:
        holder = {number: handle for handle in self._handles for number in handle.held}
        for number in numbers:
            self._unwanted.add(number)
            if number in holder:
                holder[number].channel.send("cancel", str(number))
                self._send_pending(holder[number])
            elif number in self._waiting:
                self._waiting.remove(number)
                self._wait_for_slot(number)

    def _send_pending(self, handle: SlotClient) -> None:
        """Come back to a slot that could not take everything at once."""
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if handle.channel.waiting else 0)
        self._selector.modify(handle.channel, wanted, handle)

    # ------------------------------------------------------------------ hearing

    def _receive(self, handle: SlotClient) -> None:
        handle.channel.flush()
        self._send_pending(handle)
        self._take_in(handle)
        if handle.channel.closed:
            self._clear_dead(handle)
        self._hand_out()

    def _take_in(self, handle: SlotClient) -> None:
        """Act on everything that a supervisor has said."""
        for word, text in handle.hear():
            match word:
                case "ready":
                    self._futile = 0
                case "started":
                    handle.begun.add(int(text))
                    self._is_seen(handle, int(text))
                case "progress":
                    number, nanoseconds = map(int, text.split())
                    self._is_seen(handle, number, nanoseconds / _SECOND)
                case "withdrawn":
                    handle.take_back(int(text))
                    self._wait_for_slot(int(text))
                case "report":
                    self._reported(handle, Report.from_json(text))

    def _is_seen(self, handle: SlotClient, number: int, seconds: float | None = None) -> None:
        """A run is under way, and unfinished after so long; pieces of work that measure the machine are no runs."""
        if number not in self._requests:
            return
        if seconds is not None:
            self._seen[number] = seconds
        self._board.running(_seat(handle), self._requests[number], seconds or 0.0)

    def _reported(self, handle: SlotClient, report: Report) -> None:
        if report.number in handle.begun:
            self._board.idle(_seat(handle))
        handle.take_back(report.number)
        if report.number in self._references:
            self._pulse.hear(self._references.pop(report.number), _seconds(report))
        else:
            self._settle(report.number, report, handle.index)

    def _wait_for_slot(self, number: int) -> None:
        """Return the next launch in line that was not cancelled since it was given to a slot."""
        if number in self._unwanted:
            self._settle(number, Report(number, "cancelled"), slot=0)
        else:
            self._waiting.appendleft(number)

    def _settle(self, number: int, report: Report, slot: int) -> None:
        """Nothing more will be heard of this request."""
        request = self._requests.pop(number)
        self._seen.pop(number, None)
        self._unwanted.discard(number)
        outcome = self._program.judge(request, report)
        if outcome.measured is not None:
            flags = (*outcome.measured.flags, *(("drifted",) if self._pulse.has_drifted(slot) else ()))
            outcome = replace(outcome, measured=replace(outcome.measured, host=_HOST, slot=slot, flags=flags))
        self._back.append(outcome)

    def _check_supervisors(self) -> None:
        """Replace supervisors that are stopped, traced or silent: they enforce no captime, and never report."""
        for handle in list(self._handles):
            why = handle.trouble()
            if why:
                self._clear_dead(handle, why)
                self._hand_out()

    def _clear_dead(self, handle: SlotClient, why: str = "") -> None:
        """A supervisor is dead: nothing of its run may survive it, the run is lost, and the slot is opened again.

        Args:
            handle: Which one.
            why: What keeps it from its work, if it is alive; it is killed then.
        """
        self._selector.unregister(handle.channel)
        # Whether a launch has begun is known only once everything is heard that it said before it died.
        handle.end()
        self._take_in(handle)
        self._board.idle(_seat(handle))
        how = handle.clear_away()
        held = [number for number in handle.held if self._references.pop(number, None) is None]
        lost = [number for number in held if number in handle.begun]
        for number in lost:
            request = self._requests[number]
            sweep_tag(self._tag_of(request), whole=True)
        # It speaks of a launch before it begins with it, so these have never begun.
        for number in reversed([number for number in held if number not in handle.begun]):
            self._wait_for_slot(number)
        self._held += bool(why) and bool(lost)
        halt = Halt.SUPERVISOR_HELD if why and self._held >= HELD_TOO_OFTEN else None
        lack = self._memory_killer.look() if lost else None
        for number in lost:
            report = Report(number, "lost", problem=why or how, halt=halt)
            if lack is not None:
                report = replace(report, shortage=lack.what, short=lack.words)
            self._settle(number, report, handle.index)
        # Last, because it may fail: what was lost is settled by then, and a campaign that stops here can write it down.
        self._replace(handle, how)

    def _replace(self, handle: SlotClient, how: str) -> None:
        """Open the slot of a dead supervisor again.

        Args:
            handle: The dead one.
            how: How it died.
        """
        place = self._handles.index(handle)
        del self._handles[place]
        self._futile += not handle.ready
        if self._futile > _FUTILE_STARTS and not self._stopping:
            if handle.was_killed:
                raise MachineUnfit(
                    f"{how}; {self._futile} in a row were killed before they had done anything, by this machine or by "
                    "another program on it; expected supervisors that stay alive. Find out what kills them (lack of "
                    "memory, most often), and give the same command again"
                )
            raise InvariantViolated(f"{how}; {self._futile} died without having done anything. Please report it")
        try:
            successor = self._place.open(handle.index)
        except MachineUnfit:
            if self._stopping:
                return
            raise
        self._handles.insert(place, successor)
        self._selector.register(successor.channel, selectors.EVENT_READ, successor)


_HOST = socket.gethostname()


def _seconds(report: Report) -> float:
    """CPU seconds of a piece of work; infinite if it came to nothing."""
    return report.runtime_ns / _SECOND if report.ended == "exit" and report.exit_code == 0 else math.inf


def _seat(handle: SlotClient) -> SlotId:
    return SlotId(handle.index, _HOST)
