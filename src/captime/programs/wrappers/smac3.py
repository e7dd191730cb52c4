"""The convention of script targets in SMAC3, version 2.

`<script> --instance=<instance> --seed=<n> --<name>=<value> …` prints `cost=…; runtime=…; status=…` and perhaps more, on
one line or several. Without a cost it has crashed. There is no cutoff in the call: scripts refuse options they do not
know.
"""

from captime.programs.arguments import ArgumentStyle
from captime.programs.configurations import Setting
from captime.programs.judge import SelfReport
from captime.programs.template import text_of
from captime.programs.wrappers.aclib import told
from captime.programs.wrappers.protocol import Called, Wrapper, number_in, shown
from captime.supervision.messages import Report


def _without_blanks(value: Setting) -> str:
    return text_of(value).replace(" ", "")


def _words(called: Called) -> list[str]:
    return [f"--instance={called.instance}", f"--seed={called.seed}", *called.settings]


def _read(report: Report, _: float) -> SelfReport:
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


smac3 = Wrapper("smac3", _words, _read, ArgumentStyle(("--{name}={value}",), text=_without_blanks), exit_codes=(0,))
