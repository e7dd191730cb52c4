"""A program for the benchmarks of running programs: one launch for everything, and nothing judged."""

import os
from dataclasses import replace

from captime.runs import RunOutcome, RunRequest, Status
from captime.supervision.messages import Launch, Report


def plain_launch(*argv: str) -> Launch:
    """A launch without limits that matter."""
    return Launch(
        number=0,
        argv=argv,
        call=None,
        environment={"PATH": os.environ.get("PATH", os.defpath)},
        directory=None,
        captime=60.0,
        clock="cpu",
        wall_limit=120.0,
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
