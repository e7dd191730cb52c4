"""The machine: place of the ledger, version of SQLite, load of the processors; and the cluster, if there is one."""

import os
import shutil
import sqlite3
import tempfile
from pathlib import Path

from captime.errors import ScenarioError, StorageTrouble
from captime.ledger.filesystem import check_writable, file_system, is_network, sqlite_note
from captime.scenario.checkup.finding import STORAGE, WORDS, Finding
from captime.scenario.machine import allowed_cores
from captime.scenario.parts import ExecutorSettings
from captime.supervision.fitness import Fitness

# A run takes well under a kilobyte in a ledger; this is enough for a million of them, and for generated instances.
_PLENTY = 2 << 30
_TOO_LITTLE = 100 << 20
_REACH_SECONDS = 5.0


def look_at_sqlite() -> Finding:
    """Check the library that writes the ledger."""
    note = sqlite_note()
    facts = {"sqlite": sqlite3.sqlite_version}
    if note is None:
        return Finding("SQLite", "well", f"version {sqlite3.sqlite_version}", facts=facts)
    return Finding("SQLite", "note", note, "nothing needs to be done", facts)


def look_at_ledger(ledger: Path) -> list[Finding]:
    """Return whether a ledger can be written there, and how much room there is."""
    folder = ledger.parent
    kind = file_system(folder) if folder.is_dir() else ""
    facts = {"ledger": str(ledger), "file_system": kind}
    try:
        check_writable(ledger)
    except StorageTrouble as error:
        advice = "choose another place with ledger = ... or --ledger"
        return [Finding("ledger", "failed", str(error), advice, facts, STORAGE)]
    found = f"{ledger.name} {'exists and will be resumed' if ledger.exists() else 'will be made'}"
    where = f"{found}; its file system is {kind}" if kind else found
    if is_network(kind):
        advice = "put the ledger on a local disk with ledger = ..., or SQLite can lose rows"
        return [Finding("ledger", "failed", where, advice, facts, STORAGE), _look_at_disk(folder)]
    return [Finding("ledger", "well", where, facts=facts), _look_at_disk(folder)]


def _look_at_disk(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    found, facts = f"{free / 1e9:,.1f} GB free", {"free_bytes": free}
    if free < _TOO_LITTLE:
        return Finding("disk", "failed", found, "make room: a full disk stops the campaign", facts, STORAGE)
    if free < _PLENTY:
        return Finding("disk", "warning", found, "make room if the campaign is to be long", facts)
    return Finding("disk", "well", found, facts=facts)


def look_at_scratch(folder: str | None = None) -> Finding:
    """Return whether runs have room for their directories.

    Args:
        folder: Where they are made; the usual place for temporary files if left out.
    """
    wanted, usual = os.environ.get("TMPDIR"), folder or tempfile.gettempdir()
    lack = Fitness(usual).before()
    facts = {"folder": usual, "shortage": None if lack is None else lack.what.value}
    if lack is not None:
        advice = "make room there, or name another folder with TMPDIR: runs cannot begin without it"
        return Finding("scratch", "failed", lack.words, advice, facts, STORAGE)
    free = shutil.disk_usage(usual).free
    found = f"runs take place in {usual}, {free / 1e9:,.1f} GB free"
    if wanted and folder is None and not _same(wanted, usual):
        advice = f"TMPDIR names {wanted}, which cannot be written to; make room there, or change TMPDIR"
        return Finding("scratch", "warning", found, advice, facts)
    return Finding("scratch", "well", found, facts=facts)


def look_at_load(jobs: int) -> Finding:
    """Return whether other processes use the processors that runs are to be measured on."""
    busy, cores = os.getloadavg()[0], allowed_cores()
    found = f"{jobs} jobs on {cores} cores; {busy:.1f} processes were busy in the last minute"
    facts = {"jobs": jobs, "cores": cores, "load": busy}
    if jobs + busy > cores + 0.5:
        advice = (
            "runs will wait for each other; CPU times suffer a little, wall-clock times a lot. Wait, or use fewer jobs"
        )
        return Finding("processors", "warning", found, advice, facts)
    return Finding("processors", "well", found, facts=facts)


def look_at_executor(wishes: ExecutorSettings) -> list[Finding]:
    """Return whether the cluster can be used, where runs are to happen on one; nothing is started there."""
    if wishes.kind == "local":
        return []
    try:
        from captime.executors.dask_cluster import ClusterSettings, examined  # noqa: PLC0415 (an optional package)
    except ImportError:
        advice = "install it with: pip install 'captime[dask]'"
        return [Finding("executor", "failed", "a Dask cluster needs an optional package", advice, exit_code=WORDS)]
    which = (wishes.address, wishes.scheduler_file, wishes.cluster, wishes.workers, dict(wishes.options))
    try:
        found = examined(ClusterSettings(*which), _REACH_SECONDS)
    except ScenarioError as error:
        advice = "correct the section [executor]; the other checks are about this machine"
        return [Finding("executor", "failed", str(error), advice, exit_code=WORDS)]
    advice = "all other checks are about this machine; workers have to find captime, program and instances too"
    return [Finding("executor", "note", found, advice, {"cluster": wishes.cluster or "there already"})]


def _same(one: str, other: str) -> bool:
    try:
        return Path(one).samefile(other)
    except OSError:
        return False
