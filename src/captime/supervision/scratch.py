"""What runs leave behind: directories, and groups of programs without a supervisor, which a guardian ends."""

import hashlib
import os
import re
import select
import signal
import socket
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from captime.supervision.cgroups import GROUP_NOTE, kill_groups, own_group
from captime.supervision.process_tree import strike
from captime.supervision.processes import (
    LINUX,
    SLOT,
    TAG,
    all_pids,
    become_subreaper,
    children_of,
    descendants,
    die_with_parent,
    look_at,
    read_file,
    tagged,
)

# A run's own directory: made for it, measured while it runs, taken away afterwards whatever the run did to it.

_ENTRIES_AT_ONCE = 256
_BLOCK = 512
_PRIVATE = 0o700
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Folders:
    """Gives each run a directory of its own.

    One that a run has left as it found it is given to the next run: making and removing directories can take longer
    than a short run.

    Args:
        root: Where they are made.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._spare: str | None = None
        self._made = 0

    def fresh(self) -> str:
        """Make an empty directory that no other run uses."""
        folder, self._spare = self._spare, None
        if folder is None or not os.path.isdir(folder):  # noqa: PTH112 (once per run; pathlib costs more than the call)
            self._made += 1
            folder = f"{self._root}/{self._made}"
            os.mkdir(folder, _PRIVATE)  # noqa: PTH102 (once per run; pathlib costs more than the call)
        return folder

    def give_back(self, folder: str) -> None:
        """The run is over; nothing of it is left here."""
        if _is_untouched(folder):
            self._spare = folder
        else:
            remove(folder)


def _is_untouched(folder: str) -> bool:
    try:
        found = os.lstat(folder)
        with os.scandir(folder) as entries:
            empty = next(entries, None) is None
    except OSError:
        return False
    private = stat.S_ISDIR(found.st_mode) and stat.S_IMODE(found.st_mode) == _PRIVATE
    return empty and private and found.st_uid == os.geteuid()


def used_bytes(folder: str) -> Iterator[int]:
    """Yield the bytes on disk under a folder, counted a portion at a time; the last number is the sum.

    Links are not followed. What vanishes in the meantime is not counted.
    """
    total = entries = 0
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as found:
                for entry in found:
                    try:
                        total += entry.stat(follow_symlinks=False).st_blocks * _BLOCK
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(entry.path)
                    except OSError:
                        continue
                    entries += 1
                    if entries % _ENTRIES_AT_ONCE == 0:
                        yield total
        except OSError:
            continue
    yield total


def remove(folder: str) -> None:
    """Remove a folder with all that is in it; what cannot be removed, even after being unlocked, stays.

    No link is followed, not even one that stands where the folder was, and nothing that is mounted inside is entered:
    what is outside the folder keeps its content and its mode.
    """
    try:
        os.rmdir(folder)  # noqa: PTH106 (most runs leave nothing, and pathlib would cost more than this)
    except FileNotFoundError:
        return
    except NotADirectoryError:
        with suppress(OSError):
            os.unlink(folder)  # noqa: PTH108 (see above)
    except OSError:
        inside = _entered(folder, None)
        if inside is None:
            return
        try:
            _empty(inside)
        finally:
            os.close(inside)
        with suppress(OSError):
            os.rmdir(folder)  # noqa: PTH106 (see above)


def _empty(top: int) -> None:
    """Delete everything below an open folder.

    One folder is open at a time, and paths have one part only: neither Python's recursion, nor the number of open
    files, nor the length of paths limits how deep folders may be nested.
    """
    mount, here = _mount(top), os.dup(top)
    names, homes, waiting = [""], [_identity(top)], [_without_files(top)]
    try:
        while waiting[-1] or len(waiting) > 1:
            if waiting[-1]:
                name = waiting[-1].pop()
                below = _entered(name, here)
                if below is None:
                    continue
                if _mount(below) != mount:
                    os.close(below)
                    continue
                os.close(here)
                here = below
                names.append(name)
                homes.append(_identity(here))
                waiting.append(_without_files(here))
            else:
                above = os.open("..", _FOLDER, dir_fd=here)
                os.close(here)
                here = above
                homes.pop()
                waiting.pop()
                if _identity(here) != homes[-1]:
                    return
                with suppress(OSError):
                    os.rmdir(names.pop(), dir_fd=here)
    except OSError:
        return
    finally:
        os.close(here)


def _without_files(folder: int) -> list[str]:
    """Delete the files and the empty folders in an open folder; the names of the other folders."""
    left = []
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in found:
        try:
            (os.rmdir if is_folder else os.unlink)(name, dir_fd=folder)
        except OSError:
            left += [name] if is_folder else []
    return left


def _entered(name: str, above: int | None) -> int | None:
    """Open a folder that is no link, and unlock it if it is ours; None if it cannot be opened."""
    try:
        try:
            descriptor = os.open(name, _FOLDER, dir_fd=above)
        except PermissionError:
            _unlock(name, above)
            descriptor = os.open(name, _FOLDER, dir_fd=above)
    except OSError:
        return None
    with suppress(OSError):
        if os.fstat(descriptor).st_mode & _PRIVATE != _PRIVATE:
            os.fchmod(descriptor, _PRIVATE)
    return descriptor


def _unlock(name: str, above: int | None) -> None:
    """Make a folder ours to read, without following a link of that name."""
    if not LINUX:
        os.chmod(name, _PRIVATE, dir_fd=above, follow_symlinks=False)
        return
    place = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    try:
        os.chmod(f"/proc/self/fd/{place}", _PRIVATE)  # noqa: PTH101 (what is open, under whatever name)
    finally:
        os.close(place)


def _identity(descriptor: int) -> tuple[int, int]:
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino


def _mount(descriptor: int) -> tuple[int, bytes]:
    """Where an open folder is mounted; differs for a folder of the same file system that is mounted elsewhere."""
    lines = read_file(f"/proc/self/fdinfo/{descriptor}").splitlines()
    return os.fstat(descriptor).st_dev, next((line for line in lines if line.startswith(b"mnt_id:")), b"")


# What is left of processes that died: groups of programs without a supervisor, and the guardian that ends them.

# The process above a slot supervisor: it adopts what outlives the supervisor, and kills it.
#
# A supervisor adopts the orphans of its runs. If it is killed itself, they would go to the first process of the
# machine, where a daemon that has emptied its environment cannot be told from any other process. With a guardian in
# between, everything below it belongs to the slot. It holds no connection and does no work: it waits.

SIGNALLED = 128
"""A guardian's exit code is that of its supervisor, or this and the number of the signal that killed it."""

