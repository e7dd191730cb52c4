"""Listening: on this machine only, unless another address is asked for, with TLS."""

import asyncio
import ipaddress
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from captime.dashboard.access import CONNECTIONS, AccessRules, ConnectionLimits, GuardedProtocol
from captime.dashboard.app import PUBLIC, ROUTES, Live, make_app
from captime.errors import ScenarioError

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
