"""What is run before and after a run, untimed: the generator of its instance, and the verifier of its answer.

Both are programs like any other: capped by the wall clock, and nothing of them survives.
"""

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from captime.supervision.messages import Launch, Preparation, Report

# A full disk is the machine's trouble, and may pass.
_FULL = (errno.ENOSPC, errno.EDQUOT)

Runner = Callable[[Launch, int | None], Report]
"""Runs a launch, with its stdout in the file of that descriptor if there is one."""


def prepare(launch: Launch, run: Runner) -> Report | None:
    """Make the instance if it is not there; a report if that failed, or was stopped."""
    preparation = launch.preparation
    if preparation is None or Path(preparation.output).exists():
        return None
    output = Path(preparation.output)
    # Several machines may share the folder, and have the same process numbers.
    part = Path(f"{preparation.output}.part-{os.uname().nodename}-{os.getpid()}")
    words = tuple(word.replace("{part}", str(part)) for word in preparation.argv)
    hook = replace(_hook_launch(launch, words, preparation.timeout), disk_limit=None)
    try:
        # Not before an instance is made: a scenario that is only looked at, or refused, leaves no folder behind.
        output.parent.mkdir(parents=True, exist_ok=True)
    except OSError as trouble:
        if trouble.errno in _FULL:
            raise
        problem = f"the folder of generated instances, {str(output.parent)!r}, cannot be made: {trouble.strerror}"
        return Report(launch.number, "not-started", problem=problem)
    try:
        if preparation.to_stdout:
            with part.open("wb") as file:
                report = run(hook, file.fileno())
        else:
            report = run(hook, None)
        if report.ended in ("cancelled", "lost"):
            # The program is not the reason: the run has not begun, and is tried again.
            return replace(report, runtime_ns=0)
        if report.ended != "exit" or report.exit_code != 0 or not part.is_file():
            return Report(launch.number, "not-started", problem=_why_not_made(preparation, report))
        _make_durable(part)
        # Another slot may have made it meanwhile, and a program may be reading that one: the first to come stays.
        with suppress(FileExistsError):
            os.link(part, output)
    finally:
        part.unlink(missing_ok=True)
    return None


def verify(launch: Launch, report: Report, words: tuple[str, ...], printed: str, run: Runner) -> Report:
    """The report with the verifier's verdict: exit code 0 says right, 1 says wrong, and anything else says nothing."""
    said = run(replace(_hook_launch(launch, words, launch.verifier_timeout), stdin=printed), None)
    if said.ended == "exit" and said.exit_code in {0, 1}:
        return replace(report, verified=said.exit_code == 0)
    problem = f"the verifier {words[0]!r} {_ending_text(said, launch.verifier_timeout)}"
    if said.ended == "cancelled":
        return replace(report, ended="lost", problem=problem)
    return replace(report, problem=problem)


def _hook_launch(launch: Launch, words: tuple[str, ...], timeout: float) -> Launch:
    """In the surroundings of a launch, something else."""
    return replace(
        launch,
        argv=words,
        call=None,
        directory=None,
        captime=float("inf"),
        clock="wall",
        wall_limit=timeout,
        stdin=None,
        patterns={},
        output_file=None,
        preparation=None,
        guarded=(),
        verifier=None,
        until=None,
    )


def _ending_text(report: Report, timeout: float) -> str:
    """Return how it ended, in words."""
    if report.ended == "wall":
        return f"took more than {timeout:g} s"
    if report.ended != "exit":
        return f"was stopped ({report.ended}) {report.problem}".rstrip()
    if report.signal is not None:
        return f"was ended by signal {report.signal}"
    said = report.stderr_tail[-500:].decode("utf-8", "backslashreplace").strip()
    return f"ended with exit code {report.exit_code}{': ' + said if said else ''}"


def _why_not_made(preparation: Preparation, report: Report) -> str:
    how = _ending_text(report, preparation.timeout)
    if report.ended == "exit" and report.exit_code == 0:
        how = "ended well, but without having written the file"
    return f"the generator {preparation.argv[0]!r} of {preparation.output!r} {how}"


def _make_durable(path: Path) -> None:
    """On disk before it has its name: a power cut leaves no empty instance behind."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
