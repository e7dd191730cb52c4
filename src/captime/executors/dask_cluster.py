"""From words to a Dask client: the address of a scheduler, the file it left, or a cluster that is started for us.

A cluster that is started here is set up as runs need it: no work stealing, no second tries behind our back, no web
page, no profiler on the workers. A cluster that was there before keeps its own settings; what they could spoil, the
stations prevent (see `dask_station`).
"""

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import dask
from distributed import Client, LocalCluster

from captime.errors import ScenarioError

# Dask says little about its types.
_make_client: Callable[..., Any] = Client
_make_local: Callable[..., Any] = LocalCluster
# Long enough for a scheduler that is started again, short enough to end in good order within half a minute.
_CONNECT_SECONDS = 20.0
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
class ClusterWishes:
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


@contextmanager
def client_of(wishes: ClusterWishes) -> Iterator[Any]:
    """A client, connected; closed in the end, with the cluster if it was started here."""
    if wishes.cluster is None:
        with _connected(wishes) as client:
            yield client
        return
    settings = {**_SETTINGS, **(_BESIDE_US if wishes.cluster == "local" else {})}
    with dask.config.set(settings):
        cluster = _started(wishes)
        try:
            with _make_client(cluster, timeout=_CONNECT_SECONDS, set_as_default=False) as client:
                yield client
        finally:
            cluster.close()


def _connected(wishes: ClusterWishes) -> Any:
    place = wishes.address or f"the scheduler of {wishes.scheduler_file}"
    try:
        if wishes.scheduler_file is not None:
            return _make_client(scheduler_file=wishes.scheduler_file, timeout=_CONNECT_SECONDS, set_as_default=False)
        return _make_client(wishes.address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as trouble:
        raise ScenarioError(
            f"executor: {place} cannot be reached ({trouble}); start a scheduler with `dask scheduler`, or check the "
            "address"
        ) from None


def _started(wishes: ClusterWishes) -> Any:
    options = dict(wishes.options)
    try:
        if wishes.cluster == "local":
            defaults = {"host": "127.0.0.1", "dashboard_address": None, "threads_per_worker": 1, "memory_limit": 0}
            kept = {"scheduler_kwargs": _NO_PAGE, "processes": True}
            return _make_local(n_workers=wishes.workers, **{**defaults, **kept, **options})
        cluster = _queue(str(wishes.cluster))(**_for_queue(options))
    except (TypeError, ValueError) as trouble:
        raise ScenarioError(
            f"executor.options: a {wishes.cluster} cluster cannot be made of {sorted(wishes.options)}: {trouble}"
        ) from None
    cluster.scale(jobs=wishes.workers or 1)
    return cluster


def _for_queue(options: dict[str, Any]) -> dict[str, Any]:
    """Options with what runs need where the user says nothing."""
    scheduler = {**_NO_PAGE, **options.pop("scheduler_options", {})}
    # Several processes per job by default there, sharing its cores; a slot has to have a core of its own.
    return {"processes": 1, "scheduler_options": scheduler, **options}


def _queue(name: str) -> Any:
    try:
        return getattr(importlib.import_module("dask_jobqueue"), _QUEUES[name])
    except ImportError:
        raise ScenarioError(
            f"executor.cluster is {name!r}, which needs dask-jobqueue; install it with: pip install dask-jobqueue"
        ) from None
