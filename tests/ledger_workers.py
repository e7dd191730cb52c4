"""What other processes do to a ledger in tests; they are forked from a clean server, so that starting them is cheap."""

import multiprocessing
import os
import resource
import signal
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from captime.errors import LedgerInUse, StorageTrouble
from captime.ledger import ConfigRow, Ledger, LedgerReader, Observed, SampleRow, connection
from captime.ledger.file_watch import backup, salvage
from captime.runs import RunOutcome, RunRequest, Status

N_CONFIGS = 3

# Ends a test that hangs; long enough for a busy machine.
PATIENCE = 300.0
PROCESSES = multiprocessing.get_context("forkserver")
"""Where they come from."""
PROCESSES.set_forkserver_preload(["captime.ledger"])


def scripted(number: int) -> RunOutcome:
    """Run number 0, 1, 2, … and what becomes of it, always the same."""
    request = RunRequest(number % N_CONFIGS, number // N_CONFIGS, 5.0)
    seconds = (number * 37 % 101) / 20
    status = Status.COMPLETED if seconds < 5.0 else Status.CAPPED
    return RunOutcome(request, status, seconds, seconds, f"run {number}")


def create(path: Path) -> Ledger:
    """An empty ledger for scripted runs."""
    return Ledger.create(path, {"scripted": True}, [ConfigRow(index, f"c{index}") for index in range(N_CONFIGS)])


def carry_on(ledger: Ledger, until: int, acknowledge: Any = lambda number: None) -> None:
    """Find out what is missing, and do it: lost attempts again, then the next runs, one by one."""
    done: dict[tuple[int, int], bool] = {}
    attempts: dict[tuple[int, int], int] = {}
    for event in ledger.replay():
        if isinstance(event, Observed):
            for outcome in event.outcomes:
                key = (outcome.request.config, outcome.request.instance)
                done[key] = outcome.status is not Status.LOST
                attempts[key] = outcome.request.attempt + 1
    for request in ledger.in_flight():
        ledger.observed([RunOutcome(request, Status.LOST, 0.0, 0.0, "the coordinator died")])
        attempts[request.config, request.instance] = request.attempt + 1
    for number in range(until):
        planned = scripted(number)
        key = (planned.request.config, planned.request.instance)
        if done.get(key):
            continue
        request = RunRequest(*key, planned.request.captime, attempts.get(key, 0))
        ledger.started([request], {request.instance: SampleRow(request.instance, f"i{request.instance}")})
        ledger.observed([RunOutcome(request, planned.status, planned.runtime, planned.cost, planned.detail)])
        acknowledge(number)


def work(path: str, until: int, acknowledge: Connection, crash_at: str, file_limit: int) -> None:
    """A coordinator: opens or creates, carries on, and tells which runs it has seen through."""
    if crash_at:
        connection._countdown = connection._CrashCountdown(crash_at)
    if file_limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))
    place = Path(path)
    try:
        with Ledger.open(place) if place.exists() else create(place) as ledger:
            acknowledge.send("open")
            carry_on(ledger, until, acknowledge.send)
        acknowledge.send("finished")
    except StorageTrouble as trouble:
        acknowledge.send(f"trouble: {trouble}")


def grab(path: str, gate: Any, answers: Any) -> None:
    """One of many who want the same ledger at the same moment; the winner keeps it until all have tried."""
    gate.wait(PATIENCE)
    try:
        with Ledger.open(path):
            answers.put({"won": True, "pid": os.getpid(), "words": ""})
            gate.wait(PATIENCE)
    except LedgerInUse as refusal:
        answers.put({"won": False, "pid": os.getpid(), "words": str(refusal)})
        gate.wait(PATIENCE)


def without_rights(folder: str, answers: Any) -> None:
    """A user who may read a directory and not write to it."""
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    told: dict[str, object] = {}
    for what, path in (("open", "closed.ledger"), ("create", "new.ledger")):
        try:
            if what == "open":
                Ledger.open(Path(folder) / path)
            else:
                create(Path(folder) / path)
        except StorageTrouble as trouble:
            told[what] = str(trouble)
    for name in ("closed.ledger", "killed.ledger", "bare.ledger"):
        with LedgerReader(Path(folder) / name) as reader:
            told[name] = len(reader.outcomes()["config"])
            told[f"{name} is missing"] = reader.missing
    with tempfile.TemporaryDirectory() as elsewhere:
        told["backup"] = backup(Path(folder) / "bare.ledger", Path(elsewhere) / "copy.ledger")
        told["salvaged"] = salvage(Path(folder) / "bare.ledger", Path(elsewhere) / "saved.ledger").rows
        told["left"] = [each.name for each in Path(tempfile.gettempdir()).glob("captime-reading-*")]
    answers.put(told)


def leave_open(path: str, runs: int) -> None:
    """A coordinator that dies without a word when its work is done."""
    ledger = create(Path(path))
    carry_on(ledger, runs)
    os.kill(os.getpid(), signal.SIGKILL)
