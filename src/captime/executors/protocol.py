"""What an executor looks like."""

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from captime.arrays import IntArray
from captime.ledger.ownership import SlotId
from captime.runs import RunOutcome, RunRequest


class Executor(Protocol):
    """Does requests, several at a time. Every request that was submitted comes back exactly once, as some outcome."""

    @property
    def slots(self) -> int:
        """How many runs can be under way at once."""
        ...

    @property
    def ahead(self) -> int:
        """How many more requests it holds gladly, so that a free slot need not wait for the next decision."""
        ...

    @property
    def now(self) -> float:
        """Wall-clock seconds since the executor was made."""
        ...

    def submit(self, requests: Sequence[RunRequest]) -> None:
        """Start these runs; those that find no free slot wait for one."""
        ...

    def collect(self, timeout: float | None = None) -> list[RunOutcome]:
        """Return the outcomes that have come back, in order; wait for at least one, or for `timeout` seconds.

        Empty if nothing is under way, or if nothing came back in time.
        """
        ...

    def watch(self) -> list[tuple[RunRequest, float]]:
        """Runs under way, each with the CPU seconds since its very first start at which it was last seen unfinished."""
        ...

    def cancel(self, configs: IntArray) -> None:
        """Stop all runs of these configurations; they come back as CAPPED, after the seconds they took."""
        ...

    def stop(self) -> None:
        """Stop all runs, whosever they are, as `cancel` does; for good, where `cancel` may be declined."""
        ...

    def close(self) -> None:
        """Stop everything; nothing comes back any more."""
        ...


class Board(Protocol):
    """Shows what runs where, for status commands. No decision depends on it; it never waits and never fails."""

    def running(self, seat: SlotId, request: RunRequest, seconds: float = 0.0) -> None:
        """Show that this run is there, and was seen unfinished after this many seconds."""
        ...

    def idle(self, seat: SlotId) -> None:
        """Nothing runs there."""
        ...

    def gone(self, seat: SlotId) -> None:
        """There is no such seat any more."""
        ...


class NoBoard:
    """A board that shows nothing."""

    def running(self, seat: SlotId, request: RunRequest, seconds: float = 0.0) -> None:
        """Forget it."""

    def idle(self, seat: SlotId) -> None:
        """Forget it."""

    def gone(self, seat: SlotId) -> None:
        """Forget it."""


@runtime_checkable
class Visible(Protocol):
    """An executor that knows which slot a run is on."""

    def show_on(self, board: Board) -> None:
        """From now on tell this board."""
        ...


@runtime_checkable
class Remote(Executor, Protocol):
    """An executor on other machines, which come and go, and may be gone for good."""

    @property
    def gone(self) -> str:
        """Why the machines are given up; "" as long as they are not."""
        ...

    @property
    def place(self) -> str:
        """On which machines time was measured, in words for the certificate."""
        ...

    @property
    def most_slots(self) -> int:
        """The largest number of runs at once that was possible so far."""
        ...

    def tell_events(self, note: Callable[..., None], late: Callable[[Sequence[RunOutcome]], None]) -> None:
        """Set the functions that record what happens to machines, and answers that came after the run was given up."""
        ...
