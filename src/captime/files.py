"""Files that people hand to captime, opened with care: regular files only, and none larger than it can make sense.

A device such as /dev/zero has no end, a pipe may never be written to, and a file of some gigabytes under the wrong
name fills the memory before anything is said. So the kind and the size are looked at first. What is refused is refused
as the system refuses what cannot be opened, by an OSError whose `strerror` says why: readers tell that in their words.
"""

import errno
import os
import stat
from os import PathLike
from pathlib import Path
from typing import BinaryIO

_KINDS = {
    stat.S_IFDIR: "it is a folder",
    stat.S_IFCHR: "it is a device",
    stat.S_IFBLK: "it is a device",
    stat.S_IFIFO: "it is a pipe",
    stat.S_IFSOCK: "it is a socket",
}


def open_limited(path: str | PathLike[str], largest: int) -> BinaryIO:
    """Open a regular file for reading; anything else, and a file that is too large, is an OSError.

    Args:
        path: The file.
        largest: How many bytes it may have.
    """
    # Without O_NONBLOCK, opening a pipe waits for a writer.
    stream = os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY), "rb")
    try:
        _check(os.fstat(stream.fileno()), path, largest)
    except BaseException:
        stream.close()
        raise
    return stream


def check_limited(path: str | PathLike[str], largest: int) -> None:
    """Refuse what `open_limited` refuses, for a file that another library opens."""
    _check(os.stat(path), path, largest)  # noqa: PTH116 (names of any kind)


def read_limited(path: str | PathLike[str], largest: int) -> bytes:
    """Read a regular file whole; anything else, and a file that is or becomes too large, is an OSError."""
    with open_limited(path, largest) as stream:
        found = stream.read(largest + 1)
    if len(found) > largest:
        raise OSError(errno.EFBIG, f"it has more than {largest:,} bytes", str(Path(path)))
    return found


def _check(found: os.stat_result, path: str | PathLike[str], largest: int) -> None:
    if not stat.S_ISREG(found.st_mode):
        what = _KINDS.get(stat.S_IFMT(found.st_mode), "it is no regular file")
        raise OSError(errno.EINVAL, what, str(Path(path)))
    if found.st_size > largest:
        raise OSError(errno.EFBIG, f"it has {found.st_size:,} bytes, more than {largest:,}", str(Path(path)))
