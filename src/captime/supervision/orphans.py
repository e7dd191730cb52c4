"""Find what is left of runs whose supervisors are gone, and kill it: by the tag that every process of a run carries."""

import hashlib
import os
import re
import socket
import tempfile
import time
from pathlib import Path

from captime.supervision import scratch
from captime.supervision.cgroups import GROUP_NOTE, kill_groups, own_group
from captime.supervision.guardian import kill_below
from captime.supervision.kernel import read_file
from captime.supervision.process_tree import strike
from captime.supervision.processes import SLOT, TAG, all_pids, descendants, look_at, tagged

FOLDER_PREFIX = GROUP_PREFIX = "captime-"
_PATIENCE = 10.0
# What `own_tag` makes: a word, the machine of its process, the process and when it began, and something random.
_OWN_TAG = re.compile(r"[a-z]+-([0-9a-f]{8})-([0-9]+)-([0-9]+)-[0-9a-f]{8}")


def sweep(ledger_id: str) -> int:
    """Kill everything that belongs to runs of this ledger; how many processes that were.

    To be called before anything new is launched, by the process that holds the ledger.
    """
    # Supervisors first: some may have been stopped by their programs, and none is to report what is killed here.
    for pid in tagged(f"{ledger_id}/", name=SLOT):
        process = look_at(pid)
        if process is not None:
            kill_below(pid)
            strike(process)
    killed = sweep_tag(f"{ledger_id}/")
    own = own_group()
    groups = set() if own is None else set(own.glob(f"{GROUP_PREFIX}{ledger_id}-*"))
    folders = [each for each in _folders() if each.name.startswith(f"{FOLDER_PREFIX}{ledger_id}-")]
    # A process that is gone may have lived in another control group than ours, on another terminal for instance.
    noted = [Path(os.fsdecode(read_file(f"{folder}/{GROUP_NOTE}"))) for folder in folders]
    groups |= {group for group in noted if group.name.startswith(f"{GROUP_PREFIX}{ledger_id}-")}
    for group in groups:
        killed += kill_groups(group)
    for folder in folders:
        scratch.remove(str(folder))
    return killed


def own_tag(word: str) -> str:
    """Return a tag for runs that no ledger knows of; it tells which process is to clear them away.

    Args:
        word: What they are for, in small letters.
    """
    process = look_at(os.getpid())
    started = 0 if process is None else process.started
    return f"{word}-{_place()}-{os.getpid()}-{started}-{os.urandom(4).hex()}"


def sweep_abandoned() -> int:
    """Kill and remove what is left of runs without a ledger whose process was killed; how many processes that were.

    To be called before anything new is launched. Runs of a ledger are left to `sweep`, by the process
    that holds that ledger.
    """
    tags = {found.group() for name in _names_in_use() for found in [_OWN_TAG.search(name)] if found}
    return sum(sweep(tag) for tag in tags if _is_abandoned(tag))


def _names_in_use() -> list[str]:
    """Return the names of folders and groups, and the environments of processes, in which tags stand."""
    own = own_group()
    groups = [] if own is None else [each.name for each in own.glob(f"{GROUP_PREFIX}*")]
    folders = [each.name for each in _folders()]
    begins = f"{TAG}=".encode("ascii")
    marks = [each for pid in all_pids() for each in read_file(f"/proc/{pid}/environ").split(b"\0")]
    return groups + folders + [os.fsdecode(mark) for mark in marks if mark.startswith(begins)]


def _folders() -> list[Path]:
    """Return the folders of executors that are ours: in the folder for temporary files others may make any name."""
    found = Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*")
    return [each for each in found if _is_ours(each)]


def _is_ours(folder: Path) -> bool:
    try:
        return folder.lstat().st_uid == os.geteuid()
    except OSError:
        return False


def _is_abandoned(tag: str) -> bool:
    """Return whether the process that made this tag is known to be dead: it lived here, and is not there any more."""
    found = _OWN_TAG.fullmatch(tag)
    if found is None or found.group(1) != _place():
        return False
    process = look_at(int(found.group(2)))
    return process is None or not process.alive or process.started != int(found.group(3))


def _place() -> str:
    """Return a name for where process numbers mean the same: this machine, and in it this container."""
    try:
        namespace = os.readlink("/proc/self/ns/pid")  # noqa: PTH115 (no path, but a name)
    except OSError:
        namespace = ""
    return hashlib.sha256(f"{socket.gethostname()} {namespace}".encode("utf-8", "replace")).hexdigest()[:8]


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
