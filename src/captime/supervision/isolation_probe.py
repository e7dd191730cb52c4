"""The escape attempt: which isolation level holds on this machine is found out by trying, not by asking for versions.

The probe forks, starts a session, forks again, closes everything, and its main process ends. If the process it leaves
behind is alive after the run was reported, the level does not hold.
"""

import sys
from dataclasses import replace

from captime.supervision.messages import Launch, Report, plain_launch
from captime.supervision.processes import look_at

# Prints the number of the process that tries to escape; the run's tree is otherwise gone when it ends.
_ESCAPE = """
import os, time
heard, said = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        os.write(said, b"%d" % os.getpid())
        os.closerange(0, 256)
        time.sleep(60)
    os._exit(0)
print(os.read(heard, 32).decode(), flush=True)
"""
_PATTERN = r"^(\d+)$"


def escape_attempt(number: int, tag: str) -> Launch:
    """Return the launch of the probe."""
    plain = plain_launch(sys.executable, "-I", "-S", "-c", _ESCAPE, number=number, tag=tag)
    return replace(plain, patterns={"escaped": _PATTERN})


def escaped(report: Report) -> str:
    """Why the level does not hold; nothing if it does."""
    found = report.matches.get("escaped")
    if report.ended != "exit" or report.exit_code != 0 or found is None:
        said = report.stderr_tail[-300:].decode("utf-8", "replace").strip()
        return f"the probe could not be run ({report.ended}: {report.problem or said or report.exit_code})"
    survivor = look_at(int(found))
    if survivor is not None and survivor.alive:
        return f"a process that forked twice and started sessions of its own survived (process {survivor.pid})"
    return ""
