"""The conversation with a Dask scheduler: functions are called on workers, and what is heard is kept.

Dask speaks in a thread of its own; the executor listens in the coordinator's. Between them stands an inbox. Nothing is
decided here: which worker has a lease, and what the loss of a worker means, is the executor's business.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from distributed.client import ClosedClientError

# Dask tells at once when workers come and go; this is for what it forgot to tell, and for other versions of it.
_LOOK_SECONDS = 5.0
_LOOK_SOON = 0.5
_GOODBYE_SECONDS = 1.0
_WORKERS = "all"

# The errors by which Dask says that a worker is gone.
_DIED = ("KilledWorker", "FutureCancelledError", "CancelledError")


@dataclass(frozen=True, slots=True)
class WorkersPresent:
    """The workers that are present.

    Attributes:
        threads: How many runs each can do at once, by address.
    """

    threads: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class WorkerLeft:
    """A worker has gone.

    Attributes:
        address: Of the worker.
    """

    address: str


@dataclass(frozen=True, slots=True)
class CallAnswered:
    """A call came back.

    Attributes:
        call: What it was called.
        value: What the function returned.
    """

    call: Hashable
    value: Any


@dataclass(frozen=True, slots=True)
class CallFailed:
    """A call will not come back.

    Attributes:
        call: What it was called.
        why: What is known.
        died: Its worker is gone, which other news will tell.
    """

    call: Hashable
    why: str
    died: bool = False


@dataclass(frozen=True, slots=True)
class MessageReceived:
    """A message arrived under the topic that is listened to.

    Attributes:
        message: What was said.
    """

    message: Any


@dataclass(frozen=True, slots=True)
class SchedulerUnreachable:
    """The scheduler cannot be heard; the client tries to reach it again."""


@dataclass(frozen=True, slots=True)
class SchedulerGone:
    """The scheduler will not be heard again.

    Attributes:
        why: What is known.
    """

    why: str


News = WorkersPresent | WorkerLeft | CallAnswered | CallFailed | MessageReceived | SchedulerUnreachable | SchedulerGone


class DaskClient:
    """A Dask client as the executor needs it.

    Args:
        client: A `distributed.Client`, connected; it stays open when the link is closed.
        topic: What workers say under this name is heard.
    """

    def __init__(self, client: Any, topic: str) -> None:
        self._client = client
        self._topic = topic
        self._address = str(client.scheduler.address) if client.scheduler is not None else "?"
        self._inbox: deque[News] = deque()
        self._heard, self._bell = socket.socketpair()
        self._heard.setblocking(False)
        self._bell.setblocking(False)
        self._calls: dict[Hashable, Any] = {}
        self._closed = False
        self._nudge = asyncio.Event()
        self._subscribe()
        client.loop.add_callback(self._watch)

    # ------------------------------------------------------------------ the coordinator's thread

    def fileno(self) -> int:
        """For selectors: readable when there is something to hear."""
        return self._heard.fileno()

    def news(self) -> list[News]:
        """Return what was heard since the last time, in order."""
        with suppress(BlockingIOError):
            while self._heard.recv(4096):
                pass
        found = []
        while self._inbox:
            found.append(self._inbox.popleft())
        return found

    def call(self, call: Hashable, address: str, function: Callable[..., Any], *arguments: Any, key: str) -> None:
        """Have a worker call a function; the answer is news.

        Never anywhere else, never a second time, and never from a cache.

        Args:
            call: A name for the call, which comes back with the answer.
            address: Of the worker.
            function: Importable there.
            arguments: Plain values.
            key: Dask's name for it; no two calls have the same.
        """
        try:
            future = self._client.submit(
                function,
                *arguments,
                key=key,
                pure=False,
                retries=0,
                workers=[address],
                allow_other_workers=False,
            )
        except ClosedClientError as trouble:
            self._say(CallFailed(call, str(trouble)))
            return
        self._calls[call] = future
        self._client.loop.add_callback(self._fetch, call, future)

    def forget(self, calls: Sequence[Hashable]) -> None:
        """Forget these calls: their results are not needed; what has not begun will not."""
        futures = [future for call in calls if (future := self._calls.pop(call, None)) is not None]
        if futures and self._client.status == "running":
            self._client.loop.add_callback(self._client.cancel, futures, asynchronous=True)

    def shout(
        self, addresses: Sequence[str], function: Callable[..., Any], *arguments: Any, call: Hashable = None
    ) -> None:
        """Have workers call a function at once, beside their tasks; with a name for the call, the end of it is news."""
        if addresses:
            self._client.loop.add_callback(self._shout, list(addresses), function, arguments, call)

    def close(self, addresses: Sequence[str], function: Callable[..., Any], *arguments: Any) -> None:
        """Hear nothing more; and have these workers call a function before that, if they can be reached soon."""
        self._closed = True
        self.forget(list(self._calls))
        if self._client.status == "running":
            for topic in (self._topic, _WORKERS):
                self._client.unsubscribe_topic(topic)
            with suppress(asyncio.TimeoutError):
                self._client.sync(
                    self._shout, list(addresses), function, arguments, None, callback_timeout=_GOODBYE_SECONDS
                )
            self._client.loop.add_callback(self._nudge.set)
        self._heard.close()
        self._bell.close()

    # ------------------------------------------------------------------ Dask's thread

    def _subscribe(self) -> None:
        self._client.subscribe_topic(self._topic, lambda event: self._say(MessageReceived(event[1])))
        self._client.subscribe_topic(_WORKERS, self._heard_of_workers)

    def _heard_of_workers(self, event: tuple[float, Any]) -> None:
        message = event[1]
        action = message.get("action") if isinstance(message, Mapping) else None
        if action == "remove-worker":
            self._say(WorkerLeft(message["worker"]))
        elif action == "add-worker":
            self._nudge.set()

    def _say(self, news: News) -> None:
        if self._closed:
            return
        self._inbox.append(news)
        # A full bell has been rung already, and after the end there is no reader.
        with suppress(OSError):
            self._bell.send(b"!")

    async def _fetch(self, call: Hashable, future: Any) -> None:
        try:
            value = await self._client.gather(future, asynchronous=True)
        except Exception as trouble:  # noqa: BLE001 (whatever was raised on another machine is news, not our error)
            self._nudge.set()
            kind = type(trouble).__name__
            self._say(CallFailed(call, f"{kind}: {trouble}", died=kind in _DIED))
        else:
            self._say(CallAnswered(call, value))
        finally:
            if self._calls.get(call) is future:
                del self._calls[call]
            # A result that is kept would be computed again if its worker died.
            future.release()

    async def _shout(
        self, addresses: list[str], function: Callable[..., Any], arguments: tuple[Any, ...], call: Hashable
    ) -> None:
        try:
            await self._client.run(function, *arguments, workers=addresses, asynchronous=True)
        except Exception as trouble:  # noqa: BLE001 (as above)
            if call is not None:
                self._say(CallFailed(call, f"{type(trouble).__name__}: {trouble}"))
        else:
            if call is not None:
                self._say(CallAnswered(call, None))

    async def _watch(self) -> None:
        """Look now and then which workers are present, and whether the scheduler is."""
        cut = False
        while not self._closed:
            client = self._client
            if client.status == "running":
                if cut:
                    self._subscribe()
                cut = False
                with suppress(OSError, asyncio.TimeoutError):
                    self._say(WorkersPresent(dict(await client.scheduler.ncores())))
            elif client.status in ("closing", "closed"):
                self._say(SchedulerGone(f"the connection to the scheduler at {self._address} was lost"))
                return
            elif not cut:
                cut = True
                self._say(SchedulerUnreachable())
            await self._wait()

    async def _wait(self) -> None:
        """For a while, or until something has happened."""
        self._nudge.clear()
        patience = _LOOK_SECONDS if self._client.status == "running" else _LOOK_SOON
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._nudge.wait(), patience)


class NoClient(DaskClient):
    """A link to nowhere, for a campaign that was asked to stop before its cluster could be reached."""

    def __init__(self, topic: str) -> None:
        self._client = SimpleNamespace(status="closed")
        self._topic = topic
        self._inbox = deque()
        self._heard, self._bell = socket.socketpair()
        self._heard.setblocking(False)
        self._calls = {}
        self._closed = False
