"""From words to a Dask client: the address of a scheduler, the file it left, or a cluster that is started for us.

A cluster that is started here is set up as runs need it: no work stealing, no second tries behind our back, no web
page, no profiler on the workers. A cluster that was there before keeps its own settings; what they could spoil, the
stations prevent (see `dask_worker`).
"""

import importlib
import inspect
import json
import logging
import re
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dask
from dask.utils import parse_timedelta
from distributed import Client, LocalCluster, Nanny, Worker
from distributed.comm.addressing import get_address_host_port
from distributed.core import Server

from captime.errors import ScenarioError
from captime.executors.dask_queue import Jobs, in_a_line
from captime.runs import never

# Dask says little about its types.
_make_client: Callable[..., Any] = Client
_make_local: Callable[..., Any] = LocalCluster
# Long enough for a scheduler that is started again, short enough to end in good order within half a minute.
_CONNECT_SECONDS = 20.0
_LOOK_SECONDS = 0.1
_CLOSE_SECONDS = 30.0
_log = logging.getLogger("captime")
_QUEUES = {
    "slurm": "SLURMCluster",
    "pbs": "PBSCluster",
    "sge": "SGECluster",
    "lsf": "LSFCluster",
    "htcondor": "HTCondorCluster",
    "oar": "OARCluster",
    "moab": "MoabCluster",
}
# What is left of the web page when it is off (a few facts for monitoring) is not for others, and takes any port.
_NO_PAGE = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
_SETTINGS = {
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.allowed-failures": 0,
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "10s",
}
# Ctrl-C in a terminal is for the coordinator, which stops its runs in good order; workers beside it must not hear it.
_DEAF = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
_BESIDE_US = {
    "distributed.worker.preload": [_DEAF],
    # A worker that died is started again, which takes a while on a busy machine; Dask would give it up after 15 s.
    "distributed.deploy.lost-worker-timeout": "1h",
}


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """Which cluster.

    Attributes:
        address: Of a scheduler.
        scheduler_file: That a scheduler has written.
        cluster: The kind to be started: `local`, `slurm`, …
        workers: How many workers (of a queue: jobs) to ask for.
        options: For the maker of the cluster.
    """

    address: str | None = None
    scheduler_file: str | None = None
    cluster: str | None = None
    workers: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReachedCluster:
    """A cluster that can be talked to.

    Attributes:
        client: Connected; None if it was interrupted before it was.
        jobs: Of a batch queue, if captime has submitted some.
    """

    client: Any
    jobs: Jobs | None = None


@contextmanager
def client_of(wishes: ClusterSettings, interrupted: Callable[[], bool] = never) -> Iterator[ReachedCluster]:
    """Yield a client, connected; closed in the end, with the cluster if it was started here.

    Args:
        wishes: Which cluster.
        interrupted: Asked while waiting; True gives up waiting.
    """
    if wishes.cluster is None:
        client = _connected(wishes, interrupted)
        try:
            yield ReachedCluster(client)
        finally:
            if client is not None:
                client.close()
        return
    settings = {**_SETTINGS, **(_BESIDE_US if wishes.cluster == "local" else {})}
    with dask.config.set(settings):
        cluster = _started(wishes)
        jobs = None if wishes.cluster == "local" else Jobs(cluster, str(wishes.cluster), wishes.workers or 1)
        try:
            with _make_client(cluster, timeout=_CONNECT_SECONDS, set_as_default=False) as client:
                if jobs is not None:
                    jobs.begin(interrupted)
                yield ReachedCluster(client, jobs)
        finally:
            if jobs is not None:
                jobs.close()
            _close(cluster)


def _close(cluster: Any) -> None:
    """Close what was started here; whatever goes wrong with it, the campaign's result stands."""
    try:
        cluster.close(timeout=_CLOSE_SECONDS)
    except Exception as trouble:  # noqa: BLE001 (Dask's closing fails in many ways, and the certificate is out already)
        _log.warning("the cluster was not closed in good order: %s", in_a_line(f"{type(trouble).__name__}: {trouble}"))


def _await_address(wishes: ClusterSettings, seconds: float, interrupted: Callable[[], bool]) -> None:
    """Refuse a file without an address, or an address at which no scheduler can be; Dask would wait for ever or break.

    Args:
        wishes: Which cluster.
        seconds: How long to wait for the file of a scheduler that has just been started.
        interrupted: Asked while waiting; True gives up waiting.
    """
    address, where, end = wishes.address or "", "address", time.monotonic() + seconds
    if wishes.scheduler_file is not None:
        where = "scheduler_file"
        while isinstance(told := _address_in(wishes.scheduler_file), ScenarioError):
            if interrupted():
                return
            if time.monotonic() >= end:
                raise told
            time.sleep(_LOOK_SECONDS)
        address = told
    try:
        get_address_host_port(address)
    except (ValueError, NotImplementedError) as flaw:
        raise ScenarioError(
            f"executor.{where}: {address!r} cannot be reached ({flaw}); expected the address of a scheduler, such as "
            "tcp://10.0.0.1:8786"
        ) from None


