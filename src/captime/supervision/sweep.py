"""Find what is left of runs whose supervisors are gone, and kill it: by the tag that every process of a run carries."""

import os
import tempfile
import time
from pathlib import Path

from captime.supervision import scratch
from captime.supervision.groups import kill_groups, own_group
from captime.supervision.processes import descendants, look_at, tagged
from captime.supervision.tree import strike

FOLDER_PREFIX = GROUP_PREFIX = "captime-"
_PATIENCE = 10.0


def sweep(ledger_id: str) -> int:
    """Kill everything that belongs to runs of this ledger; how many processes that were.

    To be called before anything new is launched, by whoever holds the ledger.
    """
    killed = sweep_tag(f"{ledger_id}/")
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}{ledger_id}-*"):
        scratch.remove(str(folder))
    own = own_group()
    for folder in [] if own is None else own.glob(f"{GROUP_PREFIX}{ledger_id}-*"):
        killed += kill_groups(folder)
    return killed


def sweep_tag(tag: str, *, whole: bool = False) -> int:
    """Kill every process with a tag that begins like this (or is this), and their descendants; how many that were.

    We and our ancestors are spared: captime may be what a run of another captime runs.
    """
    spared = frozenset(_ancestors())
    killed: set[tuple[int, int]] = set()
    deadline = time.monotonic() + _PATIENCE
    looks_without_any = 0
    while looks_without_any < 2 and time.monotonic() < deadline:
        living = [each for each in descendants(tagged(tag, whole=whole), spared) if each.alive]
        looks_without_any = 0 if living else looks_without_any + 1
        for each in living:
            strike(each)
            killed.add((each.pid, each.started))
        if living:
            time.sleep(0.002)
    return len(killed)


def _ancestors() -> list[int]:
    found = [os.getpid()]
    while (process := look_at(found[-1])) is not None and process.parent > 0:
        found.append(process.parent)
    return found
