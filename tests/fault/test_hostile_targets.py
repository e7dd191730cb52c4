import json
import os
import pickle
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from captime.streams.files import fingerprint_of
from captime.supervision.cgroups import GROUP_NOTE
from captime.supervision.messages import FunctionCall
from captime.supervision.process_tree import ISOLATIONS
from captime.supervision.processes import look_at
from supervised import TARGETS, Bench, bench, launch, target

MEGABYTE = 1 << 20


def sizes(reduced: int, full: int) -> list[object]:
    """A test at two sizes: by default, and for `make fault`."""
    return [reduced, pytest.param(full, marks=pytest.mark.fault)]


@pytest.fixture(scope="module", params=ISOLATIONS)
def level(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """An executor on each isolation level."""
    with bench(request.param, "hostile") as opened:
        yield opened


@pytest.fixture(scope="module")
def best() -> Iterator[Bench]:
    """An executor on the best level that holds here."""
    opened = Bench(f"test-hostile-best-{os.getpid()}")
    yield opened
    opened.executor.close()


def alive(pids: list[int]) -> list[int]:
    """Those of these processes that live."""
    found = [look_at(pid) for pid in pids]
    return [each.pid for each in found if each is not None and each.alive]


def peak_bytes(pid: int) -> int:
    """The most memory a process has ever had."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


@pytest.mark.parametrize("runs", sizes(6, 500))
def test_nothing_survives_a_forking_daemonising_signal_ignoring_target(level: Bench, runs: int) -> None:
    """T1, T2, T3: four processes that try to escape per run, whether main ends or is capped; none is ever left."""
    half = runs // 2
    ends = [target("escape", "end")] * half
    burns = [target("escape", "burn", captime=0.05)] * half
    reports = level.run([*ends, *burns])
    for report in reports:
        pids = [int(pid) for pid in report.stdout_tail.split()]
        assert len(pids) == 4 or (report.ended == "captime" and len(pids) in {0, 4})
        assert alive(pids) == []
    assert {report.ended for report in reports[:half]} == {"exit"}
    assert {report.leftovers for report in reports[:half]} == {4}
    assert {report.ended for report in reports[half:]} == {"captime"}
    assert level.survivors() == []


@pytest.mark.parametrize("processes", sizes(64, 1000))
def test_a_fork_bomb_is_killed_whole(level: Bench, processes: int) -> None:
    """T4: every process of it, and the machine continues."""
    report = level.one(target("misbehave", "bomb", processes, wall_limit=1.0))
    assert report.ended == "wall"
    assert level.survivors() == []


def test_too_many_processes_are_a_crash(level: Bench) -> None:
    """T4: a tree that outgrows its number of processes is killed, which no program finishes by."""
    report = level.one(target("misbehave", "bomb", 64, processes_limit=8, wall_limit=20.0))
    assert (report.ended, report.signal) in {("exit", 9), ("wall", 9)}
    assert report.exit_code is None
    assert level.survivors() == []


def test_a_target_that_stops_itself_meets_the_wall_clock(level: Bench) -> None:
    """T5: its CPU clock stands still, and a stopped process can be killed."""
    report = level.one(target("misbehave", "stop", wall_limit=0.3))
    assert report.ended == "wall"
    assert report.wall_ns >= 0.3e9


@pytest.mark.parametrize("processes", [0, 4])
def test_a_memory_eater_is_stopped_and_the_supervisor_lives(level: Bench, processes: int) -> None:
    """T6: in the main process and in several children at once."""
    before = level.executor.pids()
    report = level.one(target("eat", processes, memory_limit=120 * MEGABYTE, wall_limit=30.0))
    assert report.ended == "memory"
    assert report.peak_memory is not None
    assert report.peak_memory < 360 * MEGABYTE
    assert level.executor.pids() == before


@pytest.mark.parametrize("where", ["stdout", "stderr", "lines"])
def test_a_flood_of_output_costs_little_memory(best: Bench, where: str) -> None:
    """T7: at most 10 MB in the supervisors and here, and 64 KiB of each end are kept."""
    pids = [os.getpid(), *best.executor.pids()]
    best.one(launch("true"))
    before = [peak_bytes(pid) for pid in pids]
    patterns = {"answer": r"^s (\w+)", "other": "n+o"}
    report = best.one(target("flood", where, captime=0.05, patterns=patterns, output_limit=1 << 40))
    grown = [peak_bytes(pid) - start for pid, start in zip(pids, before, strict=True)]
    assert max(grown) <= 10 * MEGABYTE
    assert report.ended == "captime"
    assert report.output_bytes > MEGABYTE
    assert max(len(report.stdout_head), len(report.stdout_tail), len(report.stderr_tail)) == 64 * 1024


def test_more_output_than_allowed_ends_the_run(level: Bench) -> None:
    """T7: and is no crash and no finish, but `output`."""
    report = level.one(target("flood", "stdout", output_limit=MEGABYTE))
    assert report.ended == "output"
    assert report.output_bytes < 3 * MEGABYTE


def test_more_files_than_allowed_end_the_run_and_are_gone(best: Bench, tmp_path: Path) -> None:
    """T8: the directory is measured while the run continues, and removed."""
    with bench(best.executor.isolation, "disk", slots=1, scratch=str(tmp_path)) as alone:
        report = alone.one(target("flood", "file", disk_limit=8 * MEGABYTE))
        assert report.ended == "disk"
        left = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert [path for path in left if path.suffix != ".log" and path.name != GROUP_NOTE] == []


def test_one_file_larger_than_allowed_ends_the_run(best: Bench) -> None:
    """T8: the kernel stops it."""
    report = best.one(launch("sh", "-c", "cat /dev/zero > large", disk_limit=MEGABYTE))
    assert report.ended == "disk"


def test_a_nest_of_directories_is_removed(best: Bench, tmp_path: Path) -> None:
    """More folders inside each other than Python can recurse into are gone after the run."""
    with bench(best.executor.isolation, "deep", slots=1, scratch=str(tmp_path)) as alone:
        assert alone.one(target("misbehave", "deep", 1100)).exit_code == 0
        assert not any(path.name == "d" for path in tmp_path.rglob("d"))


def test_the_end_is_the_exit_and_not_the_end_of_the_output(level: Bench) -> None:
    """T9: who closes its output and computes on is measured to its exit."""
    report = level.one(target("misbehave", "close"))
    assert report.ended == "exit"
    assert report.runtime_ns >= 0.1e9


def test_a_daemon_that_keeps_the_pipe_does_not_keep_us(level: Bench) -> None:
    """T10: the output is complete, the time is the main process's, and the daemon is a leftover."""
    report = level.one(target("misbehave", "keep-pipe", wall_limit=30.0))
    assert report.ended == "exit"
    assert report.stdout_tail == b"done\n"
    assert report.wall_ns < 10e9
    assert report.leftovers == 1
    assert "leftovers" in report.flags


def test_input_is_empty_unless_there_is_a_file(best: Bench, tmp_path: Path) -> None:
    """T11, T12: no process waits for input, and a file that is not read blocks none."""
    large = tmp_path / "large"
    large.write_bytes(b"x" * MEGABYTE)
    empty, read, unread, missing = best.run(
        [
            launch("cat"),
            launch("sh", "-c", "cat | wc -c", stdin=str(large)),
            launch("true", stdin=str(large)),
            launch("cat", stdin=str(tmp_path / "missing")),
        ]
    )
    assert (empty.ended, empty.exit_code, empty.output_bytes) == ("exit", 0, 0)
    assert read.stdout_tail.strip() == b"%d" % MEGABYTE
    assert unread.exit_code == 0
    assert missing.ended == "not-started"


def test_every_signal_is_a_crash(best: Bench) -> None:
    """T13: of 31 signals none leaves a run that looks finished; those that kill are told by number."""
    numbers = range(1, 32)
    reports = best.run([target("misbehave", "signal", number, wall_limit=0.5) for number in numbers])
    finished = [number for number, report in zip(numbers, reports, strict=True) if report.exit_code == 0]
    assert finished == []
    harmless = {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH}
    stopping = {signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
    for number, report in zip(numbers, reports, strict=True):
        if number not in harmless | stopping:
            assert (report.ended, report.signal) == ("exit", number)
            assert not list(TARGETS.glob("core*"))


def test_a_sleeper_meets_the_wall_clock_and_is_flagged(level: Bench) -> None:
    """T17: no CPU time is used, so the captime never comes."""
    report = level.one(launch("sleep", "60", captime=0.1, wall_limit=0.4))
    assert report.ended == "wall"
    assert "idle" in report.flags
    assert report.runtime_ns < 0.1e9


@pytest.mark.parametrize("runs", sizes(60, 2000))
def test_at_the_captime_is_too_late(best: Bench, runs: int) -> None:
    """T18: runs aimed at the captime, up to 6 ms on either side; no exit is reported at the captime or after it."""
    captime = 0.02
    reports = best.run(
        [
            launch(
                call=FunctionCall(
                    b"", "burn:burn", pickle.dumps(((captime - 0.006 + 0.012 * run / runs,), {})), (str(TARGETS),)
                ),
                captime=captime,
            )
            for run in range(runs)
        ]
    )
    assert {report.ended for report in reports} == {"exit", "captime"}
    assert all(report.runtime_ns / 1e9 < captime for report in reports if report.ended == "exit")
    assert all(report.runtime_ns / 1e9 >= captime for report in reports if report.ended == "captime")


def test_any_bytes_may_be_printed(best: Bench) -> None:
    """T20: a megabyte of noise, escape sequences and NUL; patterns are matched on bytes."""
    code = (
        "import os, random; random.seed(1); os.write(1, random.randbytes(1 << 20)); "
        "os.write(1, b'\\n\\x1b[2J\\0\\xff answer=\\xfe\\xff\\n')"
    )
    report = best.one(launch(sys.executable, "-I", "-S", "-c", code, patterns={"answer": r"answer=(?P<value>.+)"}))
    assert report.exit_code == 0
    assert report.output_bytes > MEGABYTE
    assert report.matches["answer"] == b"\xfe\xff"
    assert report.stdout_tail.endswith(b"\n\x1b[2J\0\xff answer=\xfe\xff\n")


NASTY = [
    b"with space",
    b"'single'",
    b'"double"',
    b"new\nline",
    b"-dash",
    b"$(touch PWNED)",
    b"; touch PWNED",
    b"`touch PWNED`",
    b"star*?[x]",
    b"back\\slash",
    b"not-utf8-\xff\xfe",
    b"\xc3\xa4\xe2\x82\xac\x1b[31m",
]


def test_nasty_names_and_values_arrive_unchanged(best: Bench, tmp_path: Path) -> None:
    """T21, T22: twelve file names and values, byte by byte, through no shell; and one of 100 KB."""
    paths = [os.fsencode(tmp_path) + b"/" + name for name in NASTY]
    for path in paths:
        with open(path, "wb") as file:  # noqa: PTH123 (a name in bytes)
            file.write(b"content")
    large = "v" * 100_000
    words = [os.fsdecode(word) for word in [*paths, *NASTY]] + [large, ""]
    guarded = tuple(fingerprint_of(os.fsdecode(path)) for path in paths)
    report = best.one(
        target("misbehave", "tell", *words, guarded=guarded, output_limit=1 << 24, patterns={"all": "^.*$"})
    )
    assert report.exit_code == 0, report
    # Longer than what is kept of the output, so each of two reports shows one end of it.
    seen = json.loads(best.one(target("misbehave", "tell", *words[:-2])).stdout_head)["arguments"]
    assert seen == [os.fsencode(word).hex() for word in words[:-2]]
    assert not list(tmp_path.glob("PWNED"))


def test_a_value_too_long_for_any_command_line_is_told(best: Bench) -> None:
    """T22: the system refuses it, and the report says so."""
    report = best.one(launch("true", "v" * (4 << 20)))
    assert report.ended == "not-started"
    assert "too long" in report.problem


def test_a_target_sees_nothing_of_us(level: Bench) -> None:
    """T23: three descriptors, no terminal, its own session, its own directory for work and for temporary files."""
    report = level.one(target("misbehave", "tell"))
    seen = json.loads(report.stdout_head)
    assert seen["descriptors"] == [0, 1, 2]
    assert seen["session"]
    assert not seen["terminal"]
    assert seen["environment"]["TMPDIR"] == seen["directory"]
    assert set(seen["environment"]) - {"PWD", "LC_CTYPE"} == {"PATH", "TMPDIR", "CAPTIME_RUN"}
    assert not Path(seen["directory"]).exists() or not list(Path(seen["directory"]).iterdir())
    assert len(seen["cores"]) == 1 or len(os.sched_getaffinity(0)) < 2


def test_who_kills_its_group_kills_itself(level: Bench) -> None:
    """T24: it is alone in its group."""
    before = level.executor.pids()
    report = level.one(target("misbehave", "kill-group"))
    assert (report.ended, report.signal) == ("exit", 9)
    assert level.executor.pids() == before


def test_who_kills_its_supervisor_is_lost_and_the_slot_comes_back(level: Bench) -> None:
    """T24, F4: the run is lost through no fault of the mathematics, nothing survives, and the next run succeeds."""
    before = set(level.executor.pids())
    report = level.one(target("misbehave", "kill-parent"))
    assert report.ended == "lost"
    assert "signal 9" in report.problem
    assert len(before - set(level.executor.pids())) == 1
    assert level.one(launch("true")).exit_code == 0
    assert level.survivors() == []
