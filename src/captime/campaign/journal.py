"""The ledger as the journal of the live loop: what happens is on disk before anybody acts on it."""

import time
from collections.abc import Callable, Sequence

from captime.errors import LedgerLocked
from captime.ledger import Ledger
from captime.ledger.crash_points import reached
from captime.ledger.rows import SampleRow
from captime.live import Seen
from captime.runs import RunOutcome, RunRequest
from captime.streams.protocol import InstanceStream
from captime.targets import Targets

# [F14] How long somebody else may keep the file locked before a campaign gives up; outcomes wait in memory until then.
_PATIENCE = 300.0

Reader = Callable[[Sequence[RunOutcome]], None]


def _nothing() -> None:
    """Nobody has anything to write down."""


def patiently(write: Callable[[], None], patience: float = _PATIENCE) -> None:
    """Write, and try again while somebody else keeps the file locked; nothing is started or decided meanwhile.

    Args:
        write: May be called again after it was refused for a lock.
        patience: For so many seconds.
    """
    until = time.monotonic() + patience
    while True:
        try:
            write()
        except LedgerLocked:
            if time.monotonic() >= until:
                raise
        else:
            return


class LedgerJournal:
    """Writes everything down, then lets others look at what came back.

    Args:
        ledger: The one that is written to.
        stream: Says which instance and which seed a position stands for.
        readers: Are shown what came back, after it was written down; one of them may object by raising.
        orders: Whether orders are written down too. Where decisions depend on outcomes alone, they need not be.
        before_start: Called before runs are announced: what was fixed before them is written down before them.
    """

    def __init__(
        self,
        ledger: Ledger,
        stream: InstanceStream,
        readers: Sequence[Reader] = (),
        *,
        orders: bool = True,
        before_start: Callable[[], None] = _nothing,
    ) -> None:
        self._ledger = ledger
        self._stream = stream
        self._readers = readers
        self._orders = orders
        self._before_start = before_start

    def asked(self, slots: int, targets: Targets) -> None:
        """See the protocol."""
        if self._orders:
            self._ledger.asked(slots, targets)

    def started(self, requests: Sequence[RunRequest]) -> None:
        """See the protocol. The instances and seeds of new positions are registered with them."""
        self._before_start()
        positions = {request.instance for request in requests}
        samples = {position: sample_at(self._stream, position) for position in positions}
        patiently(lambda: self._ledger.started(requests, samples))
        reached("announced")

    def observed(self, outcomes: Sequence[RunOutcome], seen: Seen) -> None:
        """See the protocol."""
        patiently(lambda: self._ledger.observed(outcomes, seen))
        reached("acknowledged")
        for reader in self._readers:
            reader(outcomes)


def sample_at(stream: InstanceStream, position: int) -> SampleRow:
    """What a position of the stream stands for, as the ledger remembers it."""
    element = stream.at(position)
    return SampleRow(position, element.instance.name, element.instance.digest, element.seed)
