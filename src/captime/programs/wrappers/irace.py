"""The convention of irace's target runners.

`<runner> <configuration> <instance number> <seed> <instance> <bound> <switch><value> …` prints one number (a cost) or
two (a cost and a time), and nothing else. The cost is not used: what an answer is worth is decided from its time.
"""

import math

from captime.programs.arguments import ArgumentStyle, without_exponent
from captime.programs.judge import SelfReport
from captime.programs.wrappers.protocol import Called, Wrapper, number_in, shown
from captime.supervision.messages import Report


def _words(called: Called) -> list[str]:
    # irace counts from 1.
    numbers = [str(called.config + 1), str(called.position + 1), str(called.seed)]
    return [*numbers, called.instance, called.cutoff, *called.settings]


def _read(report: Report, longest: float) -> SelfReport:
    words = report.stdout_tail.decode("utf-8", "replace").split()
    if report.exit_code != 0:
        return SelfReport("crashed", problem=f"the runner ended with exit code {report.exit_code}")
    if not 1 <= len(words) <= 2:
        return SelfReport(
            "nothing", problem=f"the runner printed {shown(report.stdout_tail)}; expected one or two numbers"
        )
    try:
        cost = float(words[0])
    except ValueError:
        return SelfReport("nothing", problem=f"the runner's cost is {words[0]!r}; expected a number")
    seconds = number_in(words[1]) if len(words) == 2 else None
    if math.isinf(cost):
        return SelfReport("crashed", seconds, None, "the runner rejects the configuration (Inf)")
    if len(words) == 2 and seconds is None:
        return SelfReport("nothing", problem=f"the runner's time is {words[1]!r}; expected seconds")
    # Runners have no word for a timeout: they report the bound as the time.
    return SelfReport("solved" if seconds is None or seconds < longest else "timeout", seconds)


irace = Wrapper("irace", _words, _read, ArgumentStyle(("--{name}", "{value}"), text=without_exponent), exit_codes=(0,))
