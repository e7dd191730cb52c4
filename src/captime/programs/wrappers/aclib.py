"""The conventions of ParamILS, SMAC and AClib: the old one with a line of commas, the new one with a line of JSON.

Old: `<wrapper> <instance> <specifics> <cutoff> <runlength> <seed> -<name> <value> …` is answered by
`Result for SMAC: <status>, <runtime>, <runlength>, <quality>, <seed>[, anything]`; ParamILS and GPS have their own name
in the place of SMAC's. New: `<wrapper> --instance <instance> --cutoff <s> --seed <n> --config -<name> <value> …` is
answered by `Result of this algorithm run: {"status": …, "cost": …, "runtime": …, "misc": …}`.
"""

import json

from captime.programs.arguments import ArgumentStyle
from captime.programs.judge import SelfReport, Word
from captime.programs.wrappers.protocol import Called, Wrapper, number_in, shown
from captime.supervision.messages import Report

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
