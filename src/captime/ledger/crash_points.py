"""Named places at which a test can have the process killed, as hard as a power cut: for fault injection only.

`CAPTIME_CRASH_AT="row-committed:after:3"` sends SIGKILL to this process when it has reached "after row-committed" for
the third time. The variable is read once, when this module is imported. Unset, as it always is outside tests, a crash
point costs one comparison.
"""

import os
import signal
from typing import Literal

from captime.errors import ScenarioError

_VARIABLE = "CAPTIME_CRASH_AT"
When = Literal["before", "after"]


class _CrashCountdown:
    """Burns down by one each time its place is reached."""

    def __init__(self, wish: str) -> None:
        name, _, rest = wish.partition(":")
        when, _, times = rest.partition(":")
        if not name or when not in {"before", "after"} or not times.isdecimal() or int(times) < 1:
            raise ScenarioError(
                f"{_VARIABLE} is {wish!r}; expected name:before:n or name:after:n with n at least 1. It is for tests "
                "only: unset it"
            )
        self.place = (name, when)
        self.left = int(times)

    def reached(self, name: str, when: When) -> None:
        if (name, when) == self.place:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


_countdown = _CrashCountdown(os.environ[_VARIABLE]) if os.environ.get(_VARIABLE) else None


def reached(name: str, when: When = "after") -> None:
    """The process has come to this place; if a test asked for it, this is where it dies.

    Args:
        name: What is being done, such as `row-committed`.
        when: Just before it is done, or just after.
    """
    if _countdown is not None:
        _countdown.reached(name, when)
