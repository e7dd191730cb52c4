"""The family of wrappers: conventions by which other configurators call programs.

A member knows which words follow the wrapper's command, where in the output its account stands, and how to read it.
Captimes are enforced by us whatever a wrapper does with the cutoff it is told.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from captime.programs.judge import SelfReport, Word
from captime.programs.protocol import Setting
from captime.programs.template import ArgumentStyle, text_of, without_exponent
from captime.supervision.messages import Report

# What a wrapper's convention looks like.


@dataclass(frozen=True, slots=True)
class Called:
    """What a wrapper is called with.

    Attributes:
        instance: Path or name.
        seed: For the program's random choices.
        config: Number of the configuration.
        position: Position in the stream.
        longest: Seconds that the wrapper is told: more than any run of the campaign may take, and the same for all. How
            long this run may take was drawn, and a program that knew it could answer just in time.
        settings: The words for the settings.
    """

    instance: str
    seed: int
    config: int
    position: int
    longest: float
    settings: list[str]

    @property
    def cutoff(self) -> str:
        """A cutoff in whole seconds, a second or two more than the longest captime.

        The wrapper must not stop the run itself: its clock is not ours, and a run that gave up early says
        less than one that we stopped.
        """
        return "2147483647" if self.longest >= 2**31 - 2 else str(math.ceil(self.longest) + 1)


@dataclass(frozen=True, slots=True)
class Wrapper:
    """One convention.

    Attributes:
        name: Its name in scenarios.
        words: What follows the wrapper's command.
        read: The account in a report, given the seconds that the wrapper was told.
        style: How settings are written.
        exit_codes: Accepted exit codes; None if only the account counts.
        patterns: What to look for in the output.
        seeded: Whether the seed is part of every call.
    """

    name: str
    words: Callable[[Called], list[str]]
    read: Callable[[Report, float], SelfReport]
    style: ArgumentStyle
    exit_codes: tuple[int, ...] | None = None
    patterns: Mapping[str, str] = field(default_factory=dict)
    seeded: bool = True


def number_in(text: str) -> float | None:
    """Return a finite number of seconds, 0 or more; None for anything else."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0.0 else None


def shown(raw: bytes) -> str:
    """Return the beginning of what was found, for a message."""
    return repr(raw[:80].decode("utf-8", "replace"))


# The conventions of ParamILS, SMAC and AClib: the old one with a line of commas, the new one with a line of JSON.
#
# Old: `<wrapper> <instance> <specifics> <cutoff> <runlength> <seed> -<name> <value> …` is answered by `Result for
# SMAC: <status>, <runtime>, <runlength>, <quality>, <seed>[, anything]`; ParamILS and GPS have their own name in the
# place of SMAC's. New: `<wrapper> --instance <instance> --cutoff <s> --seed <n> --config -<name> <value> …` is
# answered by `Result of this algorithm run: {"status": …, "cost": …, "runtime": …, "misc": …}`.

_WORDS: dict[str, Word] = {
    "SAT": "solved",
    "UNSAT": "solved",
    "SUCCESS": "solved",
    "TIMEOUT": "timeout",
    "CRASHED": "crashed",
    "MEMOUT": "memout",
    "MEMORYOUT": "memout",
    "ABORT": "abort",
}
_OLD_LINE = r"Result (?:for (?:ParamILS|SMAC|GPS|HAL)|of (?:this )?[Aa]lgorithm [Rr]un) *:(?P<value>.*)"
_NEW_LINE = r"Result of this [Aa]lgorithm [Rr]un *:(?P<value>.*)"
_NO_LIMIT = "2147483647"


def told(status: str, seconds: float | None, line: bytes) -> SelfReport:
    """Return the account behind a status word, in any case and with or without `StatusType.` before it."""
    word = status.strip().upper().removeprefix("STATUSTYPE.")
    if word not in _WORDS:
        return SelfReport("crashed", seconds, None, f"the wrapper's status is {status.strip()!r}, which is unknown")
    answer = word.encode() if word in ("SAT", "UNSAT") else None
    problem = f"the wrapper said {shown(line)}" if _WORDS[word] in ("abort", "crashed") else ""
    return SelfReport(_WORDS[word], seconds, answer, problem)


