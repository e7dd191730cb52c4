"""Function targets, from the supervisor's side: a process that has imported the function, and one call at a time."""

import os
import pickle
import select
import signal
import socket
from collections.abc import Mapping, Sequence
from dataclasses import astuple

from captime.supervision.fork_server import LENGTH, RESULT_BYTES
from captime.supervision.messages import FunctionCall
from captime.supervision.processes import TAG, command
from captime.supervision.spawn import Descriptors, NotStarted, ProcessSetup, SpawnedProcess

__all__ = ["RESULT_BYTES", "Functions"]

# A module may take its time to be imported.
_PATIENCE = 120.0
# Different functions at once, of a portfolio for instance.
_KEPT = 4
# The number of its connection over there.
_THEIRS = 3

_Key = tuple[bytes, str, tuple[str, ...], tuple[tuple[str, str], ...]]


class _ForkServer:
    """A process that has imported one function."""

    def __init__(self, call: FunctionCall, environment: Mapping[str, str]) -> None:
        self._connection, theirs = socket.socketpair()
        words = command("captime.supervision.fork_server", str(_THEIRS), installed_packages=True)
        nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        # Not by `subprocess`: it would wait for children on its own account, and one of these may become a run.
        with theirs:
            self.pid = os.posix_spawn(
                words[0],
                words,
                environment,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, theirs.fileno(), _THEIRS),
                    *((os.POSIX_SPAWN_DUP2, nowhere, stream) for stream in (0, 1, 2)),
                ],
            )
        os.close(nowhere)
        self.send("load", (call.function, call.reference, call.search_path))

    def send(self, word: str, message: tuple[object, ...], descriptors: Sequence[int] = ()) -> None:
        packed = pickle.dumps((word, *message))
        socket.send_fds(self._connection, [LENGTH.pack(len(packed))], descriptors)
        self._connection.sendall(packed)

    def let_go(self) -> None:
        """Leave it to the supervisor of the run that it has become."""
        self._connection.close()

    def close(self) -> None:
        self._connection.close()
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except OSError:
            return


class Functions:
    """Starts calls; keeps the processes that have imported the functions.

    Args:
        adopts: Orphans become our children, so a process that was forked for a call comes to us. Otherwise every call
            has a process that imports the function for it alone; the clocks start when that is done.
    """

    def __init__(self, *, adopts: bool) -> None:
        self._adopts = adopts
        self._servers: dict[_Key, _ForkServer] = {}

    def pids(self) -> frozenset[int]:
        """Processes of ours that are no part of any run."""
        return frozenset(each.pid for each in self._servers.values())

    def start(
        self,
        call: FunctionCall,
        environment: Mapping[str, str],
        surroundings: ProcessSetup,
        descriptors: Descriptors,
        result: int,
    ) -> SpawnedProcess:
        """Begin a call; returns once it is about to be made.

        Raises:
            NotStarted: The function cannot be imported, or its arguments cannot be read.
        """
        entrance = [] if descriptors.entrance is None else [descriptors.entrance]
        streams = [descriptors.stdin, descriptors.stdout, descriptors.stderr, result]
        message = (call.arguments, dict(environment), astuple(surroundings))
        key = self._key(call, environment)
        heard, said = os.pipe()
        try:
            try:
                word = "call" if self._adopts else "become"
                self._server(key, call, environment).send(word, message, [*streams, said, *entrance])
            except OSError:
                # It was killed since the last call; nothing of this one has happened yet.
                self._drop(key)
                self._server(key, call, environment).send(word, message, [*streams, said, *entrance])
            finally:
                os.close(said)
            started = self._as_told(heard, key)
        finally:
            os.close(heard)
        if not self._adopts:
            self._servers.pop(key).let_go()
        return started

    def close(self) -> None:
        """Let them go."""
        for key in list(self._servers):
            self._drop(key)

    @staticmethod
    def _key(call: FunctionCall, environment: Mapping[str, str]) -> _Key:
        own = {name: value for name, value in environment.items() if name not in {TAG, "TMPDIR"}}
        return call.function, call.reference, call.search_path, tuple(sorted(own.items()))

    def _server(self, key: _Key, call: FunctionCall, environment: Mapping[str, str]) -> _ForkServer:
        server = self._servers.pop(key, None)
        if server is None:
            while len(self._servers) >= _KEPT:
                self._drop(next(iter(self._servers)))
            ledger = environment[TAG].partition("/")[0]
            # What is forked from it shows the environment that it was started with: the run's, or one for all runs.
            tag = f"{ledger}/functions.{os.getpid()}" if self._adopts else environment[TAG]
            server = _ForkServer(call, {**environment, TAG: tag})
        self._servers[key] = server
        return server

    def _drop(self, key: _Key) -> None:
        self._servers.pop(key).close()

    def _as_told(self, heard: int, key: _Key) -> SpawnedProcess:
        """Wait for the process that makes the call to say that it begins."""
        told = b""
        while not told.endswith(b"\n"):
            ready, _, _ = select.select([heard], [], [], _PATIENCE)
            part = os.read(heard, 4096) if ready else b""
            if not part:
                break
            told += part
        pid_and_clocks, failed, words = told.partition(b"!")
        fields = pid_and_clocks.split()
        if failed or len(fields) != 4:
            self._drop(key)
            reason = words.decode("utf-8", "replace") or f"its process ended, or was silent for {_PATIENCE:g} s"
            raise NotStarted(f"the function could not be called: {reason}")
        return SpawnedProcess(*map(int, fields))
