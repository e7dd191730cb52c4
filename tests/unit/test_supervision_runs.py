import os
import pickle
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import cloudpickle
import numpy as np
import pytest

from captime.runs import Halt, RunOutcome, RunRequest, Status
from captime.streams.files import digest_of_file, fingerprint_of
from captime.supervision.messages import Fingerprint, FunctionCall, Launch, Preparation
from captime.supervision.process_tree import ISOLATIONS
from supervised import PYTHON, TARGETS, Bench, Plain, bench, launch, target

PATIENCE = 180.0


@pytest.fixture(scope="module", params=ISOLATIONS)
def level(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """An executor on each isolation level."""
    with bench(request.param, "runs") as opened:
        yield opened


@pytest.fixture(scope="module")
def best() -> Iterator[Bench]:
    """An executor on the best level that holds here."""
    opened = Bench(f"test-runs-best-{os.getpid()}")
    yield opened
    opened.executor.close()


def calling(function: object, *arguments: object) -> Launch:
    """A launch of a function that was made here."""
    return launch(call=FunctionCall(cloudpickle.dumps(function), "", pickle.dumps((arguments, {})), ()), captime=5.0)


def fingerprint(path: Path) -> Fingerprint:
    """How a file looks now."""
    return fingerprint_of(str(path), digest_of_file(path))


def test_what_a_program_does_is_reported(level: Bench) -> None:
    """Exit code, both streams, their matches, and next to no time."""
    script = "echo c 1; echo c 2; echo s SAT; echo trouble >&2; exit 20"
    report = level.one(launch("sh", "-c", script, patterns={"answer": "^s (SAT|UNSAT)$", "comment": "^c (?P<value>.)"}))
    assert (report.ended, report.exit_code, report.signal) == ("exit", 20, None)
    assert report.matches == {"answer": b"SAT", "comment": b"2"}
    assert report.stdout_head == report.stdout_tail == b"c 1\nc 2\ns SAT\n"
    assert report.stderr_tail == b"trouble\n"
    assert report.output_bytes == 22
    assert report.wall_ns > 0


def test_what_cannot_be_started_is_told(level: Bench, tmp_path: Path) -> None:
    """Nothing by that name, nothing to execute, no such directory, and a pattern that is none."""
    plain = tmp_path / "plain"
    plain.write_text("no program", encoding="ascii")
    reports = level.run(
        [
            launch("no-such-program"),
            launch(str(plain)),
            launch("true", directory=str(tmp_path / "missing")),
            launch("true", patterns={"answer": "("}),
            launch("true", "a\0b"),
        ]
    )
    assert {report.ended for report in reports} == {"not-started"}
    words = ("PATH", "Permission denied", "No such file", "no regular expression", "null")
    assert all(word in report.problem for word, report in zip(words, reports, strict=True))


def test_a_run_has_a_directory_and_an_output_file_of_its_own(best: Bench, tmp_path: Path) -> None:
    """`{output}` and `{scratch}` are filled in; patterns are looked for in the file, too."""
    script = 'echo s SAT > "$1"; test -d "$2" && test "$TMPDIR" = "$2"'
    words = ("sh", "-c", script, "sh", "{output}", "{scratch}")
    report = best.one(launch(*words, directory=str(tmp_path), output_file="result", patterns={"answer": "^s (.*)"}))
    assert report.exit_code == 0
    assert report.output_file == b"s SAT\n"
    assert report.matches == {"answer": b"SAT"}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("to_stdout", [True, False])
def test_a_missing_instance_is_made_first_and_only_once(best: Bench, tmp_path: Path, to_stdout: bool) -> None:
    """By a generator, under another name until it is whole; its time is not counted."""
    made = tmp_path / "made" / "instance"
    script = "sleep 0.2; echo content" if to_stdout else "sleep 0.2; echo content > $1"
    preparation = Preparation(("sh", "-c", script, "sh", "{part}"), str(made), to_stdout=to_stdout, timeout=PATIENCE)
    first = best.one(launch("cat", str(made), preparation=preparation))
    assert first.stdout_tail == b"content\n"
    assert first.wall_ns < 0.2e9 or "contended" in first.flags
    broken = replace(preparation, argv=("false",))
    assert best.one(launch("cat", str(made), preparation=broken)).stdout_tail == b"content\n"
    assert list(made.parent.iterdir()) == [made]


def test_a_generator_that_fails_starts_nothing(best: Bench, tmp_path: Path) -> None:
    """With an exit code, without a file, too late, or not at all; no half of a file is left."""
    made = tmp_path / "instance"
    plain = Preparation(("sh", "-c", "echo half; echo why >&2; exit 3"), str(made), to_stdout=True, timeout=PATIENCE)
    reports = best.run(
        [
            launch("true", preparation=plain),
            launch("true", preparation=replace(plain, argv=("true",), to_stdout=False)),
            launch("true", preparation=replace(plain, argv=("sleep", "60"), timeout=0.2)),
            launch("true", preparation=replace(plain, argv=("no-such-generator",))),
        ]
    )
    assert {report.ended for report in reports} == {"not-started"}
    words = ("exit code 3: why", "without having written", "more than 0.2 s", "no-such-generator")
    assert all(word in report.problem for word, report in zip(words, reports, strict=True))
    assert list(tmp_path.iterdir()) == []


def test_a_verifier_has_the_last_word(best: Bench) -> None:
    """It reads what the run printed and wrote; 0 is right, 1 is wrong, anything else is no verdict."""
    plain = launch("sh", "-c", "echo 42; echo file > $1", "sh", "{output}", output_file="result")
    check = 'grep -qx 42 && grep -qx 42 "$1" && grep -qx file "$2"'
    right, wrong, unsure, late, crashed = best.run(
        [
            replace(plain, verifier=("sh", "-c", check, "sh", "{stdout}", "{output}")),
            replace(plain, verifier=("grep", "-qx", "43")),
            replace(plain, verifier=("sh", "-c", "echo hm >&2; exit 7")),
            replace(plain, verifier=("sleep", "60"), verifier_timeout=0.2),
            launch("sh", "-c", "kill -SEGV $$", verifier=("true",)),
        ]
    )
    assert [right.verified, wrong.verified, unsure.verified, late.verified] == [True, False, None, None]
    assert "exit code 7: hm" in unsure.problem
    assert "more than 0.2 s" in late.problem
    assert (crashed.ended, crashed.signal) == ("exit", signal.SIGSEGV)
    assert right.wall_ns < 10e9


def test_a_file_that_changed_loses_the_run(level: Bench, tmp_path: Path) -> None:
    """F26: before the start, during the run, by vanishing; untouched it is no trouble."""
    path = tmp_path / "instance"
    path.write_text("content", encoding="ascii")
    guarded = (fingerprint(path),)
    during = level.one(launch("sh", "-c", 'echo more >> "$1"', "sh", str(path), guarded=guarded))
    before = level.one(launch("true", guarded=guarded))
    fine = level.one(launch("true", guarded=(fingerprint(path),)))
    path.unlink()
    gone = level.one(launch("true", guarded=guarded))
    assert [report.ended for report in (during, before, fine, gone)] == ["lost", "lost", "exit", "lost"]
    assert {(report.halt, report.changed_file) for report in (during, before, gone)} == {(Halt.FILE_CHANGED, str(path))}
    assert before.wall_ns == 0


def test_a_change_that_hides_its_time_is_noticed(level: Bench, tmp_path: Path) -> None:
    """The same size and the same time of change, but another content; a new mode alone is no change."""
    path = tmp_path / "instance"
    path.write_text("content", encoding="ascii")
    guarded = (fingerprint(path),)
    before = path.stat()
    path.chmod(0o600)
    touched = level.one(launch("true", guarded=guarded))
    unknown = level.one(launch("true", guarded=((*guarded[0][:6], ""),)))
    path.write_text("CONTENT", encoding="ascii")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    hidden = level.one(launch("true", guarded=guarded))
    assert [report.ended for report in (touched, unknown, hidden)] == ["exit", "lost", "lost"]
    assert hidden.changed_file == str(path)


def test_a_function_is_run_like_a_program(level: Bench) -> None:
    """Its value, what it prints, what it raises, its captime, what it leaves behind; always in the same state."""

    def fine(seconds: float) -> tuple[float, str]:
        end = time.process_time() + seconds
        while time.process_time() < end:
            pass
        print("printed")  # noqa: T201 (what is tested)
        return seconds, os.environ["CAPTIME_RUN"]

    def raises() -> None:
        raise KeyError("reason")

    def endless() -> None:
        while True:
            pass

    def forks() -> int:
        for _ in range(2):
            if os.fork() == 0:
                os.setsid()
                time.sleep(60)
        return 7

    def leaves() -> None:
        sys.exit(5)

    value, failure, capped, forked, left = level.run(
        [
            calling(fine, 0.05),
            calling(raises),
            replace(calling(endless), captime=0.1),
            calling(forks),
            calling(leaves),
        ]
    )
    assert value.returned is not None
    assert pickle.loads(value.returned) == (0.05, f"{level.tag}/0.0.{_attempt(level)}")
    assert value.stdout_tail == b"printed\n"
    assert value.runtime_ns >= 0.05e9
    assert (failure.exit_code, failure.returned) == (1, None)
    assert b"KeyError: 'reason'" in failure.stderr_tail
    assert capped.ended == "captime"
    assert forked.leftovers == 2
    assert left.exit_code == 5


def _attempt(level: Bench) -> int:
    """Of the first of the last five requests."""
    return next(level._attempts) - 5


def test_functions_can_be_named_and_their_arguments_are_data(best: Bench) -> None:
    """A module beside the scenario is found on the search path; what cannot be imported is told."""
    arguments = pickle.dumps(((0.01,), {}))
    found, missing, large = best.run(
        [
            launch(call=FunctionCall(b"", "burn:burn", arguments, (str(TARGETS),))),
            launch(call=FunctionCall(b"", "no_such_module:f", arguments, ())),
            calling(lambda: b"x" * (2 << 20)),
        ]
    )
    assert found.exit_code == 0
    assert found.stdout_tail.startswith(b"used ")
    assert missing.ended == "not-started"
    assert "no_such_module" in missing.problem
    assert (large.exit_code, large.returned) == (1, None)
    assert b"at most" in large.stderr_tail


def collected(executor: Bench, number: int) -> list[RunOutcome]:
    """This many outcomes."""
    outcomes: list[RunOutcome] = []
    while len(outcomes) < number:
        outcomes += executor.executor.collect(PATIENCE)
    return outcomes


def test_unwanted_runs_are_stopped_wherever_they_are(level: Bench) -> None:
    """Under way, held by a slot, or still here: every one of them comes back, the others are done."""
    endless = target("burn", "plain", 600, captime=600.0)
    level.program.reports.clear()
    level.program.launches = {0: endless, 1: launch("true")}
    requests = level.requests([0] * 8 + [1])
    level.executor.submit(requests)
    while len(level.executor.watch()) < 2:
        assert level.executor.collect(0.05) == []
    assert {request.config for request, _ in level.executor.watch()} == {0}
    assert all(seconds > 0.0 for _, seconds in level.executor.watch())
    level.executor.cancel(np.array([0]))
    outcomes = collected(level, 9)
    assert sorted(outcome.request.attempt for outcome in outcomes) == [request.attempt for request in requests]
    stopped = [outcome for outcome in outcomes if outcome.status is Status.CAPPED]
    assert len(stopped) == 8
    assert sum(outcome.runtime > 0.0 for outcome in stopped) == 2
    assert [report.ended for report in level.program.reports].count("cancelled") == 8
    assert level.executor.collect(0.0) == []
    assert level.executor.watch() == []


def test_stopping_stops_everything(best: Bench) -> None:
    """Whosever runs they are."""
    best.program.launches = {config: target("burn", "plain", 600, captime=600.0) for config in range(6)}
    best.executor.submit(best.requests(range(6)))
    best.executor.stop()
    assert {outcome.status for outcome in collected(best, 6)} == {Status.CAPPED}
    assert best.survivors() == []


def test_no_slot_is_idle_while_another_has_work_waiting(best: Bench) -> None:
    """What a slot holds behind a long run is taken over by the other one."""
    best.program.launches = {0: target("burn", "plain", 600, captime=600.0), 1: launch("true")}
    best.executor.submit(best.requests([0, 1, 1, 1, 1, 1, 1, 1]))
    assert [outcome.request.config for outcome in collected(best, 7)] == [1] * 7
    best.executor.stop()
    assert len(collected(best, 1)) == 1


def test_a_signal_ends_the_waiting() -> None:
    """The handler is called at once, not after the next run."""
    # An executor of its own: one that was stopped before waits for its runs whatever the signal.
    opened = Bench(f"test-signal-{os.getpid()}", slots=1)
    heard = []
    before = signal.signal(signal.SIGALRM, lambda number, _frame: heard.append(number))
    opened.program.launches = {0: launch("sleep", "60")}
    opened.executor.submit(opened.requests([0]))
    try:
        # Again and again: on a busy machine the first signal may arrive before the waiting has begun.
        signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
        assert opened.executor.collect(PATIENCE) == []
        assert set(heard) == {signal.SIGALRM}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    opened.executor.stop()
    assert len(collected(opened, 1)) == 1
    opened.executor.close()


def test_closing_kills_what_is_under_way(tmp_path: Path) -> None:
    """Nothing survives, and no directory is left."""
    opened = Bench(f"test-closing-{os.getpid()}", scratch=str(tmp_path))
    opened.program.launches = {0: target("escape", "sleep", wall_limit=600.0)}
    opened.executor.submit(opened.requests([0, 0, 0]))
    while len(opened.executor.watch()) < 2:
        opened.executor.collect(0.05)
    opened.executor.close()
    assert opened.survivors() == []
    assert list(tmp_path.iterdir()) == []


def test_what_a_program_is_asked_is_what_it_is_told(best: Bench) -> None:
    """Host and slot are added to what the program made of the report."""
    best.program.launches = {0: launch(*PYTHON, "-c", "")}
    best.executor.submit(best.requests([0]))
    (outcome,) = collected(best, 1)
    assert outcome.request == RunRequest(0, 0, 1.0, outcome.request.attempt)
    assert outcome.measured is not None
    assert outcome.measured.host
    assert outcome.measured.slot in range(best.executor.slots)
    assert isinstance(best.program, Plain)


def test_what_was_cancelled_on_its_way_back_is_not_begun() -> None:
    """A launch that a slot gives back at the same moment as it is cancelled comes back as cancelled, once."""
    opened = Bench(f"test-way-back-{os.getpid()}", slots=1)
    opened.program.launches = {0: launch("sleep", "60", wall_limit=600.0), 1: launch("sleep", "60", wall_limit=600.0)}
    opened.executor.submit(opened.requests([0, 1]))
    (handle,) = opened.executor._handles
    (number,) = (number for number, request in opened.executor._requests.items() if request.config == 1)
    # A slot that is measured first gets its requests a moment later.
    while number not in handle.held:
        assert opened.executor.collect(0.05) == []
    handle.channel.send("withdraw", str(number))
    opened.executor.cancel(np.array([1]))
    (outcome,) = collected(opened, 1)
    assert (outcome.request.config, outcome.status) == (1, Status.CAPPED)
    opened.executor.stop()
    assert len(collected(opened, 1)) == 1
    assert [report.ended for report in opened.program.reports] == ["cancelled", "cancelled"]
    opened.executor.close()
