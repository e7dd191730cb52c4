"""From a launch to a report: everything that is set up around a run and taken down after it."""

import errno
import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from captime.runs import Halt
from captime.supervision.cgroups import Cgroup
from captime.supervision.fitness import Fitness, MachineHealth, lack_behind, looks_failed, usable_cores
from captime.supervision.functions import RESULT_BYTES, Functions
from captime.supervision.messages import Launch, Preparation, Report, lost_by_change
from captime.supervision.output import KEPT_BYTES, IoLoop, Matcher, Pipe
from captime.supervision.process_tree import Isolation, ProcessTree
from captime.supervision.processes import TAG, Lack, all_pids
from captime.supervision.run import CoordinatorLink, Limits, Pipes, SupervisedRun, changed_file
from captime.supervision.scratch import Folders
from captime.supervision.spawn import Descriptors, NotStarted, ProcessSetup, SpawnedProcess, start

# What is run before and after a run, untimed: the generator of its instance, and the verifier of its answer.
#
# Both are programs like any other: capped by the wall clock, and nothing of them survives.

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


# From a launch to a report: everything that is set up around a run and taken down after it.

# Where memory is watched by looking, no process may outgrow its limit by much between two looks. Programs reserve far
# more address space than they use, so this is generous: it protects the machine, the looks enforce the limit.
_ADDRESS_SPACE_FACTOR, _ADDRESS_SPACE_BYTES = 4, 1 << 30
_OTHER_PROCESSES = 64


@dataclass(frozen=True, slots=True)
class SlotPlace:
    """Where a slot runs its programs.

    Attributes:
        isolation: How trees are kept together.
        scratch: A directory of the slot's own, for the directories of its runs.
        group: A control group of the slot's own, for the groups of its runs.
        core: The core its runs are tied to.
    """

    isolation: Isolation
    scratch: str
    group: Path | None = None
    core: int | None = None


