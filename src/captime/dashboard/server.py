"""The application and its server: routes behind the rules, on this machine only unless another address is asked for."""

import asyncio
import ipaddress
import json
import os
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from captime.dashboard.access import (
    CONNECTIONS,
    ENTER,
    METHODS,
    RESPONSE_HEADERS,
    AccessRules,
    ConnectionLimits,
    GuardedProtocol,
)
from captime.dashboard.state import LedgerFollower, live_part, state_of
from captime.errors import CaptimeError, ScenarioError
from captime.report.page import asset

# The application: a table of routes behind the rules. It serves files of this package and one JSON object.

_ASSETS: dict[bytes, tuple[str, str]] = {
    b"/": ("index.html", "text/html; charset=utf-8"),
    b"/app.js": ("app.js", "text/javascript; charset=utf-8"),
    b"/app.css": ("app.css", "text/css; charset=utf-8"),
}
STATE = b"/state"
ROUTES = frozenset({*_ASSETS, ENTER, STATE})
PUBLIC = frozenset(_ASSETS)
# However many look on, the ledger is looked at so often.
_BETWEEN = 0.4
_NARROWEST, _WIDEST, _USUAL = 280, 1200, 720


def assets() -> dict[bytes, tuple[bytes, str]]:
    """Return every file that is served, by path: read once from the package, never looked up by what a request says."""
    found = {}
    for path, (name, kind) in _ASSETS.items():
        text = files("captime.dashboard").joinpath("assets", name).read_text(encoding="utf-8")
        found[path] = ((asset("chart.css") + text if name.endswith(".css") else text).encode("utf-8"), kind)
    return found


class Guard:
    """Judges every request before it is routed, and puts our headers on every answer."""

    def __init__(self, app: ASGIApp, rules: AccessRules) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            # No web sockets here; the server's own start and end are passed on.
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *RESPONSE_HEADERS]
            await send(message)

        # The path as it was sent: what only becomes a route after decoding is none.
        status = self._rules.refusal(scope["method"], scope["raw_path"], scope["headers"])
        if status is None:
            await self._app(scope, receive, with_headers)
            return
        allow = {"allow": ", ".join(sorted(METHODS))} if status == 405 else {}
        await Response(status_code=status, headers=allow)(scope, receive, with_headers)


