"""A program for tests of supervision: any command or call, judged by nothing but its report."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from captime.executors.local import LocalExecutor
from captime.runs import Measurement, RunOutcome, RunRequest, Status, Verdict
from captime.supervision.messages import Launch, Report

TARGETS = Path(__file__).parent / "targets"
PYTHON = (sys.executable, "-I", "-S")
_STATUS = {
    "exit": (Status.COMPLETED, Verdict.ANSWERED),
    "captime": (Status.CAPPED, Verdict.CAPPED),
    "cancelled": (Status.CAPPED, Verdict.CANCELLED),
    "lost": (Status.LOST, Verdict.LOST),
}


def launch(*argv: str, **changes: Any) -> Launch:
    """A launch with generous limits."""
    plain = Launch(
        number=0,
        argv=argv,
        call=None,
        environment={"PATH": "/usr/bin:/bin"},
        directory=None,
        captime=30.0,
        clock="cpu",
        wall_limit=60.0,
        memory_limit=None,
        output_limit=1 << 30,
        disk_limit=None,
        processes_limit=None,
        stdin=None,
        patterns={},
        output_file=None,
        preparation=None,
        guarded=(),
        tag="",
    )
    return replace(plain, **changes)


def target(name: str, *arguments: object, **changes: Any) -> Launch:
    """One of the small hostile programs in tests/targets."""
    return launch(*PYTHON, str(TARGETS / f"{name}.py"), *map(str, arguments), **changes)


class Plain:
    """Launches by configuration number; the reports are kept."""

    repeatable = True

    def __init__(self, launches: Mapping[int, Launch] | Sequence[Launch] | Launch) -> None:
        self._launches = launches
        self.reports: list[Report] = []

    def launch(self, request: RunRequest, number: int, tag: str) -> Launch:
        """See the protocol."""
        chosen = self._launches if isinstance(self._launches, Launch) else self._launches[request.config]
        return replace(chosen, number=number, tag=tag)

    def judge(self, request: RunRequest, report: Report) -> RunOutcome:
        """See the protocol."""
        self.reports.append(report)
        status, verdict = _STATUS.get(report.ended, (Status.FAILED, Verdict.CRASH))
        if report.ended == "exit" and report.exit_code != 0:
            status, verdict = Status.FAILED, Verdict.CRASH
        measured = Measurement(report.cpu_ns, report.wall_ns, report.exit_code, report.signal)
        runtime = 0.0 if status is Status.LOST else report.runtime_ns / 1e9
        return RunOutcome(request, status, runtime, report.cpu_ns / 1e9, report.problem, verdict, measured)

    def describe(self) -> dict[str, object]:
        """See the protocol."""
        return {}

    def command_line(self, config: int, instance: str, seed: int) -> list[str]:
        """See the protocol."""
        return []


def reports_of(launches: Sequence[Launch], *, tag: str, slots: int = 2, **options: Any) -> list[Report]:
    """Run all of these; their reports, in the order of the launches."""
    program = Plain(launches)
    with LocalExecutor(program, slots, tag=tag, ahead=slots, **options) as executor:
        executor.submit([RunRequest(number, 0, 1.0) for number in range(len(launches))])
        back = 0
        while back < len(launches):
            back += len(executor.collect(60.0))
    return sorted(program.reports, key=lambda report: report.number)
