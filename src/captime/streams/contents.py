"""What a file holds and whether it is still the same: digests for identity, fingerprints for noticing changes."""

import hashlib
import json
import os
import stat
from pathlib import Path

import cloudpickle

from captime.errors import ScenarioError
from captime.supervision.messages import Fingerprint

_PIECE = 1 << 20


def digest_of_file(path: Path) -> str:
    """SHA-256 of the content, in hexadecimal digits."""
    found = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(_PIECE):
            found.update(piece)
    return found.hexdigest()


def digest_of_value(value: object) -> str:
    """SHA-256 of a value's canonical text; of its pickled form if JSON does not know it."""
    try:
        told = json.dumps(value, sort_keys=True).encode("ascii")
    except (TypeError, ValueError):
        # A `repr` would not do: it may hold an address, or leave out the middle of an array.
        told = cloudpickle.dumps(value)
    return hashlib.sha256(told).hexdigest()


def fingerprint_of(path: str | os.PathLike[str], digest: str = "") -> Fingerprint:
    """Return what a replaced or edited file changes, links followed.

    The time of change of content can be set back by a program that changes it; that of status cannot. The latter
    also moves when nothing but a mode or a link was changed: then the digest tells.

    Args:
        path: The file.
        digest: SHA-256 of its content, if that is known; without it any change of status counts.
    """
    found = os.stat(path)  # noqa: PTH116 (called before every launch of a generated instance; a Path each is slow)
    looks = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    return (os.fspath(path), *looks, digest)


def require_readable(path: Path, where: str) -> None:
    """Refuse what is not a regular file one can read; `where` says where it is named."""
    try:
        kind = path.stat().st_mode
    except OSError as error:
        raise ScenarioError(
            f"{where}: {str(path)!r} cannot be looked at ({error.strerror}); expected a file, check its name"
        ) from None
    if not stat.S_ISREG(kind):
        what = "a folder" if stat.S_ISDIR(kind) else "no regular file"
        raise ScenarioError(f"{where}: {str(path)!r} is {what}; expected a file, name one or a pattern such as dir/*")
    if not os.access(path, os.R_OK):
        raise ScenarioError(f"{where}: {str(path)!r} may not be read; change its permissions or leave it out")
