"""Function targets, from the supervisor's side: a process that has imported the function, and one call at a time."""

import os
import pickle
import select
import signal
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import astuple

from captime.supervision.bootstrap import command
from captime.supervision.child import Descriptors, NotStarted, Started, Surroundings
from captime.supervision.messages import Call
from captime.supervision.processes import TAG
from captime.supervision.zygote import LENGTH, RESULT_BYTES

__all__ = ["RESULT_BYTES", "Functions"]

# A module may take its time to be imported.
_PATIENCE = 120.0
# Different functions at once, of a portfolio for instance.
_KEPT = 4

_Key = tuple[bytes, str, tuple[str, ...], tuple[tuple[str, str], ...]]


class _Zygote:
    """A process that has imported one function."""

    def __init__(self, call: Call, environment: Mapping[str, str]) -> None:
        self._connection, theirs = socket.socketpair()
        tag = environment[TAG].partition("/")[0]
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 (our own interpreter and module)
                command("captime.supervision.zygote", str(theirs.fileno()), installed_packages=True),
                env={**environment, TAG: f"{tag}/functions.{os.getpid()}"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self.pid = self._process.pid
        self.send(("load", call.function, call.reference, call.search_path), [])

    def send(self, message: object, descriptors: list[int]) -> None:
        packed = pickle.dumps(message)
        socket.send_fds(self._connection, [LENGTH.pack(len(packed))], descriptors)
        self._connection.sendall(packed)

    def close(self) -> None:
        self._connection.close()
        os.kill(self.pid, signal.SIGKILL)
        self._process.wait()


class Functions:
    """Starts calls; keeps the processes that have imported the functions."""

    def __init__(self) -> None:
        self._zygotes: dict[_Key, _Zygote] = {}

    def pids(self) -> frozenset[int]:
        """Processes of ours that are no part of any run."""
        return frozenset(each.pid for each in self._zygotes.values())

    def start(
        self,
        call: Call,
        environment: Mapping[str, str],
        surroundings: Surroundings,
        descriptors: Descriptors,
        result: int,
    ) -> Started:
        """Begin a call; returns once it is about to be made.

        Raises:
            NotStarted: The function cannot be imported, or its arguments cannot be read.
        """
        key = self._key(call, environment)
        request = (call.arguments, dict(environment), astuple(surroundings))
        streams = [descriptors.stdin, descriptors.stdout, descriptors.stderr, result]
        entrance = [] if descriptors.entrance is None else [descriptors.entrance]
        heard, said = os.pipe()
        try:
            zygote = self._zygote(key, call, environment)
            try:
                zygote.send(("call", *request), [*streams, said, *entrance])
            except OSError:
                # It was killed since; nothing of this call has happened yet.
                self._drop(key)
                self._zygote(key, call, environment).send(("call", *request), [*streams, said, *entrance])
            finally:
                os.close(said)
            return self._as_told(heard, key)
        finally:
            os.close(heard)

    def close(self) -> None:
        """Let them go."""
        for key in list(self._zygotes):
            self._drop(key)

    @staticmethod
    def _key(call: Call, environment: Mapping[str, str]) -> _Key:
        own = {name: value for name, value in environment.items() if name not in {TAG, "TMPDIR"}}
        return call.function, call.reference, call.search_path, tuple(sorted(own.items()))

    def _zygote(self, key: _Key, call: Call, environment: Mapping[str, str]) -> _Zygote:
        zygote = self._zygotes.pop(key, None)
        if zygote is None:
            while len(self._zygotes) >= _KEPT:
                self._drop(next(iter(self._zygotes)))
            zygote = _Zygote(call, environment)
        self._zygotes[key] = zygote
        return zygote

    def _drop(self, key: _Key) -> None:
        self._zygotes.pop(key).close()

    def _as_told(self, heard: int, key: _Key) -> Started:
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
        return Started(*map(int, fields))
