import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from captime.supervision import processes, spawn
from captime.supervision.cgroups import Cgroup, own_group
from captime.supervision.processes import children_of
from captime.supervision.spawn import Descriptors, ProcessSetup, start


@pytest.fixture
def group() -> Iterator[Cgroup]:
    """A control group of our own."""
    folder = own_group()
    try:
        made = None if folder is None else Cgroup(folder / f"captime-test-{os.getpid()}")
    except OSError:
        made = None
    if made is None:
        pytest.skip("control groups are not ours to make on this machine")
    yield made
    made.remove()
    assert not made.folder.exists()


@pytest.mark.parametrize("by_birth", [True, False])
def test_whoever_comes_into_a_group_is_counted_from_exec_on(
    group: Cgroup, by_birth: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Born there or moved there: the program is inside when it begins, and only its own CPU time is on its bill."""
    if not by_birth:
        monkeypatch.setattr(spawn, "fork_into_group", lambda _: None)
    said = tmp_path / "said"
    opened = [os.open(os.devnull, os.O_RDWR), os.open(said, os.O_WRONLY | os.O_CREAT), group.entrance(), group.place()]
    nowhere, out, entrance, place = opened
    program = ("sh", "-c", "cat /proc/self/cgroup; i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done")
    try:
        started = start(
            program,
            dict(os.environ),
            ProcessSetup(os.getpid(), str(tmp_path)),
            Descriptors(nowhere, out, nowhere, entrance, place),
        )
    finally:
        for each in opened:
            os.close(each)
    _, status, used = os.wait4(started.pid, 0)
    assert status == 0
    inside = next(line for line in said.read_text(encoding="ascii").splitlines() if line.startswith("0::"))
    assert inside.endswith(f"/{group.folder.name}")
    assert (started.counted_ns > 0) is by_birth
    used_by_program = (used.ru_utime + used.ru_stime) * 1e9 - started.cpu_ns
    assert used_by_program > 5e6
    # The group counts in ticks of the scheduler; our share before exec would be more than that only with a slow start,
    # so what is compared is the difference of two counts of the same thing.
    assert group.cpu_ns() - started.counted_ns == pytest.approx(used_by_program, abs=4e6)


def test_where_there_is_no_such_fork_the_child_walks() -> None:
    """A kernel that cannot do it, or a folder that is no control group: None, and no child that is not waited for."""
    before = children_of(os.getpid())
    descriptor = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        assert processes.fork_into_group(descriptor) is None
    finally:
        os.close(descriptor)
    assert children_of(os.getpid()) == before
