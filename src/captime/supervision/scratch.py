"""A run's own directory: made for it, measured while it runs, taken away afterwards whatever the run did to it."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress

from captime.supervision.processes import LINUX, read_file

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