class Launcher:
    """Runs one program after the other.

    Args:
        place: Where.
        listener: Where it waits for them.
        duties: What else has to be done meanwhile.
    """

    def __init__(self, place: SlotPlace, listener: IoLoop, duties: CoordinatorLink) -> None:
        self._place = place
        self._listener = listener
        self._duties = duties
        self._functions = Functions(adopts=place.isolation != "posix")
        self._folders = Folders(place.scratch)
        self._health = MachineHealth(usable_cores())
        self._fitness = Fitness(place.scratch)
        self._begun = self._memory_is_counted = False
        self._groups = 0

    def close(self) -> None:
        """Let the processes go that are kept for function targets."""
        self._functions.close()

    def perform(self, launch: Launch) -> Report:
        """Run it; every trace of it is gone afterwards, but for what the report says."""
        self._begun = False
        lack = self._fitness.before()
        if lack is not None:
            return _unfit(launch, lack)
        try:
            folder = self._folders.fresh()
        except OSError as trouble:
            return self._lost(launch, f"there can be no directory for the run: {trouble}", trouble)
        preparing = True
        try:
            failure = prepare(launch, lambda hook, stdout: self._run_untold(hook, folder, stdout))
            if failure is not None:
                return self._not_begun(launch, failure)
            changed = changed_file(launch.guarded)
            if changed is not None:
                return lost_by_change(launch.number, *changed)
            preparing = self._begun = False
            return self._run_and_verify(launch, folder)
        except NotStarted as reason:
            return self._not_begun(launch, Report(launch.number, "not-started", problem=str(reason)))
        except OSError as trouble:
            self._begun = self._begun and not preparing
            return self._lost(launch, f"the supervisor could not set up the run: {trouble}", trouble)
        finally:
            self._folders.give_back(folder)

    def _not_begun(self, launch: Launch, failure: Report) -> Report:
        """Report a run that could not be started; the program is not to blame if the machine is unfit."""
        if failure.ended != "not-started":
            return failure
        where = None if launch.preparation is None else str(Path(launch.preparation.output).parent)
        said = failure.problem.encode("utf-8", "replace")
        lack = self._fitness.after(where) or self._fitness.after_failure(said, killer=True)
        return failure if lack is None else _unfit(launch, lack)

    def _lost(self, launch: Launch, problem: str, trouble: OSError) -> Report:
        """Our own fault, or the machine's; and whether the program had begun by then."""
        lack = self._fitness.before() or lack_behind(trouble)
        if lack is None:
            return Report(launch.number, "lost", problem=problem)
        if not self._begun:
            return _unfit(launch, lack)
        return Report(launch.number, "lost", problem=problem, shortage=lack.what, short=lack.words)

    def _run_and_verify(self, launch: Launch, folder: str) -> Report:
        """Run the program; then ask the verifier about what it printed, which is kept on disk until then."""
        printed = f"{folder}.stdout"
        ready = replace(launch, argv=_filled_in(launch.argv, launch, folder))
        if launch.verifier is None:
            return self._run_in_this_state(ready, folder)
        try:
            with Path(printed).open("xb") as copy:
                report = self._run_in_this_state(ready, folder, copy)
            if report.ended != "exit":
                return report
            words = _filled_in(launch.verifier, launch, folder)
            command = tuple(word.replace("{stdout}", printed) for word in words)
            verified = verify(
                launch, report, command, printed, lambda hook, stdout: self._run_untold(hook, folder, stdout)
            )
            return verified if verified.verified else self._looked_at(launch, verified, unanswered=True)
        finally:
            Path(printed).unlink(missing_ok=True)

    def _run_in_this_state(self, launch: Launch, folder: str, copy: BinaryIO | None = None) -> Report:
        """Run it, and flag it if the machine was in trouble meanwhile."""
        before = self._health.read()
        report = self._run(launch, folder, copy=copy)
        report = replace(report, flags=(*report.flags, *self._health.since(before)))
        # A limit of the run's own was reached, or we are to blame already: nothing else needs to be known.
        if report.ended not in ("exit", "captime", "wall") or report.problem:
            return report
        unanswered = launch.until is not None or ("answer" in launch.patterns and "answer" not in report.matches)
        raised = launch.call is not None and report.returned is None
        return self._looked_at(launch, report, unanswered=unanswered or raised)

    def _looked_at(self, launch: Launch, report: Report, *, unanswered: bool) -> Report:
        """Return the report with what the machine was out of; closely if the run seems to have failed."""
        if report.shortage is not None:
            return report
        lack = self._fitness.after(launch.directory)
        failed = report.ended == "exit" and looks_failed(launch.exit_codes, report.exit_code, unanswered=unanswered)
        if lack is None and failed:
            said = report.stderr_tail + report.stdout_tail
            lack = self._fitness.after_failure(said, killer=not self._memory_is_counted)
        return report if lack is None else replace(report, shortage=lack.what, short=lack.words)

    def _run_untold(self, hook: Launch, folder: str, stdout: int | None) -> Report:
        """Run a generator or a verifier: its time is not the run's, and is not passed on as if it were."""
        return self._run(hook, folder, stdout=stdout, duties=_WithoutProgress(self._duties))

    def _run(
        self,
        launch: Launch,
        folder: str,
        *,
        stdout: int | None = None,
        copy: BinaryIO | None = None,
        duties: CoordinatorLink | None = None,
    ) -> Report:
        try:
            matcher = Matcher(launch.patterns, launch.until)
        except re.error as flaw:
            raise NotStarted(f"a pattern is no regular expression: {flaw}") from None
        group = self._group()
        pipes = Pipes(
            Pipe(self._listener, matcher, copy=copy),
            Pipe(self._listener),
            matcher,
            None if launch.call is None else Pipe(self._listener, kept=RESULT_BYTES),
        )
        try:
            limited = group is not None and group.limit(launch.memory_limit, launch.processes_limit)
            started = self._started(launch, folder, pipes, group, stdout=stdout, memory_is_limited=limited)
            self._begun, self._memory_is_counted = True, group is not None and group.counts_memory
        except BaseException:
            for pipe in pipes.each():
                pipe.close()
            if group is not None:
                group.remove()
            raise
        tree = ProcessTree(
            started,
            group,
            adopts=self._place.isolation != "posix",
            keep=self._functions.pids,
            tag=launch.tag,
        )
        limits = Limits(launch, tree, folder, memory_is_limited=limited)
        attending = self._duties if duties is None else duties
        run = SupervisedRun(launch, tree, pipes, limits, listener=self._listener, duties=attending, group=group)
        try:
            report = run.watch()
        except BaseException:
            # A full disk, or a mistake of ours: nothing may survive that either.
            tree.destroy()
            tree.finish()
            for pipe in pipes.each():
                pipe.close()
            raise
        finally:
            if group is not None:
                group.remove()
        return self._with_output_file(report, launch, folder, matcher)

    def _group(self) -> Cgroup | None:
        self._groups += 1
        return None if self._place.group is None else Cgroup(self._place.group / f"run-{self._groups}")

    def _started(
        self,
        launch: Launch,
        folder: str,
        pipes: Pipes,
        group: Cgroup | None,
        *,
        stdout: int | None,
        memory_is_limited: bool,
    ) -> SpawnedProcess:
        surroundings = ProcessSetup(
            supervisor=os.getpid(),
            directory=folder if launch.directory is None else launch.directory,
            core=self._place.core,
            address_space=None
            if memory_is_limited or launch.memory_limit is None
            else _ADDRESS_SPACE_FACTOR * launch.memory_limit + _ADDRESS_SPACE_BYTES,
            file_size=launch.disk_limit,
            processes=None if launch.processes_limit is None else launch.processes_limit + _others(),
        )
        environment = {**launch.environment, TAG: launch.tag, "TMPDIR": folder}
        stdin = _open_input(launch.stdin)
        ways_in = () if group is None else (group.entrance(), group.place())
        streams = (stdin, pipes.stdout.outer if stdout is None else stdout, pipes.stderr.outer)
        descriptors = Descriptors(*streams, *ways_in)
        try:
            if launch.call is None or pipes.result is None:
                return start(launch.argv, environment, surroundings, descriptors)
            return self._functions.start(launch.call, environment, surroundings, descriptors, pipes.result.outer)
        finally:
            for descriptor in (stdin, *ways_in):
                os.close(descriptor)
            for pipe in pipes.each():
                pipe.hand_over()

    @staticmethod
    def _with_output_file(report: Report, launch: Launch, folder: str, matcher: Matcher) -> Report:
        """Return what the run wrote to its output file; patterns are looked for in it, too."""
        # Only a line of stdout reaches a target: nothing says when a line of the file was written.
        if launch.output_file is None or launch.until is not None:
            return report
        try:
            descriptor = os.open(f"{folder}/{launch.output_file}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return report
        try:
            text = os.read(descriptor, KEPT_BYTES) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
        finally:
            os.close(descriptor)
        matcher.add(text)
        matcher.finish()
        matcher.look(float("inf"))
        if matcher.problem:
            return replace(report, ended="lost", problem=matcher.problem, halt=Halt.PATTERN_TOO_SLOW)
        return replace(report, output_file=text, matches=matcher.found)


@dataclass(frozen=True, slots=True)
class _WithoutProgress:
    """The duties of a supervisor while something else than the run itself is under way."""

    duties: CoordinatorLink

    def attend(self, ready: set[int]) -> bool:
        """Hear the coordinator, as during a run."""
        return self.duties.attend(ready)

    def tell(self, seen_ns: int) -> None:
        """Pass nothing on."""


def _unfit(launch: Launch, lack: Lack) -> Report:
    """Report that the machine is out of something and the run has not begun: it can begin later."""
    return Report(launch.number, "unfit", problem=lack.words, shortage=lack.what, short=lack.words)


def _filled_in(words: tuple[str, ...], launch: Launch, folder: str) -> tuple[str, ...]:
    """With the run's own directory and its output file in the places that stand for them."""
    output = "{output}" if launch.output_file is None else f"{folder}/{launch.output_file}"
    return tuple(word.replace("{output}", output).replace("{scratch}", folder) for word in words)


def _open_input(path: str | None) -> int:
    """Open a file for reading; never blocks, not even if a pipe has that name."""
    try:
        descriptor = os.open(path or os.devnull, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as trouble:
        raise NotStarted(f"cannot read the input file {path!r}: {trouble.strerror}") from None
    os.set_blocking(descriptor, True)
    return descriptor


def _others() -> int:
    """Processes are limited per user, so those that exist already have to be allowed for."""
    return len(all_pids()) + _OTHER_PROCESSES
