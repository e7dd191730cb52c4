"""Dask clusters of real processes on the loopback device, and ways to hurt them."""

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from distributed import Client

from captime.executors.dask_cluster import ClusterSettings, client_of
from scripted_campaign import Scripted

# Interpreters, libraries and stations start in seconds; on a busy machine it may be many.
PATIENCE = 300.0
QUIET = {**os.environ, "DASK_LOGGING__DISTRIBUTED": "critical", "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False"}


def eventually(happened: Callable[[], bool], patience: float = PATIENCE) -> bool:
    """Whether it happens in time."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if happened():
            return True
        time.sleep(0.05)
    return False


@contextmanager
def local_cluster(workers: int) -> Iterator[Any]:
    """A client of a cluster of this many processes, which are started again when they die."""
    with client_of(ClusterSettings(cluster="local", workers=workers, options={"silence_logs": 60})) as reached:
        yield reached.client


class Cluster:
    """A scheduler and workers as processes of their own, so that each can be killed.

    Args:
        folder: For their files.
        host: Where the scheduler listens.

    Attributes:
        address: Of the scheduler.
        scheduler: Its process.
        workers: The processes of the workers.
    """

    def __init__(self, folder: Path, host: str = "127.0.0.1") -> None:
        self._folder = folder
        self._host = host
        with socket.socket() as free:
            free.bind((host, 0))
            self._port = free.getsockname()[1]
        self.address = f"tcp://{host}:{self._port}"
        self.workers: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._start_scheduler()

    def _start(self, module: str, *words: str, inside: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*inside, sys.executable, "-W", "ignore", "-m", f"distributed.cli.{module}", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=QUIET,
            cwd=self._folder,
            start_new_session=True,
        )

    def _start_scheduler(self) -> subprocess.Popen[bytes]:
        return self._start("dask_scheduler", "--host", self._host, "--port", str(self._port), "--no-dashboard")

    def restart_scheduler(self) -> None:
        """At the same address."""
        self.kill_scheduler()
        self.scheduler = self._start_scheduler()

    def kill_scheduler(self) -> None:
        """Without a word."""
        self.scheduler.kill()
        self.scheduler.wait()

    def add_worker(self, threads: int = 1, *, host: str = "127.0.0.1", inside: Sequence[str] = ()) -> None:
        """A worker that is not started again; started by the command `inside`, if there is one."""
        words = (self.address, "--no-nanny", "--no-dashboard", "--nthreads", str(threads), "--host", host)
        more = ("--memory-limit", "0", "--local-directory", str(self._folder))
        self.workers.append(self._start("dask_worker", *words, *more, inside=inside))

    def kill_workers(self) -> None:
        """All of them, without a word."""
        for worker in self.workers:
            worker.kill()
            worker.wait()
        self.workers.clear()

    def close(self) -> None:
        """Nothing is left."""
        self.kill_workers()
        self.kill_scheduler()


@contextmanager
def cluster(folder: Path, workers: int = 0, host: str = "127.0.0.1") -> Iterator[Cluster]:
    """A cluster of processes with this many workers."""
    made = Cluster(folder, host)
    try:
        for _ in range(workers):
            made.add_worker()
        yield made
    finally:
        made.close()


# ------------------------------------------------------------------ three kinds of death


def _exit() -> None:
    os._exit(3)


def _close(dask_worker: Any) -> None:
    dask_worker.loop.add_callback(dask_worker.close, nanny=False, executor_wait=False)


class Chaos:
    """Kills a worker after every few runs, each time in another way: it exits, it is closed, it is shot.

    Args:
        client: Of the cluster.
        every: This many runs.

    Attributes:
        deaths: How many workers died, by kind.
    """

    def __init__(self, client: Any, every: int) -> None:
        self._client = client
        self._every = every
        self._choice = random.Random(0)  # noqa: S311 (which worker dies)
        self.deaths = {"exit": 0, "close": 0, "kill": 0}

    def __call__(self, runs: int) -> None:
        """This many runs were started so far."""
        died = sum(self.deaths.values())
        if runs < self._every * (died + 1):
            return
        kind = list(self.deaths)[died % len(self.deaths)]
        try:
            address = self._choice.choice(sorted(self._client.scheduler_info()["workers"]))
            if kind == "kill":
                (pid,) = self._client.run(os.getpid, workers=[address]).values()
                os.kill(pid, self._choice.choice([signal.SIGKILL, signal.SIGSEGV]))
            else:
                self._client.run(_exit if kind == "exit" else _close, workers=[address], on_error="ignore")
        except (OSError, ValueError, IndexError):
            # There was no worker, or it died before; another time.
            return
        self.deaths[kind] += 1


def connected(address: str) -> Any:
    """A client of a running cluster."""
    make: Callable[..., Any] = Client
    return make(address, timeout=20.0, set_as_default=False)


def with_executor(campaign: Scripted, section: str) -> None:
    """Add a section to the scenario."""
    text = campaign.scenario.read_text(encoding="utf-8")
    campaign.scenario.write_text(f"{text}\n[executor]\n{section}\n", encoding="utf-8")
