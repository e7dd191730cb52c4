"""A run's own directory: made for it, measured while it runs, taken away afterwards whatever the run did to it."""

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator

_ENTRIES_AT_ONCE = 256
_BLOCK = 512
_PRIVATE = 0o700


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
        """An empty directory, for nobody else."""
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
    """The bytes on disk under a folder, counted a portion at a time; the last number is the sum.

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
    """Take a folder away with all that is in it; what cannot be removed, even after being unlocked, stays."""
    try:
        os.rmdir(folder)  # noqa: PTH106 (most runs leave nothing, and pathlib would cost more than this)
    except FileNotFoundError:
        return
    except OSError:
        try:
            shutil.rmtree(folder)
        except (OSError, RecursionError):
            # Locked folders, or folders nested deeper than Python recurses: these two know how.
            for words in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
                subprocess.run(  # noqa: S603 (a fixed command; no name is taken for an option)
                    [*words, "--", folder], check=False, stderr=subprocess.DEVNULL
                )