# How long something that was killed may take to die; see `captime.supervision.process_tree`.
_KILL_PATIENCE = 60.0
# After the coordinator's end a supervisor has this long to kill what it has started and to remove its folders.
_LEAVING_PATIENCE = 600.0
_LOOK_SECONDS = 0.5
_STOPPED_LOOKS = 4


def guarded(connection: socket.socket, leave_nothing: Callable[[], None], *, adopts: bool) -> None:
    """Fork a supervisor; returns there. This process becomes its guardian, and ends after it.

    Args:
        connection: The supervisor's, which is to end with the supervisor.
        leave_nothing: Removes the folders of the slot, if neither supervisor nor coordinator is left to do it.
        adopts: Orphans of the supervisor become the guardian's children; False on level `posix`.
    """
    if adopts:
        become_subreaper()
    here = os.getpid()
    supervisor = os.fork()
    if supervisor != 0:
        connection.close()
        _Guardian(supervisor, leave_nothing).run_until_end()
    # Its own session: a terminal's signals are for the coordinator, and what carries a run's tag but is no run, such as
    # a fork server, is told by the session.
    os.setsid()
    die_with_parent(signal.SIGTERM)
    if os.getppid() != here:
        os._exit(1)
    nowhere = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nowhere, 0)
    os.close(nowhere)


def kill_below(*roots: int) -> bool:
    """Kill everything below these processes, but not themselves; whether nothing is left.

    A supervisor among them dies before the processes it watches, so it reports none of their deaths.
    """
    deadline = time.monotonic() + _KILL_PATIENCE
    looks_without_any = 0
    while looks_without_any < 2 and time.monotonic() < deadline:
        below = (child for root in roots for child in children_of(root))
        living = [each for each in descendants(below) if each.alive]
        looks_without_any = 0 if living else looks_without_any + 1
        for each in living:
            strike(each)
        if living:
            time.sleep(0.002)
    return looks_without_any >= 2


class _Guardian:
    """Waits for the end of a supervisor."""

    def __init__(self, supervisor: int, leave_nothing: Callable[[], None]) -> None:
        self._supervisor = supervisor
        self._leave_nothing = leave_nothing
        # A pipe from the coordinator, in which nothing is ever written: its end is the coordinator's.
        self._coordinator = 0
        self._gone = False
        self._heard, bell = os.pipe()
        os.set_blocking(self._heard, False)
        os.set_blocking(bell, False)
        signal.set_wakeup_fd(bell, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._pass_on)

    def _pass_on(self, number: int, _frame: object) -> None:
        os.kill(self._supervisor, number)

    def run_until_end(self) -> NoReturn:
        """Wait until the supervisor has ended, kill what it has left, and end."""
        status, looks, stopped = self._ended(), 0, 0
        while status is None:
            watched = [self._heard] if self._gone else [self._heard, self._coordinator]
            ready = select.select(watched, [], [], _LOOK_SECONDS if self._gone else None)[0]
            if self._heard in ready:
                with suppress(BlockingIOError):
                    os.read(self._heard, 4096)
            self._gone = self._gone or self._coordinator in ready
            status = self._ended()
            if status is None and self._gone:
                # Its connection has ended too, so it is about to leave; unless a program of its own has stopped it.
                os.kill(self._supervisor, signal.SIGCONT)
                process = look_at(self._supervisor)
                looks, stopped = looks + 1, stopped + 1 if process is not None and process.stopped else 0
                if stopped >= _STOPPED_LOOKS or looks * _LOOK_SECONDS > _LEAVING_PATIENCE:
                    os.kill(self._supervisor, signal.SIGKILL)
        kill_below(os.getpid())
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if self._gone:
            self._leave_nothing()
        os._exit(SIGNALLED + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))

    def _ended(self) -> int | None:
        pid, status = os.waitpid(self._supervisor, os.WNOHANG)
        return status if pid else None


# Find what is left of runs whose supervisors are gone, and kill it: by the tag that every process of a run carries.

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
        remove(str(folder))
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
