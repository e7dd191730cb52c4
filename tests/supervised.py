"""A program for tests of supervision: any command or call, judged by nothing but its report."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from captime.errors import ScenarioError
from captime.executors.local import LocalExecutor
from captime.runs import Measurement, RunOutcome, RunRequest, Status, Verdict
from captime.streams.finite import Instance
from captime.supervision.messages import Launch, Report, plain_launch
from captime.supervision.processes import look_at, tagged

_PATIENCE = 180.0

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
    plain = replace(plain_launch(*argv), environment={"PATH": "/usr/bin:/bin"}, captime=30.0)
    return replace(plain, **changes)


def target(name: str, *arguments: object, **changes: Any) -> Launch:
    """One of the small hostile programs in tests/targets."""
    return launch(*PYTHON, str(TARGETS / f"{name}.py"), *map(str, arguments), **changes)


class Plain:
    """Launches by configuration number; the reports are kept."""

    repeatable = True

    def __init__(self, launches: Mapping[int, Launch] | Sequence[Launch] | Launch) -> None:
        self.launches = launches
        self.reports: list[Report] = []

    def launch(self, request: RunRequest, number: int, tag: str) -> Launch:
        """See the protocol."""
        chosen = self.launches if isinstance(self.launches, Launch) else self.launches[request.config]
        return replace(chosen, number=number, tag=tag)

    def judge(self, request: RunRequest, report: Report) -> RunOutcome:
        """See the protocol."""
        self.reports.append(report)
        status, verdict = _STATUS.get(report.ended, (Status.FAILED, Verdict.CRASH))
        if report.ended == "exit" and report.exit_code != 0:
            status, verdict = Status.FAILED, Verdict.CRASH
        measured = Measurement(report.cpu_ns, report.wall_ns, report.exit_code, report.signal)
        runtime = 0.0 if status is Status.LOST else report.runtime_ns / 1e9
        told = RunOutcome(request, status, runtime, report.cpu_ns / 1e9, report.problem, verdict, measured)
        return replace(told, halt=report.halt, changed_file=report.changed_file)

    def describe(self) -> dict[str, object]:
        """See the protocol."""
        return {}

    def command_line(self, config: int, instance: str, seed: int) -> list[str]:
        """See the protocol."""
        return []

    def how_started(self, config: int, instance: Instance, seed: int) -> str:
        """See the protocol."""
        return ""


class Bench:
    """An executor that stays open for many runs.

    Args:
        tag: Of its processes.
        slots: How many.
        options: For the executor.
    """

    def __init__(self, tag: str, slots: int = 2, **options: Any) -> None:
        self.tag = tag
        self.program = Plain({})
        self.executor = LocalExecutor(self.program, slots, tag=tag, ahead=slots, **options)
        self._attempts = count()

    def run(self, launches: Sequence[Launch]) -> list[Report]:
        """Run all of these; their reports, in the order of the launches."""
        self.program.reports.clear()
        self.program.launches = dict(enumerate(launches))
        self.executor.submit(self.requests(range(len(launches))))
        back = 0
        while back < len(launches):
            back += len(self.executor.collect(_PATIENCE))
        return sorted(self.program.reports, key=lambda report: report.number)

    def requests(self, configs: Iterable[int]) -> list[RunRequest]:
        """A request for each of these, unlike any before."""
        return [RunRequest(config, 0, 1.0, next(self._attempts)) for config in configs]

    def one(self, launch: Launch) -> Report:
        """Run this."""
        return self.run([launch])[0]

    def gather(self, outcomes: list[RunOutcome]) -> int:
        """Add to these what has come back since; return how many they are now."""
        outcomes += self.executor.collect(0.05)
        return len(outcomes)

    def survivors(self) -> list[int]:
        """Processes of its runs that are still there.

        Those that wait for the next call of a function do not count, nor do pieces of work that measure the machine.
        """
        kept = {*tagged(f"{self.tag}/functions."), *tagged(f"{self.tag}/reference")}
        return [pid for pid in tagged(f"{self.tag}/") if pid not in kept]


@contextmanager
def bench(isolation: str, name: str, **options: Any) -> Iterator[Bench]:
    """A bench on this level; the test is skipped where control groups are not ours to make."""
    try:
        opened = Bench(f"test-{name}-{isolation}-{os.getpid()}", isolation=isolation, **options)
    except ScenarioError as reason:
        if isolation != "cgroup2":
            raise
        pytest.skip(str(reason))
    try:
        assert opened.executor.isolation == isolation
        yield opened
        assert opened.survivors() == []
    finally:
        opened.executor.close()


def reports_of(launches: Sequence[Launch], *, tag: str, slots: int = 2, **options: Any) -> list[Report]:
    """Run all of these; their reports, in the order of the launches."""
    program = Plain(launches)
    with LocalExecutor(program, slots, tag=tag, ahead=slots, **options) as executor:
        executor.submit([RunRequest(number, 0, 1.0) for number in range(len(launches))])
        back = 0
        while back < len(launches):
            back += len(executor.collect(_PATIENCE))
    return sorted(program.reports, key=lambda report: report.number)


def comes_true(claim: Callable[[], bool]) -> bool:
    """Wait until a claim holds; False if it does not within a minute."""
    deadline = time.monotonic() + _PATIENCE
    while not claim():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def dead(pid: int) -> bool:
    """Say whether a process is gone, or a zombie."""
    found = look_at(pid)
    return found is None or not found.alive
