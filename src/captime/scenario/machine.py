"""How many cores there are to work on: those this process may use, two threads of one core counted once."""

import os
from pathlib import Path

_TOPOLOGY = Path("/sys/devices/system/cpu")


def allowed_cores(topology: Path = _TOPOLOGY) -> int:
    """Physical cores that this process may run on; where the system does not tell, as many as it calls processors.

    Args:
        topology: Where the system describes its processors.
    """
    try:
        allowed = os.sched_getaffinity(0)
    except AttributeError:
        return os.cpu_count() or 1
    siblings: set[str] = set()
    for processor in allowed:
        try:
            told = (topology / f"cpu{processor}" / "topology" / "thread_siblings_list").read_text(encoding="ascii")
        except OSError:
            told = str(processor)
        siblings.add(told.strip())
    return max(1, len(siblings))
