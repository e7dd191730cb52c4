"""A real dashboard on a real port in a thread, and raw sockets to talk to it without a client library."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from captime.dashboard.access import AccessRules
from captime.dashboard.server import Address, Live, listening, rules_for, server_for

# Ends a test that hangs; long enough for a busy machine.
_PATIENCE = 120.0


class Served:
    """A dashboard that is running.

    Attributes:
        port: Where.
        rules: Its rules, secrets included.
    """

    def __init__(self, port: int, rules: AccessRules) -> None:
        self.port = port
        self.rules = rules

    @property
    def address(self) -> str:
        """What a user opens."""
        return f"http://127.0.0.1:{self.port}/#token={self.rules.token}"

    @property
    def cookie(self) -> bytes:
        """What a browser has after it entered."""
        return f"{self.rules.cookie_name}={self.rules.session}".encode("ascii")

    def connect(self) -> socket.socket:
        """A connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=_PATIENCE)

    def talk(self, raw: bytes) -> tuple[int, dict[str, str], bytes]:
        """Send these bytes and read the answer: status, headers, body."""
        with self.connect() as sock:
            with suppress(OSError):
                sock.sendall(raw)
            return read_answer(sock)

    def get(self, path: str, *headers: tuple[str, str], method: str = "GET") -> tuple[int, dict[str, str], bytes]:
        """A request as our own page makes it, unless headers say otherwise."""
        lines = [f"{method} {path} HTTP/1.1"]
        named = {name.lower() for name, _ in headers}
        if "host" not in named:
            lines.append(f"Host: 127.0.0.1:{self.port}")
        if "cookie" not in named:
            lines.append(f"Cookie: {self.cookie.decode('ascii')}")
        lines += [f"{name}: {value}" for name, value in headers if value is not None]
        return self.talk("\r\n".join([*lines, "", ""]).encode("latin-1"))


def read_answer(sock: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """Everything until the connection ends; status 0 if it ended without a word."""
    content = bytearray()
    with suppress(ConnectionResetError):
        while piece := sock.recv(65536):
            content += piece
    head, _, body = bytes(content).partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    status = int(first.split()[1]) if first.startswith(b"HTTP/") else 0
    pairs: Sequence[tuple[bytes, bytes, bytes]] = [line.partition(b":") for line in lines]
    return status, {name.decode("latin-1").lower(): value.strip().decode("latin-1") for name, _, value in pairs}, body


@contextmanager
def served(path: Path, address: Address | None = None) -> Iterator[Served]:
    """Run a dashboard until the block ends."""
    where = address or Address()
    live = Live(path)
    sock = listening(where)
    rules = rules_for(where, int(sock.getsockname()[1]))
    server: Any = server_for(live, rules, where)
    # Signals belong to the main thread, where the tests are.
    server.capture_signals = suppress
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[sock])), daemon=True)
    thread.start()
    until = time.monotonic() + _PATIENCE
    while not server.started and time.monotonic() < until:
        time.sleep(0.01)
    try:
        yield Served(rules.port, rules)
    finally:
        server.should_exit = True
        thread.join(timeout=_PATIENCE)
        sock.close()
        live.close()
