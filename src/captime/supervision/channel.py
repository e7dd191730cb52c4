"""Lines between an executor and its slot supervisors: a word, a space and one line of ASCII text, over a socket.

Neither side ever waits for the other: what cannot be sent yet is kept, so a supervisor keeps enforcing captimes while
its coordinator is stopped. What the words mean is known to the modules that use them.
"""

import socket
from collections import deque
from collections.abc import Iterator
from contextlib import suppress

_CHUNK = 1 << 18


class Channel:
    """One end of a connection.

    Args:
        connection: A connected stream socket; belongs to the channel from now on.

    Attributes:
        closed: The other side has gone, and everything it had said has been received.
    """

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.closed = False
        self._socket = connection
        self._outgoing = bytearray()
        self._incoming = bytearray()
        self._heard: deque[bytes] = deque()

    def fileno(self) -> int:
        """For selectors."""
        return self._socket.fileno()

    @property
    def waiting(self) -> bool:
        """Something could not be sent yet; `flush` when the socket can be written to."""
        return bool(self._outgoing)

    def send(self, word: str, text: str = "") -> None:
        """Say something; kept if it cannot be sent at once, dropped if the other side has gone."""
        self._outgoing += f"{word} {text}\n".encode("ascii")
        self.flush()

    def flush(self) -> None:
        """Send as much as can be sent without waiting."""
        while self._outgoing:
            try:
                sent = self._socket.send(self._outgoing)
            except BlockingIOError:
                return
            except OSError:
                # Nothing more can be sent. What the other side said before it went may still be waiting to be
                # received, so only `receive` says that the conversation is over.
                self._outgoing.clear()
                with suppress(OSError):
                    self._socket.shutdown(socket.SHUT_WR)
                return
            del self._outgoing[:sent]

    def receive(self) -> Iterator[tuple[str, str]]:
        """Everything that has arrived, as pairs of word and text; sets `closed` at the end of the conversation."""
        while not self.closed:
            try:
                chunk = self._socket.recv(_CHUNK)
            except BlockingIOError:
                break
            except OSError:
                chunk = b""
            if not chunk:
                self.closed = True
            self._incoming += chunk
        *lines, rest = self._incoming.split(b"\n")
        self._incoming = bytearray(rest)
        self._heard.extend(bytes(line) for line in lines)
        # One by one: after an interruption in the middle the others are still there.
        while self._heard:
            word, _, text = self._heard.popleft().decode("ascii").partition(" ")
            yield word, text

    def close(self) -> None:
        """End the conversation; the other side notices."""
        self.closed = True
        self._socket.close()