def _address_in(file: str) -> str | ScenarioError:
    """Return the address in the file of a scheduler, or what to say if there is none."""
    try:
        told = json.loads(Path(file).read_text(encoding="utf-8"))
        found = told["address"] if isinstance(told, dict) and isinstance(told.get("address"), str) else None
        flaw = "it has no address"
    except OSError as trouble:
        found, flaw = None, f"it cannot be read ({trouble.strerror})"
    except ValueError:
        found, flaw = None, "it is no JSON"
    return found or ScenarioError(
        f"executor.scheduler_file is {file}, but {flaw}; expected what a scheduler writes: start it with `dask "
        "scheduler --scheduler-file FILE`, or correct the name"
    )


def _connected(wishes: ClusterSettings, interrupted: Callable[[], bool]) -> Any:
    """Return a client of a cluster that is there; None if it was interrupted while it waited for one."""
    _await_address(wishes, _CONNECT_SECONDS, interrupted)
    place = wishes.address or f"the scheduler of {wishes.scheduler_file}"
    found: list[Any] = []
    given_up = threading.Event()

    def connect() -> None:
        where = {"scheduler_file": wishes.scheduler_file} if wishes.scheduler_file else {"address": wishes.address}
        try:
            found.append(_make_client(**where, timeout=_CONNECT_SECONDS, set_as_default=False))
        except Exception as trouble:  # noqa: BLE001 (handed to the thread that waits)
            found.append(trouble)
        if given_up.is_set() and not isinstance(found[0], Exception):
            found[0].close()

    # In a thread of its own, so that a signal need not wait for the time limit of the connection.
    thread = threading.Thread(target=connect, name="captime-connecting", daemon=True)
    thread.start()
    while thread.is_alive() and not interrupted():
        thread.join(_LOOK_SECONDS)
    if not found:
        given_up.set()
        return None
    if isinstance(found[0], OSError | ValueError):
        raise ScenarioError(
            f"executor: {place} cannot be reached ({found[0]}); start a scheduler with `dask scheduler`, or check the "
            "address"
        )
    if isinstance(found[0], Exception):
        raise found[0]
    return found[0]


def _started(wishes: ClusterSettings) -> Any:
    options = dict(wishes.options)
    if wishes.cluster == "local":
        _check_local(options)
    try:
        if wishes.cluster == "local":
            defaults = {"host": "127.0.0.1", "dashboard_address": None, "threads_per_worker": 1, "memory_limit": 0}
            kept = {"scheduler_kwargs": _NO_PAGE, "processes": True}
            return _make_local(n_workers=wishes.workers, **{**defaults, **kept, **options})
        return _queue(wishes)(**_for_queue(options))
    except (TypeError, ValueError, RuntimeError, OSError, ImportError) as trouble:
        raise ScenarioError(
            f"executor.options: a {wishes.cluster} cluster cannot be made of {sorted(wishes.options)}: "
            f"{in_a_line(str(trouble))}; correct the options"
        ) from None


def _check_local(options: Mapping[str, Any]) -> None:
    """Refuse options of which no part of a local cluster knows; its workers would end with a traceback."""
    makers = (LocalCluster, Nanny, Worker, Server)
    known = {name for maker in makers for name in inspect.signature(maker.__init__).parameters}
    for name in options:
        if name not in known:
            raise ScenarioError(
                f"executor.options.{name} is no option of a local cluster; expected those of Dask's LocalCluster and "
                "of its workers, such as threads_per_worker or memory_limit; leave it out"
            )


def examined(wishes: ClusterSettings, seconds: float) -> str:
    """Look at a cluster without starting anything there; what was found, in words.

    Args:
        wishes: Which cluster.
        seconds: How long to try to reach a scheduler.
    """
    if wishes.cluster == "local":
        _check_local(wishes.options)
        return "a Dask cluster of processes on this machine"
    if wishes.cluster is not None:
        command = str(_queue(wishes).job_cls.submit_command)
        _for_queue(dict(wishes.options))
        return f"jobs of {wishes.cluster}, submitted with {command}; whether it accepts them is seen when they are"
    _await_address(wishes, seconds, never)
    with suppress(OSError, ValueError, TypeError):
        where = {"scheduler_file": wishes.scheduler_file} if wishes.scheduler_file else {"address": wishes.address}
        with _make_client(**where, timeout=seconds, set_as_default=False) as client:
            threads = client.ncores()
            return f"a Dask cluster with {len(threads)} workers and {sum(threads.values())} slots"
    raise ScenarioError(
        f"executor: {wishes.address or wishes.scheduler_file} cannot be reached; start a scheduler with `dask "
        "scheduler`, or check the address"
    )


