import math
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from captime.errors import InvariantViolated, ScenarioError
from captime.executors import LocalExecutor
from captime.executors.local_slots import cores
from captime.runs import RunRequest
from captime.supervision import process_tree, processes, run
from captime.supervision.cgroups import Cgroup
from captime.supervision.messages import Report
from captime.supervision.process_tree import ProcessTree, strike, strike_group
from captime.supervision.processes import command
from captime.supervision.run import Limits, too_late
from captime.supervision.scratch import Folders, remove, used_bytes
from captime.supervision.spawn import SpawnedProcess
from supervised import Bench, Plain, launch


@pytest.mark.parametrize(
    ("runtime_ns", "captime", "late"),
    [
        (1_000_000_000, 1.0, True),
        (999_999_999, 1.0, False),
        (1_000_000_001, 1.0, True),
        (1_000_000_000, math.nextafter(1.0, 2.0), False),
        (1_000_000_000, math.nextafter(1.0, 0.0), True),
        (0, 0.0, True),
        (10**15, math.inf, False),
    ],
)
def test_at_the_captime_is_late(runtime_ns: int, captime: float, late: bool) -> None:
    """T18: the boundary, to the last bit."""
    assert too_late(runtime_ns, captime) is late


def test_supervisors_load_no_numpy() -> None:
    """They are started with an empty package in place of ours."""
    words = command("captime.supervision.slot")
    program = words[words.index("-c") + 1].replace(".main(sys.argv[3:])", "; print(*sorted(sys.modules))")
    done = subprocess.run([*words[:-3], program, *words[-2:]], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "captime.supervision.launcher" in loaded
    assert [name for name in loaded if name.partition(".")[0] in {"numpy", "scipy", "rich", "pydantic"}] == []


def test_ps_and_proc_tell_the_same() -> None:
    """Where there is no /proc, `ps` knows which process descends from which; checked here, where there are both."""
    child = subprocess.Popen(["sleep", "60"], env={"CAPTIME_RUN": "by-ps/1", "PATH": os.environ["PATH"]})
    try:
        seen, known = processes._table_by_ps()[child.pid], processes.look_at(child.pid)
        assert known is not None
        assert (seen.parent, seen.group, seen.alive) == (known.parent, known.group, known.alive)
        assert seen.parent == os.getpid()
        assert processes._resident_by_ps()[child.pid] > 0
        assert processes._tagged_by_ps(b"CAPTIME_RUN=by-ps/", whole=False) == processes.tagged("by-ps/") == [child.pid]
        assert processes._tagged_by_ps(b"CAPTIME_RUN=by-ps/1", whole=True) == [child.pid]
        assert processes._tagged_by_ps(b"CAPTIME_RUN=by-ps/", whole=True) == []
        assert processes.tagged("by-ps/1", whole=True) == [child.pid]
        assert processes.tagged("by-ps/", whole=True) == []
    finally:
        child.kill()
        child.wait()
    assert [processes._seconds(text) for text in ("00:01", "1:02:03", "2-00:00:01", "3:04.56")] == [
        1,
        3723,
        172801,
        184,
    ]


def test_memory_limits_of_a_control_group_are_written_where_the_kernel_reads_them(tmp_path: Path) -> None:
    """Where the controllers are handed down; a plain folder stands for the kernel's."""
    group = Cgroup(tmp_path / "run")
    assert not group.limit(100, 5)
    for name in ("memory.max", "memory.swap.max", "memory.oom.group", "pids.max", "cgroup.kill"):
        (group.folder / name).touch()
    assert group.limit(100, 5)
    written = {path.name: path.read_text(encoding="ascii") for path in group.folder.iterdir()}
    assert written == {
        "memory.max": "100",
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "pids.max": "5",
        "cgroup.kill": "",
    }
    assert (group.peak_memory(), group.ran_out_of_memory(), group.cpu_ns(), group.pids()) == (None, False, 0, [])
    (group.folder / "memory.peak").write_text("99\n", encoding="ascii")
    (group.folder / "memory.events").write_text("low 0\noom 1\noom_kill 2\n", encoding="ascii")
    (group.folder / "cpu.stat").write_text("usage_usec 1234\nuser_usec 1000\n", encoding="ascii")
    (group.folder / "cgroup.procs").write_text("12\n34\n", encoding="ascii")
    assert (group.peak_memory(), group.ran_out_of_memory(), group.cpu_ns(), group.pids()) == (
        99,
        True,
        1_234_000,
        [12, 34],
    )


def test_a_directory_is_given_again_only_if_nothing_was_left(tmp_path: Path) -> None:
    """Emptied, locked or replaced by a link: each is told from untouched."""
    folders = Folders(str(tmp_path))
    first = folders.fresh()
    folders.give_back(first)
    assert folders.fresh() == first
    Path(first, "file").touch()
    folders.give_back(first)
    second = folders.fresh()
    assert second != first
    assert not Path(first).exists()
    Path(second).chmod(0o755)
    folders.give_back(second)
    third = folders.fresh()
    assert third not in {first, second}
    Path(third).rmdir()
    Path(third).symlink_to(tmp_path)
    folders.give_back(third)
    assert tmp_path.exists()
    assert folders.fresh() != third


def test_whatever_is_in_a_directory_can_be_measured_and_removed(tmp_path: Path) -> None:
    """Links are not followed, nests deeper than Python's recursion are, and locked folders are unlocked."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_bytes(b"x" * 100_000)
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "file").write_bytes(b"x" * 50_000)
    (inside / "link").symlink_to(outside)
    locked = inside / "locked"
    locked.mkdir()
    (locked / "file").touch()
    locked.chmod(0o000)
    here = Path.cwd()
    os.chdir(inside)
    for _ in range(1_200):
        os.mkdir("d")  # noqa: PTH102 (deeper than any path)
        os.chdir("d")
    os.chdir(here)
    assert 50_000 <= max(used_bytes(str(inside))) < 100_000 + 1_300 * 4096
    remove(str(inside))
    assert not inside.exists()
    assert (outside / "kept").exists()
    remove(str(inside))


def test_a_link_where_the_directory_was_changes_nothing_outside(tmp_path: Path) -> None:
    """A run may replace its directory, or a folder in it, by a link to files of another user; their modes stay."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch(mode=0o400)
    outside.chmod(0o500)
    try:
        instead, within = tmp_path / "instead", tmp_path / "within"
        instead.symlink_to(outside)
        remove(str(instead))
        assert not instead.is_symlink()
        locked = within / "locked"
        locked.mkdir(parents=True)
        (locked / "link").symlink_to(outside)
        (locked / "other").symlink_to(outside / "kept")
        locked.chmod(0o500)
        remove(str(within))
        assert not within.exists()
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (outside, outside / "kept")]
        assert modes == [0o500, 0o400]
    finally:
        outside.chmod(0o700)


