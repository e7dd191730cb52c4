"""Run as a process of its own: has imported a Python function, and forks once per call.

The process that makes the call is forked twice, so that the supervisor adopts it: it is supervised, measured and capped
like any program. It begins with everything imported, and with the same state (random numbers included) at every call.
"""

import os
import pickle
import signal
import socket
import struct
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

from captime.supervision.messages import NOT_RETURNED
from captime.supervision.processes import die_with_parent
from captime.supervision.spawn import Descriptors, ProcessSetup, become_target, clocks_now

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
