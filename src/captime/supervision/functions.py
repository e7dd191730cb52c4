"""Function targets, from the supervisor's side: a process that has imported the function, and one call at a time."""

import os
import pickle
import select
import signal
import socket
from collections.abc import Mapping, Sequence
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
# The number of its connection over there.
_THEIRS = 3

_Key = tuple[bytes, str, tuple[str, ...], tuple[tuple[str, str], ...]]


class _Zygote:
    """A process that has imported one function."""

    def __init__(self, call: Call, environment: Mapping[str, str]) -> None:
        self._connection, theirs = socket.socketpair()
        words = command("captime.supervision.zygote", str(_THEIRS), installed_packages=True)
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
        """It has become a run, and whoever supervises that waits for it."""
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
        entrance = [] if descriptors.entrance is None else [descriptors.entrance]
        streams = [descriptors.stdin, descriptors.stdout, descriptors.stderr, result]
        message = (call.arguments, dict(environment), astuple(surroundings))
        key = self._key(call, environment)
        heard, said = os.pipe()
        try:
            try:
                word = "call" if self._adopts else "become"
                self._zygote(key, call, environment).send(word, message, [*streams, said, *entrance])
            except OSError:
                # It was killed since the last call; nothing of this one has happened yet.
                self._drop(key)
                self._zygote(key, call, environment).send(word, message, [*streams, said, *entrance])
            finally:
                os.close(said)
            started = self._as_told(heard, key)
        finally:
            os.close(heard)
        if not self._adopts:
            self._zygotes.pop(key).let_go()
        return started

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
            ledger = environment[TAG].partition("/")[0]
            # What is forked from it shows the environment that it was started with: the run's, or one for all runs.
            tag = f"{ledger}/functions.{os.getpid()}" if self._adopts else environment[TAG]
            zygote = _Zygote(call, {**environment, TAG: tag})
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
