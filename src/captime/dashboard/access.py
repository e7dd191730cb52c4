"""Access rules: every request is judged here, by its own bytes alone, before anything else happens.

Nothing is remembered from one request to the next but which tickets were used.

In this order: the method, the host that was asked for, whether another site asks, the cookie, and the route. What is
not allowed is refused; nothing is guessed or repaired.
"""

import asyncio
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

Headers = Sequence[tuple[bytes, bytes]]

METHODS = frozenset({"GET", "HEAD"})
TOKEN_HEADER = b"x-captime-token"
ENTER = b"/enter"

RESPONSE_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (
        b"content-security-policy",
        (
            b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
            b"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
        ),
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
    # One request, one connection: nothing can hide behind a request that was judged.
    (b"connection", b"close"),
)
"""On every response, refusals included."""


def _secret() -> str:
    return secrets.token_urlsafe(32)


@dataclass(frozen=True, slots=True)
class AccessRules:
    """The terms of one dashboard.

    Attributes:
        port: Where it listens.
        routes: Every path there is, byte for byte.
        public: Paths that hold no data, so that a browser can load the page before it shows its token.
        names: Host names it may be asked by.
        secure: Whether it speaks TLS.
        token: What the address that was printed ends in; exchanged for a cookie once.
        session: Value of that cookie.
        tickets: Tokens that are good for one use; see `ticket`.
    """

    port: int
    routes: frozenset[bytes]
    public: frozenset[bytes]
    names: tuple[str, ...] = ("127.0.0.1", "localhost", "[::1]")
    secure: bool = False
    token: str = field(default_factory=_secret, repr=False)
    session: str = field(default_factory=_secret, repr=False)
    tickets: set[bytes] = field(default_factory=set, repr=False)

    def ticket(self) -> str:
        """Return a token that lets in once: for where others can read it, as they can read the process list."""
        made = _secret()
        self.tickets.add(made.encode("ascii"))
        return made

    @property
    def cookie_name(self) -> str:
        """Cookies know no ports, so the port is part of the name."""
        return f"captime-{self.port}"

    @property
    def cookie(self) -> str:
        """What a browser is given for the token."""
        secure = "; Secure" if self.secure else ""
        return f"{self.cookie_name}={self.session}; HttpOnly; SameSite=Strict; Path=/{secure}"

    def refusal(self, method: str, path: bytes, headers: Headers) -> int | None:
        """Return the status with which a request is refused; None if it may be answered."""
        if method not in METHODS:
            return 405
        if not self._host_is_ours(headers) or not self._same_site(headers):
            return 403
        if path == ENTER:
            return None if self._has_token(headers) or self._spends_ticket(headers) else 403
        if path in self.public:
            return None
        if not self._has_cookie(headers):
            return 403
        return None if path in self.routes else 404

    def _host_is_ours(self, headers: Headers) -> bool:
        """Byte for byte one of ours: a name that an attacker's DNS points here is not."""
        allowed = {f"{name}:{self.port}".encode("ascii") for name in self.names}
        return [value for name, value in headers if name == b"host"] in [[host] for host in allowed]

    def _same_site(self, headers: Headers) -> bool:
        """Asked by our own page or by hand. A browser that says nothing about the site must not name another origin."""
        sites = [value for name, value in headers if name == b"sec-fetch-site"]
        scheme = "https" if self.secure else "http"
        ours = {f"{scheme}://{name}:{self.port}".encode("ascii") for name in self.names}
        origins = [value for name, value in headers if name == b"origin"]
        if len(sites) > 1 or (sites and sites[0] not in {b"same-origin", b"none"}):
            return False
        return not origins or (len(origins) == 1 and origins[0] in ours)

    def _has_token(self, headers: Headers) -> bool:
        shown = [value for name, value in headers if name == TOKEN_HEADER]
        return len(shown) == 1 and hmac.compare_digest(shown[0], self.token.encode("ascii"))

    def _spends_ticket(self, headers: Headers) -> bool:
        shown = [value for name, value in headers if name == TOKEN_HEADER]
        found = [each for each in self.tickets if len(shown) == 1 and hmac.compare_digest(shown[0], each)]
        self.tickets.difference_update(found)
        return bool(found)

    def _has_cookie(self, headers: Headers) -> bool:
        jars = [value for name, value in headers if name == b"cookie"]
        wanted = self.cookie_name.encode("ascii")
        shown = [
            part.strip().partition(b"=")[2]
            for jar in jars
            for part in jar.split(b";")
            if part.strip().partition(b"=")[0] == wanted
        ]
        # All of them are compared, so that the time taken says nothing.
        good = [hmac.compare_digest(each, self.session.encode("ascii")) for each in shown]
        return len(good) == 1 and all(good)


# Small and few: requests that are too long, too slow or too many end here, before anything reads them.
#
# A connection carries one request. Its head is collected up to a limit and within a time limit, and only then handed
# on, without whatever follows it. When there are too many connections, the one that has dawdled longest is shown out.

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