def test_what_is_mounted_in_a_directory_is_not_emptied(tmp_path: Path) -> None:
    """As root a run may mount anything there; its content is not the run's."""
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    (outside / "kept").touch()
    (inside / "folder" / "mounted").mkdir(parents=True)
    (inside / "file").touch()
    mounted = inside / "folder" / "mounted"
    if subprocess.run(["mount", "--bind", outside, mounted], check=False, capture_output=True).returncode != 0:
        pytest.skip("nothing can be mounted here")
    try:
        remove(str(inside))
        assert (outside / "kept").exists()
        assert not (inside / "file").exists()
    finally:
        subprocess.run(["umount", mounted], check=True)
    remove(str(inside))
    assert not inside.exists()


def test_who_was_killed_is_waited_for_even_if_it_cannot_be_found_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process on its way out has lost its environment, and with it its tag, before it is gone."""
    daemon, main = subprocess.Popen(["sleep", "60"]), subprocess.Popen(["true"])
    main.wait()
    found, strikes = iter([[daemon.pid]]), iter([None, None, None])

    def struck_at_last(process: processes.Process) -> None:
        if next(strikes, process) is not None:
            strike(process)

    monkeypatch.setattr(process_tree, "tagged", lambda _tag, **_: next(found, []))
    monkeypatch.setattr(process_tree, "strike", struck_at_last)
    try:
        made = ProcessTree(SpawnedProcess(main.pid, 0, 0, 0), None, adopts=False, keep=frozenset, tag="leaving/1")
        assert made.destroy() == (1, True)
        assert daemon.wait(10) == -9
    finally:
        daemon.kill()
        daemon.wait()


def test_our_own_group_is_never_struck() -> None:
    """Nor process 1, nor all processes."""
    for leader in (os.getpgrp(), 1, 0, -1):
        strike_group(leader)


def test_a_machine_that_slept_loses_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """C2: the difference of two clocks is what tells."""
    assert abs(processes.suspended_ns() - processes.suspended_ns()) < 50_000_000
    moments = iter([0, 60_000_000])
    monkeypatch.setattr(run, "suspended_ns", lambda: next(moments))
    report = _judged_after_sleep()
    assert report.ended == "lost"
    assert "suspended" in report.flags


def _judged_after_sleep() -> Report:
    """The last step of a run, as if everything before had gone well."""
    tree = ProcessTree(SpawnedProcess(1, 0, 0, 0), None, adopts=True, keep=frozenset, tag="")
    plain = launch("true")
    limits = Limits(plain, tree, "", memory_is_limited=False)
    finished = run.SupervisedRun(plain, tree, None, limits, listener=None, duties=None, group=None)  # type: ignore[arg-type]  # unused
    return finished._judged(Report(0, "exit", exit_code=0), all_gone=True)


def test_wrong_wishes_are_told() -> None:
    """No slots, no such level, no such tag."""
    with pytest.raises(ScenarioError, match="jobs must be at least 1, got 0"):
        LocalExecutor(Plain({}), 0, tag="wishes")
    with pytest.raises(ScenarioError, match="there are cgroup2, subreaper, posix"):
        LocalExecutor(Plain({}), 1, tag="wishes", isolation="magic")
    with pytest.raises(InvariantViolated, match="tag"):
        LocalExecutor(Plain({}), 1, tag="a/b")


def test_waiting_for_years_is_no_error() -> None:
    """A campaign with a billion seconds of wall-clock time; selectors refuse to wait for so long at once."""
    with LocalExecutor(Plain(launch("true")), 1, tag=f"test-years-{os.getpid()}") as executor:
        executor.submit([RunRequest(0, 0, 1.0)])
        assert len(executor.collect(1e9)) == 1


def test_the_overhead_is_measured_at_the_start() -> None:
    """P4, P5: with the isolation level; and cores are only given to slots if there are enough."""
    opened = Bench(f"test-parts-{os.getpid()}", slots=1)
    try:
        overhead = opened.executor.overhead
        assert 0.0 < overhead.added <= overhead.worst
        assert overhead.measured > 0.0
        assert opened.executor.isolation in {"cgroup2", "subreaper", "posix"}
    finally:
        opened.executor.close()
    assert len(cores()) <= (os.cpu_count() or 1)
    assert sys.platform != "linux" or cores()
