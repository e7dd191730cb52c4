"""A program for the benchmarks of running programs: one launch for everything, and nothing judged."""

import os
from dataclasses import replace

from captime.runs import RunOutcome, RunRequest, Status
from captime.streams.finite import Instance
from captime.supervision.messages import Launch, Report, plain_launch


def launch_of(*argv: str) -> Launch:
    """A launch without limits that matter."""
    return replace(plain_launch(*argv), environment={"PATH": os.environ.get("PATH", os.defpath)})


class PlainProgram:
    """Every request is the same launch; the last report is kept, and so is the CPU time of all.

    Args:
        launch: What to do.

    Attributes:
        launch_now: What to do; may be replaced between runs.
        report: The last one.
        cpu_seconds: Of all runs.
    """

    repeatable = True

    def __init__(self, launch: Launch) -> None:
        self.launch_now = launch
        self.report = Report(0, "lost")
        self.cpu_seconds = 0.0

    def launch(self, _request: RunRequest, number: int, tag: str) -> Launch:
        """See the protocol."""
        return replace(self.launch_now, number=number, tag=tag)

    def judge(self, request: RunRequest, report: Report) -> RunOutcome:
        """See the protocol."""
        self.report = report
        self.cpu_seconds += report.cpu_ns / 1e9
        return RunOutcome(request, Status.COMPLETED, report.runtime_ns / 1e9, report.cpu_ns / 1e9)

    def describe(self) -> dict[str, object]:
        """See the protocol."""
        return {}

    def command_line(self, _config: int, _instance: str, _seed: int) -> list[str]:
        """See the protocol."""
        return list(self.launch_now.argv)

    def how_started(self, _config: int, _instance: Instance, _seed: int) -> str:
        """See the protocol."""
        return ""
