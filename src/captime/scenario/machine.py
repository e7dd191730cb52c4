"""How many runs can be under way at once without disturbing each other."""

import os

from captime.executors.local_slots import cores


def allowed_cores() -> int:
    """Physical cores that this process may run on; where the system does not tell, as many as it calls processors."""
    return len(cores()) or os.cpu_count() or 1
