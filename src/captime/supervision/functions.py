"""Function targets, from the supervisor's side: a process that has imported the function, and one call at a time."""

import os
import pickle
import select
import signal
import socket
import struct
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

from captime.supervision.messages import NOT_RETURNED, FunctionCall
from captime.supervision.processes import TAG, command, die_with_parent
from captime.supervision.spawn import Descriptors, NotStarted, ProcessSetup, SpawnedProcess, become_target, clocks_now

# Run as a process of its own: has imported a Python function, and forks once per call.
#
# The process that makes the call is forked twice, so that the supervisor adopts it: it is supervised, measured and
# capped like any program. It begins with everything imported, and with the same state (random numbers included) at
# every call.

RESULT_BYTES = 1 << 20
LENGTH = struct.Struct("=Q")
_MOST_DESCRIPTORS = 6


class _ReceivedCall(NamedTuple):
    """One call, as it came from the supervisor.

    Attributes:
        arguments: A pickled pair of positional and keyword arguments.
        environment: Of the run.
        surroundings: What the process gets before it becomes the target.
        connection: Ours; closed in the process that makes the call.
        descriptors: stdin, stdout, stderr, where the result goes, where the start is told, and perhaps the entrance of
            a control group.
    """

    arguments: bytes
    environment: dict[str, str]
    surroundings: ProcessSetup
    connection: socket.socket
    descriptors: list[int]


def main(arguments: list[str]) -> None:
    """Serve calls until the supervisor is gone."""
    warnings.filterwarnings("ignore", message=".*use of fork.*", category=DeprecationWarning)
    connection = socket.socket(fileno=int(arguments[0]))
    connection.set_inheritable(False)
    die_with_parent(signal.SIGKILL)
    function: Callable[..., Any] | None = None
    trouble = ""
    while True:
        message, descriptors = _received(connection)
        match message:
            case ("load", what, reference, search_path):
                function, trouble = _loaded(what, reference, search_path)
            case ("call" | "become" as word, packed, environment, surroundings):
                call = _ReceivedCall(packed, environment, ProcessSetup(*surroundings), connection, descriptors)
                if function is None:
                    os.write(descriptors[4], b"!" + trouble.encode("utf-8", "backslashreplace"))
                elif word == "become":
                    _run_function(function, call)
                else:
                    _fork_the_run(function, call)
                for descriptor in descriptors:
                    os.close(descriptor)
            case _:
                return


def _received(connection: socket.socket) -> tuple[Any, list[int]]:
    """Return the next message and the descriptors that came with it; None at the end."""
    header, descriptors, _, _ = socket.recv_fds(connection, LENGTH.size, _MOST_DESCRIPTORS)
    if len(header) < LENGTH.size:
        return None, descriptors
    (left,) = LENGTH.unpack(header)
    parts = []
    while left:
        part = connection.recv(min(left, 1 << 20))
        if not part:
            return None, descriptors
        parts.append(part)
        left -= len(part)
    return pickle.loads(b"".join(parts)), descriptors


def _loaded(function: bytes, reference: str, search_path: tuple[str, ...]) -> tuple[Callable[..., Any] | None, str]:
    """Return the function, or the reason why it cannot be had."""
    # The real package, should the function use it, is not the empty one that we were started with.
    for name in [name for name in sys.modules if name.partition(".")[0] == "captime"]:
        del sys.modules[name]
    sys.path[:0] = search_path
    try:
        if function:
            return pickle.loads(function), ""
        module, _, qualname = reference.partition(":")
        found: Any = import_module(module)
        for name in qualname.split("."):
            found = getattr(found, name)
    except BaseException as flaw:  # noqa: BLE001 (importing a user's module can raise anything; all of it is told)
        return None, "".join(traceback.format_exception_only(flaw)).strip()[-2000:]
    return found, ""


def _fork_the_run(function: Callable[..., Any], call: _ReceivedCall) -> None:
    """Fork the process that makes the call; it becomes the supervisor's."""
    sys.stdout.flush()
    sys.stderr.flush()
    between = os.fork()
    if between == 0:
        if os.fork() == 0:
            while os.getppid() != call.surroundings.supervisor:
                time.sleep(0.0001)
            _run_function(function, call)
        os._exit(0)
    os.waitpid(between, 0)


def _run_function(function: Callable[..., Any], call: _ReceivedCall) -> None:
    """Make the call, in a process that never returns from here."""
    stdin, stdout, stderr, result, said, *entrance = call.descriptors
    code = 1
    try:
        os.environ.clear()
        os.environ.update(call.environment)
        positional, named = _arguments(call)
        become_target(call.surroundings, Descriptors(stdin, stdout, stderr, entrance[0] if entrance else None))
        call.connection.close()
        for descriptor in (stdin, stdout, stderr, *entrance):
            os.close(descriptor)
        os.write(said, b"%d " % os.getpid() + clocks_now())
        os.close(said)
        _answer(function(*positional, **named), result)
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:  # noqa: BLE001 (whatever the function raises is the end of its run, and told on its stderr)
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


def _arguments(call: _ReceivedCall) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call; tell the supervisor why if they cannot be read here."""
    try:
        positional, named = pickle.loads(call.arguments)
    except BaseException as flaw:
        why = "".join(traceback.format_exception_only(flaw)).strip()[-1000:]
        os.write(call.descriptors[4], f"!its arguments cannot be unpickled: {why}".encode("utf-8", "backslashreplace"))
        raise
    return positional, named


def _answer(value: object, result: int) -> None:
    """Hand the returned value over, unless it is too large or cannot be pickled; then say so and leave."""
    try:
        packed = pickle.dumps(value)
    except Exception as flaw:  # noqa: BLE001 (an object of the function's own may raise anything when it is pickled)
        _leave(f"{NOT_RETURNED} {type(value).__name__}, which cannot be pickled ({flaw}); return plain values")
    if len(packed) > RESULT_BYTES:
        _leave(f"{NOT_RETURNED} {len(packed)} bytes when pickled; at most {RESULT_BYTES} are taken")
    view = memoryview(packed)
    while view:
        view = view[os.write(result, view) :]


def _leave(words: str) -> NoReturn:
    """End the process of the call with a last line on its standard error."""
    sys.stderr.write(" ".join(words.split()) + "\n")
    raise SystemExit(1)


# Function targets, from the supervisor's side: a process that has imported the function, and one call at a time.

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
        words = command("captime.supervision.functions", str(_THEIRS), installed_packages=True)
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