def _old_words(called: Called) -> list[str]:
    return [called.instance, "0", called.cutoff, _NO_LIMIT, str(called.seed), *called.settings]


def _read_old(report: Report, _: float) -> SelfReport:
    line = report.matches.get("result")
    if line is None:
        return SelfReport(
            "crashed", problem="the wrapper printed no line like 'Result for SMAC: SUCCESS, 1.5, 0, 0, 1'"
        )
    fields = line.decode("utf-8", "replace").split(",")
    if len(fields) < 2 or number_in(fields[1]) is None:
        return SelfReport("crashed", problem=f"the wrapper's result is {shown(line)}; expected status, runtime, …")
    return told(fields[0], number_in(fields[1]), line)


def _new_words(called: Called) -> list[str]:
    limits = ["--instance", called.instance, "--cutoff", called.cutoff, "--seed", str(called.seed)]
    return [*limits, "--config", *called.settings]


def _read_new(report: Report, _: float) -> SelfReport:
    line = report.matches.get("result")
    if line is None:
        return SelfReport("crashed", problem="the wrapper printed no line 'Result of this algorithm run: {…}'")
    try:
        account = json.loads(line)
    except ValueError:
        account = None
    if not isinstance(account, dict) or not isinstance(account.get("status"), str):
        return SelfReport(
            "crashed", problem=f'the wrapper\'s result is {shown(line)}; expected {{"status": …, "runtime": …}}'
        )
    return told(account["status"], number_in(str(account.get("runtime"))), line)


aclib1 = Wrapper("aclib1", _old_words, _read_old, ArgumentStyle(), patterns={"result": _OLD_LINE})
aclib2 = Wrapper("aclib2", _new_words, _read_new, ArgumentStyle(), patterns={"result": _NEW_LINE})


# The convention of irace's target runners.
#
# `<runner> <configuration> <instance number> <seed> <instance> <bound> <switch><value> …` prints one number (a cost)
# or two (a cost and a time), and nothing else. The cost is not used: what an answer is worth is decided from its
# time.


def _irace_words(called: Called) -> list[str]:
    # irace counts from 1.
    numbers = [str(called.config + 1), str(called.position + 1), str(called.seed)]
    return [*numbers, called.instance, called.cutoff, *called.settings]


def _irace_read(report: Report, longest: float) -> SelfReport:
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


irace = Wrapper(
    "irace", _irace_words, _irace_read, ArgumentStyle(("--{name}", "{value}"), text=without_exponent), exit_codes=(0,)
)


# The convention of script targets in SMAC3, version 2.
#
# `<script> --instance=<instance> --seed=<n> --<name>=<value> …` prints `cost=…; runtime=…; status=…` and perhaps
# more, on one line or several. Without a cost it has crashed. There is no cutoff in the call: scripts refuse options
# they do not know.


def _without_blanks(value: Setting) -> str:
    return text_of(value).replace(" ", "")


def _smac3_words(called: Called) -> list[str]:
    return [f"--instance={called.instance}", f"--seed={called.seed}", *called.settings]


def _smac3_read(report: Report, _: float) -> SelfReport:
    account: dict[str, str] = {}
    for piece in report.stdout_tail.decode("utf-8", "replace").split(";"):
        key, equals, value = piece.partition("=")
        if equals and key.strip():
            # Other lines may stand before the account.
            account[key.strip().splitlines()[-1].strip()] = value.strip()
    if "cost" not in account:
        return SelfReport(
            "crashed", problem=f"the script printed {shown(report.stdout_tail)}; expected cost=…; runtime=…"
        )
    seconds = next((number_in(account[key]) for key in ("runtime", "cpu_time") if key in account), None)
    return told(account.get("status", "SUCCESS"), seconds, report.stdout_tail)


smac3 = Wrapper(
    "smac3", _smac3_words, _smac3_read, ArgumentStyle(("--{name}={value}",), text=_without_blanks), exit_codes=(0,)
)


WRAPPERS: dict[str, Wrapper] = {each.name: each for each in (aclib1, aclib2, irace, smac3)}

__all__ = ["WRAPPERS", "Called", "Wrapper"]
