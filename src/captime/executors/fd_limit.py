"""Raise the limit of open file descriptors to what the slots need, or refuse before anything has begun."""

import os
import resource
from pathlib import Path

from captime.errors import ScenarioError

# A slot has a channel, a log while it is started and a process handle; the ledger, its lock, imports that are still to
# come and a dashboard's state have files of their own.
_PER_SLOT, _ELSEWHERE = 4, 40


def ensure_descriptors(slots: int) -> None:
    """Raise our limit on open files as far as it is needed and allowed.

    Raises:
        ScenarioError: The system does not allow that many.
    """
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = _open_now() + _PER_SLOT * slots + _ELSEWHERE
    if allowed == resource.RLIM_INFINITY or needed <= allowed:
        return
    if most != resource.RLIM_INFINITY and needed > most:
        fitting = max(0, (most - (needed - _PER_SLOT * slots)) // _PER_SLOT)
        raise ScenarioError(
            f"{slots} jobs need {needed} open files, and this process may have {most} (`ulimit -Hn`); "
            f"raise that limit, or say --jobs {fitting} at most"
            if fitting
            else f"captime needs {needed} open files, and this process may have {most} (`ulimit -Hn`); raise that limit"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, most))


def _open_now() -> int:
    listing = Path("/proc/self/fd") if Path("/proc/self/fd").is_dir() else Path("/dev/fd")
    try:
        return len(os.listdir(listing))  # noqa: PTH208 (names alone; no stat calls)
    except OSError:
        return 0