class Live:
    """The newest state as JSON, made in one thread and shared by all requests.

    Args:
        path: The ledger.
    """

    def __init__(self, path: Path) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="captime-window")
        self._window = self._thread.submit(LedgerFollower, path).result()
        self._looked = -_BETWEEN
        self._version = 0
        self._live = b"{}"
        self._made: dict[int, tuple[int, bytes]] = {}

    async def state(self, width: int, seen: int) -> bytes:
        """Return the state for a page of that width; next to nothing if it has been seen."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._state, width, seen)

    def _state(self, width: int, seen: int) -> bytes:
        if time.monotonic() - self._looked >= _BETWEEN:
            try:
                if self._window.refresh():
                    self._version += 1
            except CaptimeError as error:
                return _written({"trouble": str(error)})
            self._looked = time.monotonic()
            self._live = _written({"now_ms": time.time_ns() // 10**6, **live_part(self._window)})
        if seen == self._version and self._version:
            return self._with_live(_written({"version": self._version, "same": True}))
        version, made = self._made.get(width, (-1, b""))
        if version != self._version:
            made = _written({"version": self._version, **state_of(self._window, float(width))})
            self._made = {**dict(list(self._made.items())[-7:]), width: (self._version, made)}
        return self._with_live(made)

    def _with_live(self, made: bytes) -> bytes:
        """Put what changes all the time in front of what was made before: large objects are written once."""
        return b'{"live": ' + self._live + b", " + made[1:]

    def close(self) -> None:
        """Let go of the ledger."""
        self._thread.submit(self._window.close).result()
        self._thread.shutdown()


def _written(state: dict[str, object]) -> bytes:
    return json.dumps(state).encode("ascii")


def make_app(live: Live, rules: AccessRules) -> Guard:
    """Return the application."""
    served = assets()

    def page(content: bytes, kind: str) -> Callable[[Request], Response]:
        return lambda _: Response(content, media_type=None, headers={"content-type": kind})

    async def enter(_: Request) -> Response:
        return Response(status_code=204, headers={"set-cookie": rules.cookie})

    async def state(request: Request) -> Response:
        width, seen = (_number(request, name) for name in ("width", "seen"))
        if width is None or seen is None:
            return Response(status_code=400)
        wide = min(_WIDEST, max(_NARROWEST, 20 * ((width or _USUAL) // 20)))
        return Response(await live.state(wide, seen), media_type="application/json")

    routes = [Route(path.decode("ascii"), page(*found), methods=["GET"]) for path, found in served.items()]
    routes += [Route("/enter", enter, methods=["GET"]), Route("/state", state, methods=["GET"])]
    return Guard(Starlette(routes=routes), rules)


def _number(request: Request, name: str) -> int | None:
    """Return a small number from the query, 0 if it is not there, None if it is something else."""
    text = request.query_params.get(name, "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None


# Listening: on this machine only, unless another address is asked for, with TLS.

# The campaign comes first wherever the two meet.
_NICE = 10


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen.

    Attributes:
        host: A name or address of this machine.
        port: Port; 0 chooses a free one.
        certificate: TLS material, for hosts that others can reach.
        key: Its private key.
        public: Whether the user knows that others can reach it.
    """

    host: str = "127.0.0.1"
    port: int = 0
    certificate: Path | None = None
    key: Path | None = None
    public: bool = False

    def check(self) -> None:
        """Refuse what would show a campaign to strangers by mistake."""
        if self.loopback:
            return
        if not self.public or self.certificate is None or self.key is None:
            raise ScenarioError(
                f"--host is {self.host!r}, which others can reach; a dashboard listens on this machine only, unless "
                "you add --i-know-it-is-public, --certificate and --key. Safer is a tunnel, for instance "
                "`ssh -L 8000:127.0.0.1:PORT HOST`"
            )

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def listening(address: Address) -> socket.socket:
    """Return a listening socket. Old connections of other processes are not taken over: SO_REUSEADDR stays off."""
    address.check()
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.bind((address.host, address.port))
        sock.listen(CONNECTIONS)
    except OSError as error:
        sock.close()
        raise ScenarioError(
            f"the dashboard cannot listen on {address.host}:{address.port} ({error.strerror or error}); leave the port "
            "out and a free one is taken"
        ) from error
    return sock


def rules_for(address: Address, port: int) -> AccessRules:
    """Return the rules of a dashboard that listens there."""
    own = f"[{address.host}]" if ":" in address.host else address.host
    names = dict.fromkeys(("127.0.0.1", "localhost", "[::1]", *(() if address.loopback else (own,))))
    return AccessRules(port, ROUTES, PUBLIC, tuple(names), secure=address.certificate is not None)


def serve(path: Path, address: Address, announce: Callable[[str, str], None]) -> None:
    """Serve until interrupted.

    Args:
        path: The ledger.
        address: Where to listen.
        announce: Is told the address to open, token included, which is for the user's eyes only; and one that is good
            for one use, to be handed to a browser.
    """
    live = Live(path)
    try:
        sock = listening(address)
        with sock, suppress(KeyboardInterrupt):
            port = int(sock.getsockname()[1])
            rules = rules_for(address, port)
            scheme = "https" if rules.secure else "http"
            host = f"[{address.host}]" if ":" in address.host else address.host
            with suppress(OSError):
                os.nice(_NICE)
            place = f"{scheme}://{host}:{port}/#token="
            announce(f"{place}{rules.token}", f"{place}{rules.ticket()}")
            asyncio.run(server_for(live, rules, address).serve(sockets=[sock]))
    finally:
        live.close()


def server_for(live: Live, rules: AccessRules, address: Address) -> uvicorn.Server:
    """Return the uvicorn server, with limited connections and no logs: the address holds a token."""
    protocol = type("Guarded", (GuardedProtocol,), {"limits": ConnectionLimits()})
    config = uvicorn.Config(
        make_app(live, rules),
        http=protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=1,
        ssl_certfile=address.certificate,
        ssl_keyfile=address.key,
    )
    return uvicorn.Server(config)
