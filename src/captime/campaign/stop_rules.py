"""When a campaign ends: by what was asked of it, by money, by the clock on the wall."""

from dataclasses import dataclass
from datetime import datetime, time, timedelta

import numpy as np


@dataclass(frozen=True, slots=True)
class StopRules:
    """When to stop, apart from the goal.

    Attributes:
        cpu: CPU seconds of the whole campaign, all calls together.
        wall: Wall-clock seconds of this call.
        until: A time of day, or a moment.
    """

    cpu: float = np.inf
    wall: float = np.inf
    until: time | datetime | None = None

    def wall_seconds(self, now: datetime) -> float:
        """Wall-clock seconds from now on, whichever rule comes first."""
        if self.until is None:
            return self.wall
        if isinstance(self.until, datetime):
            end = self.until if self.until.tzinfo is not None else self.until.replace(tzinfo=now.tzinfo)
        else:
            end = datetime.combine(now.date(), self.until, tzinfo=now.tzinfo)
            if end <= now:
                end += timedelta(days=1)
        return max(0.0, min(self.wall, (end - now).total_seconds()))