def _for_queue(options: dict[str, Any]) -> dict[str, Any]:
    """Options with what runs need where the user says nothing; what cannot be right is refused."""
    if "n_workers" in options:
        raise ScenarioError("executor.options.n_workers is not for captime; use executor.workers in its place")
    scheduler = {**_NO_PAGE, **options.pop("scheduler_options", {})}
    for name, place in ((options.get("interface"), "interface"), (scheduler.get("interface"), "scheduler_options")):
        _check_interface(name, place)
    if "worker_extra_args" in options:
        options["worker_extra_args"] = _arguments(options["worker_extra_args"])
    # Several processes per job by default there, sharing its cores; a slot has to have a core of its own.
    return {"processes": 1, "scheduler_options": scheduler, **options}


def _check_interface(name: object, place: str) -> None:
    known = sorted(name for _, name in socket.if_nameindex())
    if name is not None and name not in known:
        raise ScenarioError(
            f"executor.options.{place} names the network {name!r}, which this machine does not have; expected one of "
            f"{', '.join(known)}: the one that this machine and the nodes share"
        )


# What of a worker's command line is a time, and how people write one: 3h50m, 1d 2h, 04:00:00, 1-00:00:00.
_TIMES = ("--lifetime", "--lifetime-stagger", "--death-timeout")
_PIECES = re.compile(r"(?:\s*\d+(?:\.\d+)?\s*[a-zA-Zµ]+)+\s*")
_PIECE = re.compile(r"\d+(?:\.\d+)?\s*[a-zA-Zµ]+")
_CLOCK = re.compile(r"(?:(\d+)-)?(\d+):(\d\d):(\d\d)")


def _arguments(words: object) -> list[str]:
    """Return the worker's command line, with times in the way that Dask reads them."""
    place = "executor.options.worker_extra_args"
    if not isinstance(words, Sequence) or isinstance(words, str):
        raise ScenarioError(f'{place} is {words!r}; expected a list of words, such as ["--lifetime", "3h50m"]')
    told, before = [], ""
    for word in map(str, words):
        name, equals, value = word.partition("=")
        if equals and name in _TIMES:
            told.append(f"{name}={_time(value, f'{place}: {name}')}")
        else:
            told.append(_time(word, f"{place}: {before}") if before in _TIMES else word)
        before = word
    if before in _TIMES:
        raise ScenarioError(f"{place} ends with {before}, without a time; add one after it, such as 3h50m")
    return told


def _time(text: str, place: str) -> str:
    """Return a time as Dask reads it, in seconds."""
    clock = _CLOCK.fullmatch(text.strip())
    try:
        if clock is not None:
            days, hours, minutes, seconds = (int(part or 0) for part in clock.groups())
            total = ((days * 24.0 + hours) * 60.0 + minutes) * 60.0 + seconds
        elif _PIECES.fullmatch(text):
            total = sum(float(parse_timedelta(re.sub("mins?$", "m", piece))) for piece in _PIECE.findall(text))
        else:
            total = float(text)
    except (ValueError, KeyError, OverflowError):
        total = -1.0
    if not 0.0 < total < 1e9:
        raise ScenarioError(f"{place} is {text!r}; expected a time such as 3h50m, 230m or 03:50:00")
    return f"{total:.10g}s"


def _queue(wishes: ClusterSettings) -> Any:
    """Return the maker of clusters of this kind, if jobs can be submitted here."""
    name = str(wishes.cluster)
    try:
        found = getattr(importlib.import_module("dask_jobqueue"), _QUEUES[name])
    except ImportError:
        raise ScenarioError(
            f"executor.cluster is {name!r}, which needs dask-jobqueue; install it with: pip install dask-jobqueue"
        ) from None
    command = str(found.job_cls.submit_command).split()[0]
    if shutil.which(command) is None:
        raise ScenarioError(
            f"executor.cluster is {name!r}, but there is no program {command} here; expected a machine from which jobs "
            "can be submitted: run captime on a login node, or add the folder of this program to PATH"
        )
    return found
