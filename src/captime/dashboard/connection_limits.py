"""Small and few: requests that are too long, too slow or too many end here, before anything reads them.

A connection carries one request. Its head is collected up to a limit and within a time limit, and only then handed on,
without whatever follows it. When there are too many connections, the one that has dawdled longest is shown out.
"""

import asyncio
from http import HTTPStatus
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

from captime.dashboard.access import RESPONSE_HEADERS

LINE = 8 * 1024
"""Bytes of the request line."""
HEAD = 16 * 1024
"""Bytes of all headers."""
HEADERS = 100
SECONDS = 10.0
"""Until the head has to be there."""
CONNECTIONS = 64
PER_ADDRESS = 8
_END = b"\r\n\r\n"


class ConnectionLimits:
    """The open connections, and how many there may be.

    Attributes:
        open: Connections in the order in which they came.
    """

    def __init__(self) -> None:
        self.open: dict[GuardedProtocol, str] = {}

    def admit(self, guest: "GuardedProtocol", address: str) -> bool:
        """Admit a connection, if need be by closing one without a complete request; False if all are being served."""
        same = [each for each, where in self.open.items() if where == address]
        for crowd, most in ((same, PER_ADDRESS), (list(self.open), CONNECTIONS)):
            if len(crowd) >= most:
                idle = next((each for each in crowd if not each.served), None)
                if idle is None:
                    return False
                self.leave(idle)
                idle.close_idle()
        self.open[guest] = address
        return True

    def leave(self, guest: "GuardedProtocol") -> None:
        """Forget a closed connection."""
        self.open.pop(guest, None)


class GuardedProtocol(H11Protocol):
    """uvicorn's protocol with limits on connections."""

    limits: ClassVar[ConnectionLimits]

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.served = False
        self._collected = bytearray()
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's
        """See asyncio."""
        super().connection_made(transport)
        if not self.limits.admit(self, self.client[0] if self.client else ""):
            self.refuse(HTTPStatus.SERVICE_UNAVAILABLE)
            return
        self._timer = self.loop.call_later(SECONDS, self.refuse, HTTPStatus.REQUEST_TIMEOUT)

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        self.limits.leave(self)
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Collect the head; what comes after it is ignored."""
        if self.served:
            return
        self._collected += data
        problem = too_large(bytes(self._collected[: LINE + HEAD + 8]))
        if problem is not None:
            self.refuse(problem)
            return
        end = self._collected.find(_END)
        if end < 0:
            return
        head = bytes(self._collected[: end + len(_END)])
        problem = unwanted(head)
        if problem is not None:
            self.refuse(problem)
            return
        self.served = True
        self._stop_timer()
        self._collected.clear()
        super().data_received(head)

    def refuse(self, status: HTTPStatus) -> None:
        """A few words, and the door closes."""
        self.served = True
        self._stop_timer()
        self._collected.clear()
        if not self.transport.is_closing():
            lines = [f"HTTP/1.1 {status.value} {status.phrase}".encode("ascii"), b"content-length: 0"]
            lines += [name + b": " + value for name, value in RESPONSE_HEADERS]
            self.transport.write(b"\r\n".join(lines) + _END)
            self.transport.close()

    def close_idle(self) -> None:
        """Close without a word."""
        self._stop_timer()
        self.transport.abort()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def too_large(head: bytes) -> HTTPStatus | None:
    """Return whether the bytes so far exceed the limits."""
    line = head.find(b"\r\n")
    if line > LINE or (line < 0 and len(head) > LINE):
        return HTTPStatus.REQUEST_URI_TOO_LONG
    end = head.find(_END)
    last = len(head) if end < 0 else end
    if line >= 0 and (last - line > HEAD or head.count(b"\r\n", line + 2, last) >= HEADERS):
        return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
    return None


def unwanted(head: bytes) -> HTTPStatus | None:
    """Return whether a whole head announces a body, or does not say one host."""
    names = [line.partition(b":") for line in head.split(b"\r\n")[1:] if line]
    fields = [(name.strip().lower(), value.strip()) for name, _, value in names]
    if any(name == b"transfer-encoding" or (name == b"content-length" and value != b"0") for name, value in fields):
        return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    # The library would answer 400 with words; a request that does not name this host gets none.
    return None if sum(name == b"host" for name, _ in fields) == 1 else HTTPStatus.FORBIDDEN
